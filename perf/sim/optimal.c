/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "perf/sim/optimal.h"

#include <math.h>

/* Fractions of the distance to the nearer end at which chunks of an optimal schedule may end. */
#define FINENESS 16
/* Or fractions of a buffer; after this many buffers all chunks are full. */
#define EIGHTHS 8

/** What the receiver still has to copy when a chunk has arrived. */
static double tail_of(const onic_link_t *link, double chunk, double block)
{
    return fmax(fmin(block, chunk) / link->bcopy, chunk / link->bcopy - chunk / link->bnet);
}

/** The positions at which chunks may end: close together at both ends of the transfer, where chunk
 *  sizes matter most, and never so far apart that a chunk would be too long. Returns how many. */
static unsigned ends(double bytes, double first, double unit, double most,
                     double end[SIM_OPTIMAL_MAX + 1])
{
    const double wide = fmax(most, ceil(bytes / (SIM_OPTIMAL_MAX / 2)));
    double at = first;
    unsigned n = first > 0;

    end[0] = 0;
    end[n] = at;
    while (at < bytes && n < SIM_OPTIMAL_MAX - 1) {
        const double edge = fmin(at, bytes - at);
        const double fine = fmin(most / EIGHTHS, edge / FINENESS);
        const double step = edge > EIGHTHS * most ? wide : fmax(unit, unit * floor(fine / unit));

        at = fmin(bytes, at + step);
        end[++n] = at;
    }
    if (at < bytes)
        end[++n] = bytes;
    return n;
}

unsigned sim_chunks_optimal(const onic_link_t *link, double bytes, double unit, double most,
                            double begun, double block, uint32_t size[SIM_OPTIMAL_MAX])
{
    /* Before there are buffers only the first chunk can be copied; it may be as long as that is
     * free. */
    const double free =
        begun > 0 ? fmin(bytes, fmin(most, fmax(1, floor(begun * link->bcopy)))) : 0;
    const double late = free > 0 ? fmax(0, free / link->bcopy - begun) : 0;
    /* For each prefix of the transfer: when it has left, and where its last chunk begins. */
    double end[SIM_OPTIMAL_MAX + 1], left[SIM_OPTIMAL_MAX + 1] = {0};
    unsigned from[SIM_OPTIMAL_MAX + 1] = {0}, count = 0;
    const unsigned n = ends(bytes, free, unit, most, end), least = free > 0 ? 1 : 0;

    for (unsigned p = 1; p <= n; p++) {
        const double copied = late + (end[p] - free) / link->bcopy;
        double best = INFINITY;

        for (unsigned k = p;
             k-- > (p > 1 ? least : 0) && (k == p - 1 || end[p] - end[k] <= most);) {
            const double chunk = end[p] - end[k];
            const double leaves = fmax(left[k], copied) + link->gap + chunk / link->bnet;
            const double costs = leaves + (p == n ? tail_of(link, chunk, block) : 0);

            if (costs < best) {
                best = costs;
                left[p] = leaves;
                from[p] = k;
            }
        }
    }
    for (unsigned p = n; p > 0; p = from[p])
        count++;
    for (unsigned p = n, i = count; p > 0; p = from[p])
        size[--i] = (uint32_t)(end[p] - end[from[p]]);
    return count;
}
