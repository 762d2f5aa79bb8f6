/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What is told of memory (protocol/message.h): what was written is read, and every single thing
 * that can be wrong with it is refused.
 */
#include "osc_nicstride/protocol/message.h"

#include <string.h>

#include "test/unit/unit.h"

enum { ROWS = 12, BLOB_MAX = 100, ROUNDS = 2000 };

static void fill(unsigned char *bytes, size_t len, unsigned row)
{
    for (size_t i = 0; i < len; i++)
        bytes[i] = (unsigned char)(row * 31 + i);
}

static void add(nicstride_keys_t *k, unsigned row, size_t len)
{
    size_t cap;
    unsigned char *to = nicstride_keys_room(k, &cap);

    UNIT_CHECK(cap >= len && to != NULL);
    fill(to, len, row);
    nicstride_keys_add(k, row, len);
}

/** Reads the first `len` bytes in a copy of that size, so that reading beyond it shows. Sets `lens`
 *  of rows with a blob to 0. True if all of it is blobs. */
static bool read_all(const nicstride_keys_t *k, size_t len, size_t lens[ROWS])
{
    unsigned char *copy = malloc(len + 1);
    nicstride_blob_t blob;
    size_t at = 0;

    UNIT_CHECK(copy != NULL);
    memcpy(copy + 1, k->bytes, len);
    while (nicstride_keys_next(copy + 1, len, &at, &blob)) {
        unsigned char wanted[BLOB_MAX];

        UNIT_CHECK(blob.row < ROWS && blob.len == lens[blob.row]);
        fill(wanted, blob.len, blob.row);
        UNIT_CHECK(memcmp(blob.bytes, wanted, blob.len) == 0);
        lens[blob.row] = 0;
    }
    free(copy);
    return at == len;
}

START_TEST(what_is_written_is_read)
{
    unit_random_t r = {unit_seed()};

    for (int round = 0; round < ROUNDS; round++) {
        size_t lens[ROWS];
        nicstride_keys_t k = {.len = 0};

        for (unsigned row = 0; row < ROWS; row++) {
            lens[row] = unit_once_in(&r, 3) ? unit_below(&r, BLOB_MAX) : 0;
            add(&k, row, lens[row]);
        }
        UNIT_CHECK(read_all(&k, k.len, lens));
        for (unsigned row = 0; row < ROWS; row++)
            UNIT_CHECK(lens[row] == 0);
    }
}
END_TEST

/** Cut anywhere but between two blobs it is not right. */
START_TEST(cut_messages_are_refused)
{
    nicstride_keys_t k = {.len = 0};
    size_t between;

    add(&k, 3, 20);
    between = k.len;
    add(&k, 4, 9);
    for (size_t len = 0; len < k.len; len++) {
        size_t lens[ROWS] = {[3] = 20, [4] = 9};

        UNIT_CHECK(read_all(&k, len, lens) == (len == 0 || len == between));
    }
}
END_TEST

START_TEST(room_ends)
{
    nicstride_keys_t k = {.len = 0};
    size_t cap;

    while (nicstride_keys_room(&k, &cap) != NULL)
        add(&k, 0, cap < 100 ? cap : 100);
    ck_assert(k.len <= NICSTRIDE_KEYS_MAX && k.len > NICSTRIDE_KEYS_MAX - NICSTRIDE_BLOB_HEAD - 1);
}
END_TEST

int main(void)
{
    return UNIT_RUN("keys", UNIT_ONCE(what_is_written_is_read), UNIT_ONCE(cut_messages_are_refused),
                    UNIT_ONCE(room_ends));
}
