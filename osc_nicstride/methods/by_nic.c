/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Method nic (strided-RMA paper, section 5.2, "NIC-based method"): the adapter writes or reads each
 * contiguous piece of the target by itself, by lists of work requests (common/verbs), and the
 * target's processor has no part in it.
 *
 * With the question for keys a process tells its end of a connection, which it has one of to each
 * other process; with the answer the target tells its own, and the key of the memory. Where the
 * connection has gone, to make room for others, the keys are asked for again.
 *
 * A transfer is an operation in its peer's list, as those that go by message, until all of it has
 * been acknowledged: flushes wait for it there.
 */
#include "common/config.h"

#include "osc_nicstride/methods/methods.h"
#include "osc_nicstride/methods/plan.h"

#if OMPI_NIC_HAVE_VERBS

#include <stdlib.h>

#include "opal/runtime/opal_progress.h"

#include "common/support/bytes.h"
#include "common/support/help.h"
#include "common/verbs/connections.h"
#include "common/verbs/registrations.h"
#include "common/verbs/strided_keys.h"
#include "common/wire/put.h"
#include "osc_nicstride/queue/ask_keys.h"
#include "osc_nicstride/queue/lazy_lock.h"
#include "osc_nicstride/queue/observe.h"
#include "osc_nicstride/queue/operation.h"
#include "osc_nicstride/queue/start.h"
#include "osc_nicstride/queue/wait.h"
#include "osc_nicstride/window/state.h"

/** A write of no more carries its bytes: the adapter need not fetch them. */
#define INLINE_BYTES 64
/** A completion is asked for after so many parts of a window of requests. */
#define SIGNALS 8
/** Registered pieces of the target that one transfer may lie in. */
#define PIECES 8

/** What the row keeps with a process. */
typedef struct side {
    onic_rc_t *rc;                 /**< the connection to it; NULL: none */
    bool refused;                  /**< there will be none */
    const nicstride_peer_t *asker; /**< whose window was asked for keys last */
    bool has_asked;                /**< for one to me, */
    onic_rc_terms_t asked;         /**< with these terms */
    uint64_t process;              /**< its name, once it is served; else 0 */
} side_t;

typedef struct moved {
    onic_rdma_transfer_t rdma; /* first */
    nicstride_op_t *op;
    onic_registration_t *registration; /**< of the origin's memory; NULL: it is carried */
    onic_strided_key_t *key;           /**< over it, or NULL */
    onic_rdma_region_t near, far[PIECES];
    struct moved *next;
} moved_t;

/* Wire lock; the last two are for MPI threads only. */
static onic_rc_adapter_t adapter;
static bool tried, progressed, over;
static unsigned under_way, enrolled;
static moved_t *ended; /**< an MPI thread is to give back their registrations, and free them */
static onic_registrations_t registrations;

/* ---- the adapter ------------------------------------------------------------------------------
 */

static void lost(void *owner, const char *why)
{
    side_t *s = owner;

    s->rc = NULL;
    if (why != NULL) {
        s->refused = true;
        onic_say("osc_nicstride: transfers by method nic have failed, later ones to that process "
                 "go by message: %s",
                 why);
    }
}

static bool open_adapter(void)
{
    const onic_link_t *link = &nicstride_component.paths.adapter.link;
    const nicstride_params_t *params = &nicstride_component.params;
    const onic_rc_spec_t spec = {.connections = params->nic_connections,
                                 .window = (unsigned)link->window,
                                 .batch = (unsigned)link->batch,
                                 .signal = (unsigned)(link->window / SIGNALS),
                                 .pieces = (unsigned)link->entries,
                                 .inline_bytes = INLINE_BYTES,
                                 .strided = params->strided_keys};
    onic_verbs_reason_t why;

    if (!tried) {
        tried = true;
        if (onic_rc_open(&adapter, params->nic_device, &spec, &nicstride_counters.nic, lost,
                         &why) != 0 &&
            params->method == NICSTRIDE_METHOD_NIC)
            onic_say("osc_nicstride: method nic cannot be used: %s", why.text);
        if (adapter.no_keys != NULL)
            onic_say("osc_nicstride: method nic does without strided keys: %s", adapter.no_keys);
    }
    return onic_rc_is_open(&adapter);
}

/** Once all of it is over. MPI may be initialised again. */
static void close_adapter(void)
{
    if (!over || enrolled > 0)
        return;
    onic_rc_close(&adapter);
    tried = over = false;
}

/** Gives back what transfers that have ended had registered. MPI threads; wire lock. */
static void give_back_locked(void)
{
    while (ended != NULL) {
        moved_t *v = ended;

        ended = v->next;
        if (v->registration != NULL)
            onic_unregister(&registrations, v->registration);
        free(v);
    }
}

