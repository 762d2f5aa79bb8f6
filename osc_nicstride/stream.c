/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Operations that go to the target by messages: cutting them into fragments, sending these as the
 * peer's flow control allows, and knowing when they are complete. Those that need not be cut have a
 * quicker way, in small.c.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "osc_nicstride/stream.h"
#include "osc_nicstride/component.h"
#include "osc_nicstride/hold.h"
#include "osc_nicstride/lost.h"
#include "osc_nicstride/module.h"
#include "osc_nicstride/observe.h"
#include "osc_nicstride/request.h"
#include "osc_nicstride/small.h"
#include "osc_nicstride/stream_internal.h"
#include "osc_nicstride/target.h"

/* An origin that queues more than this waits: memory stays bounded however much is asked. */
#define QUEUE_MAX 1024

/* A get is asked for in pieces of this many bytes, so that several of them share the wire. */
#define GET_PIECE (1u << 20)

/* A fragment has room for the header, a layout and some data. */
#define FRAG_MIN 1024

/* One rendezvous moves at most this much. */
#define RNDV_PIECE (1u << 30)

/* Room in a fragment for a slice of an irregular layout: a third, as a run of 8 bytes of data
 * takes 3 to 4 bytes of description. */
#define SLICE_SHARE 3

/* Operation objects that are not in use; wire lock. */
static nicstride_op_t *spare_ops;
static unsigned spare_count;
#define SPARE_MAX 256

nicstride_op_t *nicstride_op_take_locked(void)
{
    nicstride_op_t *op = spare_ops;

    if (op == NULL) {
        op = malloc(sizeof(*op));
    } else {
        spare_ops = op->next;
        spare_count--;
    }
    if (op != NULL)
        nicstride_counters.ops_live++;
    return op;
}

void nicstride_op_give_locked(nicstride_op_t *op)
{
    nicstride_counters.ops_live--;
    if (spare_count >= SPARE_MAX) {
        free(op);
        return;
    }
    op->next = spare_ops;
    spare_ops = op;
    spare_count++;
}

void nicstride_ops_fini(void)
{
    while (spare_ops != NULL) {
        nicstride_op_t *op = spare_ops;

        spare_ops = op->next;
        free(op);
    }
    spare_count = 0;
}

static bool wants_reply(const nicstride_op_t *op)
{
    return op->type == NICSTRIDE_MSG_GET || op->type == NICSTRIDE_MSG_GET_ACC ||
           op->type == NICSTRIDE_MSG_CAS;
}

nicstride_op_t *nicstride_op_new(nicstride_module_t *m, nicstride_target_t *a,
                                 nicstride_msg_type_t type, uint64_t size)
{
    nicstride_op_t *op;

    (void)nicstride_hold_settle(a->peer); /* an error shows with the operation */
    onic_wire_lock();
    op = nicstride_op_take_locked();
    if (op == NULL) {
        onic_wire_unlock();
        return NULL;
    }
    memset(op, 0, offsetof(nicstride_op_t, origin));
    op->module = m;
    op->peer = a->peer;
    op->type = type;
    op->granule = 1;
    op->disp = a->disp;
    op->size = size;
    op->origin.nruns = 0;
    op->origin_base = NULL;
    op->result.nruns = 0;
    op->result_base = NULL;
    op->request = NULL;
    op->encoded_len = 0;
    op->target = a->target;
    a->target.nruns = 0;
    return op;
}

static void op_free_locked(nicstride_op_t *op)
{
    if (op->handle != 0)
        nicstride_handle_free(&mca_osc_nicstride_component.ops, op->handle);
    if (op->origin.nruns != 0)
        onic_layout_fini(&op->origin);
    if (op->result.nruns != 0)
        onic_layout_fini(&op->result);
    if (op->target.nruns != 0)
        onic_layout_fini(&op->target);
    nicstride_op_give_locked(op);
}

