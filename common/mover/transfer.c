/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The transfers of this process: their memory, who works on them, and who is told.
 */
#include "common/mover/transfer_internal.h"

#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/constants.h"

#include "common/support/pause.h"

/** Transfers in a piece of memory. */
#define BLOCK 32
/** Transfers in all: answers wait for their peers. */
#define MOST 4096
/** Pieces of one transfer before the others have their turn. */
#define TURN 64
/** Each lease has a slot, and its transfer may wait to be told of when that is free again. */
#define RECEIVERS (2 * ONIC_SLOTS_MAX)

struct onic_transfer_block {
    struct onic_transfer_block *next;
    onic_transfer_t transfer[BLOCK];
};

onic_mover_t onic_mover;

void onic_mover_lock(void)
{
    for (unsigned spins = 1; atomic_load_explicit(&onic_mover.lock, memory_order_relaxed) ||
                             atomic_exchange_explicit(&onic_mover.lock, true, memory_order_acquire);
         spins++) {
        /* The holder may have lost its processor. */
        if (spins % 64 == 0) {
            sched_yield();
        } else {
            onic_pause();
        }
    }
}

void onic_mover_unlock(void)
{
    atomic_store_explicit(&onic_mover.lock, false, memory_order_release);
}

bool onic_mover_idle(void)
{
    return atomic_load_explicit(&onic_mover.active, memory_order_relaxed) == 0;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/** Into its pool; the lock is held. */
static void put_free(onic_transfer_t *t)
{
    t->state = ONIC_TRANSFER_FREE;
    t->next = onic_mover.pool[t->role];
    onic_mover.pool[t->role] = t;
}

/** More of a role; the lock is held. */
static bool grow(onic_role_t role)
{
    struct onic_transfer_block *b =
        onic_mover.ntransfers + BLOCK <= MOST ? calloc(1, sizeof(*b)) : NULL;
    if (b == NULL) {
        return false;
    }
    b->next = onic_mover.blocks;
    onic_mover.blocks = b;
    onic_mover.ntransfers += BLOCK;
    for (int i = 0; i < BLOCK; i++) {
        b->transfer[i].role = role;
        put_free(&b->transfer[i]);
    }
    return true;
}

bool onic_transfers_start(void)
{
    bool ok = true;
    onic_mover_lock();
    onic_mover.last = &onic_mover.first;
    onic_mover.last_report = &onic_mover.reports;
    for (int n = 0; n < RECEIVERS && ok; n += BLOCK) {
        ok = grow(ONIC_RECEIVES);
    }
    onic_mover_unlock();
    if (!ok) {
        onic_transfers_stop();
    }
    return ok;
}

void onic_transfers_stop(void)
{
    onic_mover_lock();
    while (onic_mover.blocks != NULL) {
        struct onic_transfer_block *b = onic_mover.blocks;
        onic_mover.blocks = b->next;
        free(b);
    }
    onic_mover.pool[ONIC_SENDS] = onic_mover.pool[ONIC_RECEIVES] = NULL;
    onic_mover.ntransfers = 0;
    onic_mover_unlock();
}

onic_transfer_t *onic_transfer_new(onic_role_t role)
{
    onic_mover_lock();
    onic_transfer_t *t = onic_mover.pool[role] != NULL || grow(role) ? onic_mover.pool[role] : NULL;
    const uint32_t name = ++onic_mover.names;
    if (t != NULL) {
        onic_mover.pool[role] = t->next;
        t->state = ONIC_TRANSFER_NEW;
    }
    onic_mover_unlock();
    if (t != NULL) {
        t->next = t->next_report = NULL;
        t->link = NULL;
        t->has_end = t->over = t->tells = t->withdrawn = false;
        t->status = OMPI_SUCCESS;
        t->name = name;
        atomic_store_explicit(&t->stop, 0, memory_order_relaxed);
        t->carrier = NULL;
        t->area = NULL;
        t->slots = t->freed = 0;
        t->chunks = t->waits = t->stalls = 0;
        t->waits_now = false;
        t->stalled = 0;
        t->carrier_memory = NULL;
    }
    return t;
}

void onic_transfer_drop(onic_transfer_t *t)
{
    onic_mover_lock();
    put_free(t);
    onic_mover_unlock();
}

static void begin_to_send(onic_transfer_t *t, uint64_t len, const onic_lease_t *lease)
{
    const uint32_t granule = t->end.granule > 1 ? t->end.granule : 1;
    const uint32_t line = lease->slot_bytes < 64 ? 1 : 64;
    const onic_schedule_t schedule = onic_transfer_schedule_locked(
        t->carrier, len, granule > 1 && granule <= lease->slot_bytes ? granule : line,
        lease->slot_bytes);
    onic_sender_init(&t->sender, len, lease, &schedule, t->carrier->block, granule);
}

void onic_transfer_begin(onic_transfer_t *t, onic_mover_end_t *sent, uint64_t len,
                         uint32_t slot_bytes)
{
    const onic_lease_t lease = {t->slots, slot_bytes};
    if (sent != NULL) {
        t->has_end = true;
        t->end = *sent;
        if (t->role == ONIC_SENDS || sent->take == NULL) {
            onic_cursor_init(&t->cursor, &t->end.layout, t->end.at);
        }
    }
    if (t->role == ONIC_SENDS) {
        begin_to_send(t, len, &lease);
    } else {
        onic_receiver_init(&t->receiver, len, &lease);
    }
}

/* ---- lists; the lock is held ----------------------------------------------------------------- */

static void list(onic_transfer_t *t, onic_transfer_state_t state)
{
    t->state = state;
    t->next = NULL;
    t->link = onic_mover.last;
    *onic_mover.last = t;
    onic_mover.last = &t->next;
    atomic_fetch_add_explicit(&onic_mover.active, 1, memory_order_release);
}

static void unlist(onic_transfer_t *t)
{
    *t->link = t->next;
    if (t->next != NULL) {
        t->next->link = t->link;
    } else {
        onic_mover.last = t->link;
    }
    onic_mover_count_transfer(t);
    if (t->carrier->closed != NULL) {
        t->carrier->closed(t, t->withdrawn);
    }
    put_free(t);
    atomic_fetch_sub_explicit(&onic_mover.active, 1, memory_order_release);
}

/** What becomes of it when a thread has worked on it. */
static void settle(onic_transfer_t *t)
{
    if (t->tells) {
        t->next_report = NULL;
        *onic_mover.last_report = t;
        onic_mover.last_report = &t->next_report;
    } else if (t->over) {
        if (t->has_end) {
            onic_layout_fini(&t->end.layout);
            t->has_end = false;
        }
        unlist(t);
    } else {
        t->state = ONIC_TRANSFER_QUEUED;
    }
}

/** Works on one that is in the list and not claimed; the lock is given up meanwhile. Returns the
 *  next of the list. */
static onic_transfer_t *work_on(onic_transfer_t *t, int limit, int *moved_p)
{
    t->state = ONIC_TRANSFER_CLAIMED;
    onic_mover_unlock();
    *moved_p += onic_transfer_work(t, limit);
    onic_mover_lock();
    onic_transfer_t *next = t->next;
    settle(t);
    return next;
}

void onic_transfer_queue(onic_transfer_t *t)
{
    onic_mover_lock();
    list(t, ONIC_TRANSFER_QUEUED);
    onic_mover_unlock();
}

/* ---- telling --------------------------------------------------------------------------------- */

/** The first that is to be told; the lock is held. */
static onic_transfer_t *next_report(void)
{
    onic_transfer_t *t = onic_mover.reports;
    if (t != NULL) {
        onic_mover.reports = t->next_report;
        if (onic_mover.reports == NULL) {
            onic_mover.last_report = &onic_mover.reports;
        }
    }
    return t;
}

int onic_transfers_tell_locked(void)
{
    int told = 0;
    onic_mover_lock();
    for (onic_transfer_t *t; (t = next_report()) != NULL; told++) {
        void (*done)(void *, int) = t->end.done;
        void *arg = t->end.arg;
        const int status = t->status;
        onic_layout_fini(&t->end.layout);
        t->has_end = t->tells = false;
        settle(t);
        onic_mover_unlock();
        done(arg, status);
        onic_mover_lock();
    }
    onic_mover_unlock();
    return told;
}

/** If there is anything to be told and the wire lock is free; who has it will come here, too. */
static int try_to_tell(void)
{
    int told = 0;
    onic_mover_lock();
    const bool any = onic_mover.reports != NULL;
    onic_mover_unlock();
    if (any && onic_wire_trylock()) {
        told = onic_transfers_tell_locked();
        onic_wire_unlock();
    }
    return told;
}

/* ---- for components -------------------------------------------------------------------------- */

int onic_mover_progress(void)
{
    int moved = 0;
    if (onic_mover_idle()) {
        return 0;
    }
    atomic_fetch_add(&onic_mover.inside, 1);
    if (atomic_load(&onic_mover.open)) {
        onic_mover_lock();
        for (onic_transfer_t *t = onic_mover.first; t != NULL;) {
            t = t->state == ONIC_TRANSFER_QUEUED ? work_on(t, TURN, &moved) : t->next;
        }
        onic_mover_unlock();
        moved += try_to_tell();
    }
    atomic_fetch_sub(&onic_mover.inside, 1);
    return moved;
}

void onic_mover_run(onic_transfer_t *t)
{
    int moved = 0;
    onic_mover_lock();
    /* Only senders are given to their makers before somebody may work on them. */
    if (t->state == ONIC_TRANSFER_NEW && t->role == ONIC_SENDS) {
        list(t, ONIC_TRANSFER_QUEUED);
    }
    if (t->state == ONIC_TRANSFER_QUEUED) {
        (void)work_on(t, INT_MAX, &moved);
    }
    onic_mover_unlock();
    (void)try_to_tell();
}

/** Asks for a stop; the lock is held. False where a thread is at work on it. */
static bool ask_to_stop(onic_transfer_t *t, unsigned why, onic_transfer_t **next_p)
{
    int moved = 0;
    const bool claimed = t->state == ONIC_TRANSFER_CLAIMED;
    atomic_fetch_or(&t->stop, why);
    *next_p = claimed ? t->next : work_on(t, 0, &moved);
    return !claimed;
}

bool onic_mover_cancel_locked(void *arg)
{
    bool all = true;
    (void)onic_transfers_tell_locked();
    onic_mover_lock();
    for (onic_transfer_t *t = onic_mover.first, *next; t != NULL; t = next) {
        next = t->next;
        if (t->has_end && t->end.arg == arg) {
            all = ask_to_stop(t, ONIC_STOP_END, &next) && all;
        }
    }
    onic_mover_unlock();
    (void)onic_transfers_tell_locked();
    return all;
}

bool onic_transfers_name(const onic_peer_t *peer)
{
    onic_mover_lock();
    const onic_transfer_t *t = onic_mover.first;
    while (t != NULL && t->peer != peer) {
        t = t->next;
    }
    onic_mover_unlock();
    return t != NULL;
}

void onic_transfers_end_locked(void)
{
    (void)onic_transfers_tell_locked();
    onic_mover_lock();
    for (onic_transfer_t *t = onic_mover.first, *next; t != NULL; t = next) {
        (void)ask_to_stop(t, ONIC_STOP_END, &next);
    }
    onic_mover_unlock();
    (void)onic_transfers_tell_locked();
    onic_mover_lock();
    /* Receivers that throw away what comes. */
    while (onic_mover.first != NULL) {
        unlist(onic_mover.first);
    }
    onic_mover_unlock();
}

bool onic_mover_withdraw_locked(onic_transfer_t *t)
{
    onic_transfer_t *next;
    onic_mover_lock();
    if (t->tells) {
        onic_mover_unlock();
        return false;
    }
    if (t->state == ONIC_TRANSFER_NEW) {
        onic_mover_unlock();
        onic_layout_fini(&t->end.layout);
        t->carrier->give_back(t, t->slots);
        if (t->carrier->closed != NULL) {
            t->carrier->closed(t, true);
        }
        onic_transfer_drop(t);
        return true;
    }
    (void)ask_to_stop(t, ONIC_STOP_LEASE, &next);
    onic_mover_unlock();
    return true;
}
