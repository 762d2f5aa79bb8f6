/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/layout/flatten.h"
#include "common/support/device.h"
#include "osc_nicstride/methods/methods.h"
#include "osc_nicstride/methods/plan.h"
#include "osc_nicstride/origin/origin.h"
#include "osc_nicstride/queue/keys.h"
#include "osc_nicstride/queue/operation.h"
#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/queue/wait.h"
#include "osc_nicstride/sync/fence.h"
#include "osc_nicstride/window/control.h"
#include "osc_nicstride/window/module.h"
#include "osc_nicstride/window/state.h"

#include "opal/util/output.h"

/** Kinds of peer, as far as choices differ. */
static const char *const kinds[] = {"mapped", "on the network", "private, active target", "private",
                                    "private, away"};

static const char *const directions[NICSTRIDE_DIRECTIONS] = {"put", "get", "accumulate"};

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

static bool reaches(const nicstride_case_t *c, unsigned method)
{
    return nicstride_methods[method]->reach(c->transfer);
}

/** Of what could be stored, and is better sent. */
static bool reaches_by_message(const nicstride_case_t *c, unsigned method)
{
    return method != NICSTRIDE_METHOD_DIRECT && reaches(c, method);
}

/** Says why a transfer goes as it does, once for each kind and method. Threads that meet here may
 *  say it twice. */
static void explain(const nicstride_transfer_t *t, const nicstride_case_t *c,
                    nicstride_method_t method)
{
    static uint16_t said[sizeof(kinds) / sizeof(kinds[0])][NICSTRIDE_DIRECTIONS][2][ONIC_SIZES];
    const unsigned kind = kind_of(t, c);
    uint16_t *bits =
        &said[kind][c->dir][onic_layout_is_contig(&t->target)][onic_size(t->target.size)];
    char why[512];
    FILE *to = (*bits & 1u << method) == 0 ? fmemopen(why, sizeof(why), "w") : NULL;

    if (to == NULL)
        return;
    *bits |= (uint16_t)(1u << method);
    nicstride_plan_reason(to, c);
    fclose(to);
    opal_output(0,
                "osc_nicstride: %s of %llu bytes in %llu blocks, target rank %d, %s, %s: %s; "
                "microseconds: %s",
                directions[c->dir], (unsigned long long)t->target.size,
                (unsigned long long)onic_layout_blocks(&t->target), t->peer->rank, kinds[kind],
                c->many ? "one of many" : "alone", nicstride_methods[method]->name, why);
}

/** A look at the presence of the target costs it and this process a cache miss: one look does for
 * all that travel together. */
static nicstride_presence_t presence(const nicstride_transfer_t *t, bool together)
{
    if (nicstride_is_active(t->m) || (together && nicstride_waits_for_others(t->peer)))
        return NICSTRIDE_PRESENT;
    return nicstride_presence(t->peer);
}

/** Is it better to send this put than to store it in mapped memory? In active target epochs, where
 *  the target unpacks it when it comes to the end of its own. In passive ones a flush would wait
 * for a target that computes. And not where it may have no helper thread that answers: a put for
 * whose message there is no room would wait for it. */
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

/** All updates of a target go one way, or they would not be atomic with each other; what fetches
 *  goes in messages then, and what a forced method does not move. */
static nicstride_method_t choose_for_update(const nicstride_transfer_t *t, int forced,
                                            bool is_short)
{
    if (t->mapped && forced != NICSTRIDE_METHOD_PACK)
        return NICSTRIDE_METHOD_DIRECT;
    if (t->type == NICSTRIDE_MSG_ACC && !is_short &&
        (forced == NICSTRIDE_METHOD_AUTO || forced == NICSTRIDE_METHOD_PIPELINE))
        return NICSTRIDE_METHOD_AUTO;
    return NICSTRIDE_METHOD_PACK;
}

/** Nothing is cheaper than load and store, nor than short ones that travel together to a target
 * that is there. */
static nicstride_method_t choose_at_once(const nicstride_transfer_t *t, bool is_short)
{
    if (t->mapped && !is_sent(t))
        return NICSTRIDE_METHOD_DIRECT;
    /* To an adapter a message is not the shortest way. */
    if (!is_short || (t->peer->local < 0 && nicstride_may_have_keys(t->peer)))
        return NICSTRIDE_METHOD_AUTO;
    return presence(t, true) == NICSTRIDE_PRESENT ? NICSTRIDE_METHOD_PACK : NICSTRIDE_METHOD_AUTO;
}

