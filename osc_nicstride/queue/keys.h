/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Keys: what lets an adapter reach the memory of a window. An origin has those that targets
 *  have told it (protocol/message.h); a target keeps what it has registered for that.
 *
 *  Memory is registered when the first origin asks for it, in pieces of osc_nicstride_key_piece, of
 *  which each has a question of its own, and stays so until the window is freed. What could not be
 *  registered is not tried again; an origin that was refused does not ask again. While it has no
 *  key its data goes by message, as do all transfers in dynamic windows: memory is given back there
 *  while origins would have keys for it, and an adapter that is shown such a key ends the
 *  connection.
 *
 *  What the pointers point to, only a method's row knows (nicstride_keyed_t). Wire lock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "osc_nicstride/protocol/message.h"
#include "osc_nicstride/window/module.h"

/** For each row what it keeps, or NULL. */
typedef struct nicstride_of_rows {
    void *row[NICSTRIDE_METHODS_MAX];
} nicstride_of_rows_t;

/** A piece of a target's window that it has told of, or one of the own window. */
typedef struct nicstride_key_piece {
    nicstride_of_rows_t of; /**< keys, or what is registered */
    uint32_t tried;         /**< a set of rows that have one, or have tried; 0: not told yet */
} nicstride_key_piece_t;

/** What a row has begun with a target and not seen the end of: for the row to say. */
typedef struct nicstride_begun {
    uint64_t put; /**< the number of the last put, of those to the process */
    uint32_t
        under_way; /**< of its transfers, so many that are not locally complete: they use keys */
} nicstride_begun_t;

/** What an origin has of a target: nicstride_peer_t's `keys`. */
struct nicstride_keyring {
    uint32_t rows;                                  /**< a set of those that could be used */
    nicstride_begun_t begun[NICSTRIDE_METHODS_MAX]; /**< what each row has begun there */
    bool told;                                      /**< of any piece */
    bool asked;                                     /**< an answer is to come, */
    uint64_t place;                                 /**< for this piece; */
    uint64_t end;                                   /**< others, before this, are asked for then */
    bool refused;                                   /**< there will be no more */
    nicstride_key_piece_t piece[];
};

/** Bytes of the pieces of a rank's window. Accumulates by an adapter have one key for all of it. */
static inline uint64_t nicstride_piece_bytes(const nicstride_module_t *m, int rank)
{
    const nicstride_rank_info_t *info = nicstride_info(m, rank);

    return m->adapter_updates && info->size > 0 ? info->size : (uint64_t)info->piece << 20;
}

/** Piece `i` of it; of no size where there is none. */
static inline nicstride_span_t nicstride_piece_of(const nicstride_module_t *m, int rank, uint64_t i)
{
    return nicstride_piece(nicstride_info(m, rank)->size, nicstride_piece_bytes(m, rank), i);
}

/** So many there are at most, also before it is agreed who does accumulates. */
static inline size_t nicstride_pieces(const nicstride_module_t *m, int rank)
{
    const nicstride_rank_info_t *info = nicstride_info(m, rank);

    return (size_t)(info->size / ((uint64_t)info->piece << 20) + 1);
}

/** The keyring of a peer, made if need be; NULL: no memory, or no row with keys is usable. */
nicstride_keyring_t *nicstride_keyring_locked(nicstride_peer_t *p);

/** Is there one, or could there be? No lock: the common case of peers without an adapter. */
static inline bool nicstride_may_have_keys(const nicstride_peer_t *p)
{
    return __atomic_load_n(&p->keyless, __ATOMIC_RELAXED) == 0;
}

/** The functions of a row that has some; NULL where the number is of none. */
const nicstride_keyed_t *nicstride_keyed(unsigned row);

/** All keys are given up; nothing is under way by any of them. */
void nicstride_keyring_void_locked(nicstride_peer_t *p);

/** The peer goes away. */
void nicstride_keyring_free_locked(nicstride_peer_t *p);

/* ---- asking for them ------------------------------------------------------------------------- */

/** The key of a row for the byte `at` of the target's window, with the piece that it is good for.
 *  NULL: there is none. Then the target has been asked for one, unless it has refused, and will be
 *  for those of all bytes up to `end`, which the caller needs, too: one after the other, so that it
 *  registers one piece at a time and serves others in between. */
void *nicstride_key_locked(nicstride_peer_t *p, nicstride_method_t row, uint64_t at, uint64_t end,
                           nicstride_span_t *span);

/** The target has told of the piece that it was asked for: the keyring takes over what the rows
 * have made of it, and the next one that is wanted is asked for. */
void nicstride_keyring_add_locked(nicstride_peer_t *p, const nicstride_of_rows_t *of);

/** Sends keys: the question for a piece, or the answer, as `what` says. */
typedef enum nicstride_keys_what { NICSTRIDE_KEYS_ASK, NICSTRIDE_KEYS_TELL } nicstride_keys_what_t;
void nicstride_send_keys_locked(nicstride_peer_t *p, nicstride_keys_what_t what, uint64_t i,
                                const nicstride_keys_t *k);
