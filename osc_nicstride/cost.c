/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/cost.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rows that stand a line or a page apart are mostly cold: programs sweep their memory between two
 * exchanges. Of messages nothing is measured: two processes would have to be brought together for
 * it, and how near their processors are changes; that is learned from the transfers (tune.h). */
const nicstride_cost_t nicstride_cost_node = {
    .call = 1200,
    .piece = 400,
    .copy = 0.09,
    .block = 0.5,
    .line = 2,
    .page = 8,
    .message = 700,
    .byte = 0.15,
    .rendezvous = 5000,
    .rndv_byte = 0.10,
    .wake = 15000,
    .absence = 500000,
    .sieve_piece = 512 << 10,
};

const nicstride_cost_t nicstride_cost_net = {
    .call = 500,
    .piece = 500,
    .copy = 0.09,
    .block = 0.5,
    .line = 2,
    .page = 8,
    .message = 10000,
    .byte = 0.13,
    .rendezvous = 30000,
    .rndv_byte = 0.09,
    .wake = 15000,
    .absence = 500000,
    .sieve_piece = 512 << 10,
};

/** How far the blocks of a layout are from each other: of a list, on average. */
static uint64_t distance(const onic_layout_t *l)
{
    const int64_t stride = l->nlevels > 0 ? l->level[0].stride : 0;

    if (l->nruns > 0)
        return (uint64_t)(l->ub - l->lb) / onic_layout_blocks(l);
    return stride < 0 ? -(uint64_t)stride : (uint64_t)stride;
}

static double greater(double a, double b)
{
    return a > b ? a : b;
}

/** One block, so far from the next. Between the distances that are known it is in proportion: of
 *  blocks that share a line or a page each has its part of what that costs. */
static double block_cost(double apart, const nicstride_cost_t *cost)
{
    const double line = NICSTRIDE_COST_LINE, page = NICSTRIDE_COST_PAGE;

    if (apart >= page)
        return cost->page;
    if (apart >= line)
        return cost->line + (cost->page - cost->line) * (apart - line) / (page - line);
    return greater(cost->block, cost->line * apart / line);
}

double nicstride_gather_cost(const onic_layout_t *l, const nicstride_cost_t *cost)
{
    if (onic_layout_is_contig(l))
        return 0;
    return (double)onic_layout_blocks(l) * block_cost((double)distance(l), cost);
}

static void fit(double *constant, double measured)
{
    const double least = *constant / NICSTRIDE_COST_FACTOR;
    const double most = *constant * NICSTRIDE_COST_FACTOR;

    if (!(measured > 0) || !isfinite(measured))
        return;
    *constant = measured > most ? most : greater(measured, least);
}

/** What each of `n` takes, of which `first` is not part. */
static double each(double all, double first, double n)
{
    return all > 0 && n > 0 ? (all - first) / n : 0;
}

void nicstride_cost_fit(nicstride_cost_t *cost, const nicstride_samples_t *s)
{
    if (s->call > 0) {
        fit(&cost->call, s->call);
        fit(&cost->piece, each(s->pieces, s->call, (double)s->npieces - 1));
        fit(&cost->copy, each(s->bytes, s->call, (double)s->nbytes));
    }
    /* A sample is a gather and a scatter. */
    fit(&cost->block, each(s->dense, 0, 2.0 * s->ndense));
    fit(&cost->line, each(s->lines, 0, 2.0 * s->nlines));
    fit(&cost->page, each(s->pages, 0, 2.0 * s->npages));
    /* What stands farther apart does not cost less. */
    cost->line = greater(cost->line, cost->block);
    cost->page = greater(cost->page, cost->line);
}

static const struct {
    const char *name;
    size_t at;
} names[] = {
#define NAME(n)                                                                                    \
    {                                                                                              \
#n, offsetof(nicstride_cost_t, n)                                                          \
    }
    NAME(call),    NAME(piece), NAME(copy),       NAME(block),     NAME(line), NAME(page),
    NAME(message), NAME(byte),  NAME(rendezvous), NAME(rndv_byte), NAME(wake), NAME(absence),
#undef NAME
};

#define N_NAMES (sizeof(names) / sizeof(names[0]))

static double *constant(nicstride_cost_t *cost, const char *name, size_t len)
{
    for (size_t i = 0; i < N_NAMES; i++) {
        if (strlen(names[i].name) == len && memcmp(names[i].name, name, len) == 0)
            return (double *)((char *)cost + names[i].at);
    }
    return NULL;
}

bool nicstride_cost_read(nicstride_cost_t *cost, const char *text)
{
    nicstride_cost_t all = *cost;

    while (true) {
        const size_t len = strcspn(text, "=");
        double *value = constant(&all, text, len);
        char *end;

        if (value == NULL || text[len] != '=')
            return false;
        *value = strtod(text + len + 1, &end);
        if (end == text + len + 1 || !isfinite(*value) || *value <= 0)
            return false;
        if (*end == '\0')
            break;
        if (*end != ',')
            return false;
        text = end + 1;
    }
    *cost = all;
    return true;
}

void nicstride_cost_write(const nicstride_cost_t *cost, char *buf, size_t cap)
{
    size_t len = 0;

    for (size_t i = 0; i < N_NAMES && len < cap; i++) {
        double value;

        memcpy(&value, (const char *)cost + names[i].at, sizeof(value));
        len += (size_t)snprintf(buf + len, cap - len, "%s%s=%.3g", i > 0 ? "," : "", names[i].name,
                                value);
    }
}
