/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Which buffers come back, against a list that keeps the order of all of them. */
#include "pml_superpipe/protocols/cost.h"

#include <string.h>

#include "test/unit/unit.h"

#define STEPS 4000

/** Has it come back? */
static bool note(superpipe_reuse_t *reuse, uint64_t start, uint64_t length)
{
    const double share = superpipe_reuse_note(reuse, start, length);

    UNIT_CHECK(share == 0 || share == 1 - reuse->hits);
    return share == 0;
}

/** All that were ever used, the last one at the end. */
static struct {
    uint64_t start, length;
} all[STEPS];
static unsigned nall;

static bool naive(uint64_t start, uint64_t length)
{
    const unsigned oldest = nall > SUPERPIPE_BUFFERS ? nall - SUPERPIPE_BUFFERS : 0;

    for (unsigned i = nall; i-- > oldest;) {
        if (start >= all[i].start && start + length <= all[i].start + all[i].length) {
            const uint64_t from = all[i].start, bytes = all[i].length;

            memmove(&all[i], &all[i + 1], (nall - i - 1) * sizeof(all[0]));
            all[nall - 1].start = from;
            all[nall - 1].length = bytes;
            return true;
        }
    }
    all[nall].start = start;
    all[nall++].length = length;
    return false;
}

START_TEST(as_naive)
{
    unit_random_t r = {unit_seed() + (uint64_t)_i};
    superpipe_reuse_t reuse = {.hits = 0};
    /* From those that fit to those that do not. */
    const uint64_t places = 8 + unit_below(&r, 100);

    nall = 0;
    for (int n = 0; n < STEPS; n++) {
        const uint64_t start = 4096 * (1 + unit_below(&r, places));
        const uint64_t length = 1024 * (1 + unit_below(&r, 8));

        UNIT_CHECK(note(&reuse, start, length) == naive(start, length));
        UNIT_CHECK(reuse.hits >= 0 && reuse.hits <= 1);
    }
}
END_TEST

/** Until it is known that buffers come back each one bears its own cost; a program that uses a few
 *  over and over bears next to nothing for one more; and the other way round again. */
START_TEST(phases)
{
    superpipe_reuse_t reuse = {.hits = 0};
    uint64_t fresh = 1 << 20;

    for (int n = 0; n < 100; n++)
        (void)note(&reuse, 4096 * (1 + (uint64_t)n % 4), 4096);
    ck_assert(superpipe_reuse_note(&reuse, 1 << 19, 4096) < 0.1);
    for (int n = 0; n < 100; n++, fresh += 8192)
        ck_assert(!note(&reuse, fresh, 4096));
    ck_assert(superpipe_reuse_note(&reuse, fresh, 4096) > 0.95);
}
END_TEST

/** Ends of the address space. */
START_TEST(extremes)
{
    superpipe_reuse_t reuse = {.hits = 0};

    ck_assert(!note(&reuse, UINT64_MAX - 9, 10));
    ck_assert(note(&reuse, UINT64_MAX - 9, 10));
    ck_assert(note(&reuse, UINT64_MAX, 1));
    ck_assert(!note(&reuse, UINT64_MAX - 10, 10));
    ck_assert(!note(&reuse, 0, UINT64_MAX));
    ck_assert(note(&reuse, 1, UINT64_MAX - 1));
}
END_TEST

int main(void)
{
    return UNIT_RUN("pml reuse", UNIT_LOOP(as_naive, 0, 8), UNIT_ONCE(phases), UNIT_ONCE(extremes));
}
