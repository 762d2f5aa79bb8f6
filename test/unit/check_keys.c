/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What is told of memory (protocol/message.h): what was written is read, and every single thing
 * that can be wrong with it is refused; windows are cut into pieces without gap or overlap.
 */
#include "osc_nicstride/protocol/message.h"

#include <string.h>

#include "test/unit/unit.h"

enum { ROWS = 12, BLOB_MAX = 100, ROUNDS = 2000 };

static void fill(unsigned char *bytes, size_t len, unsigned row, unsigned part)
{
    for (size_t i = 0; i < len; i++)
        bytes[i] = (unsigned char)(row * 31 + part * 7 + i);
}

static void add(nicstride_keys_t *k, unsigned row, unsigned part, size_t len)
{
    size_t cap;
    unsigned char *to = nicstride_keys_room(k, &cap);

    UNIT_CHECK(cap >= len && to != NULL);
    fill(to, len, row, part);
    nicstride_keys_add(k, row, (nicstride_part_of_t)part, len);
}

/** Reads a copy of its own size, so that reading beyond it shows. */
static const char *check(const nicstride_keys_t *k, size_t len)
{
    unsigned char *copy = malloc(len + 1);
    const char *why;

    UNIT_CHECK(copy != NULL);
    memcpy(copy + 1, k->bytes, len);
    why = nicstride_keys_check(copy + 1, len);
    free(copy);
    return why;
}

START_TEST(what_is_written_is_read)
{
    unit_random_t r = {unit_seed()};

    for (int round = 0; round < ROUNDS; round++) {
        size_t lens[ROWS][NICSTRIDE_PARTS] = {{0}}, at = 0;
        nicstride_blob_t blob;
        nicstride_keys_t k;

        k.len = 0;
        for (unsigned row = 0; row < ROWS; row++) {
            for (unsigned part = 0; part < NICSTRIDE_PARTS; part++) {
                lens[row][part] = unit_once_in(&r, 3) ? unit_below(&r, BLOB_MAX) : 0;
                add(&k, row, part, lens[row][part]);
            }
        }
        UNIT_CHECK(check(&k, k.len) == NULL);
        while (nicstride_keys_next(k.bytes, k.len, &at, &blob)) {
            unsigned char wanted[BLOB_MAX];

            UNIT_CHECK(blob.row < ROWS && blob.len == lens[blob.row][blob.part]);
            fill(wanted, blob.len, blob.row, blob.part);
            UNIT_CHECK(memcmp(blob.bytes, wanted, blob.len) == 0);
            lens[blob.row][blob.part] = 0;
        }
        UNIT_CHECK(at == k.len);
        for (unsigned i = 0; i < NICSTRIDE_PARTS * ROWS; i++)
            UNIT_CHECK(lens[i / NICSTRIDE_PARTS][i % NICSTRIDE_PARTS] == 0);
    }
}
END_TEST

/** Cut anywhere but between two blobs it is not right. */
START_TEST(cut_messages_are_refused)
{
    nicstride_keys_t k;
    size_t between;

    k.len = 0;
    add(&k, 3, 0, 20);
    between = k.len;
    add(&k, 3, 1, 9);
    for (size_t len = 0; len < k.len; len++)
        UNIT_CHECK((check(&k, len) == NULL) == (len == 0 || len == between));
}
END_TEST

START_TEST(what_is_wrong_is_refused)
{
    nicstride_keys_t k;

    k.len = 0;
    add(&k, 5, 1, 3);
    add(&k, 5, 0, 3);
    ck_assert(check(&k, k.len) != NULL);
    k.len = 0;
    add(&k, 5, 0, 3);
    add(&k, 5, 0, 3);
    ck_assert(check(&k, k.len) != NULL);
    k.len = 0;
    add(&k, 5, NICSTRIDE_PARTS, 3);
    ck_assert(check(&k, k.len) != NULL);
}
END_TEST

START_TEST(room_ends)
{
    nicstride_keys_t k;
    unsigned row = 0;
    size_t cap;

    k.len = 0;
    while (nicstride_keys_room(&k, &cap) != NULL) {
        add(&k, row, 0, cap < 100 ? cap : 100);
        row++;
    }
    ck_assert(k.len <= NICSTRIDE_KEYS_MAX && k.len > NICSTRIDE_KEYS_MAX - NICSTRIDE_BLOB_HEAD - 1);
    ck_assert(check(&k, k.len) == NULL);
}
END_TEST

START_TEST(pieces_cover_a_window)
{
    unit_random_t r = {unit_seed()};

    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t bytes = unit_below(&r, 1000), piece = 1 + unit_below(&r, 300);
        uint64_t at = 0, i = 0;

        for (nicstride_span_t s; (s = nicstride_piece(bytes, piece, i)).size > 0; i++) {
            UNIT_CHECK(s.at == at && s.at == i * piece);
            UNIT_CHECK(s.size == piece || s.at + s.size == bytes);
            at += s.size;
        }
        UNIT_CHECK(at == bytes);
        UNIT_CHECK(nicstride_piece(bytes, piece, i + 1).size == 0);
        UNIT_CHECK(nicstride_piece(bytes, piece, UINT64_MAX - unit_below(&r, 5)).size == 0);
    }
    for (int bits = 0; bits < 64; bits++) {
        const uint64_t bytes = UINT64_MAX >> bits;

        for (uint64_t mib = 1; mib <= 1 << 20; mib *= 2) {
            const uint64_t piece = (uint64_t)nicstride_piece_mib(bytes, mib << 20) << 20;

            UNIT_CHECK(piece >= mib << 20 && bytes / piece < 65536);
            UNIT_CHECK(piece == mib << 20 || bytes / (mib << 20) >= 65536);
        }
    }
}
END_TEST

int main(void)
{
    return UNIT_RUN("keys", UNIT_ONCE(what_is_written_is_read), UNIT_ONCE(cut_messages_are_refused),
                    UNIT_ONCE(what_is_wrong_is_refused), UNIT_ONCE(room_ends),
                    UNIT_ONCE(pieces_cover_a_window));
}
