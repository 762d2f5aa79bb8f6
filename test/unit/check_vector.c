/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Vectors of puts and gets: what goes in comes out, a message that becomes longer says so,
 *  and nothing is read beyond the end. */
#include "osc_nicstride/protocol/message.h"
#include "osc_nicstride/protocol/vector.h"

#include <string.h>

#include "test/unit/unit.h"

enum { RECORDS = NICSTRIDE_VECTOR_MAX, LONGEST = 400 };

static nicstride_batch_t batch;
static unsigned char data[RECORDS][LONGEST];
static uint64_t place[RECORDS];
static uint32_t len[RECORDS];

static size_t bytes_of(bool puts, unsigned i)
{
    return NICSTRIDE_RECORD_HEAD + (puts ? len[i] : 0);
}

/** Writes record `i`, as the first of a message, or behind those before. */
static bool write_record(bool puts, unsigned i)
{
    nicstride_msg_t msg;
    unsigned char *at;

    if (i > 0) {
        at = nicstride_batch_extend(&batch, sizeof(batch.bytes), bytes_of(puts, i));
    } else {
        at = nicstride_batch_room(&batch, sizeof(batch.bytes), sizeof(msg) + bytes_of(puts, i));
        nicstride_msg_init(&msg, puts ? NICSTRIDE_MSG_PUTV : NICSTRIDE_MSG_GETV, 3, 5);
        msg.flags = NICSTRIDE_MSG_INLINE;
        msg.len = bytes_of(puts, i);
        if (at != NULL) {
            memcpy(at, &msg, sizeof(msg));
            at += sizeof(msg);
        }
    }
    if (at == NULL)
        return false;
    at = nicstride_record_write(at, place[i], len[i]);
    if (puts)
        memcpy(at, data[i], len[i]);
    return true;
}

/** Reads the next message of the batch, and finds the records in it. */
static void read_message(size_t *at_p, bool puts, unsigned n)
{
    const void *message, *vector;
    nicstride_record_t r;
    nicstride_msg_t msg;
    size_t message_len, at = 0;
    uint64_t sum = 0;

    UNIT_CHECK(nicstride_batch_next(batch.bytes, batch.len, at_p, &message, &message_len));
    UNIT_CHECK(nicstride_msg_decode(message, message_len, 0, &msg, &vector));
    UNIT_CHECK(msg.type == (puts ? NICSTRIDE_MSG_PUTV : NICSTRIDE_MSG_GETV));
    UNIT_CHECK(puts || nicstride_msg_kept(&msg) >= NICSTRIDE_KEPT_RECORD + msg.len);
    for (unsigned i = 0; i < n; i++) {
        UNIT_CHECK(nicstride_record_next(vector, msg.len, puts, &at, &r));
        UNIT_CHECK(r.place == place[i] && r.len == len[i]);
        UNIT_CHECK(!puts || memcmp(r.data, data[i], len[i]) == 0);
        sum += len[i];
    }
    UNIT_CHECK(!nicstride_record_next(vector, msg.len, puts, &at, &r) && at == msg.len);
    UNIT_CHECK(puts || nicstride_getv_bytes(vector, msg.len) == sum);
}

/* Between other messages, which stay as they are. */
START_TEST(there_and_back)
{
    unit_random_t r = {unit_seed()};

    for (int round = 0; round < 3000; round++) {
        const unsigned n = 1 + (unsigned)unit_below(&r, RECORDS);
        const bool puts = unit_once_in(&r, 2);
        const void *message;
        size_t at = 0, message_len;

        batch.len = 0;
        memcpy(nicstride_batch_room(&batch, sizeof(batch.bytes), 6), "before", 6);
        for (unsigned i = 0; i < n; i++) {
            place[i] = unit_random64(&r);
            len[i] = (uint32_t)unit_below(&r, LONGEST + 1);
            for (uint32_t b = 0; b < len[i]; b++)
                data[i][b] = (unsigned char)unit_random64(&r);
            UNIT_CHECK(write_record(puts, i));
        }
        memcpy(nicstride_batch_room(&batch, sizeof(batch.bytes), 6), "behind", 6);
        UNIT_CHECK(nicstride_batch_next(batch.bytes, batch.len, &at, &message, &message_len) &&
                   message_len == 6 && memcmp(message, "before", 6) == 0);
        read_message(&at, puts, n);
        UNIT_CHECK(nicstride_batch_next(batch.bytes, batch.len, &at, &message, &message_len) &&
                   message_len == 6 && memcmp(message, "behind", 6) == 0);
        UNIT_CHECK(at == batch.len);
    }
}
END_TEST

/* To the last byte of the room that there is. */
START_TEST(what_does_not_fit)
{
    batch.len = 0;
    len[0] = len[1] = 8;
    UNIT_CHECK(write_record(true, 0));
    const size_t before = batch.len, more = bytes_of(true, 1);

    UNIT_CHECK(nicstride_batch_extend(&batch, before - 1, more) == NULL);
    UNIT_CHECK(nicstride_batch_extend(&batch, before + more - 1, more) == NULL);
    UNIT_CHECK(nicstride_batch_extend(&batch, before, SIZE_MAX) == NULL);
    UNIT_CHECK(batch.len == before);
    UNIT_CHECK(nicstride_batch_extend(&batch, before + more, more) == batch.bytes + before);
    UNIT_CHECK(batch.len == before + more);
}
END_TEST

/* Bytes of any kind: every record lies within them, behind the one before. */
START_TEST(random_bytes)
{
    unit_random_t r = {unit_seed()};
    unsigned records = 0, broken = 0;

    for (int i = 0; i < 50000; i++) {
        const bool puts = unit_once_in(&r, 2);
        const size_t n = unit_below(&r, 80);
        unsigned char *memory = malloc(n + 1), *bytes = memory + 1;
        nicstride_record_t record;
        size_t at = 0, before = 0;

        UNIT_CHECK(memory != NULL);
        for (size_t b = 0; b < n; b++)
            bytes[b] = (unsigned char)(unit_once_in(&r, 8) ? unit_below(&r, 256) : 0);
        while (nicstride_record_next(bytes, n, puts, &at, &record)) {
            UNIT_CHECK(at <= n && at >= before + NICSTRIDE_RECORD_HEAD);
            UNIT_CHECK(record.data == bytes + before + NICSTRIDE_RECORD_HEAD);
            UNIT_CHECK(!puts || record.data + record.len == bytes + at);
            before = at;
            records++;
        }
        broken += at < n;
        free(memory);
    }
    ck_assert_uint_gt(records, 10000);
    ck_assert_uint_gt(broken, 10000);
}
END_TEST

int main(void)
{
    return UNIT_RUN("vector", UNIT_ONCE(there_and_back), UNIT_ONCE(what_does_not_fit),
                    UNIT_ONCE(random_bytes));
}
