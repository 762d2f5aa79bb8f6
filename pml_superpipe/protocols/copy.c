/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Protocol copy: the receiver reads the sender's memory by the kernel's single copy; what a
 *  process sends to itself it copies. */
#include "pml_superpipe/protocols/process.h"

#include <errno.h>
#include <sys/uio.h>

static bool can(const superpipe_case_t *c)
{
    return c->self || (c->one_piece && superpipe.params.single_copy &&
                       (c->wire != NULL ? onic_peer_can_cma(c->wire) : c->node));
}

static double cost(const superpipe_case_t *c, const onic_link_t *link)
{
    return c->self ? 0 : link->message + onic_link_strided(link, 1, (double)c->length);
}

/** An MPI thread copies, without the lock. */
static bool start(superpipe_request_t *r)
{
    superpipe_count(r, SUPERPIPE_COPY);
    r->state.in_flight++;
    r->next_turn = NULL;
    __atomic_store_n(superpipe.copy_tail, r, __ATOMIC_RELAXED);
    superpipe.copy_tail = &r->next_turn;
    onic_wire_kick_mpi(ONIC_AM_PML);
    return true;
}

const superpipe_row_t superpipe_copy_row = {"copy", can, cost, start, NULL};

/** The kernel moves a little less than 2 GiB in one call. */
static bool read_all(const superpipe_request_t *r)
{
    char *to = r->base + r->layout.offset;
    uint64_t done = r->state.early;

    while (done < r->state.wanted) {
        const struct iovec local = {.iov_base = to + done, .iov_len = r->state.wanted - done};
        const struct iovec remote = {.iov_base = (void *)(uintptr_t)(r->address + done),
                                     .iov_len = local.iov_len};
        const ssize_t got =
            process_vm_readv(onic_peer_pid(r->peer->wire), &local, 1, &remote, 1, 0);

        if (got <= 0 && !(got < 0 && errno == EINTR))
            return false;
        done += got > 0 ? (uint64_t)got : 0;
    }
    return true;
}

/** Copies from a request of this process, which is held in *s_p until that is over. */
static bool copy_within(const superpipe_request_t *r, superpipe_request_t **s_p)
{
    onic_cursor_t to, from;
    superpipe_request_t *s;

    onic_wire_lock();
    s = onic_handle_get(&superpipe.handles, r->theirs);
    if (s != NULL && (s->peer != r->peer || !superpipe_transfer_lend(&s->state)))
        s = NULL;
    onic_wire_unlock();
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
    const bool copied = r->peer->self ? copy_within(r, &s) : read_all(r);

    onic_wire_lock();
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
        superpipe_fall_back_locked(r);
    }
    onic_wire_unlock();
}

int superpipe_copy_all(void)
{
    int n = 0;

    /* Most of the time there is nothing. What is queued meanwhile is for the next time. */
    if (__atomic_load_n(&superpipe.copy_head, __ATOMIC_RELAXED) == NULL)
        return 0;
    onic_wire_lock();
    superpipe_request_t *r = superpipe.copy_head;
    __atomic_store_n(&superpipe.copy_head, NULL, __ATOMIC_RELAXED);
    superpipe.copy_tail = &superpipe.copy_head;
    onic_wire_unlock();
    for (superpipe_request_t *next; r != NULL; r = next, n++) {
        next = r->next_turn;
        copy_one(r);
    }
    return n;
}
