/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Peers: what they may send, and what happens where they are lost. */
#include "pml_superpipe/protocols/process.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "ompi/proc/proc.h"
#include "opal/runtime/opal_progress.h"

#include "common/support/clock.h"
#include "common/support/say.h"

/** Milliseconds between two looks for processes that have died. */
#define LOOK_MSEC 50
/** Calls of progress between two looks at the clock. */
#define LOOK_CALLS 1024
/** And between two times that a program with threads gives its processor away. */
#define YIELD_CALLS 64

/** A number for one more peer, and room in the table; 0 where memory is exhausted. */
static uint32_t number_locked(void)
{
    const uint32_t n = superpipe.npeers;
    void *grown;

    for (uint32_t i = 0; superpipe.nfree > 0 && !superpipe.retired && i < n; i++)
        if (superpipe.numbered[i] == NULL)
            return i + 1;
    /* It is full whenever the number of peers is a power of two, or none. */
    if ((n & (n - 1)) != 0)
        return n + 1;
    grown = realloc(superpipe.numbered, (n > 0 ? 2 * (size_t)n : 1) * sizeof(superpipe_peer_t *));
    if (grown != NULL)
        superpipe.numbered = grown;
    return grown != NULL ? n + 1 : 0;
}

superpipe_peer_t *superpipe_peer_locked(onic_peer_t *wire)
{
    void **slot = onic_peer_slot(wire, ONIC_AM_PML);
    superpipe_peer_t *p = *slot;
    uint32_t number;

    if (p != NULL || (number = number_locked()) == 0 || (p = calloc(1, sizeof(*p))) == NULL)
        return p;
    *slot = p;
    superpipe.numbered[number - 1] = p;
    superpipe.nfree -= number <= superpipe.npeers;
    superpipe.npeers += number > superpipe.npeers;
    p->number = number;
    p->wire = wire;
    p->self = onic_peer_is_self(wire);
    p->next = superpipe.peers;
    superpipe.peers = p;
    p->credit.limit = onic_peer_credit(wire);
    superpipe_pool_meet(&superpipe.pool, &p->sender,
                        onic_peer_name(wire) >> 32 == onic_wire_me() >> 32);
    (void)superpipe_pool_grant(&superpipe.pool, &p->sender);
    superpipe_tell_limit_locked(p);
    return p;
}

/** The peer of a process. Threads that are the first to meet it find the same. */
static superpipe_peer_t *of_proc(ompi_proc_t *proc, int *rc_p)
{
    void **endpoint = (void **)&proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML];
    superpipe_peer_t *p = __atomic_load_n(endpoint, __ATOMIC_ACQUIRE);
    onic_peer_t *wire;

    if (p != NULL)
        return p;
    wire = onic_wire_get_peer(onic_name(proc->super.proc_name.jobid, proc->super.proc_name.vpid),
                              rc_p);
    if (wire == NULL)
        return NULL;
    onic_wire_lock();
    p = superpipe_peer_locked(wire);
    /* It stays as long as a communicator names it: superpipe_forget. */
    onic_peer_give(wire);
    onic_wire_unlock();
    if (p == NULL)
        *rc_p = OMPI_ERR_OUT_OF_RESOURCE;
    else
        __atomic_store_n(endpoint, p, __ATOMIC_RELEASE);
    return p;
}

superpipe_peer_t *superpipe_peer_find(ompi_communicator_t *comm, int rank, int *rc_p)
{
    superpipe_channel_t *c = (superpipe_channel_t *)comm->c_pml_comm;
    superpipe_peer_t *p = of_proc(ompi_comm_peer_lookup(comm, rank), rc_p);

    if (p != NULL)
        __atomic_store_n(&c->peer[rank], p, __ATOMIC_RELEASE);
    return p;
}

/* ---- credit ---------------------------------------------------------------------------------- */

void superpipe_say_of_locked(superpipe_peer_t *p, superpipe_kind_t kind, uint32_t context,
                             uint64_t handle, uint64_t value)
{
    const superpipe_word_t w = {
        .prefix = {.sender = onic_wire_me(), .kind = (uint8_t)kind, .context = context},
        .handle = handle,
        .value = value};

    if (onic_peer_send(p->wire, ONIC_AM_PML, &w, sizeof(w), NULL, 0, NULL, NULL) < 0)
        onic_peer_give_up(p->wire);
}

void superpipe_tell_limit_locked(superpipe_peer_t *p)
{
    if (p->sender.limit == p->told)
        return;
    p->told = p->sender.limit;
    if (p->self)
        superpipe_on_limit_locked(p, p->told);
    else
        superpipe_say_locked(p, SUPERPIPE_LIMIT, p->number, p->told);
}

