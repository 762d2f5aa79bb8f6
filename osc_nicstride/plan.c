/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "osc_nicstride/sieve.h"
#include "osc_nicstride/tune.h"

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
        return reads * cost->call + read_bytes * cost->copy + bytes * cost->copy +
               nicstride_gather_cost(target, cost) + nicstride_gather_cost(origin, cost);
    case NICSTRIDE_METHOD_PACK:
        return cost->message + bytes * cost->byte + nicstride_gather_cost(origin, cost) +
               nicstride_gather_cost(target, cost);
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

/** What messages wait for before anybody looks at them. */
static double wait(nicstride_caps_t caps, const nicstride_cost_t *cost)
{
    if (caps.presence == NICSTRIDE_PRESENT)
        return 0;
    return caps.presence == NICSTRIDE_SERVED ? cost->wake : cost->absence;
}

/** The model's estimates for all methods, for a target that is present. */
static void estimate(double *model, nicstride_direction_t dir, const onic_layout_t *origin,
                     const onic_layout_t *target, nicstride_caps_t caps,
                     const nicstride_cost_t *cost)
{
    model[NICSTRIDE_METHOD_AUTO] = INFINITY;
    for (int i = NICSTRIDE_METHOD_DIRECT; i < NICSTRIDE_METHOD_LAST; i++) {
        nicstride_method_t m = (nicstride_method_t)i;

        model[m] = INFINITY;
        if (nicstride_method_can(m, dir, origin, target, caps))
            model[m] = nicstride_method_cost(m, origin, target, cost);
    }
}

nicstride_method_t nicstride_plan(nicstride_method_t forced, nicstride_direction_t dir,
                                  const onic_layout_t *origin, const onic_layout_t *target,
                                  nicstride_caps_t caps, const nicstride_cost_t *cost,
                                  nicstride_learned_t learned)
{
    const bool present = caps.presence == NICSTRIDE_PRESENT;
    nicstride_method_t best = NICSTRIDE_METHOD_PACK;
    double model[NICSTRIDE_METHOD_LAST];

    if (nicstride_method_can(forced, dir, origin, target, caps))
        return forced;
    if (caps.direct)
        return NICSTRIDE_METHOD_DIRECT;
    if (caps.together && learned.cell == NULL && present)
        return NICSTRIDE_METHOD_PACK;
    estimate(model, dir, origin, target, caps, cost);
    /* How long a target stays away says nothing of the methods: nothing is tried then. */
    if (learned.cell != NULL && learned.budget != NULL && present)
        return nicstride_tune_choose(learned.cell, learned.budget, model, target->size);
    if (learned.cell != NULL)
        nicstride_tune_known(learned.cell, model, target->size);
    for (int m = NICSTRIDE_METHOD_DIRECT; m < NICSTRIDE_METHOD_LAST; m++) {
        if (nicstride_method_needs_target((nicstride_method_t)m))
            model[m] += wait(caps, cost);
    }
    for (int m = NICSTRIDE_METHOD_DIRECT; m < NICSTRIDE_METHOD_LAST; m++) {
        if (model[m] < model[best])
            best = (nicstride_method_t)m;
    }
    return best;
}

size_t nicstride_plan_reason(nicstride_direction_t dir, const onic_layout_t *origin,
                             const onic_layout_t *target, nicstride_caps_t caps,
                             const nicstride_cost_t *cost, nicstride_learned_t learned, char *buf,
                             size_t cap)
{
    double model[NICSTRIDE_METHOD_LAST], known[NICSTRIDE_METHOD_LAST];
    size_t len = 0;

    if (cap == 0)
        return 0;
    buf[0] = '\0';
    estimate(model, dir, origin, target, caps, cost);
    memcpy(known, model, sizeof(known));
    if (learned.cell != NULL)
        nicstride_tune_known(learned.cell, known, target->size);
    for (int m = NICSTRIDE_METHOD_DIRECT; m < NICSTRIDE_METHOD_LAST && len < cap; m++) {
        if (isinf(model[m]))
            continue;
        len += (size_t)snprintf(buf + len, cap - len, "%s%s %.2f", len > 0 ? ", " : "",
                                method_names[m], model[m] / 1000);
        if (known[m] != model[m] && len < cap)
            len += (size_t)snprintf(buf + len, cap - len, " (learned %.2f)", known[m] / 1000);
    }
    if (wait(caps, cost) > 0 && len < cap)
        len +=
            (size_t)snprintf(buf + len, cap - len, ", messages wait %.0f", wait(caps, cost) / 1000);
    return len < cap ? len : cap - 1;
}
