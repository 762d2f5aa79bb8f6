/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/check/check.h"
#include "osc_nicstride/methods/methods.h"
#include "osc_nicstride/methods/pack/short.h"
#include "osc_nicstride/methods/plan.h"
#include "osc_nicstride/origin/origin.h"
#include "osc_nicstride/queue/ask_lock.h"
#include "osc_nicstride/queue/keys.h"
#include "osc_nicstride/queue/operation.h"
#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/queue/presence.h"
#include "osc_nicstride/sync/fence.h"
#include "osc_nicstride/window/control.h"
#include "osc_nicstride/window/module.h"
#include "osc_nicstride/window/state.h"

/** True if a put to mapped memory is better sent than stored: a column (nicstride_is_column) in an
 *  active target epoch, where the target unpacks it at the end of its own epoch. In passive epochs
 *  a flush would wait for a target that computes. False if the target may have no server thread: a
 *  put for whose message there is no room would wait for the target. */
static bool is_sent(const nicstride_transfer_t *t)
{
    return nicstride_is_active(t->m) && t->type == NICSTRIDE_MSG_PUT &&
           t->peer->rank != t->m->rank && nicstride_is_column(&t->target) &&
           (t->m->wants_server || nicstride_can_wake(t->peer));
}

static bool is_update(const nicstride_transfer_t *t)
{
    return t->type != NICSTRIDE_MSG_PUT && t->type != NICSTRIDE_MSG_GET;
}

static nicstride_direction_t direction_of(nicstride_msg_type_t type)
{
    return type == NICSTRIDE_MSG_PUT   ? NICSTRIDE_PUT
           : type == NICSTRIDE_MSG_GET ? NICSTRIDE_GET
                                       : NICSTRIDE_ACC;
}

/** True if it is clear at once that a short operation goes by message. With an adapter, a message
 *  is not the fastest way. Looking at the target's presence costs it and this process a cache miss,
 *  so operations that travel together share one look. */
static bool is_for_messages(const nicstride_module_t *m, nicstride_peer_t *p,
                            nicstride_msg_type_t type)
{
    const nicstride_method_t forced = nicstride_forced();

    if (p->rank == m->rank)
        return false;
    if (forced == NICSTRIDE_METHOD_PACK || type >= NICSTRIDE_MSG_ACC)
        return true;
    return forced == NICSTRIDE_METHOD_AUTO && (p->local >= 0 || !nicstride_may_have_keys(p)) &&
           (nicstride_is_active(m) || nicstride_waits_for_others(p) ||
            nicstride_presence(p) == NICSTRIDE_PRESENT);
}

/** True if the transfer is done by load and store, which needs no plan. */
static bool is_stored(const nicstride_transfer_t *t, nicstride_method_t forced)
{
    if (!t->mapped || forced == NICSTRIDE_METHOD_PACK)
        return false;
    return is_update(t) || (forced == NICSTRIDE_METHOD_AUTO && !is_sent(t));
}

static nicstride_method_t choose(nicstride_transfer_t *t)
{
    const nicstride_method_t forced = nicstride_forced();

    if (is_stored(t, forced))
        return NICSTRIDE_METHOD_DIRECT;
    /* The target makes updates that fetch, by messages; long ones that fetch nothing may come
     * through receive buffers. */
    if (t->type > NICSTRIDE_MSG_ACC ||
        (t->target.size <= nicstride_inline_max(false) && is_for_messages(t->m, t->peer, t->type)))
        return NICSTRIDE_METHOD_PACK;
    nicstride_case_t c = {
        .rows = nicstride_methods,
        .forced = forced,
        .dir = direction_of(t->type),
        .origin = &t->origin,
        .target = &t->target,
        /* Mapped memory that comes here although it could be accessed by stores is better sent. */
        .reach = t->mapped && forced == NICSTRIDE_METHOD_AUTO
                     ? ~NICSTRIDE_REACH(NICSTRIDE_METHOD_DIRECT)
                     : ~0U,
        .transfer = t,
        .presence = forced == NICSTRIDE_METHOD_AUTO && !nicstride_is_active(t->m)
                        ? nicstride_presence(t->peer)
                        : NICSTRIDE_PRESENT,
        .many = t->mapped || t->peer->local < 0 || !nicstride_alone_begin(&t->m->alone),
        .path = nicstride_path(t->peer),
    };
    c.pieces = nicstride_pieces(&c);
    return nicstride_plan(&c);
}

