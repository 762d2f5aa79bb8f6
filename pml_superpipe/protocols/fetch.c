/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The receiver of an announced message gets its data, by the protocol that it chooses. */
#include "pml_superpipe/protocols/process.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "common/layout/pack.h"
#include "common/wire/put.h"

_Static_assert(sizeof(onic_ticket_t) == SUPERPIPE_TICKET_BYTES, "the ticket's room in messages");

/** Pieces in one system call. */
#define PIECES 64
/** The kernel moves a little less than 2 GiB in one call. */
#define CALL_MAX (UINT64_C(1) << 29)

/* ---- asking ---------------------------------------------------------------------------------- */

static void ask_locked(superpipe_request_t *r, superpipe_how_t how, const onic_ticket_t *ticket)
{
    const superpipe_word_t w = {
        .prefix = {.sender = onic_wire_me(), .kind = SUPERPIPE_ASK, .how = (uint8_t)how},
        .handle = r->theirs,
        .value = r->state.wanted};
    superpipe_ask_t ask = {.receive = r->handle};
    unsigned char header[sizeof(w) + sizeof(ask)];

    superpipe_transfer_ask(&r->state, how);
    if (ticket != NULL)
        memcpy(ask.ticket, ticket, sizeof(*ticket));
    memcpy(header, &w, sizeof(w));
    memcpy(header + sizeof(w), &ask, sizeof(ask));
    if (onic_peer_send(r->peer->wire, ONIC_AM_PML, header, sizeof(header), NULL, 0, NULL, NULL) >=
        0)
        return;
    onic_peer_give_up(r->peer->wire);
    /* What waited for a lost peer may have been ended already: nobody would look at this one. */
    superpipe_fail_locked(r, ONIC_ERR_PROC_FAILED);
}

static void count(const superpipe_request_t *r, superpipe_protocol_t p)
{
    superpipe_counters.messages[p]++;
    superpipe_counters.bytes[p] += r->state.wanted;
}

static void stream_locked(superpipe_request_t *r)
{
    count(r, SUPERPIPE_STREAM);
    ask_locked(r, SUPERPIPE_BY_STREAM, NULL);
}

/* ---- mover ----------------------------------------------------------------------------------- */

/** Leases slots and asks for the data there. False where none can be had. */
static bool move_locked(superpipe_request_t *r)
{
    onic_mover_end_t end = {.at = r->state.early,
                            .len = superpipe_transfer_rest(&r->state),
                            .base = r->base,
                            .done = superpipe_moved,
                            .arg = r};
    onic_ticket_t ticket;

    /* A copy: where the sender cannot, the layout is needed for another way. */
    if (onic_layout_dup(&end.layout, &r->layout) != ONIC_LAYOUT_OK)
        return false;
    r->move = onic_mover_expect_locked(r->peer->wire, &end, &ticket);
    if (r->move == NULL) {
        onic_layout_fini(&end.layout);
        return false;
    }
    count(r, SUPERPIPE_MOVER);
    ask_locked(r, SUPERPIPE_BY_MOVER, &ticket);
    return true;
}

void superpipe_on_failed_locked(superpipe_peer_t *p, const superpipe_incoming_t *in)
{
    superpipe_request_t *r = onic_handle_get(&superpipe.handles, in->handle);

    if (r == NULL || r->peer != p)
        return;
    switch (superpipe_transfer_was_refused(&r->state)) {
    case SUPERPIPE_REFUSAL_IGNORED:
        break;
    case SUPERPIPE_REFUSAL_WITHDRAW:
        /* Where that is too late its end is told soon. */
        if (onic_mover_withdraw_locked(r->move)) {
            r->move = NULL;
            superpipe_counters.fallbacks++;
            superpipe_picked_other_locked(r);
            stream_locked(r);
        }
        break;
    case SUPERPIPE_REFUSAL_BREAKS:
        superpipe_fail_locked(r, MPI_ERR_OTHER);
    }
}

/* ---- single copy ----------------------------------------------------------------------------- */

