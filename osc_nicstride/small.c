/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Operations of few contiguous bytes: one message with the data behind its header. Where nothing
 * stands before it the first is sent at once; those that follow, until everything is acknowledged,
 * wait for each other in the outbox.
 */
#include <sched.h>
#include <stddef.h>
#include <string.h>

#include "osc_nicstride/small.h"
#include "osc_nicstride/component.h"
#include "osc_nicstride/hold.h"
#include "osc_nicstride/module.h"
#include "osc_nicstride/observe.h"
#include "osc_nicstride/outbox.h"
#include "osc_nicstride/proto_short.h"
#include "osc_nicstride/stream.h"
#include "osc_nicstride/stream_internal.h"
#include "osc_nicstride/quick.h"
#include "osc_nicstride/target.h"
#include "common/pack.h"

/* Turns of progress that an operation waits for acknowledgements before it is queued. */
#define FULL_TURNS   256
#define LOCKED_TURNS 32

/** Puts bytes behind others; returns the end. Eight are by far the most frequent. */
static inline unsigned char *append(unsigned char *end, const void *bytes, size_t n)
{
    if (n == sizeof(uint64_t))
        memcpy(end, bytes, sizeof(uint64_t));
    else
        memcpy(end, bytes, n);
    return end + n;
}

/** Sends a message without layout, or lets it wait for others, with `len` bytes at `data` behind it
 *  and as many at `data2`, where these are not NULL. Inlined, since most of its fields are known to
 *  be 0 where it is made. */
__attribute__((always_inline)) static inline void
send_or_wait(nicstride_peer_t *p, nicstride_msg_t *msg, const void *data, const void *data2,
             uint64_t len, bool may_wait, bool operation)
{
    unsigned char bytes[sizeof(*msg) + NICSTRIDE_SMALL_MAX];
    unsigned char *end;
    size_t header;

    if (data != NULL && len > 0)
        msg->flags |= NICSTRIDE_MSG_INLINE;
    header = nicstride_msg_shorten(msg, bytes);
    if (header == 0) {
        header = sizeof(*msg);
        memcpy(bytes, msg, header);
    }
    end = bytes + header;
    if (data != NULL && len > 0)
        end = append(end, data, len);
    if (data2 != NULL)
        end = append(end, data2, len);
    if (operation && p->held)
        nicstride_hold_keep_locked(p, bytes, (size_t)(end - bytes));
    else
        nicstride_post_locked(p, bytes, (size_t)(end - bytes), may_wait);
}

void nicstride_send_small_locked(nicstride_peer_t *p, nicstride_msg_t *msg, const void *data,
                                 uint64_t len)
{
    send_or_wait(p, msg, data, NULL, len, nicstride_outboxes_collect, false);
}

size_t nicstride_small_max(void)
{
    const size_t most = onic_wire_header_max() - sizeof(nicstride_msg_t);

    return most < NICSTRIDE_SMALL_MAX ? most : NICSTRIDE_SMALL_MAX;
}

/** An operation that waits for a reply of few bytes; NULL where memory is exhausted. */
static nicstride_op_t *small_op(nicstride_module_t *m, nicstride_peer_t *p,
                                const nicstride_small_t *s)
{
    nicstride_op_t *op = nicstride_op_take_locked();

    if (op == NULL)
        return NULL;
    memset(op, 0, offsetof(nicstride_op_t, origin));
    op->origin.nruns = op->result.nruns = op->target.nruns = 0;
    op->module = m;
    op->peer = p;
    op->type = s->type;
    op->size = op->sent = s->len;
    op->plain = true;
    op->result_base = s->result;
    op->request = NULL;
    op->handle = nicstride_handle_new(&mca_osc_nicstride_component.ops, op);
    if (op->handle == 0) {
        nicstride_op_give_locked(op);
        return NULL;
    }
    return op;
}

/** May an operation be sent now, before anything else that is to be sent? Where only the target's
 *  acknowledgements are missing they get a moment to come. */
