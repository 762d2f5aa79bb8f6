/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "opal/util/output.h"

#include "common/node/presence.h"
#include "osc_nicstride/queue/observe.h"
#include "osc_nicstride/queue/operation.h"
#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/queue/wait.h"
#include "osc_nicstride/methods/methods.h"
#include "osc_nicstride/methods/plan.h"
#include "osc_nicstride/origin/origin.h"
#include "osc_nicstride/queue/keys.h"
#include "osc_nicstride/window/state.h"
#include "osc_nicstride/window/module.h"

/** Kinds of peer, as far as choices differ. */
static const char *const kinds[] = {"mapped", "on the network", "private, active target", "private",
                                    "private, away"};

static const char *const directions[ONIC_LEARN_DIRECTIONS] = {"put", "get", "accumulate"};

static unsigned kind_of(const nicstride_transfer_t *t, const nicstride_case_t *c)
{
    if (t->mapped)
        return 0;
    if (t->peer->local < 0)
        return 1;
    if (nicstride_is_active(t->m))
        return 2;
    return c->presence == NICSTRIDE_PRESENT ? 3 : 4;
}

/** Says why a transfer goes as it does, once for each kind and method. Threads that meet here may
 *  say it twice. */
static void explain(const nicstride_transfer_t *t, const nicstride_case_t *c,
                    nicstride_method_t method)
{
    static uint16_t said[sizeof(kinds) / sizeof(kinds[0])][ONIC_LEARN_DIRECTIONS][ONIC_LEARN_SHAPES]
                        [ONIC_LEARN_SIZES];
    const unsigned shape = onic_learn_shape(&t->origin, &t->target);
    const unsigned size = onic_learn_size(t->target.size);
    const unsigned kind = kind_of(t, c);
    uint16_t *bits = &said[kind][c->dir][shape][size];
    bool trial = false;
    char why[512];

    if ((*bits & 1u << method) != 0)
        return;
    *bits |= (uint16_t)(1u << method);
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
                nicstride_methods[method]->name, trial ? " (a trial)" : "", why);
}

/** Is it better to send this put than to store it in mapped memory? Not where the target may have
 * no helper thread that answers: where there is no room for the message the put would wait for the
 * target, and in passive epochs its flush always would. */
static bool is_sent(const nicstride_transfer_t *t, bool active)
{
    return t->type == NICSTRIDE_MSG_PUT && t->peer->rank != t->m->rank &&
           (active ? nicstride_shares_lines(&t->target) : nicstride_has_lines(&t->target)) &&
           ((active && t->m->wants_server) || nicstride_can_wake(t->peer));
}

/** A look at the presence of the target costs it and this process a cache miss: one look does for
 * all that travel together. */
static nicstride_presence_t presence(const nicstride_transfer_t *t, bool together)
{
    if (together && nicstride_waits_for_others(t->peer))
        return NICSTRIDE_PRESENT;
    return nicstride_presence(t->peer);
}

static uint32_t reach(const nicstride_transfer_t *t)
{
    uint32_t set = 0;

    for (unsigned m = NICSTRIDE_METHOD_DIRECT; m < NICSTRIDE_METHODS_MAX; m++)
        if (nicstride_methods[m] != NULL && nicstride_methods[m]->reach(t))
            set |= NICSTRIDE_REACH(m);
    return set;
}

/** Is the choice made already, and can be followed now? What comes behind others that are watched
 *  goes their way, and what comes behind any others is not tried: what it takes could not be known.
 *  Most longer transfers end here. */
static bool is_made(nicstride_transfer_t *t, nicstride_case_t *c, unsigned *choice)
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
    if (nicstride_methods[*choice]->needs_target && !nicstride_is_active(t->m) &&
        presence(t, false) != NICSTRIDE_PRESENT)
        return false;
    c->reach = nicstride_methods[*choice]->reach(t) ? NICSTRIDE_REACH(*choice) : 0;
    if (!nicstride_can(c, *choice))
        return false;
    t->cell = follows ? cell : NULL;
    return true;
}

static nicstride_direction_t direction(const nicstride_transfer_t *t)
{
    return t->type == NICSTRIDE_MSG_PUT   ? NICSTRIDE_PUT
           : t->type == NICSTRIDE_MSG_GET ? NICSTRIDE_GET
                                          : NICSTRIDE_ACC;
}

/** What is not decided at a glance. */
static nicstride_method_t compare(nicstride_transfer_t *t, nicstride_case_t *c)
{
    const bool automatic = c->forced == NICSTRIDE_METHOD_AUTO;
    nicstride_method_t method;
    unsigned made;

    /* Of short ones nothing is learned: what they take depends on what they travel with. */
    if (automatic && t->target.size > nicstride_inline_max(false))
        c->learned = nicstride_observed(t->peer, c->dir, c->origin, c->target);
    if (is_made(t, c, &made))
        return (nicstride_method_t)made;
    c->reach = reach(t);
    /* What comes here although it could be stored is better sent. */
    if (automatic && t->mapped)
        c->reach &= ~NICSTRIDE_REACH(NICSTRIDE_METHOD_DIRECT);
    if (automatic && !nicstride_is_active(t->m))
        c->presence = presence(t, false);
    if (c->learned.cell != NULL)
        onic_wire_lock();
    method = nicstride_plan(c);
    if (c->learned.cell != NULL)
        onic_wire_unlock();
    /* Of a message to a target that is not there, the target is what would be learned. */
    if (!nicstride_methods[method]->needs_target ||
        (c->presence == NICSTRIDE_PRESENT && c->learned.budget != NULL))
        t->cell = c->learned.cell;
    return method;
}

