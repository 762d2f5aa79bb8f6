/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Handling of messages from peers: where they enter, and how handlers answer. Everything
 *  runs with the transport lock held, in any thread: nothing here waits, or uses objects of Open
 *  MPI except to read predefined ones. The contents of messages are checked against the window. */
#pragma once

#include <stdbool.h>

#include "osc_nicstride/queue/operation.h"
#include "osc_nicstride/target/access.h"
#include "osc_nicstride/window/module.h"

/* ---- for the transport and for windows (dispatch.c) ------------------------------------------ */

/** Finds the handlers for all kinds of messages, including those of rows. Called before a window is
 *  made; MPI threads, no lock held. */
void nicstride_find_handlers(void);
/** Handles a message for the transport; transport.h describes the parameters. */
void nicstride_am(onic_peer_t *from, const void *header, size_t header_len, const void *data,
                  size_t len, onic_rndv_t *rndv);
/** Does what was asked for by onic_transport_ask with ONIC_LOCKED: sends, ends what lost peers were
 *  to do, and lets rows go on. */
int nicstride_work_locked(void);

/* ---- answering (answer.c) -------------------------------------------------------------------- */

/** Gives back the credit for what was kept for a message of the peer. Part of the next two
 *  functions; for messages that end without them. */
void nicstride_freed_locked(nicstride_peer_t *p, const nicstride_msg_t *msg);

/** Counts a message as applied and, if it asks for that, tells the origin, with `error` (0: none).
 *  For messages without a reply. A handler that ends later keeps the message's header for this. */
void nicstride_applied_locked(nicstride_module_t *m, nicstride_peer_t *p,
                              const nicstride_msg_t *msg, int error);

/** The same for a message with a reply: `len` bytes at `data`, up to nicstride_inline_max, which
 *  are copied; or an error, and then `len` bytes of the operation will get no data. */
void nicstride_reply_locked(const nicstride_incoming_t *in, const void *data, uint64_t len,
                            int error);

/** Notes that the peer wants an acknowledgement once `upto` messages are applied. */
void nicstride_flush_asked_locked(nicstride_peer_t *p, uint64_t upto);

/** Begins a reply to the operation to which a message belongs. */
void nicstride_reply_init(const nicstride_peer_t *p, const nicstride_msg_t *to,
                          nicstride_msg_t *msg, uint64_t len);