static nicstride_method_t choose(nicstride_transfer_t *t)
{
    const nicstride_component_t *component = &nicstride_component;
    const nicstride_method_t forced = (nicstride_method_t)component->params.method;
    const bool alone = !t->mapped && t->peer->local >= 0 && nicstride_alone_begin(&t->m->alone);
    const bool is_short = t->target.size <= nicstride_inline_max(false) && !alone;
    nicstride_method_t method = NICSTRIDE_METHOD_AUTO;

    if (is_update(t))
        method = choose_for_update(t, (int)forced, is_short);
    else if (forced == NICSTRIDE_METHOD_AUTO)
        method = choose_at_once(t, is_short);
    if (method != NICSTRIDE_METHOD_AUTO && component->params.verbose < 3)
        return method;
    const nicstride_case_t c = {
        .rows = nicstride_methods,
        .forced = forced,
        .dir = direction_of(t->type),
        .origin = &t->origin,
        .target = &t->target,
        /* What comes here by itself although it could be stored is better sent. */
        .reaches = t->mapped && forced == NICSTRIDE_METHOD_AUTO ? reaches_by_message : reaches,
        .transfer = t,
        .presence = forced == NICSTRIDE_METHOD_AUTO ? presence(t, false) : NICSTRIDE_PRESENT,
        .many = !alone,
        .path = nicstride_path(t->peer),
    };
    if (method == NICSTRIDE_METHOD_AUTO)
        method = nicstride_plan(&nicstride_component.table, nicstride_kind(t->peer), &c);
    if (component->params.verbose > 2 && t->has_origin)
        explain(t, &c, method);
    return method;
}

/* ---- starting -------------------------------------------------------------------------------- */

/** The way that a method takes. */
static unsigned way_of(const nicstride_transfer_t *t, nicstride_method_t method)
{
    const nicstride_method_row_t *row = nicstride_methods[method];

    if (row->needs_target)
        return t->type == NICSTRIDE_MSG_PUT && method == NICSTRIDE_METHOD_PACK ? NICSTRIDE_WAY_COMES
                                                                               : NICSTRIDE_WAY_TURN;
    if (row->flush == NULL)
        return NICSTRIDE_WAY_NOW;
    if (is_update(t))
        return NICSTRIDE_WAY_UPDATE;
    return row->in_order && t->m->flavor != MPI_WIN_FLAVOR_DYNAMIC ? NICSTRIDE_WAY_ROW + method
                                                                   : NICSTRIDE_WAY_LOOSE;
}

/** Behind what was written before. */
static int start_by(nicstride_transfer_t *t, nicstride_method_t method, bool *done_p)
{
    t->way = way_of(t, method);
    if (nicstride_order_waits(&t->peer->order, t->way, t->type == NICSTRIDE_MSG_GET, t->from,
                              t->to))
        nicstride_land(t->peer);
    return nicstride_methods[method]->start(t, done_p);
}

