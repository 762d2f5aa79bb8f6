/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The mover's life, and how transfers begin.
 */
#include "common/mover/carrier_rma.h"
#include "common/mover/counters.h"
#include "common/mover/transfer_internal.h"

#include <pthread.h>
#include <sched.h>

#include "ompi/constants.h"
#include "opal/util/proc.h"

#include "common/node/segment.h"
#include "common/support/clock.h"
#include "common/node/presence.h"

/** Calls of progress without work between two looks at the clock. */
#define CALLS 4096
/** Leases that belong to no transfer are looked at so often: their owner may be dead. */
#define SWEEP_NSEC UINT64_C(100000000)
/** An area that is smaller than this, since there is little shared memory, is not worth it. */
#define AREA_LEAST ((size_t)64 << 10)

/** Guards the count of references; opening and closing happen under it. */
static pthread_mutex_t open_mutex = PTHREAD_MUTEX_INITIALIZER;

/* ---- what the dead have left ----------------------------------------------------------------- */

/** Gives back the slots among `slots` whose owner is dead. */
static void bury(uint64_t slots)
{
    const onic_pool_t *pool = &onic_mover.area.pool;
    while (slots != 0) {
        const uint64_t owner = onic_pool_owner(pool, (unsigned)__builtin_ctzll(slots));
        uint64_t same = slots & -slots;
        for (uint64_t rest = slots & (slots - 1); rest != 0; rest &= rest - 1) {
            same |=
                onic_pool_owner(pool, (unsigned)__builtin_ctzll(rest)) == owner ? rest & -rest : 0;
        }
        const onic_life_t life = onic_owner_life(owner, &onic_mover.area.life);
        if (owner != 0 && onic_life_is_dead(&life)) {
            onic_mover_count_slots(onic_pool_give(pool, owner, same));
        }
        slots &= ~same;
    }
}

/** Every now and then: slots that a transfer here has to do with are its own business. A dead
 *  sender's transfer ends by itself. */
static void sweep(void)
{
    static atomic_bool busy;
    static uint64_t swept, lost, seen;
    const uint64_t now = onic_now_nsec();
    if (!onic_mover.has_area || atomic_exchange(&busy, true)) {
        return;
    }
    if (now - swept > SWEEP_NSEC) {
        swept = now;
        const uint64_t alone =
            onic_pool_mend(&onic_mover.area.pool, &lost) & ~atomic_load(&onic_mover.receiving);
        bury(alone & seen);
        seen = alone;
    }
    atomic_store(&busy, false);
}

static void sweep_now_and_then(void)
{
    static atomic_uint calls;
    /* Threads that meet here lose a count or two. */
    const unsigned n = atomic_load_explicit(&calls, memory_order_relaxed) + 1;
    atomic_store_explicit(&calls, n, memory_order_relaxed);
    if (n % CALLS != 0) {
        return;
    }
    atomic_fetch_add(&onic_mover.inside, 1);
    if (atomic_load(&onic_mover.open)) {
        sweep();
    }
    atomic_fetch_sub(&onic_mover.inside, 1);
}

/** What the wire calls after each progress. */
static int progress_wire(void)
{
    sweep_now_and_then();
    if (onic_mover_idle() && onic_rma_idle()) {
        return 0;
    }
    const int moved = onic_rma_progress() + onic_mover_progress();
    return moved > 0 || (onic_mover_idle() && onic_rma_idle()) ? moved : -1;
}

/* ---- opening and closing --------------------------------------------------------------------- */

/** Bytes of this process's area; 0: none. */
static size_t area_bytes(const onic_mover_config_t *config)
{
    const unsigned processes = (unsigned)opal_process_info.num_local_peers + 1;
    const size_t bytes =
        onic_segment_part(config->area > 0 ? config->area : onic_area_derived(), processes);
    return bytes < AREA_LEAST && bytes < config->area ? 0 : bytes;
}

static int open_first(const onic_mover_config_t *config)
{
    const onic_life_t mine = onic_life_mine();
    const size_t bytes = area_bytes(config);
    if (!onic_transfers_start()) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    onic_mover.me = onic_owner_of(&mine);
    onic_mover.has_area =
        bytes > 0 && onic_area_make(bytes, config->slot, &onic_mover.area, &onic_mover.key);
    atomic_store(&onic_mover.receiving, 0);
    atomic_store(&onic_mover.open, true);
    if (onic_mover.has_area) {
        onic_presence_offer(&onic_mover.key);
    }
    onic_rma_open(config->rma);
    onic_wire_set_unlocked_fn(progress_wire);
    onic_wire_set_forget_fn(ONIC_AM_MOVER, onic_mover_forget_peer);
    return OMPI_SUCCESS;
}

