/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/window/place.h"

#include <stdlib.h>

/** Odd numbers of lines in the smallest page there is. */
#define PLACES 32
/** Odd, so that all places are used; neighbours, and theirs, are 6 to 26 lines apart. */
#define STEP 13

size_t nicstride_shift(nicstride_parts_t parts, int index)
{
    if (parts != NICSTRIDE_PARTS_SHIFTED)
        return 0;
    return NICSTRIDE_LINE * (2 * ((unsigned)index * STEP % PLACES) + 1);
}

nicstride_part_t nicstride_place(nicstride_parts_t parts, size_t page, uint64_t at, int index,
                                 uint64_t size)
{
    const uint64_t from = size > 0 ? at + nicstride_shift(parts, index) : at;

    if (parts == NICSTRIDE_PARTS_CONTIGUOUS)
        return (nicstride_part_t){from, from + size};
    return (nicstride_part_t){from, (from + size + page - 1) / page * page};
}

bool nicstride_wants_pages(const char *alignment)
{
    char *end;
    const unsigned long long n = strtoull(alignment, &end, 10);

    return *end == '\0' && n > NICSTRIDE_LINE && (n & (n - 1)) == 0;
}
