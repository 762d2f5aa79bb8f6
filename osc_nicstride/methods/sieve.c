/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/methods/sieve.h"

#include "common/layout/layout_walk.h"

/** Shortens a run to the blocks that a piece covers without reading long gaps. */
static void shorten(onic_run_t *run, uint64_t piece, uint64_t gap_max)
{
    const uint64_t step = onic_magnitude(run->stride);

    if (step > run->block && step - run->block > gap_max)
        run->count = 1;
    else if (step > 0 && run->count > (piece - run->block) / step + 1)
        run->count = (piece - run->block) / step + 1;
}

nicstride_cover_t nicstride_sieve_next(const onic_cursor_t *at, uint64_t piece, uint64_t gap_max)
{
    nicstride_cover_t c = {0};
    onic_cursor_t next = *at;
    int64_t end = 0;
    onic_run_t run;

    while (onic_cursor_peek(&next, piece, &run) > 0) {
        shorten(&run, piece, gap_max);
        const int64_t last = run.offset + (int64_t)(run.count - 1) * run.stride;
        const int64_t from = run.offset < last ? run.offset : last,
                      to = (run.offset < last ? last : run.offset) + (int64_t)run.block;
        const int64_t lo = c.bytes == 0 || from < c.lo ? from : c.lo,
                      hi = c.bytes == 0 || to > end ? to : end;

        if (c.bytes > 0 && ((uint64_t)(hi - lo) > piece || from - end > (int64_t)gap_max ||
                            c.lo - to > (int64_t)gap_max))
            break;
        c.lo = lo;
        c.bytes += run.block * run.count;
        end = hi;
        onic_cursor_advance(&next, &run);
    }
    c.len = (uint64_t)(end - c.lo);
    return c;
}