static void copy_later_locked(superpipe_request_t *r)
{
    count(r, SUPERPIPE_COPY);
    superpipe_transfer_started(&r->state);
    r->next_turn = NULL;
    __atomic_store_n(superpipe.copy_tail, r, __ATOMIC_RELAXED);
    superpipe.copy_tail = &r->next_turn;
    onic_wire_kick_mpi(ONIC_AM_PML);
}

/** Reads `bytes` from there into some pieces. */
static bool read_pieces(pid_t pid, const struct iovec *local, unsigned n, uint64_t address,
                        uint64_t bytes)
{
    const struct iovec remote = {.iov_base = (void *)(uintptr_t)address, .iov_len = bytes};
    ssize_t got;

    do
        got = process_vm_readv(pid, local, n, &remote, 1, 0);
    while (got < 0 && errno == EINTR);
    return got == (ssize_t)bytes;
}

static bool read_all(const superpipe_request_t *r)
{
    const pid_t pid = onic_peer_pid(r->peer->wire);
    struct iovec local[PIECES];
    uint64_t done = r->state.early;
    onic_cursor_t cursor;

    onic_cursor_init(&cursor, &r->layout, done);
    while (done < r->state.wanted) {
        uint64_t bytes = 0;
        unsigned n = 0;

        while (n < PIECES && bytes < CALL_MAX && done + bytes < r->state.wanted) {
            const uint64_t left = r->state.wanted - done - bytes;
            int64_t offset;
            uint64_t len;

            if (!onic_cursor_next(&cursor, left < CALL_MAX ? left : CALL_MAX, &offset, &len))
                break;
            local[n++] = (struct iovec){.iov_base = r->base + offset, .iov_len = len};
            bytes += len;
        }
        if (n == 0 || !read_pieces(pid, local, n, r->address + done, bytes))
            return false;
        done += bytes;
    }
    return true;
}

/** The sender's request, which is of this process, held until the copy is over. */
static superpipe_request_t *hold_sender(const superpipe_request_t *r)
{
    superpipe_request_t *s;

    onic_wire_lock();
    s = onic_handle_get(&superpipe.handles, r->theirs);
    if (s != NULL && (s->peer != r->peer || !superpipe_transfer_lend(&s->state)))
        s = NULL;
    onic_wire_unlock();
    return s;
}

static bool copy_within(superpipe_request_t *r, superpipe_request_t *s)
{
    onic_cursor_t to, from;

    onic_cursor_init(&to, &r->layout, 0);
    onic_cursor_init(&from, &s->layout, 0);
    return onic_copy(&to, r->base, &from, s->base, r->state.wanted) == r->state.wanted;
}

