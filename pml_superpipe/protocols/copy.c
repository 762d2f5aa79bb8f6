/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Protocol copy: the receiver reads the sender's memory by the kernel's single copy. A
 *  message from the process to itself is copied directly. */
#include "pml_superpipe/protocols/process.h"

#include <math.h>
#include <sys/uio.h>

static bool can(const superpipe_case_t *c)
{
    return c->self || (c->one_piece && superpipe.params.single_copy &&
                       (c->peer != NULL ? onic_peer_can_cma(c->peer) : superpipe_on_node(c)));
}

/** The kernel copies far more slowly (2 to 12 times, depending on the processor) to and from
 *  buffers that were not used lately; other protocols are at most twice as slow. Such messages are
 *  copied only if other protocols would have to wait for the sender. */
static double cost(const superpipe_case_t *c)
{
    return superpipe_on_node(c) && (!superpipe_is_fresh(c) || c->wait > 0)
               ? superpipe_way_cost(c, ONIC_WAY_copy)
               : INFINITY;
}

/** An MPI thread copies, without the lock. */
static bool start(superpipe_request_t *r)
{
    r->state.in_flight++;
    superpipe_append_locked(&superpipe.copied, r);
    return true;
}

/** Most bytes per call: the kernel moves a little less than 2 GiB in one call. */
#define CALL_MAX (UINT64_C(1) << 30)

static onic_refused_t read_all(const superpipe_request_t *r)
{
    char *to = r->base + r->layout.offset;
    onic_refused_t refused = ONIC_REFUSED_NOT;

    for (uint64_t done = r->state.early, n; done < r->state.wanted && !refused; done += n) {
        n = r->state.wanted - done < CALL_MAX ? r->state.wanted - done : CALL_MAX;
        const struct iovec here = {to + done, n};
        const struct iovec there = {(void *)(uintptr_t)(r->address + done), n};

        refused = onic_peer_copy(r->peer->peer, false, &here, 1, &there, 1, n);
    }
    return refused;
}

static void read_one(superpipe_request_t *r)
{
    const onic_refused_t refused = read_all(r);

    onic_transport_lock();
    if (refused != ONIC_REFUSED_NOT && refused != ONIC_REFUSED_NOW)
        r->peer->refused |= 1U << SUPERPIPE_COPY;
    superpipe_fetched_locked(r, refused == ONIC_REFUSED_NOT);
    onic_transport_unlock();
}

/** Copies from a request of this process, which is kept until the copy is done. */
static void copy_within(superpipe_request_t *r)
{
    onic_cursor_t to, from;
    superpipe_request_t *s;
    bool copied = false;

    onic_transport_lock();
    s = onic_handle_get(&superpipe.handles, r->theirs);
    if (s != NULL && !superpipe_transfer_lend(&s->state))
        s = NULL;
    onic_transport_unlock();
    if (s != NULL) {
        onic_cursor_init(&to, &r->layout, 0);
        onic_cursor_init(&from, &s->layout, 0);
        copied = onic_copy(&to, r->base, &from, s->base, r->state.wanted, false) == r->state.wanted;
    }
    onic_transport_lock();
    superpipe_transfer_ended(&r->state, copied);
    r->state.moved += copied ? superpipe_transfer_remaining(&r->state) : 0;
    if (s != NULL) {
        superpipe_transfer_copied(&s->state);
        superpipe_finish_locked(s);
    }
    if (copied)
        superpipe_finish_locked(r);
    else
        superpipe_fail_locked(r, MPI_ERR_OTHER);
    onic_transport_unlock();
}

static int copy_all(void)
{
    int n = 0;

    /* The queue is usually empty. Requests queued meanwhile are left for the next call. */
    if (superpipe_is_empty(&superpipe.copied))
        return 0;
    onic_transport_lock();
    superpipe_request_t *r = superpipe_take_all_locked(&superpipe.copied);
    onic_transport_unlock();
    for (superpipe_request_t *next; r != NULL; r = next, n++) {
        next = r->next;
        if (r->peer->self)
            copy_within(r);
        else
            read_one(r);
    }
    return n;
}

const superpipe_row_t superpipe_copy_row = {
    .name = "copy", .can = can, .cost = cost, .start = start, .progress = copy_all};
