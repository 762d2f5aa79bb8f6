/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What comes from peers: where messages enter, and what handlers answer. All run with the
 *  transport lock held, in any thread: nothing here waits, or touches an object of Open MPI except
 *  to read predefined ones. What a message says is checked against the window. */
#pragma once

#include <stdbool.h>

#include "osc_nicstride/queue/keys.h"
#include "osc_nicstride/queue/operation.h"
#include "osc_nicstride/target/access.h"
#include "osc_nicstride/window/module.h"

/* ---- for the transport and for windows (dispatch.c) -------------------------------------------
 */

/** Finds the handlers of all kinds of messages, those of rows among them. Before a window is made;
 *  MPI threads, no lock held. */
void nicstride_find_handlers(void);
/** The transport's function for messages; transport.h describes the parameters. */
void nicstride_am(onic_peer_t *from, const void *header, size_t header_len, const void *data,
                  size_t len, onic_rndv_t *rndv);
/** Tries what had to be put off; the transport's deferred function. */
int nicstride_run_deferred(void);
/** Drops what was put off for a window that goes away. */
void nicstride_drop_deferred_locked(nicstride_module_t *m);

/* ---- answering (answer.c) -------------------------------------------------------------------- */

/** What was kept for a message of the peer is free again. Part of the next two; for one that ends
 *  without them. */
void nicstride_freed_locked(nicstride_peer_t *p, const nicstride_msg_t *msg);

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

/* ---- keys (keys.c) ----------------------------------------------------------------------------
 */

/** Keys are asked for, or told. */
bool nicstride_on_keys(const nicstride_incoming_t *in);
/** Memory was detached: what of it was registered is so no more. */
void nicstride_withdraw_detached_locked(nicstride_module_t *m);
/** The window goes away. */
void nicstride_withdraw_all_locked(nicstride_module_t *m);