static int start(nicstride_transfer_t *t, bool *done_p)
{
    const nicstride_method_row_t *row;
    const uint64_t bytes = t->target.size;
    nicstride_method_t method = choose(t);
    int rc;

    t->from = (uint64_t)t->disp + (uint64_t)t->target.lb;
    t->to = (uint64_t)t->disp + (uint64_t)t->target.ub;
    rc = start_by(t, method, done_p);
    if (rc == OMPI_ERR_NOT_AVAILABLE) {
        method = NICSTRIDE_METHOD_PACK;
        rc = start_by(t, method, done_p);
    }
    row = nicstride_methods[method];
    /* What it leaves under way is waited for by flushes. Of messages the queue keeps account. */
    if (rc == OMPI_SUCCESS && row->flush != NULL && !row->enters) {
        onic_transport_lock();
        nicstride_op_enter_locked(t, NULL);
        onic_transport_unlock();
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

/** Does what a short message moves go that way, as `choose` would find? What would have to be
 * looked up is left to that. */
static bool is_for_messages(const nicstride_module_t *m, nicstride_peer_t *p,
                            const nicstride_short_t *s)
{
    const int forced = nicstride_component.params.method;
    const bool alone = p->local >= 0 && nicstride_alone_would(&m->alone);

    if (p->rank == m->rank || nicstride_component.params.verbose > 2)
        return false;
    if (forced == NICSTRIDE_METHOD_PACK ||
        (s->type >= NICSTRIDE_MSG_ACC && (s->result != NULL || !alone)))
        return true;
    return forced == NICSTRIDE_METHOD_AUTO &&
           (!alone || nicstride_messages_are_first(&nicstride_component.table, nicstride_kind(p),
                                                   direction_of(s->type), s->bytes)) &&
           (p->local >= 0 || !nicstride_may_have_keys(p)) &&
           (nicstride_is_active(m) || nicstride_waits_for_others(p) ||
            nicstride_presence(p) == NICSTRIDE_PRESENT);
}

bool nicstride_send_short(nicstride_module_t *m, int target, ptrdiff_t disp, nicstride_short_t *s)
{
    nicstride_peer_t *p = __atomic_load_n(&m->peer[target], __ATOMIC_ACQUIRE);
    uint64_t to;

    if (p == NULL || s->bytes > nicstride_inline_max(false) ||
        !nicstride_allowed_offset(m, target, disp, s->bytes, &s->at) ||
        __builtin_add_overflow(s->at, s->bytes, &to) || !is_for_messages(m, p, s) ||
        nicstride_order_waits(&p->order, nicstride_short_way(s), s->type == NICSTRIDE_MSG_GET,
                              s->at, to) ||
        !nicstride_short_start(p, s))
        return false;
    if (p->local >= 0)
        (void)nicstride_alone_begin(&m->alone);
    if (s->type >= NICSTRIDE_MSG_ACC)
        nicstride_add(&nicstride_counters.accumulates, 1);
    nicstride_count(NICSTRIDE_METHOD_PACK, s->bytes);
    return true;
}

/* ---- resolving ----------------------------------------------------------------------------------
 *
 * Resolving communication calls: may it be made now, what does it move, and does that stay
 * inside the target's window? */

static const onic_layout_t no_layout;

onic_flattened_t nicstride_flattened;

int nicstride_flatten(nicstride_module_t *m, const char *call, const char *what,
                      const ompi_datatype_t *dt, size_t count, onic_layout_t *l)
{
    const int rc = onic_flatten(dt, count, l, &nicstride_flattened);

    if (rc == OMPI_SUCCESS)
        return rc;
    *l = no_layout;
    if (rc == OMPI_ERR_OUT_OF_RESOURCE)
        return nicstride_error(m, call, rc, "no memory to describe a datatype");
    /* Sizes or offsets beyond 64 bits: at the target that is outside of any window. */
    return nicstride_error(m, call, strcmp(what, "target") == 0 ? OMPI_ERR_RMA_RANGE : MPI_ERR_TYPE,
                           "what the %s datatype covers exceeds the address space", what);
}

int nicstride_check_host(const nicstride_module_t *m, const char *call, const char *what,
                         const void *base, const onic_layout_t *l)
{
    const char *first = (const char *)((uintptr_t)base + (uintptr_t)l->lb);
    const char *last = (const char *)((uintptr_t)base + (uintptr_t)l->ub - 1);

    if (!onic_layout_on_device(base, l))
        return OMPI_SUCCESS;
    return nicstride_error(m, call, MPI_ERR_BUFFER,
                           "the %s buffer, %p to %p, is memory of a device, and only host memory "
                           "is supported",
                           what, (const void *)first, (const void *)last);
}

static int out_of_bounds(nicstride_module_t *m, const nicstride_transfer_t *a, ptrdiff_t disp)
{
    const nicstride_rank_info_t *info = nicstride_info(m, a->peer->rank);

    return nicstride_error(m, a->call, OMPI_ERR_RMA_RANGE,
                           "displacement %td with a datatype that covers bytes %" PRId64
                           " to %" PRId64 " from there leaves the window of target rank %d, which "
                           "has %" PRIu64 " bytes and displacement unit %" PRIu32,
                           disp, a->target.lb, a->target.ub, a->peer->rank, info->size,
                           info->disp_unit);
}

/** Own memory of a dynamic window is checked here; that of others by them. */
static int check_attached(nicstride_module_t *m, const nicstride_transfer_t *a)
{
    bool inside;

    onic_transport_lock();
    inside = nicstride_regions_cover(&m->regions, (uint64_t)a->disp, &a->target, 0, a->target.size);
    onic_transport_unlock();
    if (inside)
        return OMPI_SUCCESS;
    return nicstride_error(m, a->call, OMPI_ERR_RMA_RANGE,
                           "address %#" PRIx64 " is not in memory attached to the window",
                           (uint64_t)a->disp);
}

/** Where the target's bytes are, and by which paths they can be reached. All that the call names
 *  must be in the window, whatever of it is moved; of a dynamic one only its process knows, which
 *  gets what is moved. */
static int locate(nicstride_module_t *m, nicstride_transfer_t *a, ptrdiff_t disp)
{
    const int rank = a->peer->rank;
    const nicstride_rank_info_t *info = nicstride_info(m, rank);
    const bool dynamic = m->flavor == MPI_WIN_FLAVOR_DYNAMIC;

    a->disp = disp;
    if (!dynamic && __builtin_mul_overflow((int64_t)disp, (int64_t)info->disp_unit, &a->disp))
        return out_of_bounds(m, a, disp);
    if (!dynamic && !nicstride_layout_fits(&a->target, a->disp, info->size))
        return out_of_bounds(m, a, disp);
    a->remote = nicstride_base(m, rank) + (uint64_t)a->disp;
    if (rank == m->rank) {
        a->mapped = true;
        a->direct = (char *)(uintptr_t)a->remote;
    } else if (!dynamic && a->peer->local >= 0 && m->mapped[a->peer->local] != NULL) {
        a->mapped = true;
        a->direct = m->mapped[a->peer->local] + a->disp;
    }
    return OMPI_SUCCESS;
}

int nicstride_fit(nicstride_module_t *m, const char *call, const char *from, uint64_t bytes,
                  const char *to, onic_layout_t *room)
{
    if (bytes > room->size)
        return nicstride_error(m, call, MPI_ERR_TYPE,
                               "the %s buffer describes %" PRIu64
                               " bytes, which do not fit into the %" PRIu64 " of the %s buffer",
                               from, bytes, room->size, to);
    if (onic_layout_cut(room, bytes) != ONIC_LAYOUT_OK)
        return nicstride_error(m, call, OMPI_ERR_OUT_OF_RESOURCE,
                               "no memory to describe a datatype");
    return OMPI_SUCCESS;
}

/** What comes may be shorter than the room for it, of which what is left stays as it is: from here
 * on both sides are equally long. What an accumulate fetches is all of the target (origin.h). */
static int fit_sides(nicstride_module_t *m, nicstride_transfer_t *a)
{
    if (!a->has_origin || a->origin.size == a->target.size)
        return OMPI_SUCCESS;
    if (a->type == NICSTRIDE_MSG_GET)
        return nicstride_fit(m, a->call, "target", a->target.size, "origin", &a->origin);
    if (a->type == NICSTRIDE_MSG_GET_ACC && a->origin.size < a->target.size)
        return OMPI_SUCCESS;
    return nicstride_fit(m, a->call, "origin", a->origin.size, "target", &a->target);
}

int nicstride_target_init(nicstride_transfer_t *a, nicstride_module_t *m, nicstride_msg_type_t type,
                          const nicstride_arguments_t *g)
{
    const bool has_origin = g->origin_dt != NULL;
    const char *wrong;
    int rc;

    a->call = g->call;
    a->type = type;
    a->has_origin = has_origin;
    a->m = m;
    a->request = NULL;
    a->granule = 1;
    a->op = a->dtype = 0;
    a->result.nruns = 0;
    a->origin_base = (char *)(uintptr_t)g->origin;
    a->origin.nruns = 0;
    a->target.nruns = 0;
    a->direct = NULL;
    a->mapped = false;
    a->peer = nicstride_peer(m, g->target);
    if (a->peer == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    wrong = nicstride_enter(m, g->target);
    if (wrong != NULL)
        return nicstride_sync_error(m, g->call, wrong, g->target);
    rc = OMPI_SUCCESS;
    if (has_origin)
        rc = nicstride_flatten(m, g->call, "origin", g->origin_dt, (size_t)g->origin_count,
                               &a->origin);
    if (rc == OMPI_SUCCESS)
        rc = nicstride_flatten(m, g->call, "target", g->target_dt, (size_t)g->target_count,
                               &a->target);
    if (rc == OMPI_SUCCESS)
        rc = locate(m, a, g->disp);
    if (rc == OMPI_SUCCESS)
        rc = fit_sides(m, a);
    if (rc == OMPI_SUCCESS && has_origin && onic_devices_told())
        rc = nicstride_check_host(m, g->call, "origin", g->origin, &a->origin);
    if (rc == OMPI_SUCCESS && m->flavor == MPI_WIN_FLAVOR_DYNAMIC && a->peer->rank == m->rank)
        rc = check_attached(m, a);
    if (rc != OMPI_SUCCESS)
        nicstride_target_fini(a);
    return rc;
}

void nicstride_target_fini(nicstride_transfer_t *a)
{
    if (a->origin.nruns != 0)
        onic_layout_fini(&a->origin);
    if (a->target.nruns != 0)
        onic_layout_fini(&a->target);
    if (a->result.nruns != 0)
        onic_layout_fini(&a->result);
}
