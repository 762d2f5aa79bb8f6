/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Several messages in one: what goes in comes out, and nothing is read beyond the end. */
#include "osc_nicstride/protocol/message.h"

#include <string.h>

#include "test/unit/unit.h"

/* And one that does not fit any more. */
#define MESSAGES_MAX (NICSTRIDE_BATCH_MAX / 3 + 1)

static nicstride_batch_t batch;
static unsigned char all[2 * NICSTRIDE_BATCH_MAX + 2];

static bool add(size_t max, const void *message, size_t len)
{
    unsigned char *at = nicstride_batch_room(&batch, max, len);

    if (at != NULL)
        memcpy(at, message, len);
    return at != NULL;
}

/* Messages of random lengths until one does not fit; they are compared with the bytes they are. */
START_TEST(there_and_back)
{
    unit_random_t r = {unit_seed()};
    unsigned full = 0;

    for (size_t i = 0; i < sizeof(all); i++)
        all[i] = (unsigned char)unit_random64(&r);
    for (int round = 0; round < 2000; round++) {
        const size_t max =
            unit_once_in(&r, 3) ? NICSTRIDE_BATCH_MAX : unit_below(&r, NICSTRIDE_BATCH_MAX + 1);
        const size_t longest = 1 + unit_below(&r, unit_once_in(&r, 4) ? max + 2 : 40);
        size_t from[MESSAGES_MAX], len[MESSAGES_MAX], at = 0, n = 0, used = 0, message_len;
        const void *message;

        batch.len = 0;
        memset(batch.bytes, 0xee, sizeof(batch.bytes));
        for (;; n++) {
            len[n] = 1 + unit_below(&r, longest);
            from[n] = unit_below(&r, NICSTRIDE_BATCH_MAX);
            const bool fits = used + 2 + len[n] <= max;
            UNIT_CHECK(add(max, all + from[n], len[n]) == fits);
            if (!fits)
                break;
            used += 2 + len[n];
        }
        UNIT_CHECK(batch.len == used);
        for (size_t i = used; i < sizeof(batch.bytes); i++)
            UNIT_CHECK(batch.bytes[i] == 0xee);
        for (size_t i = 0; i < n; i++) {
            UNIT_CHECK(nicstride_batch_next(batch.bytes, used, &at, &message, &message_len));
            UNIT_CHECK(message_len == len[i] && memcmp(message, all + from[i], len[i]) == 0);
        }
        UNIT_CHECK(!nicstride_batch_next(batch.bytes, used, &at, &message, &message_len));
        UNIT_CHECK(at == used);
        full += n > 1;
    }
    ck_assert_uint_gt(full, 1000);
}
END_TEST

START_TEST(what_does_not_fit)
{
    batch.len = 0;
    ck_assert(!add(NICSTRIDE_BATCH_MAX, all, 0));
    ck_assert(!add(0, all, 1));
    ck_assert(!add(2, all, 1));
    ck_assert(!add(NICSTRIDE_BATCH_MAX, all, SIZE_MAX));
    ck_assert(!add(NICSTRIDE_BATCH_MAX, all, UINT16_MAX + 2));
    ck_assert_uint_eq(batch.len, 0);
    ck_assert(add(3, all, 1));
    ck_assert(!add(2, all, 1)); /* less than there is already */
    ck_assert_uint_eq(batch.len, 3);
}
END_TEST

/* Bytes of any kind: every message lies within them, behind the one before. */
START_TEST(random_bytes)
{
    unit_random_t r = {unit_seed()};
    unsigned messages = 0, broken = 0;

    for (int i = 0; i < 50000; i++) {
        const size_t len = unit_below(&r, 64);
        unsigned char *memory = malloc(len + 1), *bytes = memory + 1;
        size_t at = 0, before = 0, message_len;
        const void *message;

        UNIT_CHECK(memory != NULL);
        for (size_t b = 0; b < len; b++)
            bytes[b] = (unsigned char)(unit_once_in(&r, 2) ? 0 : unit_below(&r, 20));
        while (nicstride_batch_next(bytes, len, &at, &message, &message_len)) {
            UNIT_CHECK((const unsigned char *)message == bytes + before + 2 && message_len > 0);
            UNIT_CHECK(at == before + 2 + message_len && at <= len);
            before = at;
            messages++;
        }
        broken += at < len;
        free(memory);
    }
    ck_assert_uint_gt(messages, 10000);
    ck_assert_uint_gt(broken, 10000);
}
END_TEST

int main(void)
{
    return UNIT_RUN("batch", UNIT_ONCE(there_and_back), UNIT_ONCE(what_does_not_fit),
                    UNIT_ONCE(random_bytes));
}
