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
 *
 *  In a dynamic window the word that counts the window's generations is read first (queue/keys.h):
 *  if an adapter gets a key of memory that was given back, it ends the connection. */
#include "common/config.h"

#include <math.h>

#include "osc_nicstride/methods/methods.h"

static bool fits(const nicstride_case_t *c)
{
    return c->dir != NICSTRIDE_ACC && c->target->size > 0;
}

/** One request for each piece of the target; it has a list of the origin's pieces, or is split if
 *  that list becomes too long. */
static double cost(const nicstride_case_t *c)
{
    const onic_link_t *link = &c->path->link;
    const double there = (double)onic_layout_blocks(c->target),
                 pieces = fmax(there, (double)onic_layout_blocks(c->origin));

    return onic_link_requests(link, c->dir == NICSTRIDE_GET,
                              there * ceil(pieces / there / link->entries), pieces,
                              (double)c->target->size);
}

#if OMPI_NIC_HAVE_VERBS

#include <pthread.h>
#include <stdlib.h>

#include "common/transport/verbs/registrations.h"
#include "osc_nicstride/methods/pack/parts.h"
#include "osc_nicstride/methods/verbs_peer.h"
#include "osc_nicstride/queue/keys.h"
#include "osc_nicstride/queue/operation.h"
#include "osc_nicstride/window/state.h"

#define ME NICSTRIDE_METHOD_NIC

/** How a transfer ended. */
typedef enum outcome { MOVED, FAILED, GOES_BY_MESSAGE } outcome_t;

typedef struct moved {
    onic_rdma_transfer_t rdma; /* first */
    nicstride_op_t *op;
    bool carried;                      /**< requests carry the data */
    onic_registration_t *registration; /**< otherwise the registration of the origin's memory */
    onic_rdma_region_t near;
    bool prepared; /**< everything that needs to be registered is */
    outcome_t outcome;
    struct moved *next;

    /* For dynamic windows: */
    bool guarded;             /**< the word must be read */
    bool failed;              /**< reading it failed */
    unsigned word;            /**< the index of the place where it is stored */
    uint64_t had;             /**< the generation for which there were keys */
    onic_rdma_region_t guard; /**< the key of the word */

    uint32_t cap; /**< capacity of `far`, the registered pieces of the target */
    onic_rdma_region_t far[];
} moved_t;

/** How a begin ended. */
typedef enum begun { BEGUN, BY_MESSAGE, WANTS_MEMORY } begun_t;

/* Transport lock. */
static unsigned under_way;
static moved_t *checked; /**< transfers whose word has been read, or could not be */
static moved_t
    *ended; /**< transfers whose registrations must be given back before they are finished */

/* The registrations' lock. It is not taken with the transport lock held. */
static pthread_mutex_t registering = PTHREAD_MUTEX_INITIALIZER;
static onic_registrations_t registrations;

/* ---- registered memory of the origin --------------------------------------------------------- */

/** Where targets' words are stored: one place for each transfer that reads a word, and the set of
 *  places in use (transport lock). */
#define WORDS 64
static _Alignas(WORDS * sizeof(uint64_t)) uint64_t words[WORDS];
static uint64_t words_used;
static onic_registration_t *words_registration;
static onic_rdma_region_t words_region; /**< written before its first use */