static int progress(void)
{
    int n = 0;

    if (__atomic_load_n(&under_way, __ATOMIC_RELAXED) > 0 && onic_wire_trylock()) {
        n = onic_rc_poll(&adapter);
        give_back_locked();
        onic_wire_unlock();
    }
    return n;
}

/* ---- keys -------------------------------------------------------------------------------------
 */

/* An answer: the terms, the queue pair that they are for, and the memory. */
enum { AT_PAIR = ONIC_RC_TERMS_SIZE, AT_KEY = AT_PAIR + 4, AT_ADDR = AT_KEY + 4 };
#define ANSWER (AT_ADDR + 8)

static side_t *side_of(nicstride_peer_t *p)
{
    void **slot = &p->process->of_row[NICSTRIDE_METHOD_NIC];

    if (*slot == NULL)
        *slot = calloc(1, sizeof(side_t));
    return *slot;
}

static bool usable(nicstride_peer_t *p)
{
    const int method = nicstride_component.params.method;
    const bool wanted = method == NICSTRIDE_METHOD_NIC ||
                        (method == NICSTRIDE_METHOD_AUTO && onic_peer_puts_by_rdma(p->wire));
    const bool can = wanted && p->module->flavor != MPI_WIN_FLAVOR_DYNAMIC && open_adapter();
    const side_t *s = can ? side_of(p) : NULL;

    return s != NULL && !s->refused;
}

static void *enrol(nicstride_module_t *m, void *base, uint64_t bytes)
{
    void *memory = open_adapter() ? onic_rc_expose(&adapter, base, bytes) : NULL;

    (void)m;
    enrolled += memory != NULL;
    return memory;
}

static void withdraw(void *memory)
{
    onic_rc_conceal(memory);
    enrolled--;
    close_adapter();
}

/** Has the process a connection, or the begin of one? */
static bool has_connection(side_t *s)
{
    if (s->rc == NULL && !s->refused) {
        s->refused = !onic_rc_is_full(&adapter);
        s->rc = onic_rc_make(&adapter, s);
        s->refused = s->refused && s->rc == NULL;
    }
    return s->rc != NULL;
}

static size_t offer(nicstride_peer_t *p, void *memory, void *bytes, size_t cap)
{
    side_t *s = open_adapter() ? side_of(p) : NULL;
    const struct ibv_mr *mr = memory;
    onic_rc_terms_t answer;

    if (s == NULL || cap < ANSWER)
        return 0;
    if (memory == NULL) {
        if (!has_connection(s))
            return 0;
        s->asker = p;
        onic_rc_terms_encode(&s->rc->terms, bytes);
        return ONIC_RC_TERMS_SIZE;
    }
    s->process = onic_peer_name(p->wire);
    if (!s->has_asked || !onic_rc_serve(&adapter, s->process, &s->asked, &answer))
        return 0;
    onic_rc_terms_encode(&answer, bytes);
    onic_put32((char *)bytes + AT_PAIR, s->asked.address.qpn);
    onic_put32((char *)bytes + AT_KEY, mr->rkey);
    onic_put64((char *)bytes + AT_ADDR, (uintptr_t)mr->addr);
    return ANSWER;
}

static void *accept_answer(side_t *s, const nicstride_span_t *span, const char *bytes, size_t len)
{
    onic_rc_terms_t terms;
    onic_rdma_region_t *key;

    if (len != ANSWER || onic_rc_terms_decode(bytes, ONIC_RC_TERMS_SIZE, &terms) != NULL ||
        onic_get64(bytes + AT_ADDR) > UINT64_MAX - span->size)
        return NULL;
    /* Not by an answer for one that has gone meanwhile, which another window had asked for. */
    if (s->rc != NULL && s->rc->state == ONIC_RC_MADE &&
        s->rc->terms.address.qpn == onic_get32(bytes + AT_PAIR) &&
        !onic_rc_connect(s->rc, &terms)) {
        s->rc = NULL;
        s->refused = true;
        return NULL;
    }
    key = calloc(1, sizeof(*key));
    if (key != NULL)
        *key = (onic_rdma_region_t){onic_get64(bytes + AT_ADDR), span->size,
                                    onic_get32(bytes + AT_KEY)};
    return key;
}

static void *take(nicstride_peer_t *p, const nicstride_span_t *span, const void *bytes, size_t len)
{
    side_t *s = side_of(p);

    if (s != NULL && span == NULL)
        s->has_asked = onic_rc_terms_decode(bytes, len, &s->asked) == NULL;
    return s != NULL && span != NULL ? accept_answer(s, span, bytes, len) : NULL;
}

static const nicstride_keyed_t keyed = {.usable = usable,
                                        .enrol = enrol,
                                        .withdraw = withdraw,
                                        .offer = offer,
                                        .accept = take,
                                        .drop = free};

