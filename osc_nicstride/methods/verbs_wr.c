/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Method nic (strided-RMA paper, section 5.2, "NIC-based method"): the adapter itself writes
 *  or reads each contiguous piece of the target, by lists of work requests
 *  (common/transport/verbs). The target's processor takes no part.
 *
 *  Gets are reads by the origin's adapter, which has fewer reads under way at a time than writes.
 *  In the paper the target writes instead, which takes its processor. By the model's numbers for
 *  adapters, that is at best 11 % faster than the better of reads and messages, at blocks of 768 to
 *  1,024 bytes, and slower elsewhere.
 *
 *  Connections and keys are in verbs_peer.h. The origin's memory is registered without the
 *  transport lock, so that other threads, and the processes that this one serves, can go on.
 *
 *  A transfer is an operation in its peer's list, like those that go by message, until it is fully
 *  acknowledged; flushes wait for it there.
 */
#include "common/config.h"

#include <math.h>

#include "common/support/component.h"
#include "common/transport/verbs/rc_terms.h"
#include "osc_nicstride/methods/methods.h"
#include "osc_nicstride/methods/verbs_peer.h"

/** Most bytes of users' memory that are registered. */
static size_t most_memory;

static const onic_param_t params[] = {
    {.name = "nic_connections",
     .help = "Connections that method nic opens at most, each to one process, and as many that it "
             "takes from others. What finds no room goes by message",
     .size = &nicstride_nic_connections,
     .value = 64,
     .min = 2,
     .max = ONIC_RC_MOST},
    {.name = "nic_memory",
     .help = "Mebibytes of this process's own buffers that method nic keeps registered with the "
             "adapter, and so locked, at most. What needs more goes by message",
     .size = &most_memory,
     .shift = 20,
     .value = 1024,
     .min = 1,
     .max = 1 << 20},
    {.name = NULL},
};

static const onic_counter_t counters[] = {
    {"nic_doorbells", "Lists of work requests that method nic has given to the adapter",
     &nicstride_nic_counts.doorbells, 0},
    {"nic_requests", "Work requests in them", &nicstride_nic_counts.requests, 0},
    {"nic_completions", "Completions of them that the adapter has shown",
     &nicstride_nic_counts.completions, 0},
    {"nic_bytes", "Bytes that they were to move", &nicstride_nic_counts.bytes, 0},
};

static bool fits(const nicstride_case_t *c)
{
    return c->dir != NICSTRIDE_ACC && c->target->size > 0;
}

/** One request for each piece of the target; it has a list of the origin's pieces, or is split if
 *  that list becomes too long. */
static double cost(const nicstride_case_t *c)
{
    const onic_link_t *link = &c->path->link;

    if (c->path->costs != NULL)
        return INFINITY;
    const double there = (double)onic_layout_blocks(c->target), pieces = nicstride_pieces(c);

    return onic_link_requests(link, c->dir == NICSTRIDE_GET,
                              there * ceil(pieces / there / link->entries), pieces,
                              (double)c->target->size);
}

#if OMPI_NIC_HAVE_VERBS

#include <pthread.h>
#include <stdlib.h>

#include "common/transport/verbs/registrations.h"
#include "osc_nicstride/methods/pack/parts.h"
#include "osc_nicstride/queue/keys.h"
#include "osc_nicstride/queue/operation.h"
#include "osc_nicstride/window/module.h"
#include "osc_nicstride/window/state.h"

#define ME NICSTRIDE_METHOD_NIC

typedef struct moved {
    onic_rdma_transfer_t rdma; /* first */
    nicstride_op_t *op;
    onic_registration_t *registration; /**< of the origin's memory; NULL: requests carry the data */
    uint32_t near;                     /**< the key of that */
    bool failed;
    struct moved *next;
} moved_t;

/** How a begin ended. */
typedef enum begun { BEGUN, BY_MESSAGE, WANTS_MEMORY } begun_t;

/* Transport lock. */
static unsigned under_way;
/** Transfers whose registrations must be given back before they are finished. */
static moved_t *ended;

/* The registrations' lock. It is not taken with the transport lock held. */
static pthread_mutex_t registering = PTHREAD_MUTEX_INITIALIZER;
static onic_registrations_t registrations;