void nicstride_op_live_locked(nicstride_op_t *op)
{
    nicstride_peer_t *p = op->peer;

    op->live_next = NULL;
    op->live_prev = p->live_tail;
    if (p->live_tail != NULL)
        p->live_tail->live_next = op;
    else
        p->live = op;
    p->live_tail = op;
}

static void live_remove(nicstride_op_t *op)
{
    nicstride_peer_t *p = op->peer;

    if (op->live_prev != NULL)
        op->live_prev->live_next = op->live_next;
    else
        p->live = op->live_next;
    if (op->live_next != NULL)
        op->live_next->live_prev = op->live_prev;
    else
        p->live_tail = op->live_prev;
}

void nicstride_ops_drop(nicstride_peer_t *p)
{
    while (p->live != NULL) {
        nicstride_op_t *op = p->live;

        live_remove(op);
        op_free_locked(op);
    }
}

/** Tells who waits for the request that it is over. An error that nobody waits for, because there
 * is no request or it was freed, is told at the next synchronisation. */
static void tell_end(nicstride_op_t *op)
{
    if (op->error != 0 && (op->request == NULL || op->request->freed) && op->peer->tx.error == 0)
        __atomic_store_n(&op->peer->tx.error, op->error, __ATOMIC_RELAXED);
    if (op->request != NULL)
        nicstride_request_done_locked(op->request, op->error);
    op->request = NULL;
}

/** Ends the operation once nothing of it is under way any more. */
static void op_finish_locked(nicstride_op_t *op)
{
    if (op->queued || op->in_flight > 0 || op->sent < op->size ||
        (wants_reply(op) && op->received < op->size))
        return;
    live_remove(op);
    tell_end(op);
    op_free_locked(op);
}

void nicstride_op_received_locked(nicstride_op_t *op, uint64_t bytes, int error)
{
    op->received += bytes;
    if (op->error == 0)
        op->error = error;
    op_finish_locked(op);
}

/** Nothing more will come of it. Who waits for its request is told at once, since UCX may never end
 *  a rendezvous whose other side is gone. */
static void op_fail(nicstride_op_t *op)
{
    if (op->error == 0)
        op->error = MPI_ERR_OTHER;
    op->sent = op->received = op->size;
    if (op->request != NULL) {
        tell_end(op);
        op->error = 0;
    }
}

void nicstride_ops_fail_locked(nicstride_peer_t *p)
{
    nicstride_op_t *next;

    p->head = p->tail = NULL;
    p->queued = 0;
    p->trial.cell = NULL;
    for (nicstride_op_t *op = p->live; op != NULL; op = next) {
        next = op->live_next;
        op->queued = false;
        op_fail(op);
        op_finish_locked(op);
    }
}

bool nicstride_ops_in_flight_locked(const nicstride_peer_t *p)
{
    const nicstride_op_t *op = p->live;

    while (op != NULL && op->in_flight == 0)
        op = op->live_next;
    return op != NULL || p->posting > 0;
}

static void sent_cb(void *arg, int status)
{
    nicstride_op_t *op = arg;

    op->in_flight--;
    if (status != OMPI_SUCCESS && op->error == 0)
        op->error = MPI_ERR_OTHER;
    op_finish_locked(op);
}

/* ---- fragments ------------------------------------------------------------------------------ */

/** A message under construction: header, then the encoded layout. */
typedef struct fragment {
    nicstride_msg_t msg;
    unsigned char layout[8192];
} fragment_t;

_Static_assert(offsetof(fragment_t, layout) == sizeof(nicstride_msg_t), "layout follows header");

static uint64_t fragment_bytes(const nicstride_op_t *op, uint64_t room)
{
    const uint64_t base = op->module->info[op->peer->rank].base + (uint64_t)op->disp;

    return nicstride_fragment(&op->target, base, op->sent, room, op->granule);
}