/** One of those that may have a backlog, the next at each call; NULL: there is none. */
static superpipe_peer_t *next_heard_locked(void)
{
    superpipe_peer_t *p = superpipe.heard, **end = &superpipe.heard;

    if (p == NULL || p->next_heard == NULL)
        return p;
    superpipe.heard = p->next_heard;
    while (*end != NULL)
        end = &(*end)->next_heard;
    *end = p;
    p->next_heard = NULL;
    return p;
}

void superpipe_freed_locked(superpipe_peer_t *p, uint64_t bytes)
{
    if (superpipe_pool_freed(&superpipe.pool, &p->sender, bytes)) {
        (void)superpipe_pool_grant(&superpipe.pool, &p->sender);
        superpipe_tell_limit_locked(p);
    }
    /* Others have asked when there was nothing for them. */
    if (superpipe.heard != NULL)
        superpipe_asked_locked(next_heard_locked(), SUPERPIPE_RECORD);
}

void superpipe_asked_locked(superpipe_peer_t *p, uint64_t bytes)
{
    superpipe_sender_t *holder;
    uint64_t most;

    if (!superpipe_pool_asked(&superpipe.pool, &p->sender, bytes))
        return;
    (void)superpipe_pool_grant(&superpipe.pool, &p->sender);
    superpipe_tell_limit_locked(p);
    holder = superpipe_pool_recall(&superpipe.pool, &most);
    if (holder != NULL) {
        superpipe_peer_t *h =
            (superpipe_peer_t *)((char *)holder - offsetof(superpipe_peer_t, sender));
        superpipe_say_locked(h, SUPERPIPE_RECALL, 0, most);
    }
}

/* ---- what others keep ------------------------------------------------------------------------ */

static void forget_heard_locked(superpipe_peer_t *p)
{
    superpipe_peer_t **at = &superpipe.heard;

    if (!p->has_heard)
        return;
    while (*at != p)
        at = &(*at)->next_heard;
    *at = p->next_heard;
    p->has_heard = false;
}

void superpipe_on_kept_locked(superpipe_peer_t *p, const superpipe_incoming_t *in)
{
    superpipe_comm_t *c = superpipe_comms_find(&superpipe.comms, in->prefix.context);
    const bool expected = c != NULL && superpipe_match_expects(&c->match, in->source, in->tag);

    if (in->handle > p->heard.number)
        p->heard.number = in->handle;
    if (superpipe_heard_backlog(&p->heard) && !p->has_heard) {
        p->has_heard = true;
        p->next_heard = superpipe.heard;
        superpipe.heard = p;
    }
    superpipe_asked_locked(p, SUPERPIPE_RECORD);
    p->heard.called = p->heard.called || expected;
    superpipe_say_locked(p, SUPERPIPE_CALL, 0, expected ? in->handle : 0);
}

void superpipe_on_gone_locked(superpipe_peer_t *p, const superpipe_incoming_t *in)
{
    if (in->handle != 0)
        p->heard.probed = false;
    if (in->value > p->heard.gone)
        p->heard.gone = in->value;
    if (!superpipe_heard_backlog(&p->heard))
        forget_heard_locked(p);
}

void superpipe_want_locked(superpipe_channel_t *c, int32_t source, int32_t tag, bool probe)
{
    const superpipe_peer_t *only = source != SUPERPIPE_ANY_SOURCE ? c->peer[source] : NULL;

    for (superpipe_peer_t *p = superpipe.heard; p != NULL; p = p->next_heard) {
        /* Who polls asks again when it is answered. */
        if ((only != NULL && p != only) || (probe && p->heard.probed))
            continue;
        p->heard.probed = p->heard.probed || probe;
        p->heard.called = true;
        superpipe_say_of_locked(p, SUPERPIPE_WANT, (uint32_t)c->match.context, probe,
                                superpipe_named(source, tag));
    }
}

void superpipe_break_locked(superpipe_peer_t *p, const char *why)
{
    if (!onic_peer_is_lost(p->wire))
        onic_say("pml_superpipe: %s", why);
    onic_peer_give_up(p->wire);
}

/* ---- loss ------------------------------------------------------------------------------------ */

/** Ends what is under way with a lost peer. False where a thread is inside of it: again later. */
static bool end_open_locked(superpipe_peer_t *p)
{
    for (superpipe_request_t *r = p->open, *next; r != NULL; r = next) {
        next = r->next;
        /* It stays until we have let go of it, and so does the next one: both are done at most. */
        if (r->state.moving && !onic_mover_cancel_locked(r))
            return false;
        if (r->state.done)
            continue;
        (void)onic_peer_lost(p->wire); /* which tells the user why */
        superpipe_fail_locked(r, ONIC_ERR_PROC_FAILED);
    }
    return true;
}