static void close_last(void)
{
    onic_presence_offer(NULL);
    onic_wire_set_unlocked_fn(NULL);
    onic_wire_set_forget_fn(ONIC_AM_MOVER, NULL);
    atomic_store(&onic_mover.open, false);
    while (atomic_load(&onic_mover.inside) != 0) {
        sched_yield();
    }
    onic_wire_lock();
    onic_transfers_end_locked();
    onic_mover_forget_schedule_locked();
    onic_mover_forget_peers();
    onic_wire_unlock();
    onic_rma_close();
    onic_transfers_stop();
    if (onic_mover.has_area) {
        onic_area_close(&onic_mover.area, &onic_mover.key);
        onic_mover.has_area = false;
    }
}

int onic_mover_open(const onic_mover_config_t *config)
{
    int rc = OMPI_SUCCESS;
    pthread_mutex_lock(&open_mutex);
    if (onic_mover.refs == 0) {
        rc = open_first(config);
    }
    onic_mover.refs += rc == OMPI_SUCCESS;
    pthread_mutex_unlock(&open_mutex);
    return rc;
}

void onic_mover_close(void)
{
    pthread_mutex_lock(&open_mutex);
    if (--onic_mover.refs == 0) {
        close_last();
    }
    pthread_mutex_unlock(&open_mutex);
}

static size_t bytes_of(const onic_area_t *area)
{
    return (size_t)area->pool.nslots * area->slot_bytes;
}

size_t onic_mover_area(void)
{
    return onic_mover.has_area ? bytes_of(&onic_mover.area) : 0;
}

void onic_mover_announce(onic_mover_rma_t rma)
{
    onic_rma_announce(rma);
}

/** The record of a peer whose area is mapped here, NULL where it is not. */
static onic_mover_peer_t *near_peer(onic_peer_t *peer)
{
    return onic_rma_state.use != ONIC_MOVER_RMA_ALWAYS ? onic_mover_peer(peer) : NULL;
}

/** Likewise of one that is put to. */
static onic_rma_peer_t *far_peer(onic_peer_t *peer)
{
    return near_peer(peer) == NULL ? onic_rma_peer(peer) : NULL;
}

bool onic_mover_reaches_locked(onic_peer_t *peer)
{
    return near_peer(peer) != NULL || onic_rma_peer(peer) != NULL;
}

/* ---- beginning ------------------------------------------------------------------------------- */

static bool is_source(const onic_mover_end_t *end, uint64_t len)
{
    return end->len == len && len > 0 && end->at <= end->layout.size &&
           len <= end->layout.size - end->at;
}

static bool is_sink(const onic_mover_end_t *end, uint64_t len)
{
    return end->take != NULL ? end->len == len && len > 0 : is_source(end, len);
}

/** The layout is the transfer's now. */
static onic_transfer_t *begin(onic_transfer_t *t, onic_mover_end_t *end, uint64_t len)
{
    onic_transfer_begin(t, end, len, t->area->slot_bytes);
    if (end != NULL) {
        end->layout.nruns = 0;
        end->layout.runs = NULL;
        end->layout.run_start = NULL;
    }
    return t;
}

/** Leases slots for `owner`, and makes the transfer that uses them; NULL where there is none. */
static onic_transfer_t *lease(onic_role_t role, onic_area_t *area, uint64_t owner, uint64_t len,
                              onic_pool_wait_t *wait)
{
    onic_transfer_t *t = onic_transfer_new(role);
    if (t == NULL) {
        return NULL;
    }
    /* A slot for each chunk; for a get by this process's schedule, which mostly is its peer's. */
    const onic_schedule_t schedule =
        onic_transfer_schedule_locked(&onic_carrier_node, len, 1, area->slot_bytes);
    t->carrier = &onic_carrier_node;
    t->area = area;
    t->owner = owner;
    const uint64_t leased = onic_pool_take(
        &area->pool, owner, onic_schedule_chunks(&schedule, len, ONIC_SLOTS_MAX), wait);
    t->slots = onic_area_have(area, leased, true);
    if (t->slots != leased) {
        (void)onic_pool_give(&area->pool, owner, leased & ~t->slots);
    }
    if (t->slots == 0) {
        onic_mover_count(&onic_mover_counters.refused, 1);
        onic_transfer_drop(t);
        return NULL;
    }
    return t;
}

static onic_ticket_t ticket_of(const onic_transfer_t *t, uint64_t len)
{
    return (onic_ticket_t){.slots = t->slots, .len = len, .name = t->name};
}

onic_transfer_t *onic_mover_send_locked(onic_peer_t *to, onic_mover_end_t *source,
                                        onic_ticket_t *ticket)
{
    onic_mover_peer_t *p = near_peer(to);
    onic_rma_peer_t *far = far_peer(to);
    if (far != NULL) {
        return is_source(source, source->len) ? onic_rma_send(far, source, ticket) : NULL;
    }
    onic_transfer_t *t = p != NULL && is_source(source, source->len)
                             ? lease(ONIC_SENDS, &p->area, onic_mover.me, source->len, &p->wait)
                             : NULL;
    if (t == NULL) {
        return NULL;
    }
    t->peer = to;
    t->other = p->area.life;
    *ticket = ticket_of(t, source->len);
    return begin(t, source, source->len);
}