static void copy_one(superpipe_request_t *r)
{
    superpipe_request_t *s = r->peer->self ? hold_sender(r) : NULL;
    const bool copied = r->peer->self ? s != NULL && copy_within(r, s) : read_all(r);

    onic_wire_lock();
    superpipe_transfer_ended(&r->state, true);
    if (s != NULL) {
        superpipe_transfer_copied(&s->state);
        superpipe_settle_locked(s);
    }
    if (copied) {
        superpipe_transfer_took(&r->state, superpipe_transfer_rest(&r->state));
        if (s == NULL)
            superpipe_say_locked(r->peer, SUPERPIPE_DONE, r->theirs, 0);
        superpipe_settle_locked(r);
    } else if (r->peer->self || r->state.broken) {
        superpipe_fail_locked(r, MPI_ERR_OTHER);
    } else {
        superpipe_counters.fallbacks++;
        superpipe_picked_other_locked(r);
        stream_locked(r);
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

/* ---- the choice ------------------------------------------------------------------------------ */

static superpipe_case_t case_of_locked(superpipe_request_t *r, const superpipe_announced_t *a)
{
    superpipe_case_t c = superpipe_case_locked(r);
    const double here = superpipe_pin_share_locked(r);

    c.length = superpipe_transfer_rest(&r->state);
    c.send_block = a->offer->block;
    c.one_piece = a->offer->address != 0;
    /* To ask how UCX reaches it makes a connection, which a queue does without. */
    if (!onic_peer_has_queue(r->peer->wire) && onic_peer_puts_by_rdma(r->peer->wire))
        c.pins = (double)a->pins / UINT8_MAX + here;
    return c;
}

/** Nothing is to be asked for: the sender is told where it waits to be. */
static void all_early_locked(superpipe_request_t *r, const superpipe_announced_t *a)
{
    if (a->synchronous || r->state.early == 0 || r->state.early < a->offer->length)
        superpipe_say_locked(r->peer, SUPERPIPE_DONE, r->theirs, 0);
    if (r->state.wanted > 0)
        count(r, SUPERPIPE_STREAM);
    superpipe_settle_locked(r);
}

void superpipe_fetch_locked(superpipe_request_t *r, superpipe_peer_t *from,
                            const superpipe_announced_t *a)
{
    superpipe_enter_locked(r, from);
    r->theirs = a->offer->handle;
    r->address = a->offer->address;
    /* Of a lost process what has come as a whole is still good. */
    if (from->lost && r->state.moved < r->state.wanted) {
        superpipe_fail_locked(r, ONIC_ERR_PROC_FAILED);
        return;
    }
    if (superpipe_transfer_rest(&r->state) == 0) {
        all_early_locked(r, a);
        return;
    }
    r->handle = onic_handle_new(&superpipe.handles, r);
    if (r->handle == 0) {
        superpipe_say_locked(from, SUPERPIPE_DONE, r->theirs, 0);
        superpipe_fail_locked(r, MPI_ERR_NO_MEM);
        return;
    }
    const superpipe_case_t c = case_of_locked(r, a);
    switch (superpipe_pick_locked(r, &c)) {
    case SUPERPIPE_COPY:
        copy_later_locked(r);
        break;
    case SUPERPIPE_RENDEZVOUS:
        count(r, SUPERPIPE_RENDEZVOUS);
        ask_locked(r, SUPERPIPE_BY_RENDEZVOUS, NULL);
        break;
    case SUPERPIPE_MOVER:
        if (move_locked(r))
            break;
        superpipe_counters.fallbacks++;
        superpipe_picked_other_locked(r);
        stream_locked(r);
        break;
    default:
        stream_locked(r);
    }
}

/* ---- what comes ------------------------------------------------------------------------------ */

/** Data that is still to be received, in place. */
static void meet_locked(superpipe_request_t *r, const superpipe_incoming_t *in, onic_rndv_t *rndv)
{
    const int rc = onic_rndv_recv(rndv, r->base + r->layout.offset + in->value, in->bytes,
                                  superpipe_operation_ended, r);

    if (rc < 0) {
        superpipe_fail_locked(r, rc == OMPI_ERR_UNREACH ? ONIC_ERR_PROC_FAILED : MPI_ERR_OTHER);
        return;
    }
    if (rc == 0)
        superpipe_transfer_started(&r->state);
    superpipe_transfer_took(&r->state, in->bytes);
    superpipe_settle_locked(r);
}

void superpipe_on_data_locked(superpipe_peer_t *p, const superpipe_incoming_t *in,
                              onic_rndv_t *rndv)
{
    superpipe_request_t *r = onic_handle_get(&superpipe.handles, in->handle);
    const bool meets = rndv != NULL;
    const bool takes = r != NULL && r->peer == p &&
                       superpipe_transfer_takes(&r->state, in->value, in->bytes, meets) &&
                       (!meets || onic_layout_is_contig(&r->layout));

    if (takes && meets) {
        meet_locked(r, in, rndv);
    } else if (takes) {
        superpipe_place(r, in->value, in->data, in->bytes);
        superpipe_transfer_took(&r->state, in->bytes);
        superpipe_settle_locked(r);
    } else if (meets) {
        onic_rndv_drop(rndv);
    }
}