/* ---- registered memory of the origin --------------------------------------------------------- */

/** Registers the origin's memory. False if that is impossible. No lock held. */
static bool register_for(const nicstride_transfer_t *t, moved_t *v)
{
    const void *base = (const void *)((uintptr_t)t->origin_base + (uintptr_t)t->origin.lb);

    pthread_mutex_lock(&registering);
    if (registrations.cache != NULL ||
        onic_registrations_open(&registrations, nicstride_nic_adapter.port.pd, most_memory))
        v->registration = onic_register(&registrations, base, (size_t)(t->origin.ub - t->origin.lb),
                                        t->type == NICSTRIDE_MSG_GET, &v->near);
    pthread_mutex_unlock(&registering);
    return v->registration != NULL;
}

/** Gives back what a transfer and those linked after it had registered. MPI threads, no lock
 *  held. */
static void give_back(const moved_t *v)
{
    pthread_mutex_lock(&registering);
    for (; v != NULL; v = v->next)
        if (v->registration != NULL)
            onic_unregister(&registrations, v->registration);
    pthread_mutex_unlock(&registering);
}

/* ---- transfers ------------------------------------------------------------------------------- */

/** Finishes a transfer that ended. */
static void finish(moved_t *v)
{
    nicstride_op_t *op = v->op;
    const bool failed = v->failed;

    op->peer->keys->begun[ME].under_way--;
    op->in_flight--;
    free(v);
    nicstride_op_received_locked(op, op->size - op->received, failed ? MPI_ERR_OTHER : 0);
}

/** Ends a transfer once the adapter takes no part in it any more. The operation is completed only
 *  after its memory is deregistered, as the program may then give the memory back. */
static void on_ended(onic_rdma_transfer_t *transfer, bool failed)
{
    moved_t *v = (moved_t *)transfer;

    under_way--;
    v->failed = failed;
    if (v->registration == NULL) {
        finish(v);
        return;
    }
    v->next = ended;
    __atomic_store_n(&ended, v, __ATOMIC_RELAXED);
}

/** Begins to move an operation's data. */
static void move(moved_t *v, onic_rc_t *rc, const onic_rdma_limits_t *limits,
                 const nicstride_nic_key_t *key)
{
    const nicstride_op_t *op = v->op;
    const bool get = op->type == NICSTRIDE_MSG_GET;
    const onic_rdma_side_t near = {get ? &op->result : &op->origin,
                                   (uintptr_t)(get ? op->result_base : op->origin_base), v->near};
    const onic_rdma_side_t far = {&op->target, key->addr + (uint64_t)op->disp, key->key};

    onic_rdma_walk_init(&v->rdma.walk, limits, get, &near, &far);
    v->rdma.ended = on_ended;
    onic_rc_begin(rc, &v->rdma);
}

/* ---- progress -------------------------------------------------------------------------------- */

/** Continues what is under way, also in the server thread: the origin's MPI threads may be away. */
static int step(void)
{
    if (under_way == 0 && ended == NULL)
        return 0;
    const int n = onic_rc_poll(&nicstride_nic_adapter);

    if (ended != NULL)
        onic_transport_ask(ONIC_AM_OSC, ONIC_MPI);
    if (under_way > 0 && n > 0)
        onic_transport_ask(ONIC_AM_OSC, ONIC_LOCKED);
    return under_way > 0 && n == 0 ? -1 : n;
}

/** Only MPI threads deal with registrations. */
static int finish_ended(void)
{
    int n = 0;

    /* This is also called when others asked for it. */
    if (__atomic_load_n(&ended, __ATOMIC_RELAXED) == NULL)
        return 0;
    onic_transport_lock();
    moved_t *list = ended;
    __atomic_store_n(&ended, NULL, __ATOMIC_RELAXED);
    onic_transport_unlock();
    give_back(list);
    onic_transport_lock();
    for (moved_t *next; list != NULL; list = next, n++) {
        next = list->next;
        finish(list);
    }
    onic_transport_unlock();
    return n;
}

/* ---- starting -------------------------------------------------------------------------------- */

