/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The bytes of the window that a message accesses, and the accesses that take longer than a
 *  handler. */
#include "osc_nicstride/target/access.h"

#include <stdlib.h>

#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/target/target.h"
#include "osc_nicstride/window/state.h"

void nicstride_on_layout(const nicstride_incoming_t *in)
{
    nicstride_peer_t *p = in->p;

    if (p->kept == NULL)
        p->kept = calloc(1, sizeof(*p->kept));
    if (p->kept != NULL)
        nicstride_layout_slice(p->kept, in->msg, in->layout);
}

/** Where the message begins in its layout, as a packed position. */
static uint64_t begin_of(const nicstride_msg_t *msg)
{
    return (msg->flags & NICSTRIDE_MSG_SLICE) ? 0 : msg->offset;
}

/** True if the whole layout lies in the window (dynamic windows: only the bytes of this
 *  message). */
static bool target_holds(const nicstride_module_t *m, const nicstride_msg_t *msg,
                         const onic_layout_t *l)
{
    if (m->flavor == MPI_WIN_FLAVOR_DYNAMIC)
        return nicstride_regions_cover(&m->regions, (uint64_t)msg->disp, l, begin_of(msg),
                                       msg->len);
    return nicstride_layout_fits(l, msg->disp, nicstride_info(m, m->rank)->size);
}

/** Gets the layout that the message describes. */
static bool decode(const nicstride_incoming_t *in, onic_layout_t *l)
{
    const nicstride_msg_t *msg = in->msg;
    size_t used = 0;

    if ((msg->flags & NICSTRIDE_MSG_CACHED) != 0) {
        const onic_layout_t *list =
            in->p->kept != NULL ? nicstride_layout_cached(in->p->kept, in->layout) : NULL;

        return list != NULL && onic_layout_decode_around(
                                   l, list, (const char *)in->layout + NICSTRIDE_LIST_NUMBER_BYTES,
                                   msg->layout_len - NICSTRIDE_LIST_NUMBER_BYTES) == ONIC_LAYOUT_OK;
    }
    if (onic_layout_decode(l, in->layout, msg->layout_len, &used) != ONIC_LAYOUT_OK)
        return false;
    if (used != msg->layout_len)
        onic_layout_fini(l);
    return used == msg->layout_len;
}

int nicstride_open_target(const nicstride_incoming_t *in, onic_layout_t *l, char **base_p,
                          uint64_t *at_p)
{
    nicstride_module_t *m = in->m;
    const nicstride_msg_t *msg = in->msg;
    bool right;

    if (msg->layout_len == 0) {
        if (onic_layout_contig(l, 0, msg->offset + msg->len) != ONIC_LAYOUT_OK)
            return MPI_ERR_RMA_RANGE;
    } else if (!decode(in, l))
        return MPI_ERR_OTHER;
    *at_p = begin_of(msg);
    right = *at_p <= l->size && msg->len <= l->size - *at_p;
    if (!right || !target_holds(m, msg, l)) {
        onic_layout_fini(l);
        return right ? MPI_ERR_RMA_RANGE : MPI_ERR_OTHER;
    }
    *base_p = (char *)((uintptr_t)m->base + (uintptr_t)msg->disp);
    return 0;
}

int nicstride_access_open(const nicstride_incoming_t *in, size_t size, void **access_p)
{
    nicstride_pending_access_t *a = malloc(size);
    const int error =
        a != NULL ? nicstride_open_target(in, &a->layout, &a->base, &a->at) : MPI_ERR_NO_MEM;

    if (error != 0) {
        free(a);
        return error;
    }
    a->m = in->m;
    a->p = in->p;
    a->msg = *in->msg;
    a->cancel = NULL;
    LIST_INSERT_HEAD(&a->m->accesses, a, of_window);
    *access_p = a;
    return 0;
}

void nicstride_access_close(nicstride_pending_access_t *a)
{
    if (a->m != NULL)
        LIST_REMOVE(a, of_window);
    onic_layout_fini(&a->layout);
    free(a);
}

void nicstride_access_end(nicstride_pending_access_t *a, int error)
{
    if (a->m != NULL)
        nicstride_applied_locked(a->m, a->p, &a->msg, error);
    nicstride_access_close(a);
}

static bool is_in_window(const nicstride_pending_access_t *a)
{
    return target_holds(a->m, &a->msg, &a->layout);
}

/** The next access that must be cancelled. */
static nicstride_pending_access_t *next_to_cancel(const nicstride_module_t *m, bool all)
{
    nicstride_pending_access_t *a = LIST_FIRST(&m->accesses);

    while (a != NULL && (a->cancel == NULL || (!all && is_in_window(a))))
        a = LIST_NEXT(a, of_window);
    return a;
}

bool nicstride_end_accesses_locked(nicstride_module_t *m, bool all)
{
    nicstride_pending_access_t *a;

    /* Start again from the beginning each time: cancelling an access ends it, and perhaps others.
     */
    while ((a = next_to_cancel(m, all)) != NULL)
        a->cancel(a);
    LIST_FOREACH(a, &m->accesses, of_window)
        if (!all && !is_in_window(a))
            return false;
    return true;
}

void nicstride_forget_accesses_locked(nicstride_module_t *m)
{
    nicstride_pending_access_t *a;

    LIST_FOREACH(a, &m->accesses, of_window) {
        nicstride_freed_locked(a->p, &a->msg);
        a->m = NULL;
    }
    LIST_INIT(&m->accesses);
}
