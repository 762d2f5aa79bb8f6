/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Processes that are lost, are leaving, or have left. */
#include "pml_superpipe/protocols/process.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "ompi/group/group.h"
#include "ompi/proc/proc.h"
#include "opal/runtime/opal_progress.h"

/** Calls of progress between two yields of the processor in a program with threads. */
#define YIELD_CALLS 64

static uint64_t name_in(const ompi_group_t *group, int rank)
{
    const opal_process_name_t name = ompi_group_get_proc_name((ompi_group_t *)group, rank);

    return onic_name(name.jobid, name.vpid);
}

static bool is_of_other_job(uint64_t name)
{
    return name >> 32 != onic_transport_me() >> 32;
}

/* ---- lost processes -------------------------------------------------------------------------- */

/** Ends the transfers in flight with a lost peer. */
static void end_requests_locked(superpipe_peer_t *p)
{
    for (superpipe_request_t *r = LIST_FIRST(&p->requests), *next; r != NULL; r = next) {
        next = LIST_NEXT(r, of_peer);
        /* Requests are not freed while the lock is held, so `next` stays valid; either may be done
         * by now. */
        if (r->state.moving)
            superpipe_rows[r->protocol]->cancel(r);
        if (r->state.done)
            continue;
        (void)onic_peer_lost(p->peer); /* reports the reason to the user */
        superpipe_fail_locked(r, ONIC_ERR_PROC_FAILED);
    }
}

/** Ends the posted receives for a source, which may be `p`, and reports the reason to the user. */
static void end_from_locked(superpipe_channel_t *c, int32_t source, const superpipe_peer_t *p)
{
    superpipe_receive_t *receive;
    size_t cursor = 0;

    while ((receive = superpipe_match_abandon(&superpipe.match, ONIC_COMM_INDEX(c->comm), source,
                                              &cursor)) != NULL) {
        (void)onic_peer_lost(p->peer);
        superpipe_fail_locked(superpipe_request_of(receive), ONIC_ERR_PROC_FAILED);
    }
}

/** Ends receives that name a lost peer, and those from any source if the peer is one: the missing
 *  message may be the one they wait for. Receives from any source posted later wait for the other
 *  ranks. */
static void end_posted_locked(const superpipe_peer_t *p)
{
    superpipe_channel_t *c;

    LIST_FOREACH(c, &superpipe.channels, of_all) {
        const ompi_group_t *group = c->comm->c_remote_group;

        for (int rank = 0; rank < group->grp_proc_count; rank++) {
            if (name_in(group, rank) != onic_peer_name(p->peer))
                continue;
            __atomic_store_n(&c->losses, c->losses + 1, __ATOMIC_RELAXED);
            end_from_locked(c, rank, p);
            end_from_locked(c, SUPERPIPE_ANY_SOURCE, p);
        }
    }
}

static void end_lost_locked(void)
{
    const unsigned losses = onic_transport_losses();
    superpipe_peer_t *p;

    /* Messages that lost peers sent earlier may be what a call waits for, so they are handled
     * first. */
    if (losses == superpipe.losses || onic_transport_drains())
        return;
    LIST_FOREACH(p, &superpipe.peers, of_all) {
        if (p->lost || !onic_peer_is_lost(p->peer))
            continue;
        end_requests_locked(p);
        p->lost = true;
        p->early = (superpipe_early_t){0};
        end_posted_locked(p);
    }
    superpipe.losses = losses;
}

void superpipe_end_lost(void)
{
    if (onic_transport_losses() == superpipe.losses)
        return;
    onic_transport_lock();
    end_lost_locked();
    onic_transport_unlock();
}

int superpipe_yield(void)
{
    static atomic_uint calls;
    const unsigned n = atomic_load_explicit(&calls, memory_order_relaxed) + 1;

    atomic_store_explicit(&calls, n, memory_order_relaxed);
    if (n % YIELD_CALLS == 0 && opal_using_threads())
        sched_yield();
    return 0;
}

/* ---- this one leaves ------------------------------------------------------------------------- */

/** True if a copy remains that a process of another job may still ask for. */
static bool has_copies(void)
{
    const superpipe_peer_t *p;
    const superpipe_request_t *r;
    bool found = false;

    onic_transport_lock();
    LIST_FOREACH(p, &superpipe.peers, of_all)
        if (is_of_other_job(onic_peer_name(p->peer)) && !p->lost && superpipe.copies > 0)
            LIST_FOREACH(r, &p->requests, of_peer)
                found = found || r->internal;
    onic_transport_unlock();
    return found;
}

void superpipe_drain(void)
{
    while (has_copies()) {
        opal_progress();
        onic_transport_look_for_dead();
    }
}