static bool small_may_start(nicstride_peer_t *p)
{
    if (!nicstride_hold_allows_locked(p))
        return false;
    for (int turn = 0; p->head == NULL && !p->flushing && !p->failed; turn++) {
        nicstride_look_locked(p);
        if (nicstride_tx_can_send(&p->tx))
            return true;
        if (turn == FULL_TURNS)
            return false;
        nicstride_outbox_send_locked(p);
        onic_wire_progress_locked();
        /* Other threads have their turns, too. */
        if (turn % LOCKED_TURNS == LOCKED_TURNS - 1) {
            onic_wire_unlock();
            sched_yield();
            onic_wire_lock();
        }
    }
    return false;
}

/** Does the first message ask for its acknowledgement? In active target only where that comes with
 *  a reply, which waits in the slot then: a fence with one operation that fetches takes a third
 *  less time. */
static bool asks(const nicstride_module_t *m, const nicstride_op_t *op)
{
    return op != NULL || !nicstride_is_active(m);
}

/** Has a message ask for its acknowledgement. */
static void ask(nicstride_peer_t *p, nicstride_msg_t *msg)
{
    msg->count = p->tx.sent + 1;
    p->tx.asked = msg->count;
}

/** Over a network a message costs many times what the bytes of a short one do, and in active target
 *  nobody waits for the first before the epoch closes. */
static bool waits_for_company(const nicstride_module_t *m, const nicstride_peer_t *p)
{
    return p->local < 0 && nicstride_is_active(m);
}

/** An operation is about to be sent, with the reply that `op` waits for, if any. True where it is
 *  the first: that goes at once, since it may be the only one, and is acknowledged at once where
 *  somebody waits for that. */
static bool begin(const nicstride_module_t *m, nicstride_peer_t *p, nicstride_tune_cell_t *cell,
                  uint64_t bytes, nicstride_op_t *op)
{
    nicstride_observe_begin_locked(p, cell, NICSTRIDE_METHOD_PACK, bytes);
    /* Flushes look at it without the lock. */
    __atomic_store_n(&p->enqueued, p->enqueued + 1, __ATOMIC_RELAXED);
    if (op != NULL) {
        op->number = p->enqueued;
        nicstride_op_live_locked(op);
    }
    return nicstride_tx_idle(&p->tx) && !waits_for_company(m, p);
}

/** It has been. */
static void end(nicstride_peer_t *p)
{
    nicstride_tx_send(&p->tx);
    nicstride_add(&nicstride_counters.messages, 1);
    nicstride_observe_started_locked(p);
}

static void small_send(nicstride_module_t *m, nicstride_peer_t *p, int64_t disp,
                       const nicstride_small_t *s, uint64_t observed, nicstride_op_t *op)
{
    const bool first = begin(m, p, s->cell, observed, op);
    nicstride_msg_t msg;

    nicstride_msg_init(&msg, s->type, m->info[p->rank].win, (uint32_t)m->rank);
    msg.op = s->op;
    msg.dtype = s->dtype;
    msg.disp = disp;
    msg.len = s->data2 != NULL ? 2 * s->len : s->len;
    msg.handle = op != NULL ? op->handle : 0;
    if (first && asks(m, op))
        ask(p, &msg);
    send_or_wait(p, &msg, s->data, s->data2, s->len, !first, true);
    end(p);
}

/** At a byte displacement, or an address. `observed`: bytes that it counts as where its cost is
 *  noted. */
static bool start(nicstride_module_t *m, nicstride_peer_t *p, int64_t disp,
                  const nicstride_small_t *s, uint64_t observed)
{
    nicstride_op_t *op = NULL;
    bool started;

    onic_wire_lock();
    started = small_may_start(p) && (s->result == NULL || (op = small_op(m, p, s)) != NULL);
    if (started)
        small_send(m, p, disp, s, observed, op);
    onic_wire_unlock();
    return started;
}

bool nicstride_small_start(nicstride_module_t *m, int target, ptrdiff_t disp,
                           const nicstride_small_t *s)
{
    nicstride_peer_t *p = __atomic_load_n(&m->peer[target], __ATOMIC_ACQUIRE);
    uint64_t at;

    return p != NULL && target != m->rank && s->len <= nicstride_small_max() &&
           nicstride_plain_offset(m, target, disp, s->len, &at) &&
           start(m, p, (int64_t)at, s, NICSTRIDE_TUNE_QUICK_BYTES);
}

/* ---- with layouts ---------------------------------------------------------------------------- */

/** Room for a layout: more than an encoded regular one needs, and some dozen runs of others. */
#define LAYOUT_MAX 256

