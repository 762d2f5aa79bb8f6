/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What the files that handle peers' messages share: one handler for each message. All run
 *  with the transport lock held, in any thread: nothing here waits, or touches an object of Open
 * MPI but to read predefined ones. What a message says is checked against the window. */
#pragma once

#include <stdbool.h>

#include "common/layout/layout.h"
#include "osc_nicstride/queue/keys.h"
#include "osc_nicstride/queue/operation.h"
#include "osc_nicstride/window/module.h"

/* ---- for the transport and for windows (dispatch.c)
 * ----------------------------------------------- */

/** The transport's function for messages; transport.h describes the parameters. */
void nicstride_am(onic_peer_t *from, const void *header, size_t header_len, const void *data,
                  size_t len, onic_rndv_t *rndv);
/** Tries what had to be put off; the transport's deferred function. */
int nicstride_run_deferred(void);
/** Drops what was put off for a window that goes away. */
void nicstride_drop_deferred_locked(nicstride_module_t *m);

/* ---- answering (answer.c) -------------------------------------------------------------------- */

/** The message has had its effect: counts it and, where it asks for that, lets the origin know,
 *  with `error` (0: none). Of messages without a reply; those that end later keep what it said. */
void nicstride_applied_locked(nicstride_module_t *m, nicstride_peer_t *p,
                              const nicstride_msg_t *msg, int error);

/** The same for a message with a reply: `len` bytes at `data`, up to nicstride_inline_max, which
 *  are copied; or an error, with which `len` bytes of the operation will get no data. */
void nicstride_reply_locked(const nicstride_incoming_t *in, const void *data, uint64_t len,
                            int error);

/** The peer wants an acknowledgement once so many messages are applied. */
void nicstride_flush_asked_locked(nicstride_peer_t *p, uint64_t upto);

/** Begins a reply to the operation that a message belongs to. */
void nicstride_reply_init(const nicstride_peer_t *p, const nicstride_msg_t *to,
                          nicstride_msg_t *msg, uint64_t len);

/* ---- the window's bytes (answer.c) ----------------------------------------------------------- */

/** Decodes the layout of a message and makes sure that all it names is in the window. Returns an
 *  MPI error class, 0 where all is well; the caller frees the layout then. Its offsets count from
 *  `*base_p`, and the message begins at its packed position `*at_p`. */
int nicstride_open_target(const nicstride_incoming_t *in, onic_layout_t *l, char **base_p,
                          uint64_t *at_p);

/** The bytes [at, at + len) of the window, from its begin or by their address where it is dynamic;
 *  NULL where not all of them are there. */
static inline char *nicstride_window_bytes(const nicstride_module_t *m, uint64_t at, uint64_t len)
{
    nicstride_region_t region;

    if (m->flavor == MPI_WIN_FLAVOR_DYNAMIC)
        return nicstride_regions_find(&m->regions, at, len, &region) ? (char *)(uintptr_t)at : NULL;
    const uint64_t size = nicstride_info(m, m->rank)->size;
    return at <= size && len <= size - at ? (char *)m->base + at : NULL;
}

/** The bytes of a message without a layout; NULL where it has one, or they are outside. */
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

/** A message whose effect takes longer than its handler: first in the record of its handler. Until
 *  it ends the bytes that it is about are read or written, though they may be detached. */
typedef struct nicstride_pending_access {
    LIST_ENTRY(nicstride_pending_access) of_window;
    nicstride_module_t *m; /**< NULL: the window is gone */
    nicstride_peer_t *p;
    nicstride_msg_t msg;
    onic_layout_t layout; /**< of the window; owned */
    char *base;
    uint64_t at;    /**< where the message begins in it */
    bool moves;     /**< it goes through receive buffers, and can be cancelled */
    bool cancelled; /**< it has been */
} nicstride_pending_access_t;

/** Makes the record of a message, of `size` bytes. As nicstride_open_target, or MPI_ERR_NO_MEM. */
int nicstride_use_open(const nicstride_incoming_t *in, size_t size, void **use_p);
/** It is over, and the origin learns that, with `error` (0: none). */
void nicstride_pending_access_end(nicstride_pending_access_t *u, int error);
/** The same where the origin learns of it in another way. */
void nicstride_pending_access_close(nicstride_pending_access_t *u);
/** The program has detached memory: a transfer through receive buffers that uses such is ended with
 *  an error, what comes or goes by message is waited for; `all`: the window goes away, all of the
 *  former are ended. False while there is one: again, with the transport unlocked in between. */
bool nicstride_end_uses_locked(nicstride_module_t *m, bool all);
/** What is left of them outlives the window. */
void nicstride_forget_uses_locked(nicstride_module_t *m);

/* ---- handlers -------------------------------------------------------------------------------- */

/** Keys are asked for, or told (keys.c). */
void nicstride_on_keys(const nicstride_incoming_t *in);
/** Memory was detached: what of it was registered is so no more. */
void nicstride_withdraw_detached_locked(nicstride_module_t *m);

/** The window goes away. */
void nicstride_withdraw_all_locked(nicstride_module_t *m);

void nicstride_on_put(const nicstride_incoming_t *in);
void nicstride_on_get(const nicstride_incoming_t *in);
/** Vectors of them (protocol/vector.h). */
void nicstride_on_putv(const nicstride_incoming_t *in);
void nicstride_on_getv(const nicstride_incoming_t *in);
/** Puts, accumulates and gets whose data goes through receive buffers (data.c). */
void nicstride_on_move(const nicstride_incoming_t *in);
/** A message is refused or dropped: what comes through receive buffers for it is thrown away, so
 *  that its sender gives the buffers back. `layout` is what lies behind its header. */
void nicstride_throw_away_locked(onic_peer_t *from, const nicstride_msg_t *msg, const void *layout);
/** An accumulate of any kind. False, nothing done, where the accumulate lock is busy. */
bool nicstride_on_accumulate(const nicstride_incoming_t *in);
