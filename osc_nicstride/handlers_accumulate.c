/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The target side of accumulates: what they ask for is checked, applied under the accumulate lock,
 * and the old values go back. Wire lock, as all handlers.
 */
#include <stddef.h>
#include <stdlib.h>

#include "osc_nicstride/control.h"
#include "osc_nicstride/handlers.h"
#include "osc_nicstride/op.h"
#include "osc_nicstride/small.h"
#include "osc_nicstride/stream.h"
#include "common/pack.h"

static void free_cb(void *arg, int status)
{
    (void)status;
    free(arg);
}

/** Sends old values back; takes over `old`. */
static void reply_old(const nicstride_incoming_t *in, char *old, uint64_t len)
{
    nicstride_msg_t msg;
    onic_payload_t payload = {.base = old, .len = len};
    int rc;

    nicstride_reply_init(in, &msg, NICSTRIDE_MSG_ACC_DATA, len);
    nicstride_outbox_send_locked(in->p);
    rc = onic_peer_send(in->p->wire, ONIC_AM_OSC, &msg, sizeof(msg), &payload, 0, free_cb, old);
    if (rc != 0)
        free(old);
    if (rc < 0) {
        msg.status = MPI_ERR_OTHER;
        nicstride_send_locked(in->m, in->p, &msg);
    }
}

static _Atomic uint32_t *lock_of(const nicstride_module_t *m)
{
    return &nicstride_ctl(m, m->node.me)->acc_lock;
}

/** One element without gaps, under the accumulate lock. False where that is taken. */
static bool try_element(const nicstride_module_t *m, const nicstride_apply_t *a, void *at,
                        const void *data, void *old)
{
    if (!nicstride_spin_try(lock_of(m)))
        return false;
    nicstride_apply_element(a, at, data, old);
    nicstride_spin_unlock(lock_of(m));
    return true;
}

/** The same for a compare-and-swap of `size` bytes; `data` is both values. */
static bool try_swap(const nicstride_module_t *m, void *at, size_t size, const void *data,
                     void *old)
{
    if (!nicstride_spin_try(lock_of(m)))
        return false;
    nicstride_apply_cas(at, size, data, (const char *)data + size, old);
    nicstride_spin_unlock(lock_of(m));
    return true;
}

/** Instead of an error: the accumulate lock is taken, nothing was done. */
enum { BUSY = -1 };

static int apply_to_layout(const nicstride_incoming_t *in, const nicstride_apply_t *a, char *old)
{
    const nicstride_msg_t *msg = in->msg;
    onic_layout_t l;
    onic_cursor_t c;
    char *base;
    uint64_t at;
    int error = nicstride_open_target(in, &l, &base, &at);

    if (error != 0)
        return error;
    if (msg->len % a->size != 0 || at % a->size != 0) {
        error = MPI_ERR_TYPE;
    } else if (!nicstride_spin_try(lock_of(in->m))) {
        error = BUSY;
    } else {
        onic_cursor_init(&c, &l, at);
        nicstride_apply(a, &c, base, in->data, old, msg->len);
        nicstride_spin_unlock(lock_of(in->m));
    }
    onic_layout_fini(&l);
    return error;
}

/** Checks what an accumulate asks for and does it. */
static int apply_message(const nicstride_incoming_t *in, const nicstride_apply_t *a, char *old)
{
    const nicstride_msg_t *msg = in->msg;
    const bool element = msg->len == a->size && a->size == a->extent && msg->offset == 0;
    char *at = element ? nicstride_plain_target(in) : NULL;

    if (at == NULL)
        return apply_to_layout(in, a, old);
    return try_element(in->m, a, at, in->data, old) ? 0 : BUSY;
}

/** False where it must be tried again. */
static bool accumulate(const nicstride_incoming_t *in)
{
    const nicstride_msg_t *msg = in->msg;
    const bool fetch = msg->type == NICSTRIDE_MSG_GET_ACC;
    char few[NICSTRIDE_SMALL_MAX];
    const bool small = msg->len <= nicstride_small_max();
    nicstride_accop_t op;
    char *old = fetch && small ? few : NULL;
    int error = 0;

    if (!nicstride_accop_init(&op, msg->op, msg->dtype) ||
        (op.apply.kind != NICSTRIDE_APPLY_NO_OP && in->len == 0 && msg->len > 0))
        error = MPI_ERR_TYPE;
    /* A fragment is small; more than one can hold was not made by us. */
    else if (fetch && msg->len > onic_wire_header_max() + in->p->frag_max + (1u << 20))
        error = MPI_ERR_OTHER;
    else if (fetch && !small && (old = malloc(msg->len)) == NULL)
        error = MPI_ERR_NO_MEM;
    if (error == 0)
        error = apply_message(in, &op.apply, old);
    if (fetch && error != 0 && !small)
        free(old);
    if (error == BUSY)
        return false;
    if (fetch && error != 0) {
        nicstride_refuse(in, NICSTRIDE_MSG_ACC_DATA, msg->len, error);
    } else if (fetch && small) {
        nicstride_reply_small(in, NICSTRIDE_MSG_ACC_DATA, old, msg->len);
    } else {
        if (fetch)
            reply_old(in, old, msg->len);
        nicstride_applied_locked(in->m, in->p, error);
    }
    return true;
}

/** Compare and swap: one element, two values in the payload. False as above. */
static bool compare_and_swap(const nicstride_incoming_t *in)
{
    const uint64_t size = in->msg->len / 2;
    size_t dtype_size, extent;
    char old[NICSTRIDE_SMALL_MAX];
    onic_layout_t l;
    int error = 0;

    if (!nicstride_dtype_size(in->msg->dtype, &dtype_size, &extent) || dtype_size != size ||
        size > sizeof(old))
        error = MPI_ERR_TYPE;
    else if (onic_layout_contig(&l, 0, size) != ONIC_LAYOUT_OK ||
             !nicstride_target_holds(in->m, in->msg->disp, &l))
        error = MPI_ERR_RMA_RANGE;
    if (error != 0) {
        nicstride_refuse(in, NICSTRIDE_MSG_ACC_DATA, size, error);
        return true;
    }
    if (!try_swap(in->m, (char *)((uintptr_t)in->m->base + (uintptr_t)in->msg->disp), size,
                  in->data, old))
        return false;
    nicstride_reply_small(in, NICSTRIDE_MSG_ACC_DATA, old, size);
    return true;
}

bool nicstride_fetch_element(nicstride_module_t *m, nicstride_msg_type_t type, unsigned op,
                             unsigned dtype, void *at, const void *data, size_t len, void *old)
{
    const bool swap = type == NICSTRIDE_MSG_CAS;
    nicstride_accop_t a;

    if (nicstride_any_deferred_locked() ||
        !(swap ? nicstride_dtype_size(dtype, &a.apply.size, &a.apply.extent)
               : nicstride_accop_init(&a, op, dtype)) ||
        a.apply.size != len || a.apply.extent != len || len > NICSTRIDE_ELEMENT_MAX)
        return false;
    return swap ? try_swap(m, at, len, data, old) : try_element(m, &a.apply, at, data, old);
}

bool nicstride_on_accumulate(const nicstride_incoming_t *in)
{
    return in->msg->type == NICSTRIDE_MSG_CAS ? compare_and_swap(in) : accumulate(in);
}
