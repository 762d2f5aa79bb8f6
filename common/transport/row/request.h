/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What is under way: a message, a receive by rendezvous, a put, a get, a flush. One type of
 *  all rows, from one pool, since a header must outlive the call that sends it. The lock is held,
 *  if not said otherwise. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "common/layout/pack.h"
#include "common/transport/row/message_types.h"

/** Headers up to this length are kept in the request itself. */
#define ONIC_REQUEST_INLINE_HEADER 320

typedef struct onic_request {
    STAILQ_ENTRY(onic_request) next; /**< in the pool, or among those that are done or wait */
    TAILQ_ENTRY(onic_request) use;   /**< among those in use */
    onic_send_cb_t cb;
    void *arg;
    onic_peer_t *peer; /**< the other side; NULL where that is not known */
    bool eager;        /**< a message that was not announced: without it the peer is lost */
    bool starting;     /**< the call that started it has not returned yet */
    bool done;         /**< completed */
    bool abandoned;    /**< its caller has been told, and nobody works for it any more */
    unsigned am_id;
    int status;
    size_t header_len;
    const void *base;     /**< layout payload: base address */
    onic_cursor_t cursor; /**< layout payload: where the gathering stands */
    uint64_t start;       /**< layout payload: packed position of its first byte */
    size_t len;
    void *header;     /**< header_inline, or header_big */
    void *header_big; /**< kept with the request for its next use */
    size_t header_big_cap;
    unsigned char header_inline[ONIC_REQUEST_INLINE_HEADER];
} onic_request_t;

typedef STAILQ_HEAD(onic_request_list, onic_request) onic_request_list_t;

/** Those of this process. */
typedef struct onic_requests {
    onic_request_list_t pool;
    onic_request_list_t done; /**< complete, the callers not told yet */
    TAILQ_HEAD(, onic_request) used;
    atomic_uint out; /**< in use and not abandoned; set with the lock held, read without it */
    bool closing;    /**< no callback is called any more */
} onic_requests_t;

extern onic_requests_t onic_requests;

void onic_requests_start(void);
/** Frees all. No row uses one any more. */
void onic_requests_stop(void);

/** One with memory for a header of that length; NULL where memory is exhausted. */
onic_request_t *onic_request_get(onic_peer_t *peer, onic_send_cb_t cb, void *arg,
                                 size_t header_len);
void onic_request_put(onic_request_t *r);

/** Takes over what a row returned when the request was started: 1 complete, 0 under way, or an
 *  error. Gives back the request unless it is under way. */
int onic_request_begun(onic_request_t *r, int rc);

/** By a row: it is complete. The callback comes with the next onic_requests_progress, since it may
 *  send: UCX's UD (1.13) loses count of what a callback adds, and asserts. */
void onic_request_done(onic_request_t *r, int rc);

/** Calls back at once for one that is over, and gives it back. */
void onic_request_end(onic_request_t *r, int rc);

/** Calls back for all that are complete; how many. */
int onic_requests_progress(void);

/** Ends what is under way with processes that are gone, once no message of theirs is left. */
void onic_requests_abandon(void);