/** Puts the target layout into the fragment; `*room_p` is how many bytes of data may go along. */
static int put_layout(nicstride_op_t *op, fragment_t *f, uint64_t room, uint64_t *data_p)
{
    size_t frag = op->peer->frag_max;
    size_t used = 0, cap;

    if (onic_layout_is_contig(&op->target)) {
        f->msg.disp = op->disp + op->target.offset;
        *data_p = fragment_bytes(op, room != 0 ? room : frag - sizeof(f->msg));
        return OMPI_SUCCESS;
    }
    if (op->target.nruns == 0) {
        if (op->encoded_len == 0 &&
            onic_layout_encode(&op->target, op->encoded, sizeof(op->encoded), &op->encoded_len) !=
                ONIC_LAYOUT_OK)
            return OMPI_ERROR;
        memcpy(f->layout, op->encoded, op->encoded_len);
        f->msg.layout_len = (uint32_t)op->encoded_len;
        *data_p = fragment_bytes(op, room != 0 ? room : frag - sizeof(f->msg) - op->encoded_len);
        return OMPI_SUCCESS;
    }
    cap = frag / SLICE_SHARE < sizeof(f->layout) ? frag / SLICE_SHARE : sizeof(f->layout);
    if (cap > onic_wire_header_max() - sizeof(f->msg))
        cap = onic_wire_header_max() - sizeof(f->msg);
    room = fragment_bytes(op, room != 0 ? room : frag - sizeof(f->msg) - cap);
    if (onic_layout_encode_slice(&op->slice, room, op->granule, f->layout, cap, &used, data_p) !=
        ONIC_LAYOUT_OK)
        return OMPI_ERROR;
    f->msg.layout_len = (uint32_t)used;
    f->msg.flags |= NICSTRIDE_MSG_SLICE;
    return OMPI_SUCCESS;
}

/** How much may be asked for at once; 0: what fits in a fragment. */
static uint64_t piece_limit(const nicstride_op_t *op)
{
    if (op->rndv)
        return RNDV_PIECE;
    return op->type == NICSTRIDE_MSG_GET ? GET_PIECE : 0;
}

static void payload_from(onic_payload_t *p, const onic_layout_t *l, char *base, uint64_t at,
                         uint64_t len)
{
    p->len = len;
    p->base = base;
    if (onic_layout_is_contig(l)) {
        p->cursor.layout = NULL;
        p->base = base + l->offset + (int64_t)at;
    } else {
        onic_cursor_init(&p->cursor, l, at);
    }
}

static int send_fragment_locked(nicstride_module_t *m, nicstride_op_t *op)
{
    nicstride_peer_t *p = op->peer;
    fragment_t f;
    onic_payload_t payload = {.len = 0};
    uint64_t n = 0;
    int rc;

    nicstride_msg_init(&f.msg, op->type, m->info[p->rank].win, (uint32_t)m->rank);
    f.msg.disp = op->disp;
    if (op->type == NICSTRIDE_MSG_CAS) {
        n = op->size;
        f.msg.len = 2 * n;
    } else {
        rc = put_layout(op, &f, piece_limit(op), &n);
        if (rc != OMPI_SUCCESS)
            return rc;
        f.msg.len = n;
        f.msg.op = op->op;
    }
    f.msg.dtype = op->dtype;
    f.msg.offset = op->sent;
    f.msg.handle = op->handle;
    /* A lone message is likely to be flushed at once: it asks for its acknowledgement itself. */
    if (op->sent + n == op->size && nicstride_tx_idle(&p->tx) && !nicstride_is_active(m)) {
        f.msg.count = p->tx.sent + 1;
        p->tx.asked = f.msg.count;
    }
    if (op->rndv)
        f.msg.flags |= NICSTRIDE_MSG_RNDV;
    if (op->type == NICSTRIDE_MSG_CAS) {
        payload.base = op->cas;
        payload.len = 2 * n;
    } else if (op->sends_data) {
        payload_from(&payload, &op->origin, op->origin_base, op->sent, n);
    }
    op->in_flight++;
    op->sent += n;
    nicstride_outbox_send_locked(p);
    rc =
        onic_peer_send(p->wire, ONIC_AM_OSC, &f, sizeof(f.msg) + f.msg.layout_len,
                       payload.len > 0 ? &payload : NULL,
                       op->rndv && op->type == NICSTRIDE_MSG_PUT ? ONIC_SEND_RNDV : 0, sent_cb, op);
    if (rc != 0)
        op->in_flight--;
    if (rc < 0) {
        __atomic_store_n(&p->failed, true, __ATOMIC_RELAXED);
        return rc;
    }
    nicstride_tx_send(&p->tx);
    nicstride_add(&nicstride_counters.messages, 1);
    return OMPI_SUCCESS;
}