/* ---- reach ------------------------------------------------------------------------------------
 */

/** The pieces that bytes [at, end) of the target's window lie in; 0 where there is no key for some
 *  of them, or they are too many. `base`: the address of byte 0 of the window. */
static uint32_t find_pieces(nicstride_peer_t *p, uint64_t at, uint64_t end,
                            onic_rdma_region_t *region, uint64_t *base)
{
    nicstride_span_t span;
    uint32_t n = 0;

    for (; at < end; at = span.at + span.size) {
        const onic_rdma_region_t *key = nicstride_key_locked(p, NICSTRIDE_METHOD_NIC, at, &span);

        if (key == NULL || n == PIECES || (n > 0 && key->addr != *base + span.at))
            return 0;
        if (n == 0)
            *base = key->addr - span.at;
        region[n++] = *key;
    }
    return n;
}

/** Asks again for what is missing. Keys of other rows go, too: nothing is under way with those. */
static void ask_again(nicstride_peer_t *p, side_t *s, uint64_t at)
{
    nicstride_keyring_t *ring = p->keys;
    nicstride_span_t span;

    if (ring == NULL || ring->asked || s->refused)
        return;
    if (s->rc != NULL && s->rc->state == ONIC_RC_MADE && s->asker == p) {
        /* The answer was a refusal, or about other rows only. */
        onic_rc_drop(s->rc);
        s->rc = NULL;
        s->refused = !ring->refused;
    } else if (s->rc == NULL && !ring->refused && nicstride_rows_landed_locked(p) &&
               has_connection(s)) {
        nicstride_keyring_void_locked(p);
        (void)nicstride_key_locked(p, NICSTRIDE_METHOD_NIC, at, &span);
    }
}

/** The target's bytes as a side of the transfer. False where they cannot be reached now. */
static bool find_far(const nicstride_transfer_t *t, side_t *s, onic_rdma_region_t *region,
                     onic_rdma_side_t *far)
{
    const uint64_t at = (uint64_t)(t->disp + t->target.lb),
                   end = (uint64_t)(t->disp + t->target.ub);
    uint64_t base = 0;
    const uint32_t n = s != NULL ? find_pieces(t->peer, at, end, region, &base) : 0;
    const bool ready = n > 0 && s->rc != NULL && s->rc->state == ONIC_RC_CONNECTED;

    if (s != NULL && !ready)
        ask_again(t->peer, s, at);
    if (!ready)
        return false;
    *far = (onic_rdma_side_t){&t->target, base + (uint64_t)t->disp, region, n};
    return t->type == NICSTRIDE_MSG_PUT || s->rc->terms.reads > 0;
}

static bool reach(const nicstride_transfer_t *t)
{
    onic_rdma_region_t region[PIECES];
    onic_rdma_side_t far;
    bool can = false;

    if ((t->type != NICSTRIDE_MSG_PUT && t->type != NICSTRIDE_MSG_GET) || t->peer->local >= 0 ||
        t->peer->rank == t->m->rank || t->m->flavor == MPI_WIN_FLAVOR_DYNAMIC ||
        !nicstride_may_have_keys(t->peer))
        return false;
    onic_wire_lock();
    if (nicstride_keyring_locked(t->peer) != NULL)
        can = find_far(t, t->peer->process->of_row[NICSTRIDE_METHOD_NIC], region, &far);
    onic_wire_unlock();
    return can;
}

/* ---- transfers --------------------------------------------------------------------------------
 */

static void on_ended(onic_rdma_transfer_t *transfer, bool failed)
{
    moved_t *v = (moved_t *)transfer;
    nicstride_op_t *op = v->op;

    if (v->key != NULL)
        onic_strided_key_give(v->key);
    under_way--;
    op->peer->keys->begun[NICSTRIDE_METHOD_NIC].under_way--;
    op->in_flight--;
    nicstride_op_received_locked(op, op->size - op->received, failed ? MPI_ERR_OTHER : 0);
    v->next = ended;
    ended = v;
}

/** The origin's memory as a side of the transfer; false where it cannot be registered. */
static bool find_near(const nicstride_transfer_t *t, moved_t *v, onic_rdma_limits_t *limits,
                      onic_rdma_side_t *near)
{
    const uint64_t base = (uintptr_t)t->origin_base;
    const bool get = t->type == NICSTRIDE_MSG_GET;

    if (!get && onic_rdma_carry_all(limits, &t->target)) {
        *near = (onic_rdma_side_t){&t->origin, base, &onic_rdma_region_none, 1};
        return true;
    }
    if (registrations.cache == NULL &&
        !onic_registrations_open(&registrations, adapter.port.device->pd,
                                 nicstride_component.params.nic_memory))
        return false;
    v->registration =
        onic_register(&registrations, (void *)(uintptr_t)(base + (uint64_t)t->origin.lb),
                      (size_t)(t->origin.ub - t->origin.lb), get, &v->near);
    *near = (onic_rdma_side_t){&t->origin, base, &v->near, 1};
    return v->registration != NULL;
}