onic_transfer_t *onic_mover_expect_locked(onic_peer_t *from, onic_mover_end_t *sink,
                                          onic_ticket_t *ticket)
{
    onic_mover_peer_t *p = onic_mover.has_area ? near_peer(from) : NULL;
    onic_rma_peer_t *far = far_peer(from);
    if (far != NULL) {
        return is_sink(sink, sink->len) ? onic_rma_expect(far, sink, ticket) : NULL;
    }
    onic_transfer_t *t =
        p != NULL && is_sink(sink, sink->len)
            ? lease(ONIC_RECEIVES, &onic_mover.area, p->area.owner, sink->len, &p->own_wait)
            : NULL;
    if (t == NULL) {
        return NULL;
    }
    t->peer = from;
    t->other = p->area.life;
    atomic_fetch_or(&onic_mover.receiving, t->slots);
    *ticket = ticket_of(t, sink->len);
    onic_transfer_queue(begin(t, sink, sink->len));
    return t;
}

/** Have all of the slots memory? They have where somebody has leased them. */
static bool is_ready(onic_area_t *area, uint64_t slots)
{
    return onic_area_have(area, slots, false) == slots;
}

/** Whose the lease is that a peer's ticket names, in my area; 0 where it cannot be the peer's. */
static uint64_t leaseholder(onic_peer_t *from, const onic_ticket_t *ticket)
{
    onic_area_t *area = &onic_mover.area;
    const onic_pool_t *pool = &area->pool;
    if (!atomic_load(&onic_mover.open) || !onic_mover.has_area || ticket->slots == 0 ||
        (ticket->slots & (~onic_pool_all(pool) | atomic_load(&onic_mover.receiving))) != 0) {
        return 0;
    }
    const uint64_t owner = onic_pool_owner(pool, (unsigned)__builtin_ctzll(ticket->slots));
    const pid_t pid = onic_peer_pid(from);
    const bool is_peers =
        pid > 0 && onic_owner_life(owner, &onic_mover.area.life).pid == (int64_t)pid;
    return is_peers && onic_pool_has(pool, owner, ticket->slots) && is_ready(area, ticket->slots)
               ? owner
               : 0;
}

int onic_mover_receive_locked(onic_peer_t *from, const onic_ticket_t *ticket,
                              onic_mover_end_t *sink)
{
    onic_rma_peer_t *far = far_peer(from);
    if (far != NULL) {
        return sink == NULL || is_sink(sink, ticket->len) ? onic_rma_receive(far, ticket, sink)
                                                          : OMPI_ERR_BAD_PARAM;
    }
    const uint64_t owner = leaseholder(from, ticket);
    if (owner == 0 || ticket->len == 0 || (sink != NULL && !is_sink(sink, ticket->len))) {
        return OMPI_ERR_BAD_PARAM;
    }
    onic_transfer_t *t = onic_transfer_new(ONIC_RECEIVES);
    if (t == NULL) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    t->carrier = &onic_carrier_node;
    t->area = &onic_mover.area;
    t->peer = from;
    t->owner = owner;
    t->other = onic_owner_life(owner, &onic_mover.area.life);
    t->slots = ticket->slots;
    atomic_fetch_or(&onic_mover.receiving, t->slots);
    onic_transfer_queue(begin(t, sink, ticket->len));
    return OMPI_SUCCESS;
}

int onic_mover_answer_locked(onic_peer_t *to, const onic_ticket_t *ticket, onic_mover_end_t *source)
{
    onic_mover_peer_t *p = near_peer(to);
    onic_rma_peer_t *far = far_peer(to);
    if (far != NULL) {
        return is_source(source, ticket->len) ? onic_rma_answer(far, ticket, source)
                                              : OMPI_ERR_BAD_PARAM;
    }
    if (p == NULL) {
        return OMPI_ERR_UNREACH;
    }
    if (!onic_pool_has(&p->area.pool, onic_mover.me, ticket->slots) ||
        !is_ready(&p->area, ticket->slots) || !is_source(source, ticket->len)) {
        return OMPI_ERR_BAD_PARAM;
    }
    onic_transfer_t *t = onic_transfer_new(ONIC_SENDS);
    if (t == NULL) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    t->carrier = &onic_carrier_node;
    t->area = &p->area;
    t->peer = to;
    t->owner = onic_mover.me;
    t->other = p->area.life;
    t->slots = ticket->slots;
    onic_transfer_queue(begin(t, source, ticket->len));
    return OMPI_SUCCESS;
}