static bool reach(const nicstride_transfer_t *t)
{
    const nicstride_nic_key_t *key;
    bool can;

    if ((t->type != NICSTRIDE_MSG_PUT && t->type != NICSTRIDE_MSG_GET) || t->peer->local >= 0 ||
        t->peer->rank == t->m->rank || !nicstride_may_have_keys(t->peer))
        return false;
    onic_transport_lock();
    can = nicstride_nic_way_locked(t->peer, t->type == NICSTRIDE_MSG_GET, &key) != NULL;
    onic_transport_unlock();
    return can;
}

/** Makes the transfer an operation, which takes over its layouts. */
static bool take_over(nicstride_transfer_t *t, moved_t *v)
{
    nicstride_peer_t *p = t->peer;
    nicstride_op_t *op = nicstride_op_of_locked(t);

    if (op == NULL)
        return false;
    nicstride_op_enter_locked(t, op);
    op->in_flight++;
    op->sent = op->size;
    op->row = &nicstride_nic;
    v->op = op;
    under_way++;
    p->keys->begun[ME].under_way++;
    onic_transport_ask(ONIC_AM_OSC, ONIC_LOCKED);
    return true;
}

static begun_t begin_locked(nicstride_transfer_t *t, moved_t *v)
{
    const bool get = t->type == NICSTRIDE_MSG_GET;
    nicstride_peer_t *p = t->peer;
    const nicstride_nic_key_t *key;

    if (p->failed || p->queue.flushing)
        return BY_MESSAGE;
    onic_rc_t *rc = nicstride_nic_way_locked(p, get, &key);
    if (rc == NULL)
        return BY_MESSAGE;
    onic_rdma_limits_t limits = rc->limits;
    if (v->registration == NULL && (get || !onic_rdma_carry_all(&limits, &t->target)))
        return WANTS_MEMORY;
    if (!take_over(t, v))
        return BY_MESSAGE;
    move(v, rc, &limits, key);
    return BEGUN;
}

static begun_t begin(nicstride_transfer_t *t, moved_t *v)
{
    onic_transport_lock();
    const begun_t how = begin_locked(t, v);
    onic_transport_unlock();
    return how;
}

static int start(nicstride_transfer_t *t, bool *done_p)
{
    moved_t *v = calloc(1, sizeof(*v));
    begun_t how;

    if (v == NULL)
        return OMPI_ERR_NOT_AVAILABLE;
    *done_p = false;
    how = begin(t, v);
    if (how == WANTS_MEMORY && register_for(t, v))
        how = begin(t, v);
    if (how != BEGUN) {
        give_back(v);
        free(v);
    }
    return how == BEGUN ? OMPI_SUCCESS : OMPI_ERR_NOT_AVAILABLE;
}

static bool flush(nicstride_peer_t *p)
{
    return p->keys == NULL || p->keys->begun[ME].under_way == 0;
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void end_all(void)
{
    onic_transport_lock();
    onic_rc_stop(&nicstride_nic_adapter);
    onic_transport_unlock();
    (void)finish_ended();
    onic_registrations_close(&registrations);
    onic_transport_lock();
    nicstride_nic_end_locked();
    onic_transport_unlock();
}

const nicstride_method_row_t nicstride_nic = {.name = "nic",
                                              .params = params,
                                              .counters = counters,
                                              .ncounters = sizeof(counters) / sizeof(counters[0]),
                                              .fits = fits,
                                              .cost = cost,
                                              .reach = reach,
                                              .start = start,
                                              .progress = step,
                                              .finish = finish_ended,
                                              .flush = flush,
                                              .rkey_ops = &nicstride_verbs_rkey_ops,
                                              .leave = nicstride_nic_leave,
                                              .end = end_all};

#else

static bool never(const struct nicstride_transfer *t)
{
    (void)t;
    return false;
}

/** The row without libibverbs. The name remains, so that parameters are valid everywhere. */
const nicstride_method_row_t nicstride_nic = {.name = "nic",
                                              .params = params,
                                              .counters = counters,
                                              .ncounters = sizeof(counters) / sizeof(counters[0]),
                                              .fits = fits,
                                              .cost = cost,
                                              .reach = never};

#endif
