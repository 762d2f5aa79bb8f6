/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Contiguous copies of any length between any two places, with what lies around them. */
#include "common/layout/copy.h"
#include "test/unit/tree.h"

enum { AROUND = 128, LONGEST = (256 << 10) + 100, PLACES = 65, CANARY = 0xa5 };

static _Alignas(4096) unsigned char from[LONGEST + 2 * AROUND];
static _Alignas(4096) unsigned char to[LONGEST + 2 * AROUND];

typedef void copy_t(void *to, const void *from, size_t bytes);

static void words(void *dst, const void *src, size_t bytes)
{
    onic_copy_words((uintptr_t)dst, (uintptr_t)src, bytes);
}

static void by_source(void *dst, const void *src, size_t bytes)
{
    onic_move((uintptr_t)dst, (uintptr_t)src, bytes, (uintptr_t)src);
}

static bool all_canaries(const unsigned char *at)
{
    unsigned char different = 0;

    for (int i = 0; i < AROUND; i++)
        different |= at[i] ^ CANARY;
    return different == 0;
}

/** Copies once; every byte of the destination, and of what lies around it, is as it must be. */
static void check(copy_t *copy, size_t dst, size_t src, size_t bytes)
{
    unsigned char *at = to + AROUND + dst;
    unsigned char different = 0;

    memset(at - AROUND, CANARY, bytes + 2 * AROUND);
    copy(at, from + src, bytes);
    for (size_t i = 0; i < bytes; i++)
        different |= at[i] ^ from[src + i];
    UNIT_CHECK(different == 0);
    UNIT_CHECK(all_canaries(at - AROUND) && all_canaries(at + bytes));
}

static void check_places(size_t bytes, size_t step)
{
    for (size_t dst = 0; dst < PLACES; dst += step) {
        for (size_t src = 0; src < PLACES; src += step) {
            check(onic_copy_bytes, dst, src, bytes);
            check(by_source, dst, src, bytes);
            check(onic_copy_streaming, dst, src, bytes);
            if (bytes >= 32 && bytes % 8 == 0)
                check(words, dst, src, bytes);
        }
    }
}

START_TEST(short_ones)
{
    for (size_t bytes = 0; bytes <= 100; bytes++)
        check_places(bytes, 1);
}
END_TEST

START_TEST(longer_ones)
{
    static const size_t lengths[] = {159,  160,  161,  167,  168,  255,  256,  257,
                                     1015, 1023, 1024, 1025, 1032, 1151, 1152, 1153,
                                     1160, 1184, 1280, 2047, 2048, 2055, 4096, 4104};

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
        check_places(lengths[i], 1 + i % 3);
}
END_TEST

START_TEST(string_lengths)
{
    static const size_t lengths[] = {ONIC_STRING_FROM - 8, ONIC_STRING_FROM, ONIC_STRING_TO,
                                     ONIC_STRING_TO + 8};

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
        check_places(lengths[i], 16);
    UNIT_CHECK(onic_string_is_fast(0, 0) && onic_string_is_fast(64, 0));
    UNIT_CHECK(!onic_string_is_fast(1, 0) && !onic_string_is_fast(63, 0));
    UNIT_CHECK(!onic_string_is_fast(4096, 4080) && onic_string_is_fast(4080, 4096));
}
END_TEST

START_TEST(any_length)
{
    for (int i = 0; i < 3000; i++) {
        const size_t bytes = (size_t)(rnd(0, 20) ? rnd(0, 5000) : rnd(0, LONGEST - PLACES));
        const size_t dst = (size_t)rnd(0, PLACES), src = (size_t)rnd(0, PLACES);

        check(onic_copy_bytes, dst, src, bytes);
        check(by_source, dst, src, bytes);
        check(onic_copy_streaming, dst, src, bytes);
        check(words, dst, src, (bytes + 32) & ~(size_t)7);
    }
}
END_TEST

int main(void)
{
    tree_seed();
    for (size_t i = 0; i < sizeof(from); i++)
        from[i] = (unsigned char)rnd64();
    return UNIT_RUN("copy", UNIT_ONCE(short_ones), UNIT_ONCE(longer_ones),
                    UNIT_ONCE(string_lengths), UNIT_ONCE(any_length));
}
