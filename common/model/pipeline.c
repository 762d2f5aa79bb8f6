/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/model/pipeline.h"

#include <math.h>

/* Rounding must not add a chunk to a transfer that ends with a full one. */
#define ROUNDING 1e-9

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
