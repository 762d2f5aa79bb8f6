/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The bytes of the window that a message accesses, and the accesses that take longer than a
 *  handler. Transport lock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/layout/layout.h"
#include "osc_nicstride/queue/operation.h"
#include "osc_nicstride/window/module.h"

/** Handles a slice of a list for the layout cache. */
void nicstride_on_layout(const nicstride_incoming_t *in);

/** Decodes the layout of a message and makes sure that all bytes it describes are in the window.
 *  Returns an MPI error class, or 0; then the caller frees the layout. Its offsets count from
 *  `*base_p`, and the message begins at its packed position `*at_p`. */
int nicstride_open_target(const nicstride_incoming_t *in, onic_layout_t *l, char **base_p,
                          uint64_t *at_p);

/** The address of bytes [at, at + len) of the window, where `at` is an offset or, in a dynamic
 *  window, an address. NULL if not all of them exist. */
static inline char *nicstride_window_bytes(const nicstride_module_t *m, uint64_t at, uint64_t len)
{
    if (m->flavor == MPI_WIN_FLAVOR_DYNAMIC)
        return nicstride_regions_hold(&m->regions, at, len) ? (char *)(uintptr_t)at : NULL;
    const uint64_t size = nicstride_info(m, m->rank)->size;
    return at <= size && len <= size - at ? (char *)m->base + at : NULL;
}

/** The address of a message's bytes if it has no layout; NULL if it has one, or they are outside of
 *  the window. */
static inline char *nicstride_contiguous_target(const nicstride_incoming_t *in, uint64_t len)
{
    const nicstride_module_t *m = in->m;
    const nicstride_msg_t *msg = in->msg;
    uint64_t at;

    if (msg->layout_len != 0)
        return NULL;
    if (m->flavor == MPI_WIN_FLAVOR_DYNAMIC)
        return msg->offset == 0 ? nicstride_window_bytes(m, (uint64_t)msg->disp, len) : NULL;
    if (!nicstride_bytes_fit(msg->disp, msg->offset, len, nicstride_info(m, m->rank)->size, &at))
        return NULL;
    return (char *)m->base + at;
}

/** An access that takes longer than the handler of its message. It is the first member of the
 *  handler's own record. Until it ends, the bytes are read or written even if they are detached
 *  meanwhile. */
typedef struct nicstride_pending_access {
    LIST_ENTRY(nicstride_pending_access) of_window;
    nicstride_module_t *m; /**< NULL: the window is gone */
    nicstride_peer_t *p;
    nicstride_msg_t msg;
    onic_layout_t layout; /**< in the window; owned */
    char *base;
    uint64_t at; /**< the packed position at which the message begins */
    /** Ends the access early; NULL: it ends soon anyway. */
    void (*cancel)(struct nicstride_pending_access *a);
} nicstride_pending_access_t;

/** Makes the record of a message, of `size` bytes. Returns as nicstride_open_target, or
 *  MPI_ERR_NO_MEM. */
int nicstride_access_open(const nicstride_incoming_t *in, size_t size, void **access_p);
/** Ends the access and tells the origin, with `error` (0: none). */
void nicstride_access_end(nicstride_pending_access_t *a, int error);
/** The same if the origin learns of it in another way. */
void nicstride_access_close(nicstride_pending_access_t *a);
/** Called after the program detached memory, or, with `all`, to free the window. Ends transfers
 *  through receive buffers that use such memory with an error; those by message are awaited, unless
 *  the window is freed: then true. False while one remains: then call it again, after unlocking the
 *  transport. */
bool nicstride_end_accesses_locked(nicstride_module_t *m, bool all);
/** Lets the remaining accesses outlive the window. */
void nicstride_forget_accesses_locked(nicstride_module_t *m);
