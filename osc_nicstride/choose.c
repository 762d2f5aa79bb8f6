/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stddef.h>

#include "opal/util/output.h"

#include "osc_nicstride/choose.h"
#include "osc_nicstride/component.h"
#include "osc_nicstride/dynamic.h"
#include "osc_nicstride/observe.h"
#include "osc_nicstride/small.h"
#include "osc_nicstride/target.h"

/** Can single copy reach all of it? In a dynamic window only what is known to be attached. */
static bool single_copy_reaches(nicstride_module_t *m, const nicstride_target_t *a)
{
    return a->cma && (m->flavor != MPI_WIN_FLAVOR_DYNAMIC ||
                      nicstride_region_known(m, a->peer, a->remote + (uint64_t)a->target.lb,
                                             (uint64_t)(a->target.ub - a->target.lb)));
}

/** A choice and what it was made from. */
typedef struct choice {
    const nicstride_target_t *a;
    nicstride_direction_t dir;
    nicstride_caps_t caps;
    const nicstride_cost_t *cost;
    nicstride_learned_t learned;
} choice_t;

static nicstride_method_t plan(const choice_t *c)
{
    const int forced = mca_osc_nicstride_component.params.method;
    nicstride_method_t method;

    if (c->learned.cell != NULL)
        onic_wire_lock();
    method = nicstride_plan((nicstride_method_t)forced, c->dir, &c->a->origin, &c->a->target,
                            c->caps, c->cost, c->learned);
    if (c->learned.cell != NULL)
        onic_wire_unlock();
    return method;
}

/** Kinds of peer, as far as choices differ. */
static const char *const kinds[] = {"mapped", "on the network", "private, active target", "private",
                                    "private, away"};

static unsigned kind_of(const choice_t *c, bool active)
{
    if (c->caps.direct)
        return 0;
    if (c->a->peer->local < 0)
        return 1;
    if (active)
        return 2;
    return c->caps.presence == NICSTRIDE_PRESENT ? 3 : 4;
}

/** Says why a transfer goes as it does, once for each kind and method. Threads that meet here may
 *  say it twice. */
static void explain(const choice_t *c, bool active, nicstride_method_t method)
{
    static uint8_t said[sizeof(kinds) / sizeof(kinds[0])][2][NICSTRIDE_TUNE_SHAPES]
                       [NICSTRIDE_TUNE_SIZES];
    const unsigned shape = nicstride_tune_shape(&c->a->origin, &c->a->target);
    const unsigned size = nicstride_tune_size(c->a->target.size);
    const unsigned kind = kind_of(c, active);
    uint8_t *bits = &said[kind][c->dir == NICSTRIDE_GET][shape][size];
    bool trial = false;
    char why[512];

    if ((*bits & 1u << method) != 0)
        return;
    *bits |= (uint8_t)(1u << method);
    onic_wire_lock();
    nicstride_plan_reason(c->dir, &c->a->origin, &c->a->target, c->caps, c->cost, c->learned, why,
                          sizeof(why));
    if (c->learned.cell != NULL && c->learned.budget != NULL)
        trial = c->learned.cell->trial == method;
    onic_wire_unlock();
    opal_output(0,
                "osc_nicstride: %s of %llu bytes in %llu blocks, target rank %d, %s: %s%s; "
                "microseconds: %s",
                c->dir == NICSTRIDE_PUT ? "put" : "get", (unsigned long long)c->a->target.size,
                (unsigned long long)onic_layout_blocks(&c->a->target), c->a->peer->rank,
                kinds[kind], nicstride_method_name(method), trial ? " (a trial)" : "", why);
}

/**
 * With single copy there is a choice. What was learned counts, and is learned from transfers that
 * stand alone: of several short ones the messages overlap. In active target epochs all are several:
 * when they are over is seen by nobody but the target.
 */
static void look(nicstride_module_t *m, choice_t *c, bool active)
{
    nicstride_peer_t *p = c->a->peer;
    const uint64_t size = c->a->target.size;
    const bool lone = !active && nicstride_habit_alone(&m->habit);

    if (size >= NICSTRIDE_TUNE_ALONE || lone)
        c->learned = nicstride_observed(p, c->dir, &c->a->origin, &c->a->target);
    c->caps.together = !lone && size <= NICSTRIDE_SMALL_MAX;
    if (active)
        c->learned.budget = NULL;
    /* Looking is a cache miss for both: once for all that travel together. */
    else if (!c->caps.together || !nicstride_outbox_waits(p))
        c->caps.presence = nicstride_presence(p);
}

nicstride_method_t nicstride_choose(nicstride_module_t *m, const nicstride_target_t *a,
                                    nicstride_direction_t dir, nicstride_tune_cell_t **cell_p)
{
    const nicstride_component_t *component = &mca_osc_nicstride_component;
    const bool active = nicstride_is_active(m);
    choice_t c = {
        .a = a,
        .dir = dir,
        .caps = {.direct = a->mapped,
                 .cma = single_copy_reaches(m, a),
                 .no_rendezvous = a->target.size > onic_peer_rndv_max(a->peer->wire)},
        .cost = a->peer->local >= 0 ? &component->node_cost : &nicstride_cost_net,
    };
    nicstride_method_t method;

    if (c.caps.cma && !c.caps.direct && component->params.method == NICSTRIDE_METHOD_AUTO)
        look(m, &c, active);
    method = plan(&c);
    /* Of a message to a target that is not there, the target is what would be learned. */
    *cell_p = c.learned.cell;
    if (!nicstride_is_single_copy(method) && (active || c.caps.presence != NICSTRIDE_PRESENT))
        *cell_p = NULL;
    if (component->params.verbose > 0)
        explain(&c, active, method);
    return method;
}
