/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Protocol copy: the receiver reads the sender's memory by the kernel's single copy; what a
 *  process sends to itself it copies. */
#include "pml_superpipe/protocols/process.h"

#include <math.h>
#include <sys/uio.h>

static bool can(const superpipe_case_t *c)
{
    return c->self || (c->one_piece && superpipe.params.single_copy &&
                       (c->wire != NULL ? onic_peer_can_cma(c->wire) : superpipe_on_node(c)));
}

/** The kernel copies far slower to and from buffers that were not used lately (2 to 12 times, by
 *  processor), other protocols at most twice: such messages are copied only where the sender would
 *  keep the others waiting. */
static double cost(const superpipe_case_t *c)
{
    return superpipe_on_node(c) && (!superpipe_is_fresh(c) || c->wait > 0)
               ? superpipe_way_cost(c, ONIC_WAY_copy)
               : INFINITY;
}

/** An MPI thread copies, without the lock. */
static bool start(superpipe_request_t *r)
{
    superpipe_count(r, SUPERPIPE_COPY);
    r->state.in_flight++;
    r->next_turn = NULL;
    __atomic_store_n(superpipe.copy_tail, r, __ATOMIC_RELAXED);
    superpipe.copy_tail = &r->next_turn;
    onic_transport_kick_mpi(ONIC_AM_PML);
    return true;
}

const superpipe_row_t superpipe_copy_row = {"copy", can, cost, start, NULL};

/** The kernel moves a little less than 2 GiB in one call. */
#define CALL_MAX (UINT64_C(1) << 30)

static onic_refused_t read_all(const superpipe_request_t *r)
{
    char *to = r->base + r->layout.offset;
    onic_refused_t refused = ONIC_REFUSED_NOT;

    for (uint64_t done = r->state.early, n; done < r->state.wanted && !refused; done += n) {
        n = r->state.wanted - done < CALL_MAX ? r->state.wanted - done : CALL_MAX;
        const struct iovec here = {to + done, n};
        const struct iovec there = {(void *)(uintptr_t)(r->address + done), n};

        refused = onic_peer_copy(r->peer->wire, false, &here, 1, &there, 1, n);
    }
    return refused;
}

/** Copies from a request of this process, which is held in *s_p until that is over. */
static bool copy_within(const superpipe_request_t *r, superpipe_request_t **s_p)
{
    onic_cursor_t to, from;
    superpipe_request_t *s;

    onic_transport_lock();
    s = onic_handle_get(&superpipe.handles, r->theirs);
    if (s != NULL && !superpipe_transfer_lend(&s->state))
        s = NULL;
    onic_transport_unlock();
    *s_p = s;
    if (s == NULL)
        return false;
    onic_cursor_init(&to, &r->layout, 0);
    onic_cursor_init(&from, &s->layout, 0);
    return onic_copy(&to, r->base, &from, s->base, r->state.wanted) == r->state.wanted;
}

static void copy_one(superpipe_request_t *r)
{
    superpipe_request_t *s = NULL;
    const onic_refused_t refused = r->peer->self ? ONIC_REFUSED_NOT : read_all(r);
    const bool copied = r->peer->self ? copy_within(r, &s) : refused == ONIC_REFUSED_NOT;

    onic_transport_lock();
    superpipe_transfer_ended(&r->state, true);
    if (s != NULL) {
        superpipe_transfer_copied(&s->state);
        superpipe_finish_locked(s);
    }
    if (copied) {
        r->state.moved += superpipe_transfer_remaining(&r->state);
        if (s == NULL)
            superpipe_send_control_locked(r->peer, SUPERPIPE_KIND_ACK, r->theirs, 0);
        superpipe_finish_locked(r);
    } else if (r->peer->self || r->state.broken) {
        superpipe_fail_locked(r, MPI_ERR_OTHER);
    } else {
        /* What has been copied comes once more, with the rest. */
        if (refused != ONIC_REFUSED_NOW)
            r->peer->refused |= 1U << SUPERPIPE_COPY;
        superpipe_fall_back_locked(r);
    }
    onic_transport_unlock();
}

int superpipe_copy_all(void)
{
    int n = 0;

    /* Most of the time there is nothing. What is queued meanwhile is for the next time. */
    if (__atomic_load_n(&superpipe.copy_head, __ATOMIC_RELAXED) == NULL)
        return 0;
    onic_transport_lock();
    superpipe_request_t *r = superpipe.copy_head;
    __atomic_store_n(&superpipe.copy_head, NULL, __ATOMIC_RELAXED);
    superpipe.copy_tail = &superpipe.copy_head;
    onic_transport_unlock();
    for (superpipe_request_t *next; r != NULL; r = next, n++) {
        next = r->next_turn;
        copy_one(r);
    }
    return n;
}
