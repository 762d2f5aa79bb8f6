/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What is told of memory (protocol/message.h): what was written is read, and every single thing
 * that can be wrong with it is refused; regions are cut into pieces without gap or overlap.
 */
#include "osc_nicstride/protocol/message.h"

#include <string.h>

#include "test/unit/unit.h"

enum { ROWS = 12, BLOB_MAX = 100, ROUNDS = 2000 };

static const nicstride_span_t region = {0x1000, 0x2345, 7};

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
static const char *check(const nicstride_keys_t *k, size_t len, nicstride_span_t *span)
{
    unsigned char *copy = malloc(len + 1);
    const char *why;

    UNIT_CHECK(copy != NULL);
    memcpy(copy + 1, k->bytes, len);
    why = nicstride_keys_check(copy + 1, len, span);
    free(copy);
    return why;
}

START_TEST(what_is_written_is_read)
{
    unit_random_t r = {unit_seed()};

    for (int round = 0; round < ROUNDS; round++) {
        size_t lens[ROWS][NICSTRIDE_PARTS] = {{0}}, at = NICSTRIDE_KEYS_HEAD;
        nicstride_span_t span;
        nicstride_blob_t blob;
        nicstride_keys_t k;

        nicstride_keys_begin(&k, unit_once_in(&r, 4) ? NULL : &region);
        for (unsigned row = 0; row < ROWS; row++) {
            for (unsigned part = 0; part < NICSTRIDE_PARTS; part++) {
                lens[row][part] = unit_once_in(&r, 3) ? unit_below(&r, BLOB_MAX) : 0;
                add(&k, row, part, lens[row][part]);
            }
        }
        UNIT_CHECK(check(&k, k.len, &span) == NULL);
        UNIT_CHECK(span.size == 0 || memcmp(&span, &region, sizeof(span)) == 0);
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
    nicstride_span_t span;
    nicstride_keys_t k;
    size_t between;

    nicstride_keys_begin(&k, &region);
    add(&k, 3, 0, 20);
    between = k.len;
    add(&k, 3, 1, 9);
    for (size_t len = 0; len < k.len; len++)
        UNIT_CHECK((check(&k, len, &span) == NULL) ==
                   (len == NICSTRIDE_KEYS_HEAD || len == between));
}
END_TEST

START_TEST(regions_that_wrap_are_refused)
{
    const nicstride_span_t wraps = {UINT64_MAX - 4, 6, 0}, ends = {UINT64_MAX - 4, 4, 0};
    nicstride_span_t span;
    nicstride_keys_t k;

    nicstride_keys_begin(&k, &wraps);
    ck_assert(check(&k, k.len, &span) != NULL);
    nicstride_keys_begin(&k, &ends);
    ck_assert(check(&k, k.len, &span) == NULL);
}
END_TEST

START_TEST(room_ends)
{
    nicstride_span_t span;
    nicstride_keys_t k;
    unsigned row = 0;
    size_t cap;

    nicstride_keys_begin(&k, &region);
    while (nicstride_keys_room(&k, &cap) != NULL) {
        add(&k, row, 0, cap < 100 ? cap : 100);
        row++;
    }
    ck_assert(k.len <= NICSTRIDE_KEYS_MAX && k.len > NICSTRIDE_KEYS_MAX - NICSTRIDE_BLOB_HEAD - 1);
    ck_assert(check(&k, k.len, &span) == NULL);
}
END_TEST

START_TEST(pieces_cover_a_region)
{
    unit_random_t r = {unit_seed()};

    for (int round = 0; round < ROUNDS; round++) {
        const nicstride_span_t whole = {unit_below(&r, 1000), 1 + unit_below(&r, 1000), 3};
        const uint64_t piece = 1 + unit_below(&r, 300);
        uint64_t at = whole.at;

        while (at < whole.at + whole.size) {
            const nicstride_span_t first = nicstride_piece_of(&whole, at, piece);
            const nicstride_span_t last =
                nicstride_piece_of(&whole, first.at + first.size - 1, piece);

            UNIT_CHECK(first.at == at && first.size > 0 && first.size <= piece);
            UNIT_CHECK(first.generation == 3 && memcmp(&first, &last, sizeof(first)) == 0);
            UNIT_CHECK(nicstride_span_holds(&first, at, first.size));
            UNIT_CHECK(!nicstride_span_holds(&first, at, first.size + 1));
            UNIT_CHECK(at == 0 || !nicstride_span_holds(&first, at - 1, 1));
            at += first.size;
        }
        UNIT_CHECK(at == whole.at + whole.size);
    }
}
END_TEST

int main(void)
{
    return UNIT_RUN("keys", UNIT_ONCE(what_is_written_is_read), UNIT_ONCE(cut_messages_are_refused),
                    UNIT_ONCE(regions_that_wrap_are_refused), UNIT_ONCE(room_ends),
                    UNIT_ONCE(pieces_cover_a_region));
}
