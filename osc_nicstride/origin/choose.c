/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stddef.h>

#include "opal/util/output.h"

#include "osc_nicstride/queue/observe.h"
#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/queue/start.h"
#include "osc_nicstride/queue/wait.h"
#include "osc_nicstride/methods/methods.h"
#include "osc_nicstride/methods/plan.h"
#include "osc_nicstride/origin/origin.h"
#include "osc_nicstride/window/component.h"
#include "osc_nicstride/window/used.h"

/** Kinds of peer, as far as choices differ. */
static const char *const kinds[] = {"mapped", "on the network", "private, active target", "private",
                                    "private, away"};

static const char *const directions[ONIC_LEARN_DIRECTIONS] = {"put", "get", "accumulate"};

static unsigned kind_of(const nicstride_transfer_t *t, const nicstride_case_t *c, bool active)
{
    if (t->mapped)
        return 0;
    if (t->peer->local < 0)
        return 1;
    if (active)
        return 2;
    return c->caps.presence == NICSTRIDE_PRESENT ? 3 : 4;
}

/** Says why a transfer goes as it does, once for each kind and method. Threads that meet here may
 *  say it twice. */
static void explain(const nicstride_transfer_t *t, const nicstride_case_t *c, bool active,
                    nicstride_method_t method)
{
    static uint8_t said[sizeof(kinds) / sizeof(kinds[0])][ONIC_LEARN_DIRECTIONS][ONIC_LEARN_SHAPES]
                       [ONIC_LEARN_SIZES];
    const unsigned shape = onic_learn_shape(&t->origin, &t->target);
    const unsigned size = onic_learn_size(t->target.size);
    const unsigned kind = kind_of(t, c, active);
    uint8_t *bits = &said[kind][c->dir][shape][size];
    bool trial = false;
    char why[512];

    if ((*bits & 1u << method) != 0)
        return;
    *bits |= (uint8_t)(1u << method);
    onic_wire_lock();
    nicstride_plan_reason(c, why, sizeof(why));
    if (c->learned.cell != NULL && c->learned.budget != NULL)
        trial = onic_learn_is_trial(c->learned.cell, method);
    onic_wire_unlock();
    opal_output(0,
                "osc_nicstride: %s of %llu bytes in %llu blocks, target rank %d, %s: %s%s; "
                "microseconds: %s",
                directions[c->dir], (unsigned long long)t->target.size,
                (unsigned long long)onic_layout_blocks(&t->target), t->peer->rank, kinds[kind],
                nicstride_methods[method].name, trial ? " (a trial)" : "", why);
}

/** Is it a put into mapped memory that is better sent? A get would wait for its target. Nor where
 *  nobody looks after a target that is away: a put waits for it, too, where there is no room for
 * its message. */
static bool is_sent(const nicstride_transfer_t *t, bool active)
{
    return active && t->type == NICSTRIDE_MSG_PUT && nicstride_shares_lines(&t->target) &&
           t->peer->rank != t->m->rank && (t->m->wants_server || nicstride_can_wake(t->peer));
}

/** Looking is a cache miss for both: once for all that travel together. */
static nicstride_presence_t presence(const nicstride_transfer_t *t, bool together)
{
    if (together && nicstride_waits_for_others(t->peer))
        return NICSTRIDE_PRESENT;
    return nicstride_presence(t->peer);
}

/** Can single copy reach all of it? In a dynamic window only what is known to be attached. */
static bool single_copy_reaches(const nicstride_transfer_t *t)
{
    return !t->mapped && t->type != NICSTRIDE_MSG_ACC && nicstride_single_copy_works(t->peer) &&
           (t->m->flavor != MPI_WIN_FLAVOR_DYNAMIC ||
            nicstride_region_known(t->m, t->peer, t->remote + (uint64_t)t->target.lb,
                                   (uint64_t)(t->target.ub - t->target.lb)));
}

static void look_at_single_copy(const nicstride_transfer_t *t, nicstride_case_t *c)
{
    c->caps.single_copy = single_copy_reaches(t);
    c->caps.torn = c->caps.single_copy && nicstride_may_tear(t);
}

/** What methods for long transfers have to know. */
static void look_at_long_ones(const nicstride_transfer_t *t, nicstride_case_t *c)
{
    /* What a message carries inline is not worth a trial by rendezvous. */
    c->caps.no_rendezvous =
        t->type == NICSTRIDE_MSG_ACC || t->target.size > onic_peer_rndv_max(t->peer->wire) ||
        (c->forced != NICSTRIDE_METHOD_ZCOPY && t->target.size <= nicstride_inline_max(false));
    c->caps.mover = t->peer->rank != t->m->rank && nicstride_move_works(t->peer);
}