/** May the first operation of the queue go on? Not past one that a flush waits for, since the flush
 *  would never end while other threads keep sending; unless a local flush waits for it. */
static bool may_send(const nicstride_peer_t *p)
{
    return p->head != NULL && nicstride_tx_can_send(&p->tx) &&
           !(p->flushing && p->head->number > p->goal && p->head->number > p->urgent);
}

size_t nicstride_frag_max_locked(nicstride_peer_t *p)
{
    if (p->frag_max == 0) {
        p->frag_max = onic_peer_frag_max(p->wire);
        /* Whatever the transport was told: smaller ones than this it has to cut by itself. */
        if (p->frag_max < FRAG_MIN)
            p->frag_max = FRAG_MIN;
    }
    return p->frag_max;
}

void nicstride_pump_queue_locked(nicstride_module_t *m, nicstride_peer_t *p)
{
    nicstride_frag_max_locked(p);
    nicstride_look_locked(p);
    /* To a failed peer nothing is sent, nor does what is queued wait for its turn. */
    while (p->failed ? p->head != NULL : may_send(p)) {
        nicstride_op_t *op = p->head;
        int rc = p->failed ? OMPI_ERR_UNREACH : send_fragment_locked(m, op);

        if (rc != OMPI_SUCCESS)
            op_fail(op);
        if (op->sent == op->size) {
            p->head = op->next;
            p->queued--;
            op->queued = false;
            op_finish_locked(op);
        }
    }
    if (p->head == NULL)
        p->tail = NULL;
}

static bool has_room(void *arg)
{
    nicstride_peer_t *p = arg;

    return p->queued < QUEUE_MAX || nicstride_peer_failed_locked(p);
}

int nicstride_op_start(nicstride_op_t *op)
{
    nicstride_module_t *m = op->module;
    nicstride_peer_t *p = op->peer;

    if (!has_room(p)) {
        onic_wire_unlock();
        nicstride_wait_until(p, has_room, p);
        onic_wire_lock();
    }
    if (wants_reply(op)) {
        op->handle = nicstride_handle_new(&mca_osc_nicstride_component.ops, op);
        if (op->handle == 0) {
            p->trial.cell = NULL;
            op_free_locked(op);
            onic_wire_unlock();
            return OMPI_ERR_OUT_OF_RESOURCE;
        }
    }
    if (op->target.nruns != 0)
        onic_cursor_init(&op->slice, &op->target, 0);
    op->next = NULL;
    op->queued = true;
    op->number = p->enqueued + 1;
    /* Flushes look at it without the lock. */
    __atomic_store_n(&p->enqueued, op->number, __ATOMIC_RELAXED);
    p->queued++;
    nicstride_op_live_locked(op);
    if (p->tail != NULL)
        p->tail->next = op;
    else
        p->head = op;
    p->tail = op;
    nicstride_pump_locked(m, p);
    nicstride_observe_started_locked(p);
    onic_wire_unlock();
    return OMPI_SUCCESS;
}

void nicstride_send_locked(nicstride_module_t *m, nicstride_peer_t *p, nicstride_msg_t *msg)
{
    (void)m;
    nicstride_send_small_locked(p, msg, NULL, 0);
}