/* ---- starting -------------------------------------------------------------------------------- */

/** The way that a method takes. */
static unsigned way_of(nicstride_method_t method)
{
    const nicstride_method_row_t *row = nicstride_methods[method];

    if (row->needs_target)
        return method == NICSTRIDE_METHOD_PACK ? NICSTRIDE_WAY_COMES : NICSTRIDE_WAY_TURN;
    return row->flush != NULL ? NICSTRIDE_WAY_ROW + method : NICSTRIDE_WAY_NOW;
}

/** Starts the transfer, after earlier writes that it would overtake have landed. */
static int start_by(nicstride_transfer_t *t, nicstride_method_t method, bool *done_p)
{
    t->way = way_of(method);
    if (nicstride_order_waits(&t->peer->order, t->way, t->type == NICSTRIDE_MSG_GET, t->from,
                              t->to))
        nicstride_land(t->peer);
    return nicstride_methods[method]->start(t, done_p);
}

static int start(nicstride_transfer_t *t, bool *done_p)
{
    const uint64_t bytes = t->target.size;
    nicstride_method_t method = choose(t);
    int rc;

    /* Messages may go with the request, or wait in the queue. */
    rc = method != NICSTRIDE_METHOD_PACK && !nicstride_asked_is_had(&t->peer->lock.asked)
             ? nicstride_await_lock(t->peer)
             : OMPI_SUCCESS;
    if (rc != OMPI_SUCCESS)
        return nicstride_error(t->m, t->call, rc, "the lock of rank %d cannot be had",
                               t->peer->rank);

    t->from = (uint64_t)t->disp + (uint64_t)t->target.lb;
    t->to = (uint64_t)t->disp + (uint64_t)t->target.ub;
    rc = start_by(t, method, done_p);
    if (rc == OMPI_ERR_NOT_AVAILABLE) {
        method = NICSTRIDE_METHOD_PACK;
        rc = start_by(t, method, done_p);
    }
    nicstride_count(method, bytes);
    return rc;
}

/** Notes the call, and compares it with others. */
static int check(const nicstride_transfer_t *t, nicstride_request_t *request)
{
    uint64_t number;
    const int rc = nicstride_check_call(t, &number);

    if (request != NULL) {
        request->window = t->m->name;
        request->noted = number;
    }
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
    if (rc == OMPI_SUCCESS && t->m->check != NULL && t->target.size > 0)
        rc = check(t, request);
    if (rc == OMPI_SUCCESS && t->target.size > 0)
        rc = start(t, &done);
    nicstride_target_fini(t);
    return request_p != NULL ? nicstride_request_finish(request, rc, done, request_p) : rc;
}

bool nicstride_send_short(nicstride_module_t *m, int target, ptrdiff_t disp, nicstride_short_t *s)
{
    nicstride_peer_t *p = __atomic_load_n(&m->peer[target], __ATOMIC_ACQUIRE);
    uint64_t to;

    if (p == NULL || s->bytes > nicstride_inline_max(false) ||
        !nicstride_allowed_offset(m, target, disp, s->bytes, &s->at) ||
        __builtin_add_overflow(s->at, s->bytes, &to) || !is_for_messages(m, p, s->type) ||
        nicstride_order_waits(&p->order, NICSTRIDE_WAY_COMES, s->type == NICSTRIDE_MSG_GET, s->at,
                              to) ||
        !nicstride_short_start(p, s))
        return false;

    nicstride_count(NICSTRIDE_METHOD_PACK, s->bytes);
    return true;
}
