/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Fuzzes the messages of the agreement: whatever is understood has one form only, and names no rank
 * that does not exist.
 *
 * Input: what is expected (a topic of NICBARRIER_TOPIC_SIZE bytes), then the message.
 */
#include <string.h>

#include "coll_nicbarrier/agree/message.h"
#include "common/support/bytes.h"
#include "test/fuzz/fuzz.h"

enum { RANKS = 1000 };

static bool rank_or_none(uint32_t rank)
{
    return rank < RANKS || rank == NICBARRIER_NO_RANK;
}

static int take_record(const uint8_t *data, size_t len, nicbarrier_topic_t topic)
{
    unsigned char again[NICBARRIER_MESSAGE_MAX];
    nicbarrier_summary_t r;

    if (!nicbarrier_summary_read(data, len, RANKS, &r))
        return -1;
    FUZZ_CHECK(rank_or_none(r.first) && rank_or_none(r.last) && rank_or_none(r.complainer));
    FUZZ_CHECK(r.leaders <= RANKS && r.nodes <= RANKS && r.engine <= NICBARRIER_ENGINES_MAX);
    FUZZ_CHECK(nicbarrier_summary_write(again, topic, &r) == len);
    FUZZ_CHECK(memcmp(again, data, len) == 0);
    return 0;
}

static int take_node(const uint8_t *data, size_t len, nicbarrier_topic_t topic)
{
    unsigned char again[NICBARRIER_MESSAGE_MAX];
    nicbarrier_node_word_t w;

    if (!nicbarrier_node_read(data, len, RANKS, &w))
        return -1;
    FUZZ_CHECK(w.index > 0 && w.index < w.n && w.n <= RANKS);
    FUZZ_CHECK(nicbarrier_node_write(again, topic, &w) == len && memcmp(again, data, len) == 0);
    return 0;
}

static int take_word(const uint8_t *data, size_t len, nicbarrier_topic_t topic)
{
    unsigned char again[NICBARRIER_MESSAGE_MAX];
    uint32_t word;

    if (!nicbarrier_word_read(data, len, 1, RANKS - 1, &word))
        return -1;
    FUZZ_CHECK(word >= 1 && word < RANKS);
    FUZZ_CHECK(nicbarrier_word_write(again, topic, word) == len && memcmp(again, data, len) == 0);
    return 0;
}

static int take_table(const uint8_t *data, size_t len, nicbarrier_topic_t topic)
{
    unsigned char again[NICBARRIER_MESSAGE_MAX];
    uint32_t ranks[NICBARRIER_TABLE_RANKS];
    const int n = topic.step % NICBARRIER_TABLE_RANKS + 1;
    bool failed;

    if (!nicbarrier_table_read(data, len, RANKS, &failed, ranks, n))
        return -1;
    for (int i = 0; i < n; i++)
        FUZZ_CHECK(ranks[i] < RANKS);
    FUZZ_CHECK(nicbarrier_table_write(again, topic, failed, ranks, n) == len);
    FUZZ_CHECK(memcmp(again, data, len) == 0);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (len < NICBARRIER_TOPIC_SIZE)
        return -1;
    const nicbarrier_topic_t topic = {data[0], data[1], data[2], onic_get32(data + 4)};
    data += NICBARRIER_TOPIC_SIZE;
    len -= NICBARRIER_TOPIC_SIZE;
    if (nicbarrier_topic_check(data, len, topic) != NICBARRIER_FITS)
        return -1;
    const int taken[] = {take_record(data, len, topic), take_node(data, len, topic),
                         take_word(data, len, topic), take_table(data, len, topic)};
    return taken[0] == 0 || taken[1] == 0 || taken[2] == 0 || taken[3] == 0 ? 0 : -1;
}

/* What ranks would really say. */
size_t onic_fuzz_seed(unsigned i, uint8_t *buf, size_t cap)
{
    const nicbarrier_topic_t topic = {(uint8_t)(1 + i), 2, 1, 5};
    const nicbarrier_summary_t record = {.flags = 1, .complainer = 4, .leaders = 3, .nodes = 2};
    const nicbarrier_node_word_t word = {NICBARRIER_MAP, 1, 2, {0}};
    const uint32_t ranks[3] = {5, 6, 7};
    uint8_t *at = buf + NICBARRIER_TOPIC_SIZE;

    if (i > 3 || cap < NICBARRIER_TOPIC_SIZE + NICBARRIER_MESSAGE_MAX)
        return 0;
    nicbarrier_topic_write(buf, topic);
    return NICBARRIER_TOPIC_SIZE + (i == 0   ? nicbarrier_summary_write(at, topic, &record)
                                    : i == 1 ? nicbarrier_node_write(at, topic, &word)
                                    : i == 2 ? nicbarrier_word_write(at, topic, 9)
                                             : nicbarrier_table_write(at, topic, false, ranks, 3));
}