/** A message under construction: header, layout, data. */
typedef struct shaped {
    nicstride_msg_t msg;
    unsigned char rest[LAYOUT_MAX + NICSTRIDE_FAR_MAX];
    size_t used; /**< bytes of the rest */
} shaped_t;

_Static_assert(offsetof(shaped_t, rest) == sizeof(nicstride_msg_t),
               "the layout follows the header");

/** Describes all bytes of the target; false where that takes too much room. */
static bool describe(shaped_t *f, const nicstride_target_t *a, uint32_t granule)
{
    const onic_layout_t *l = &a->target;
    const size_t header_room = onic_wire_header_max() - sizeof(f->msg);
    const size_t room = header_room < LAYOUT_MAX ? header_room : LAYOUT_MAX;
    uint64_t described = 0;
    onic_cursor_t all;

    f->msg.disp = a->disp;
    f->used = 0;
    if (onic_layout_is_contig(l)) {
        f->msg.disp += l->offset;
        return true;
    }
    if (l->nruns == 0) {
        if (onic_layout_encode(l, f->rest, room, &f->used) != ONIC_LAYOUT_OK)
            return false;
    } else {
        onic_cursor_init(&all, l, 0);
        if (onic_layout_encode_slice(&all, l->size, granule, f->rest, room, &f->used, &described) !=
                ONIC_LAYOUT_OK ||
            described != l->size)
            return false;
        f->msg.flags |= NICSTRIDE_MSG_SLICE;
    }
    f->msg.layout_len = (uint32_t)f->used;
    return true;
}

/** Contiguous on both sides: then it is as short as the others, and may be answered in the slot. */
static bool move_contiguous(nicstride_module_t *m, const nicstride_target_t *a,
                            const nicstride_small_t *s)
{
    char *here = a->origin_base + a->origin.offset;
    nicstride_small_t plain = *s;

    plain.len = a->target.size;
    if (s->type == NICSTRIDE_MSG_GET)
        plain.result = here;
    else
        plain.data = here;
    return start(m, a->peer, a->disp + a->target.offset, &plain, plain.len);
}

bool nicstride_small_move(nicstride_module_t *m, nicstride_target_t *a, const nicstride_small_t *s,
                          uint32_t granule)
{
    const uint64_t size = a->target.size;
    const bool get = s->type == NICSTRIDE_MSG_GET;
    nicstride_peer_t *p = a->peer;
    nicstride_op_t *op = NULL;
    onic_cursor_t from;
    shaped_t f;

    if (size > (waits_for_company(m, p) && !get ? NICSTRIDE_FAR_MAX : nicstride_small_max()) ||
        p->rank == m->rank)
        return false;
    if (size <= nicstride_small_max() && onic_layout_is_contig(&a->origin) &&
        onic_layout_is_contig(&a->target))
        return move_contiguous(m, a, s);
    nicstride_msg_init(&f.msg, s->type, m->info[p->rank].win, (uint32_t)m->rank);
    if (!describe(&f, a, granule) ||
        (!get && sizeof(f.msg) + f.used + size > onic_wire_header_max()))
        return false;
    f.msg.op = s->op;
    f.msg.dtype = s->dtype;
    f.msg.len = size;
    if (!get) {
        f.msg.flags |= NICSTRIDE_MSG_INLINE;
        onic_cursor_init(&from, &a->origin, 0);
        f.used += onic_pack(&from, a->origin_base, f.rest + f.used, size);
    }
    onic_wire_lock();
    const nicstride_small_t reply = {.type = s->type, .len = size, .result = a->origin_base};
    if (!small_may_start(p) || (get && (op = small_op(m, p, &reply)) == NULL)) {
        onic_wire_unlock();
        return false;
    }
    if (op != NULL) {
        op->plain = false;
        op->result = a->origin;
        a->origin.nruns = 0;
        f.msg.handle = op->handle;
    }
    const bool first = begin(m, p, s->cell, size, op);
    if (first && asks(m, op))
        ask(p, &f.msg);
    if (p->held)
        nicstride_hold_keep_locked(p, &f, sizeof(f.msg) + f.used);
    else
        nicstride_outbox_post_locked(p, &f, sizeof(f.msg) + f.used, !first);
    end(p);
    onic_wire_unlock();
    return true;
}
