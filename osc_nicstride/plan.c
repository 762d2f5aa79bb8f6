/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/plan.h"

#include <math.h>

#include "osc_nicstride/sieve.h"
#include "osc_nicstride/tune.h"

const nicstride_cost_t nicstride_cost_node = {
    .call = 1200,
    .piece = 500,
    .copy = 0.09,
    .block = 0.25,
    .message = 700,
    .byte = 0.15,
    .rendezvous = 5000,
    .rndv_byte = 0.10,
    .wake = 40000,
    .absence = 500000,
    .sieve_piece = 512 << 10,
};

const nicstride_cost_t nicstride_cost_net = {
    .call = 500,
    .piece = 500,
    .copy = 0.09,
    .block = 0.25,
    .message = 10000,
    .byte = 0.13,
    .rendezvous = 30000,
    .rndv_byte = 0.09,
    .wake = 40000,
    .absence = 500000,
    .sieve_piece = 512 << 10,
};

static const char *const method_names[NICSTRIDE_METHOD_LAST] = {
    [NICSTRIDE_METHOD_AUTO] = "auto", [NICSTRIDE_METHOD_DIRECT] = "direct",
    [NICSTRIDE_METHOD_CMA] = "cma",   [NICSTRIDE_METHOD_SIEVE] = "sieve",
    [NICSTRIDE_METHOD_PACK] = "pack", [NICSTRIDE_METHOD_ZCOPY] = "zcopy",
};

const char *nicstride_method_name(nicstride_method_t m)
{
    return (unsigned)m < NICSTRIDE_METHOD_LAST ? method_names[m] : "unknown";
}

bool nicstride_method_can(nicstride_method_t m, nicstride_direction_t dir,
                          const onic_layout_t *origin, const onic_layout_t *target,
                          nicstride_caps_t caps)
{
    switch (m) {
    case NICSTRIDE_METHOD_DIRECT:
        return caps.direct;
    case NICSTRIDE_METHOD_CMA:
        return caps.cma;
    case NICSTRIDE_METHOD_SIEVE:
        return caps.cma && dir == NICSTRIDE_GET && target->nruns == 0 && target->size > 0;
    case NICSTRIDE_METHOD_PACK:
        return true;
    case NICSTRIDE_METHOD_ZCOPY:
        return !caps.no_rendezvous && onic_layout_is_contig(origin) &&
               onic_layout_is_contig(target) && origin->size > 0;
    default:
        return false;
    }
}

static double pieces(const onic_layout_t *a, const onic_layout_t *b)
{
    uint64_t na = onic_layout_blocks(a), nb = onic_layout_blocks(b);

    return (double)(na > nb ? na : nb);
}

double nicstride_method_cost(nicstride_method_t m, const onic_layout_t *origin,
                             const onic_layout_t *target, const nicstride_cost_t *cost)
{
    double bytes = (double)target->size, reads, read_bytes;

    switch (m) {
    case NICSTRIDE_METHOD_DIRECT:
        return 0;
    case NICSTRIDE_METHOD_CMA:
        return cost->call + (pieces(origin, target) - 1) * cost->piece + bytes * cost->copy;
    case NICSTRIDE_METHOD_SIEVE:
        nicstride_sieve_total(target, cost->sieve_piece, NICSTRIDE_SIEVE_GAP, &reads, &read_bytes);
        return reads * cost->call + read_bytes * cost->copy + pieces(origin, target) * cost->block +
               bytes * cost->copy;
    case NICSTRIDE_METHOD_PACK:
        return cost->message + pieces(origin, target) * cost->block + bytes * cost->byte;
    case NICSTRIDE_METHOD_ZCOPY:
        return cost->message + cost->rendezvous + bytes * cost->rndv_byte;
    default:
        return 1e300;
    }
}

bool nicstride_method_needs_target(nicstride_method_t m)
{
    return m == NICSTRIDE_METHOD_PACK || m == NICSTRIDE_METHOD_ZCOPY;
}

/** The model's estimates for all methods. */
static void estimate(double *model, nicstride_direction_t dir, const onic_layout_t *origin,
                     const onic_layout_t *target, nicstride_caps_t caps,
                     const nicstride_cost_t *cost)
{
    double wait = 0;

    if (caps.presence != NICSTRIDE_PRESENT)
        wait = caps.presence == NICSTRIDE_SERVED ? cost->wake : cost->absence;
    model[NICSTRIDE_METHOD_AUTO] = INFINITY;
    for (int i = NICSTRIDE_METHOD_DIRECT; i < NICSTRIDE_METHOD_LAST; i++) {
        nicstride_method_t m = (nicstride_method_t)i;

        model[m] = INFINITY;
        if (nicstride_method_can(m, dir, origin, target, caps))
            model[m] = nicstride_method_cost(m, origin, target, cost);
        if (nicstride_method_needs_target(m))
            model[m] += wait;
    }
}

nicstride_method_t nicstride_plan(nicstride_method_t forced, nicstride_direction_t dir,
                                  const onic_layout_t *origin, const onic_layout_t *target,
                                  nicstride_caps_t caps, const nicstride_cost_t *cost,
                                  nicstride_tune_cell_t *cell)
{
    nicstride_method_t best = NICSTRIDE_METHOD_PACK;
    double model[NICSTRIDE_METHOD_LAST];

    if (nicstride_method_can(forced, dir, origin, target, caps))
        return forced;
    if (caps.direct)
        return NICSTRIDE_METHOD_DIRECT;
    if (caps.together && cell == NULL && caps.presence == NICSTRIDE_PRESENT)
        return NICSTRIDE_METHOD_PACK;
    estimate(model, dir, origin, target, caps, cost);
    if (cell != NULL && caps.presence == NICSTRIDE_PRESENT)
        return nicstride_tune_choose(cell, model, target->size);
    for (int m = NICSTRIDE_METHOD_DIRECT; m < NICSTRIDE_METHOD_LAST; m++) {
        if (model[m] < model[best])
            best = (nicstride_method_t)m;
    }
    return best;
}