static bool is_rank(const superpipe_channel_t *c, uint32_t rank, const superpipe_peer_t *p)
{
    const opal_process_name_t name = ompi_group_get_proc_name(c->comm->c_remote_group, (int)rank);

    return onic_name(name.jobid, name.vpid) == onic_peer_name(p->wire);
}

/** Ends the posted receives for a source, which `p` may be, and tells the user why. */
static void end_from_locked(superpipe_channel_t *c, int32_t source, const superpipe_peer_t *p)
{
    superpipe_receive_t *receive;
    size_t cursor = 0;

    while ((receive = superpipe_match_abandon(&c->match.match, source, &cursor)) != NULL) {
        (void)onic_peer_lost(p->wire);
        superpipe_fail_locked(superpipe_request_of(receive), ONIC_ERR_PROC_FAILED);
    }
}

/** Ends receives that name a lost peer, and those from any source of which it is one: their message
 *  may be the one that will not come. Those that are posted from now on wait for the others. */
static void end_posted_locked(const superpipe_peer_t *p)
{
    superpipe_comm_t *comm = NULL;

    while ((comm = superpipe_comms_next(&superpipe.comms, comm)) != NULL) {
        superpipe_channel_t *c = (superpipe_channel_t *)comm;

        for (uint32_t rank = 0; rank < comm->nranks; rank++) {
            if (!is_rank(c, rank, p))
                continue;
            c->losses++;
            end_from_locked(c, (int32_t)rank, p);
            end_from_locked(c, SUPERPIPE_ANY_SOURCE, p);
        }
    }
}

void superpipe_end_lost_locked(void)
{
    const unsigned losses = onic_wire_losses();
    bool all = true;

    /* What has come from them may be what somebody waits for. */
    if (losses == superpipe.losses || onic_wire_drains())
        return;
    for (superpipe_peer_t *p = superpipe.peers; p != NULL; p = p->next) {
        if (p->lost || !onic_peer_is_lost(p->wire))
            continue;
        superpipe_backlog_drop_locked(p);
        if (!end_open_locked(p)) {
            all = false;
            continue;
        }
        p->lost = true;
        superpipe_early_drop_locked(p);
        forget_heard_locked(p);
        superpipe_pool_forget(&superpipe.pool, &p->sender);
        end_posted_locked(p);
    }
    if (all)
        superpipe.losses = losses;
}

void superpipe_end_lost(void)
{
    if (onic_wire_losses() == superpipe.losses)
        return;
    onic_wire_lock();
    superpipe_end_lost_locked();
    onic_wire_unlock();
}

static bool is_of_other_job(const superpipe_peer_t *p)
{
    return onic_peer_name(p->wire) >> 32 != onic_wire_me() >> 32;
}

static void say_leaves(void)
{
    onic_wire_lock();
    for (superpipe_peer_t *p = superpipe.peers; p != NULL; p = p->next)
        if (is_of_other_job(p) && !p->left && !onic_peer_is_lost(p->wire))
            superpipe_say_locked(p, SUPERPIPE_LEAVES, 0, 0);
    onic_wire_unlock();
}

/** Is a copy left that a process of another job may ask for? */
static bool has_copies(void)
{
    bool found = false;

    onic_wire_lock();
    for (const superpipe_peer_t *p = superpipe.peers; p != NULL && superpipe.copies > 0;
         p = p->next)
        if (is_of_other_job(p) && !p->left && !p->lost)
            for (const superpipe_request_t *r = p->open; r != NULL && !found; r = r->next)
                found = r->internal;
    onic_wire_unlock();
    return found;
}

void superpipe_drain(void)
{
    say_leaves();
    while (has_copies()) {
        opal_progress();
        (void)onic_wire_look_for_dead();
    }
}

int superpipe_look(void)
{
    static atomic_uint calls;
    static _Atomic uint64_t looked;
    const unsigned n = atomic_load_explicit(&calls, memory_order_relaxed) + 1;
    uint64_t now;

    atomic_store_explicit(&calls, n, memory_order_relaxed);
    /* Who polls for all threads may have taken the processor from what all of them wait for. */
    if (n % YIELD_CALLS == 0 && opal_using_threads())
        sched_yield();
    if (n % LOOK_CALLS != 0 || __atomic_load_n(&superpipe.active, __ATOMIC_RELAXED) == 0)
        return 0;
    now = onic_now_nsec();
    if (now - atomic_load_explicit(&looked, memory_order_relaxed) < LOOK_MSEC * UINT64_C(1000000))
        return 0;
    atomic_store_explicit(&looked, now, memory_order_relaxed);
    (void)onic_wire_look_for_dead();
    if (onic_wire_losses() != superpipe.losses)
        onic_wire_kick_mpi(ONIC_AM_PML);
    return 0;
}