static bool is_update(const nicstride_transfer_t *t)
{
    return t->type != NICSTRIDE_MSG_PUT && t->type != NICSTRIDE_MSG_GET;
}

/** All updates of a target go one way, or they would not be atomic with each other; what fetches
 *  goes in messages then, and what a forced method does not move. */
static nicstride_method_t choose_for_update(const nicstride_transfer_t *t, int forced,
                                            bool is_short)
{
    if (t->m->adapter_updates)
        return NICSTRIDE_METHOD_RDMA;
    if (t->mapped && forced != NICSTRIDE_METHOD_PACK)
        return NICSTRIDE_METHOD_DIRECT;
    if (t->type == NICSTRIDE_MSG_ACC && !is_short &&
        (forced == NICSTRIDE_METHOD_AUTO || forced == NICSTRIDE_METHOD_MOVER))
        return NICSTRIDE_METHOD_AUTO;
    return NICSTRIDE_METHOD_PACK;
}

/** Nothing is cheaper than load and store, nor than short ones that travel together to a target
 * that is there. */
static nicstride_method_t choose_at_once(const nicstride_transfer_t *t, bool is_short)
{
    const bool active = nicstride_is_active(t->m);

    if (t->mapped && !is_sent(t, active))
        return NICSTRIDE_METHOD_DIRECT;
    if (t->mapped && !active) {
        /* What is stored instead takes so long that others would take this process for absent. */
        onic_presence_mark();
        if (presence(t, true) != NICSTRIDE_PRESENT)
            return NICSTRIDE_METHOD_DIRECT;
    }
    /* To an adapter a message is not the shortest way. */
    if (t->peer->local < 0 && nicstride_may_have_keys(t->peer))
        return NICSTRIDE_METHOD_AUTO;
    return is_short && (active || presence(t, true) == NICSTRIDE_PRESENT) ? NICSTRIDE_METHOD_PACK
                                                                          : NICSTRIDE_METHOD_AUTO;
}

nicstride_method_t nicstride_choose(nicstride_transfer_t *t)
{
    const nicstride_component_t *component = &nicstride_component;
    const int forced = component->params.method;
    const bool is_short = t->target.size <= nicstride_inline_max(false);
    nicstride_method_t method = NICSTRIDE_METHOD_AUTO;

    t->cell = NULL;
    if (is_update(t))
        method = choose_for_update(t, forced, is_short);
    else if (forced == NICSTRIDE_METHOD_AUTO)
        method = choose_at_once(t, is_short);
    if (method != NICSTRIDE_METHOD_AUTO && component->params.verbose < 3)
        return method;
    nicstride_case_t c = {
        .rows = nicstride_methods,
        .forced = (nicstride_method_t)forced,
        .dir = direction(t),
        .origin = &t->origin,
        .target = &t->target,
        .path = nicstride_path(t->peer),
    };
    if (method == NICSTRIDE_METHOD_AUTO)
        method = compare(t, &c);
    if (component->params.verbose > 2 && t->has_origin) {
        c.reach = reach(t);
        explain(t, &c, method);
    }
    return method;
}

/* ---- starting -------------------------------------------------------------------------------- */

static int start(nicstride_transfer_t *t, bool *done_p)
{
    const nicstride_method_row_t *row;
    const uint64_t bytes = t->target.size;
    nicstride_method_t method = nicstride_choose(t);
    int rc = nicstride_methods[method]->start(t, done_p);

    if (rc == OMPI_ERR_NOT_AVAILABLE) {
        t->cell = NULL;
        method = NICSTRIDE_METHOD_PACK;
        rc = nicstride_methods[method]->start(t, done_p);
    }
    row = nicstride_methods[method];
    /* What it leaves under way is waited for by flushes. Of messages the queue keeps account. */
    if (rc == OMPI_SUCCESS && row->flush != NULL && !row->enters) {
        onic_wire_lock();
        nicstride_op_enter_locked(t->peer, NULL);
        onic_wire_unlock();
    }
    nicstride_count(method, bytes);
    if (is_update(t))
        nicstride_add(&nicstride_counters.accumulates, 1);
    return rc;
}

int nicstride_run(nicstride_transfer_t *t, int rc, ompi_request_t **request_p)
{
    nicstride_request_t *request = NULL;
    bool done = true;

    if (rc == OMPI_SUCCESS && request_p != NULL) {
        t->request = request = nicstride_request_new(t->m->win);
        rc = request != NULL ? OMPI_SUCCESS : OMPI_ERR_OUT_OF_RESOURCE;
    }
    if (rc == OMPI_SUCCESS && t->target.size > 0)
        rc = start(t, &done);
    nicstride_target_fini(t);
    return request_p != NULL ? nicstride_request_finish(request, rc, done, request_p) : rc;
}