/** Is the choice made already, and can be followed now? What comes behind others that are watched
 *  goes their way, and what comes behind any others is not tried: what it takes could not be told.
 *  Most longer transfers end here. */
static bool is_made(nicstride_transfer_t *t, nicstride_case_t *c, bool active, unsigned *choice)
{
    onic_learn_cell_t *cell = c->learned.cell;
    bool follows;

    if (cell == NULL)
        return false;
    const bool busy = !nicstride_is_clean(t->peer);
    follows = busy && onic_watch_choice(&t->peer->observed.watch, cell, choice);
    if (busy)
        c->learned.budget = NULL;
    if (!follows && !onic_learn_fixed(cell, !busy, choice))
        return false;
    if (!nicstride_methods[*choice].needs_target)
        look_at_single_copy(t, c);
    else if (!active && presence(t, c->caps.together) != NICSTRIDE_PRESENT)
        return false;
    else if (*choice != NICSTRIDE_METHOD_PACK)
        look_at_long_ones(t, c);
    if (!nicstride_can(c, *choice))
        return false;
    t->cell = follows ? cell : NULL;
    return true;
}

static nicstride_method_t plan(const nicstride_case_t *c)
{
    nicstride_method_t method;

    if (c->learned.cell == NULL)
        return nicstride_plan(c);
    onic_wire_lock();
    method = nicstride_plan(c);
    onic_wire_unlock();
    return method;
}

/** Completes the case, and chooses. */
static nicstride_method_t choose(nicstride_transfer_t *t, nicstride_case_t *c, bool active)
{
    nicstride_method_t method;

    look_at_long_ones(t, c);
    if (c->forced == NICSTRIDE_METHOD_AUTO && !active)
        c->caps.presence = presence(t, c->caps.together);
    /* Those that travel together do not ask what is attached. */
    if (!c->caps.together || c->caps.presence != NICSTRIDE_PRESENT)
        look_at_single_copy(t, c);
    method = plan(c);
    /* Of a message to a target that is not there, the target is what would be learned. */
    if (!nicstride_methods[method].needs_target ||
        (c->caps.presence == NICSTRIDE_PRESENT && c->learned.budget != NULL))
        t->cell = c->learned.cell;
    return method;
}

static nicstride_direction_t direction(const nicstride_transfer_t *t)
{
    return t->type == NICSTRIDE_MSG_PUT   ? NICSTRIDE_PUT
           : t->type == NICSTRIDE_MSG_GET ? NICSTRIDE_GET
                                          : NICSTRIDE_ACC;
}

/** What is not decided at a glance. */
static nicstride_method_t compare(nicstride_transfer_t *t, bool direct, bool together, bool active)
{
    const nicstride_component_t *component = &nicstride_component;
    nicstride_case_t c = {
        .rows = nicstride_methods,
        .forced = (nicstride_method_t)component->params.method,
        .dir = direction(t),
        .origin = &t->origin,
        .target = &t->target,
        .path = t->peer->local >= 0 ? &component->paths.node : &component->paths.net,
        .caps = {.direct = direct, .together = together},
    };
    nicstride_method_t method;
    unsigned made;

    /* Of those that travel together nothing is learned. */
    if (c.forced == NICSTRIDE_METHOD_AUTO && !direct && !together)
        c.learned = nicstride_observed(t->peer, c.dir, c.origin, c.target);
    if (is_made(t, &c, active, &made))
        method = (nicstride_method_t)made;
    else
        method = choose(t, &c, active);
    if (component->params.verbose > 0)
        explain(t, &c, active, method);
    return method;
}

nicstride_method_t nicstride_choose(nicstride_transfer_t *t)
{
    const nicstride_params_t *params = &nicstride_component.params;
    const bool automatic = params->method == NICSTRIDE_METHOD_AUTO;
    const bool active = nicstride_is_active(t->m);
    const bool direct =
        t->mapped && t->type != NICSTRIDE_MSG_ACC && !(automatic && is_sent(t, active));
    const bool together = automatic && !direct && t->target.size <= nicstride_inline_max(false);

    t->cell = NULL;
    /* A forced method that moves no accumulates leaves them in messages. */
    if (t->type == NICSTRIDE_MSG_ACC && !automatic && params->method != NICSTRIDE_METHOD_MOVER)
        return NICSTRIDE_METHOD_PACK;
    if (automatic && params->verbose == 0) {
        if (direct)
            return NICSTRIDE_METHOD_DIRECT;
        /* Nothing is cheaper than short ones that travel together, to a target that is there. */
        if (together && (active || presence(t, together) == NICSTRIDE_PRESENT))
            return NICSTRIDE_METHOD_PACK;
    }
    return compare(t, direct, together, active);
}