/** The transfer as an operation, which takes its layouts over. */
static bool take_over(nicstride_transfer_t *t, moved_t *v, onic_rdma_side_t *near,
                      onic_rdma_side_t *far)
{
    nicstride_peer_t *p = t->peer;
    nicstride_op_t *op = nicstride_op_of_locked(t, true);

    if (op == NULL)
        return false;
    op->move = NULL;
    nicstride_observe_begin_locked(p, t->cell, NICSTRIDE_METHOD_NIC, op->size);
    nicstride_op_enter_locked(p, op);
    op->in_flight++;
    op->sent = op->size;
    v->op = op;
    near->layout = op->type == NICSTRIDE_MSG_GET ? &op->result : &op->origin;
    far->layout = &op->target;
    return true;
}

static bool begin_locked(nicstride_transfer_t *t, moved_t *v)
{
    side_t *s = t->peer->process->of_row[NICSTRIDE_METHOD_NIC];
    onic_rdma_side_t near, far;
    onic_rdma_limits_t limits;

    if (t->peer->failed || t->peer->queue.flushing || nicstride_lazy_lock_is_locked(t->peer) ||
        !find_far(t, s, v->far, &far))
        return false;
    limits = s->rc->limits;
    if (!find_near(t, v, &limits, &near))
        return false;
    if (!take_over(t, v, &near, &far)) {
        if (v->registration != NULL)
            onic_unregister(&registrations, v->registration);
        return false;
    }
    if (v->registration != NULL)
        v->key = onic_strided_key_take(s->rc, &near, &far);
    onic_rdma_walk_init(&v->rdma.walk, &limits, v->op->type == NICSTRIDE_MSG_GET, &near, &far);
    v->rdma.ended = on_ended;
    under_way++;
    t->peer->keys->begun[NICSTRIDE_METHOD_NIC].under_way++;
    onic_rc_begin(s->rc, &v->rdma);
    nicstride_observe_started_locked(t->peer);
    return true;
}

/** A short transfer goes in the message that asks for the target's lock, if that is held back. */
static int start(nicstride_transfer_t *t, bool *done_p)
{
    moved_t *v = calloc(1, sizeof(*v));
    bool begun;

    if (v == NULL)
        return OMPI_ERR_NOT_AVAILABLE;
    if (!__atomic_exchange_n(&progressed, true, __ATOMIC_RELAXED))
        (void)opal_progress_register(progress);
    *done_p = false;
    if (nicstride_lazy_lock_may_be(t->peer) && t->target.size > nicstride_inline_max(false))
        (void)nicstride_await_lock(t->peer); /* an error shows with the operation */
    onic_wire_lock();
    give_back_locked();
    begun = begin_locked(t, v);
    onic_wire_unlock();
    if (!begun)
        free(v);
    return begun ? OMPI_SUCCESS : OMPI_ERR_NOT_AVAILABLE;
}

static bool flush(nicstride_peer_t *p)
{
    return p->keys == NULL || p->keys->begun[NICSTRIDE_METHOD_NIC].under_way == 0;
}

/* ---- ends -------------------------------------------------------------------------------------
 */

static void leave(void *of_row)
{
    side_t *s = of_row;

    if (s->rc != NULL)
        onic_rc_drop(s->rc);
    if (s->process != 0)
        onic_rc_unserve(&adapter, s->process);
    free(s);
}

static void end(void)
{
    if (progressed)
        (void)opal_progress_unregister(progress);
    onic_wire_lock();
    onic_rc_stop(&adapter);
    give_back_locked();
    onic_registrations_close(&registrations);
    over = true;
    progressed = false;
    close_adapter();
    onic_wire_unlock();
}

const nicstride_method_row_t nicstride_nic = {.name = "nic",
                                              .fits = nicstride_nic_fits,
                                              .cost = nicstride_nic_cost,
                                              .reach = reach,
                                              .start = start,
                                              .enters = true,
                                              .flush = flush,
                                              .keyed = &keyed,
                                              .leave = leave,
                                              .end = end};

#else

static bool never(const nicstride_transfer_t *t)
{
    (void)t;
    return false;
}

/** Without libibverbs. The name stays, so that parameters are good everywhere. */
const nicstride_method_row_t nicstride_nic = {
    .name = "nic", .fits = nicstride_nic_fits, .cost = nicstride_nic_cost, .reach = never};

#endif
