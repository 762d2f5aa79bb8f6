/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Peers' accumulates: checks them, applies them, sends old values back. */
#include "osc_nicstride/methods/pack/parts.h"
#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/target/target.h"
#include "osc_nicstride/window/hold.h"

/** Old values on their way back. The operation, and so the bytes kept for it, counts until they
 *  have left. */
typedef struct old_values {
    nicstride_pending_access_t access;
    char bytes[];
} old_values_t;

_Static_assert(sizeof(old_values_t) <= NICSTRIDE_KEPT_USE, "what is counted for it");

static void returned_cb(void *arg, int status)
{
    old_values_t *old = arg;

    if (old->access.m != NULL && status != OMPI_SUCCESS)
        nicstride_give_up_locked(old->access.p);
    nicstride_access_end(&old->access, 0);
}

/** Sends old values back. Takes over `old`. */
static void return_old(const nicstride_incoming_t *in, old_values_t *old)
{
    const onic_payload_t payload = {.base = old->bytes, .len = in->msg->len};
    nicstride_msg_t msg;
    int rc;

    nicstride_reply_init(in->p, in->msg, &msg, in->msg->len);
    rc = nicstride_send_locked(in->p, &msg, &payload, returned_cb, old);
    if (rc != 0)
        returned_cb(old, rc < 0 ? rc : OMPI_SUCCESS);
}

static int apply_to_layout(const nicstride_incoming_t *in, const nicstride_apply_t *a, char *old)
{
    const nicstride_msg_t *msg = in->msg;
    nicstride_hold_t h;
    onic_layout_t l;
    onic_cursor_t c;
    char *base;
    uint64_t at;
    int error = nicstride_open_target(in, &l, &base, &at);

    if (error != 0)
        return error;
    nicstride_hold_init(&h, in->m, in->m->node.me, a, nicstride_hold_aligned(&l, base, a->size));
    if (msg->len % a->size != 0 || at % a->size != 0)
        error = MPI_ERR_TYPE;
    else
        error = nicstride_hold_take_layout(&h, &l, at, msg->len, msg->disp);
    if (error == 0) {
        onic_cursor_init(&c, &l, at);
        nicstride_apply(a, &c, base, in->data, old, msg->len);
        nicstride_hold_give(&h);
    }
    onic_layout_fini(&l);
    return error;
}

/** Checks where an accumulate goes and applies it. One element without gaps needs no walk. */
static int apply_message(const nicstride_incoming_t *in, const nicstride_apply_t *a, char *old)
{
    const nicstride_msg_t *msg = in->msg;
    const bool element = msg->len == a->size && a->size == a->extent && msg->offset == 0;
    char *at = element ? nicstride_contiguous_target(in, msg->len) : NULL;

    if (at == NULL)
        return apply_to_layout(in, a, old);
    return nicstride_update(in->m, in->m->node.me, a, at, msg->disp, in->data, old, 1);
}

static int check(const nicstride_incoming_t *in, nicstride_accop_t *op)
{
    if (!nicstride_accop_init(op, in->msg->op, in->msg->dtype) ||
        (op->apply.kind != NICSTRIDE_APPLY_NO_OP && in->len == 0 && in->msg->len > 0))
        return MPI_ERR_TYPE;
    return in->msg->len > NICSTRIDE_FETCH_MAX ? MPI_ERR_OTHER : 0;
}

/** Applies an accumulate that fetches nothing, or little. */
static void update(const nicstride_incoming_t *in)
{
    const bool fetches = in->msg->type == NICSTRIDE_MSG_GET_ACC;
    char old[NICSTRIDE_INLINE_MAX];
    nicstride_accop_t op;
    int error = check(in, &op);

    if (error == 0)
        error = apply_message(in, &op.apply, fetches ? old : NULL);
    if (fetches)
        nicstride_reply_locked(in, old, in->msg->len, error);
    else
        nicstride_applied_locked(in->m, in->p, in->msg, error);
}

static void fetch_long(const nicstride_incoming_t *in)
{
    nicstride_accop_t op;
    int error = check(in, &op);
    void *record = NULL;

    if (error == 0)
        error = nicstride_access_open(in, sizeof(old_values_t) + in->msg->len, &record);
    old_values_t *old = record;
    if (old != NULL)
        error = apply_message(in, &op.apply, old->bytes);
    if (error == 0) {
        return_old(in, old);
        return;
    }
    if (old != NULL)
        nicstride_access_close(&old->access);
    nicstride_reply_locked(in, NULL, in->msg->len, error);
}

/** Compare and swap of one element; the payload has two values. */
void nicstride_on_swap(const nicstride_incoming_t *in)
{
    const uint64_t size = in->msg->len / 2;
    char old[NICSTRIDE_ELEMENT_MAX];
    size_t dtype_size, extent;
    char *at = NULL;
    int error = 0;

    if (!nicstride_dtype_size(in->msg->dtype, &dtype_size, &extent) || dtype_size != size ||
        size > sizeof(old))
        error = MPI_ERR_TYPE;
    else if ((at = nicstride_contiguous_target(in, size)) == NULL)
        error = MPI_ERR_RMA_RANGE;
    else
        error = nicstride_swap(in->m, in->m->node.me, at, in->msg->disp, size, in->data,
                               (const char *)in->data + size, old);
    nicstride_reply_locked(in, old, size, error);
}

void nicstride_on_accumulate(const nicstride_incoming_t *in)
{
    if (in->msg->type == NICSTRIDE_MSG_GET_ACC && in->msg->len > nicstride_inline_max(false))
        fetch_long(in);
    else
        update(in);
}