/** Registers what the transfer needs. False if that is impossible. No lock held. */
static bool register_for(const nicstride_transfer_t *t, moved_t *v)
{
    const void *base = (const void *)((uintptr_t)t->origin_base + (uintptr_t)t->origin.lb);
    const bool get = t->type == NICSTRIDE_MSG_GET;

    pthread_mutex_lock(&registering);
    bool can = registrations.cache != NULL ||
               onic_registrations_open(&registrations, nicstride_nic_adapter.port.pd,
                                       nicstride_component.params.nic_memory);
    if (can && v->guarded && words_registration == NULL)
        words_registration =
            onic_register(&registrations, words, sizeof(words), true, &words_region);
    can = can && (!v->guarded || words_registration != NULL);
    if (can && !v->carried)
        v->registration = onic_register(&registrations, base, (size_t)(t->origin.ub - t->origin.lb),
                                        get, &v->near);
    v->prepared = can && (v->carried || v->registration != NULL);
    pthread_mutex_unlock(&registering);
    return v->prepared;
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

/** Finishes a transfer that ended here; others do what is left of the operation. */
static void finish(moved_t *v)
{
    nicstride_op_t *op = v->op;
    const outcome_t outcome = v->outcome;

    op->peer->keys->begun[ME].under_way--;
    op->in_flight--;
    free(v);
    if (outcome == GOES_BY_MESSAGE)
        nicstride_op_finish_locked(op);
    else
        nicstride_op_received_locked(op, op->size - op->received,
                                     outcome == FAILED ? MPI_ERR_OTHER : 0);
}

/** Ends a transfer once the adapter takes no part in it any more. The operation is completed only
 *  after its memory is deregistered, as the program may then give the memory back. */
static void end(moved_t *v, outcome_t outcome)
{
    under_way--;
    v->outcome = outcome;
    /* At once, as the origin's MPI threads may be away. */
    if (outcome == GOES_BY_MESSAGE)
        nicstride_op_by_message_locked(v->op);
    if (v->registration == NULL) {
        finish(v);
        return;
    }
    v->next = ended;
    __atomic_store_n(&ended, v, __ATOMIC_RELAXED);
}

static void on_ended(onic_rdma_transfer_t *transfer, bool failed)
{
    end((moved_t *)transfer, failed ? FAILED : MOVED);
}

/** The target's bytes that an operation or a transfer accesses. */
static nicstride_nic_range_t range_of(nicstride_msg_type_t type, int64_t disp,
                                      const onic_layout_t *target)
{
    return (nicstride_nic_range_t){(uint64_t)disp + (uint64_t)target->lb,
                                   (uint64_t)disp + (uint64_t)target->ub,
                                   type == NICSTRIDE_MSG_GET};
}

/** True if requests on this connection can carry all the data that is written. `limits` gets the
 *  limits for that. */
static bool carries(const onic_rc_t *rc, bool get, const onic_layout_t *target,
                    onic_rdma_limits_t *limits)
{
    *limits = rc->limits;
    return !get && onic_rdma_carry_all(limits, target);
}

/** Begins to move an operation's data. `base` is the address of byte 0 of the window; the bytes lie
 *  in `pieces` regions. */
static void move(moved_t *v, onic_rc_t *rc, uint32_t pieces, uint64_t base)
{
    const nicstride_op_t *op = v->op;
    const bool get = op->type == NICSTRIDE_MSG_GET;
    onic_rdma_side_t near = {get ? &op->result : &op->origin,
                             (uintptr_t)(get ? op->result_base : op->origin_base),
                             v->carried ? &onic_rdma_region_none : &v->near, 1};
    onic_rdma_side_t far = {&op->target, base + (uint64_t)op->disp, v->far, pieces};
    onic_rdma_limits_t limits = rc->limits;

    if (v->carried)
        (void)carries(rc, get, &op->target, &limits);
    onic_rdma_walk_init(&v->rdma.walk, &limits, get, &near, &far);
    v->rdma.ended = on_ended;
    onic_rc_begin(rc, &v->rdma);
}

/* ---- dynamic windows ------------------------------------------------------------------------- */

static void on_read(onic_rdma_transfer_t *transfer, bool failed)
{
    moved_t *v = (moved_t *)transfer;

    /* Nothing begins while the connection ends transfers. */
    v->failed = failed;
    v->next = checked;
    checked = v;
}

/** Reads the word, into a place that is free. */
static void read_word(moved_t *v, onic_rc_t *rc)
{
    static const onic_layout_t word = {
        .size = sizeof(uint64_t), .block = sizeof(uint64_t), .ub = sizeof(uint64_t)};

    v->word = (unsigned)__builtin_ctzll(~words_used);
    words_used |= (uint64_t)1 << v->word;
    v->had = v->op->peer->keys->generation;
    const onic_rdma_side_t near = {&word, (uintptr_t)&words[v->word], &words_region, 1},
                           far = {&word, v->guard.addr, &v->guard, 1};

    onic_rdma_walk_init(&v->rdma.walk, &rc->limits, true, &near, &far);
    v->rdma.ended = on_read;
    onic_rc_begin(rc, &v->rdma);
}

/** The word was read: moves the data, or sends it by message if the keys are void. */
static void go_on(moved_t *v)
{
    nicstride_op_t *op = v->op;
    nicstride_peer_t *p = op->peer;
    const nicstride_nic_range_t range = range_of(op->type, op->disp, &op->target);
    onic_rdma_limits_t limits;
    onic_rc_t *rc = NULL;
    uint32_t pieces;
    uint64_t base;

    words_used &= ~((uint64_t)1 << v->word);
    if (v->failed || op->error != 0) {
        end(v, v->failed ? FAILED : MOVED);
        return;
    }
    if (__atomic_load_n(&words[v->word], __ATOMIC_RELAXED) != v->had)
        nicstride_rkey_cache_void_locked(p);
    else if (p->keys->generation == v->had)
        rc = nicstride_nic_way_locked(p, &range, v->far, v->cap, &pieces, &base);
    if (rc != NULL && (!v->carried || carries(rc, range.read, &op->target, &limits))) {
        move(v, rc, pieces, base);
        return;
    }
    end(v, GOES_BY_MESSAGE);
}

/* ---- progress -------------------------------------------------------------------------------- */

static int go_on_all(void)
{
    int n = 0;

    for (; checked != NULL; n++) {
        moved_t *v = checked;

        checked = v->next;
        go_on(v);
    }
    return n;
}

/** Continues what is under way, also in the server thread: the origin's MPI threads may be away. */
static int step(void)
{
    if (under_way == 0 && ended == NULL)
        return 0;
    const int n = onic_rc_poll(&nicstride_nic_adapter) + go_on_all();

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
    const nicstride_nic_range_t range = range_of(t->type, t->disp, &t->target);
    const bool dynamic = t->m->flavor == MPI_WIN_FLAVOR_DYNAMIC;
    bool can = false;
    uint64_t base;
    uint32_t n;

    if ((t->type != NICSTRIDE_MSG_PUT && t->type != NICSTRIDE_MSG_GET) || t->peer->local >= 0 ||
        t->peer->rank == t->m->rank || !nicstride_may_have_keys(t->peer))
        return false;
    onic_transport_lock();
    if (nicstride_rkey_cache_locked(t->peer) != NULL)
        can = nicstride_nic_way_locked(t->peer, &range, NULL, UINT32_MAX, &n, &base) != NULL &&
              (!dynamic || nicstride_word_key_locked(t->peer, ME) != NULL);
    onic_transport_unlock();
    return can;
}

/** Makes the transfer an operation, which takes over its layouts. */
static bool take_over(nicstride_transfer_t *t, moved_t *v)
{
    nicstride_peer_t *p = t->peer;
    nicstride_op_t *op = nicstride_op_of_locked(t, true);

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

/** Finds the key of a dynamic window's word, and a place to store the word. */
static bool find_guard(nicstride_peer_t *p, moved_t *v, const onic_rc_t *rc)
{
    const onic_rdma_region_t *key = nicstride_word_key_locked(p, ME);

    if (key == NULL || words_used == UINT64_MAX || rc->terms.reads == 0)
        return false;
    v->guard = *key;
    return true;
}

static begun_t begin_locked(nicstride_transfer_t *t, moved_t *v)
{
    const nicstride_nic_range_t range = range_of(t->type, t->disp, &t->target);
    nicstride_peer_t *p = t->peer;
    onic_rdma_limits_t limits;
    uint32_t pieces;
    onic_rc_t *rc;
    uint64_t base;

    if (p->failed || p->queue.flushing)
        return BY_MESSAGE;
    rc = nicstride_nic_way_locked(p, &range, v->far, v->cap, &pieces, &base);
    if (rc == NULL || (v->guarded && !find_guard(p, v, rc)))
        return BY_MESSAGE;
    v->carried = v->registration == NULL && carries(rc, range.read, &t->target, &limits);
    if (!v->prepared && (v->guarded || !v->carried))
        return WANTS_MEMORY;
    if ((!v->carried && v->registration == NULL) || !take_over(t, v))
        return BY_MESSAGE;
    if (v->guarded)
        read_word(v, rc);
    else
        move(v, rc, pieces, base);
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
    const uint64_t length = (uint64_t)(t->target.ub - t->target.lb);
    const uint32_t cap = (uint32_t)(length / nicstride_component.params.key_piece) + 2;
    moved_t *v = calloc(1, sizeof(*v) + cap * sizeof(v->far[0]));
    begun_t how;

    if (v == NULL)
        return OMPI_ERR_NOT_AVAILABLE;
    v->cap = cap;
    v->guarded = t->m->flavor == MPI_WIN_FLAVOR_DYNAMIC;
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
    (void)go_on_all();
    onic_transport_unlock();
    (void)finish_ended();
    if (words_registration != NULL)
        onic_unregister(&registrations, words_registration);
    words_registration = NULL;
    onic_registrations_close(&registrations);
    onic_transport_lock();
    nicstride_nic_end_locked();
    onic_transport_unlock();
}

const nicstride_method_row_t nicstride_nic = {.name = "nic",
                                              .fits = fits,
                                              .cost = cost,
                                              .reach = reach,
                                              .start = start,
                                              .enters = true,
                                              .in_order = true,
                                              .progress = step,
                                              .finish = finish_ended,
                                              .flush = flush,
                                              .rkey_ops = &nicstride_verbs_rkey_ops,
                                              .leave = nicstride_nic_leave,
                                              .end = end_all};

#else

static bool never(const nicstride_transfer_t *t)
{
    (void)t;
    return false;
}

/** The row without libibverbs. The name remains, so that parameters are valid everywhere. */
const nicstride_method_row_t nicstride_nic = {
    .name = "nic", .fits = fits, .cost = cost, .reach = never};

#endif
