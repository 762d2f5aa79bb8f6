/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coll_nicbarrier/agree/message.h"

#include <string.h>

#include "common/support/bytes.h"

static const unsigned char *body_of(const void *bytes)
{
    return (const unsigned char *)bytes + NICBARRIER_TOPIC_SIZE;
}

/* ---- topics -----------------------------------------------------------------------------------
 */

size_t nicbarrier_topic_write(void *at, nicbarrier_topic_t topic)
{
    unsigned char *b = at;

    b[0] = topic.subject;
    b[1] = topic.step;
    b[2] = topic.attempt;
    b[3] = 0;
    onic_put32(b + 4, topic.number);
    return NICBARRIER_TOPIC_SIZE;
}

nicbarrier_fit_t nicbarrier_topic_check(const void *bytes, size_t len, nicbarrier_topic_t expected)
{
    const unsigned char *b = bytes;

    if (len < NICBARRIER_TOPIC_SIZE)
        return NICBARRIER_BROKEN;
    const uint32_t number = onic_get32(b + 4);
    if ((int32_t)(number - expected.number) < 0)
        return NICBARRIER_STALE;
    return number == expected.number && b[0] == expected.subject && b[1] == expected.step &&
                   b[2] == expected.attempt && b[3] == 0
               ? NICBARRIER_FITS
               : NICBARRIER_BROKEN;
}

/* ---- records ----------------------------------------------------------------------------------
 */

size_t nicbarrier_summary_write(void *at, nicbarrier_topic_t topic, const nicbarrier_summary_t *r)
{
    unsigned char *b = (unsigned char *)at + nicbarrier_topic_write(at, topic);

    b[0] = r->flags;
    b[1] = r->engine;
    onic_put16(b + 2, 0);
    onic_put32(b + 4, r->complainer);
    onic_put64(b + 8, r->settings);
    onic_put64(b + 16, r->views);
    onic_put64(b + 24, r->key);
    onic_put32(b + 32, r->job);
    onic_put32(b + 36, r->leaders);
    onic_put32(b + 40, r->first);
    onic_put32(b + 44, r->last);
    onic_put32(b + 48, r->index);
    onic_put32(b + 52, r->nodes);
    memcpy(b + 56, r->score, NICBARRIER_ENGINES_MAX);
    return NICBARRIER_SUMMARY_SIZE;
}

static bool is_rank(uint32_t rank, uint32_t size)
{
    return rank < size || rank == NICBARRIER_NO_RANK;
}

bool nicbarrier_summary_read(const void *bytes, size_t len, uint32_t size, nicbarrier_summary_t *r)
{
    const unsigned char *b = body_of(bytes);

    if (len != NICBARRIER_SUMMARY_SIZE)
        return false;
    *r = (nicbarrier_summary_t){.flags = b[0],
                                .engine = b[1],
                                .complainer = onic_get32(b + 4),
                                .settings = onic_get64(b + 8),
                                .views = onic_get64(b + 16),
                                .key = onic_get64(b + 24),
                                .job = onic_get32(b + 32),
                                .leaders = onic_get32(b + 36),
                                .first = onic_get32(b + 40),
                                .last = onic_get32(b + 44),
                                .index = onic_get32(b + 48),
                                .nodes = onic_get32(b + 52)};
    memcpy(r->score, b + 56, NICBARRIER_ENGINES_MAX);
    return onic_get16(b + 2) == 0 &&
           r->flags <= (NICBARRIER_FAILED | NICBARRIER_DIFFERS | NICBARRIER_JOBS) &&
           r->engine <= NICBARRIER_ENGINES_MAX && is_rank(r->complainer, size) &&
           is_rank(r->first, size) && is_rank(r->last, size) && r->leaders <= size &&
           r->index <= size && r->nodes <= size;
}

/* ---- words of a node --------------------------------------------------------------------------
 */

size_t nicbarrier_node_write(void *at, nicbarrier_topic_t topic, const nicbarrier_node_word_t *w)
{
    unsigned char *b = (unsigned char *)at + nicbarrier_topic_write(at, topic);

    memset(b, 0, 4);
    b[0] = w->word;
    onic_put32(b + 4, w->index);
    onic_put32(b + 8, w->n);
    memcpy(b + 12, w->key, NICBARRIER_SEGMENT_KEY);
    return NICBARRIER_NODE_SIZE;
}

bool nicbarrier_node_read(const void *bytes, size_t len, uint32_t size, nicbarrier_node_word_t *w)
{
    const unsigned char *b = body_of(bytes);

    if (len != NICBARRIER_NODE_SIZE)
        return false;
    *w = (nicbarrier_node_word_t){b[0], onic_get32(b + 4), onic_get32(b + 8), {0}};
    memcpy(w->key, b + 12, NICBARRIER_SEGMENT_KEY);
    return w->word >= NICBARRIER_MAP && w->word <= NICBARRIER_APART && b[1] == 0 && b[2] == 0 &&
           b[3] == 0 && w->index > 0 && w->index < w->n && w->n <= size;
}

/* ---- words ------------------------------------------------------------------------------------
 */

size_t nicbarrier_word_write(void *at, nicbarrier_topic_t topic, uint32_t word)
{
    onic_put32((unsigned char *)at + nicbarrier_topic_write(at, topic), word);
    return NICBARRIER_WORD_SIZE;
}

bool nicbarrier_word_read(const void *bytes, size_t len, uint32_t min, uint32_t max, uint32_t *word)
{
    if (len != NICBARRIER_WORD_SIZE)
        return false;
    *word = onic_get32(body_of(bytes));
    return *word >= min && *word <= max;
}

/* ---- tables -----------------------------------------------------------------------------------
 */

size_t nicbarrier_table_write(void *at, nicbarrier_topic_t topic, bool failed,
                              const uint32_t *ranks, int n)
{
    unsigned char *b = (unsigned char *)at + nicbarrier_word_write(at, topic, failed);

    for (int i = 0; i < n; i++)
        onic_put32(b + 4 * i, ranks != NULL ? ranks[i] : 0);
    return NICBARRIER_WORD_SIZE + 4 * (size_t)n;
}

bool nicbarrier_table_read(const void *bytes, size_t len, uint32_t size, bool *failed_p,
                           uint32_t *ranks, int n)
{
    const unsigned char *b = body_of(bytes);

    if (len != NICBARRIER_WORD_SIZE + 4 * (size_t)n || onic_get32(b) > 1)
        return false;
    *failed_p = onic_get32(b) == 1;
    for (int i = 0; i < n; i++) {
        const uint32_t rank = onic_get32(b + 4 + 4 * i);
        if (rank >= size)
            return false;
        if (ranks != NULL)
            ranks[i] = rank;
    }
    return true;
}
