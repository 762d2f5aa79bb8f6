/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Where the parts of a window lie. */
#include "osc_nicstride/window/place.h"

#include "test/unit/unit.h"

enum { PAGE = 4096, PLACES = 32 };

START_TEST(shifts_differ)
{
    for (int i = 0; i < 1000; i++) {
        const size_t shift = nicstride_shift(NICSTRIDE_PARTS_SHIFTED, i);

        UNIT_CHECK(shift % NICSTRIDE_LINE == 0 && shift / NICSTRIDE_LINE % 2 == 1);
        UNIT_CHECK(shift < PAGE);
        for (int k = 1; k < PLACES; k++) {
            const size_t other = nicstride_shift(NICSTRIDE_PARTS_SHIFTED, i + k);
            const size_t lines = (shift > other ? shift - other : other - shift) / NICSTRIDE_LINE;

            UNIT_CHECK(lines > 0);
            /* Round the page, too. */
            UNIT_CHECK(k > 2 || (lines >= 6 && PAGE / NICSTRIDE_LINE - lines >= 6));
        }
        UNIT_CHECK(nicstride_shift(NICSTRIDE_PARTS_ON_PAGES, i) == 0);
        UNIT_CHECK(nicstride_shift(NICSTRIDE_PARTS_CONTIGUOUS, i) == 0);
    }
}
END_TEST

/* No byte is in two parts, and but for the shift there is no more than a page between them. */
START_TEST(parts_do_not_meet)
{
    unit_random_t r = {unit_seed() + (uint64_t)_i};
    const nicstride_parts_t parts = (nicstride_parts_t)(_i % 3);
    uint64_t at = PAGE * unit_below(&r, 10);

    for (int i = 0; i < 40; i++) {
        const uint64_t size = unit_once_in(&r, 4) ? 0 : unit_below(&r, 3 * PAGE);
        const nicstride_part_t part = nicstride_place(parts, PAGE, at, i, size);

        UNIT_CHECK(part.from >= at && part.from + size <= part.to);
        if (parts == NICSTRIDE_PARTS_CONTIGUOUS) {
            UNIT_CHECK(part.from == at && part.to == at + size);
        } else {
            UNIT_CHECK(part.to % PAGE == 0 && part.to < part.from + size + PAGE);
            UNIT_CHECK(part.from - at == (size > 0 ? nicstride_shift(parts, i) : 0));
        }
        UNIT_CHECK(size > 0 || part.to == at);
        at = part.to;
    }
}
END_TEST

START_TEST(alignments)
{
    static const char *const taken[] = {"128", "4096", "2097152", "9223372036854775808"};
    static const char *const ignored[] = {
        "", "0", "1", "64", "100", "4097", "4096x", "page", "-4096", "1e3", "99999999999999999999"};

    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
        ck_assert_msg(nicstride_wants_pages(taken[i]), "%s", taken[i]);
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
        ck_assert_msg(!nicstride_wants_pages(ignored[i]), "%s", ignored[i]);
}
END_TEST

int main(void)
{
    unit_in_one_process();
    return UNIT_RUN("place", UNIT_LOOP(parts_do_not_meet, 0, 300), UNIT_ONCE(shifts_differ),
                    UNIT_ONCE(alignments));
}
