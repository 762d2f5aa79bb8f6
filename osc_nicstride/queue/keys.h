/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Keys, with which an adapter reaches the memory of a window. An origin has the keys that
 *  targets have told it, one for each row; a target keeps the memory that it has registered for
 *  them.
 *
 *  A window is registered, all of it, when the first origin asks for its key, and until it is
 *  freed. A failed registration is not tried again, and an origin asks once for each row. Without a
 *  key, data goes by message, and so does everything to dynamic windows: their memory may be given
 *  back while origins have keys for it, and if an adapter gets such a key it ends the connection.
 *
 *  Only a method's row knows what the pointers point to (nicstride_rkey_ops_t). Transport lock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "osc_nicstride/protocol/message.h"
#include "osc_nicstride/queue/operation.h"
#include "osc_nicstride/window/peer.h"

/** What a row has begun with a target whose end it has not seen. Maintained by the row. */
typedef struct nicstride_begun {
    uint64_t put; /**< the number of the last put, of all puts to the process */
    /** The row's transfers that are not locally complete. */
    uint32_t under_way;
} nicstride_begun_t;

/** What an origin keeps for a target: nicstride_peer_t's `keys`. */
struct nicstride_rkey_cache {
    uint32_t rows;                                  /**< the set of rows that could be used */
    uint32_t asked;                                 /**< the set of those that have asked */
    void *key[NICSTRIDE_METHODS_MAX];               /**< what it has answered each row, or NULL */
    nicstride_begun_t begun[NICSTRIDE_METHODS_MAX]; /**< what each row has begun there */
};

/** True if the peer has keys, or could have some. No lock: false is the common case without an
 *  adapter. */
static inline bool nicstride_may_have_keys(const nicstride_peer_t *p)
{
    return __atomic_load_n(&p->unregistered, __ATOMIC_RELAXED) == 0;
}

/** The row's key for the peer's window. NULL if there is none: then the target has been asked for
 *  it, unless no row is usable there. */
void *nicstride_key_locked(nicstride_peer_t *p, nicstride_method_t row);

/** Handles a question for a row's key, or the answer. */
void nicstride_on_key(const nicstride_incoming_t *in);

/** Frees the keys of a peer that goes away. */
void nicstride_keys_free_locked(nicstride_peer_t *p);

/** Deregisters the memory of a window that goes away. */
void nicstride_withdraw_locked(nicstride_module_t *m);
