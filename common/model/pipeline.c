/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/model/pipeline.h"

#include <math.h>

/* Rounding must not add a chunk to a transfer that ends with a full one. */
#define ROUNDING 1e-9
/* Fractions of the distance to the nearer end at which chunks of an optimal schedule may end. */
#define FINENESS 16
/* Or fractions of a buffer; after this many buffers all chunks are full. */
#define EIGHTHS 8

onic_chunks_t onic_superpipeline_chunks(const onic_link_t *link, double least, double most)
{
    const double first = link->bcopy * 2 * link->latency;

    return (onic_chunks_t){.first = fmin(most, fmax(least, first)),
                           .ratio = link->bcopy / link->bnet,
                           .least = least,
                           .most = most};
}

/** The number of chunks before their size reaches its bound; may be infinite. */
static double before_bound(const onic_chunks_t *c)
{
    const double bound = c->ratio > 1 ? c->most : c->least;

    if (c->ratio == 1)
        return INFINITY;
    return ceil(log(bound / c->first) / log(c->ratio));
}

/** Bytes of the first `n` chunks before the bound. */
static double series(const onic_chunks_t *c, double n)
{
    if (c->ratio == 1)
        return n * c->first;
    return c->first * (pow(c->ratio, n) - 1) / (c->ratio - 1);
}

double onic_chunks_sum(const onic_chunks_t *c, double n)
{
    const double free_ones = fmin(n, before_bound(c));

    return series(c, free_ones) + (n - free_ones) * (c->ratio > 1 ? c->most : c->least);
}

double onic_chunks_count(const onic_chunks_t *c, double bytes)
{
    const double free_ones = before_bound(c);

    if (c->ratio == 1)
        return bytes / c->first;
    /* The sum of a shrinking series stays below C_0 / (1 - q); the bound is reached before that. */
    if (bytes <= series(c, free_ones))
        return log(1 + bytes / c->first * (c->ratio - 1)) / log(c->ratio);
    return free_ones + (bytes - series(c, free_ones)) / (c->ratio > 1 ? c->most : c->least);
}

double onic_superpipeline_time_blocks(const onic_link_t *link, const onic_chunks_t *c, double bytes,
                                      double block)
{
    const double n = fmax(1, ceil(onic_chunks_count(c, bytes) * (1 - ROUNDING)));
    const double first = fmin(c->first, bytes), last = bytes - onic_chunks_sum(c, n - 1);
    /* The copying before the first chunk is sent, and after the last one has arrived. */
    const double head = fmax(0, first / link->bcopy - 2 * link->latency);
    const double tail = fmin(block, last) / link->bcopy;
    const double moved = head + n * link->gap + bytes / link->bnet + tail;
    /* What is left to copy of a chunk that arrives faster than it is copied. */
    const double left = fmax(tail, last / link->bcopy - last / link->bnet);
    const double copied_in =
        head + (bytes - first) / link->bcopy + link->gap + last / link->bnet + left;
    /* The chunk before it may be longer, and has to be copied out first. */
    const double before = n > 1 ? onic_chunks_sum(c, n - 1) - onic_chunks_sum(c, n - 2) : 0;
    const double its_left =
        fmax(fmin(block, before) / link->bcopy, before / link->bcopy - before / link->bnet);
    const double copied_two = head + (bytes - first - last) / link->bcopy + link->gap +
                              before / link->bnet + its_left + last / link->bcopy;
    /* The receiver begins when a block has arrived. */
    const double copied_out =
        head + link->gap + fmin(block, first) / link->bnet + bytes / link->bcopy;

    return link->latency + fmax(fmax(moved, n > 1 ? copied_two : 0), fmax(copied_in, copied_out));
}

/* ---- optimal schedules ----------------------------------------------------------------------- */

/** What the receiver still has to copy when a chunk has arrived. */
static double tail_of(const onic_link_t *link, double chunk, double block)
{
    return fmax(fmin(block, chunk) / link->bcopy, chunk / link->bcopy - chunk / link->bnet);
}

/** The positions at which chunks may end: close together at both ends of the transfer, where chunk
 *  sizes matter most, and never so far apart that a chunk would be too long. Returns how many. */
static unsigned ends(double bytes, double first, double unit, double most,
                     double end[ONIC_OPTIMAL_MAX + 1])
{
    const double wide = fmax(most, ceil(bytes / (ONIC_OPTIMAL_MAX / 2)));
    double at = first;
    unsigned n = first > 0;

    end[0] = 0;
    end[n] = at;
    while (at < bytes && n < ONIC_OPTIMAL_MAX - 1) {
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

unsigned onic_chunks_optimal(const onic_link_t *link, double bytes, double unit, double most,
                             double begun, double block, uint32_t size[ONIC_OPTIMAL_MAX])
{
    /* Before there are buffers only the first chunk can be copied; it may be as long as that is
     * free. */
    const double free =
        begun > 0 ? fmin(bytes, fmin(most, fmax(1, floor(begun * link->bcopy)))) : 0;
    const double late = free > 0 ? fmax(0, free / link->bcopy - begun) : 0;
    /* For each prefix of the transfer: when it has left, and where its last chunk begins. */
    double end[ONIC_OPTIMAL_MAX + 1], left[ONIC_OPTIMAL_MAX + 1] = {0};
    unsigned from[ONIC_OPTIMAL_MAX + 1] = {0}, count = 0;
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
