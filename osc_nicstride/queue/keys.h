/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Keys: what lets an adapter reach the memory of a window. An origin has those that targets
 *  have told it (protocol/message.h); a target keeps what it has registered for that.
 *
 *  Memory is registered when the first origin asks for it, in pieces of osc_nicstride_key_piece at
 *  most, of which each has a question of its own, and stays so until the window is freed, or the
 *  memory is detached. What could not be registered is not tried again; an origin that was refused
 *  does not ask again. While it has no key its data goes by message.
 *
 *  The memory of a dynamic window is given back while origins have keys for it. So such a window
 *  has a word that counts its generations, in registered memory of its own, which every detach
 *  changes before the memory is given back. An origin reads it by the adapter before it puts or
 *  gets: where it has changed, all its keys of that window are void. A program detaches nothing
 *  that is being accessed.
 *
 *  What the pointers point to, only a method's row knows (nicstride_rkey_ops_t). Transport lock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "osc_nicstride/protocol/message.h"
#include "osc_nicstride/window/module.h"

/** For each row what it keeps, or NULL. */
typedef struct nicstride_of_rows {
    void *row[NICSTRIDE_METHODS_MAX];
} nicstride_of_rows_t;

/** A piece of a target's window for which there are keys, or of the own one that is registered. */
typedef struct nicstride_key_piece {
    nicstride_span_t span;
    nicstride_of_rows_t of;
    uint32_t tried; /**< own: a set of rows that have tried to register it */
} nicstride_key_piece_t;

/** So many there can be: more are refused, so that a target which tells of bytes one by one does
 *  not fill an origin's memory. */
#define NICSTRIDE_KEY_PIECES_MAX 65536

/** Ascending by place. Zero-initialise. */
typedef struct nicstride_key_pieces {
    nicstride_key_piece_t *piece;
    size_t n, cap;
    size_t last; /**< where one was found last */
} nicstride_key_pieces_t;

/** What a row has begun with a target and not seen the end of: for the row to say. */
typedef struct nicstride_begun {
    uint64_t put; /**< the number of the last put, of those to the process */
    /** Of its transfers, so many that are not locally complete: they use keys. */
    uint32_t under_way;
} nicstride_begun_t;

/** What an origin has of a target: nicstride_peer_t's `keys`. */
struct nicstride_rkey_cache {
    nicstride_key_pieces_t pieces;
    nicstride_of_rows_t word;                       /**< dynamic: keys of the word */
    uint64_t generation;                            /**< dynamic: with which the keys are good */
    uint32_t rows;                                  /**< a set of those that could be used */
    nicstride_begun_t begun[NICSTRIDE_METHODS_MAX]; /**< what each row has begun there */
    bool asked;                                     /**< an answer is to come, */
    uint64_t place;                                 /**< for this byte; */
    uint64_t end;                                   /**< others, up to here, are asked for then */
    bool refused;                                   /**< there will be no more */
    bool stale; /**< all keys are void, and to be dropped when nothing uses them */
};

/** The cache of keys of a peer, made if need be; NULL: no memory, or no row with keys is usable. */
nicstride_rkey_cache_t *nicstride_rkey_cache_locked(nicstride_peer_t *p);

/** True if there is one, or could be. No lock: the common case of peers without an adapter. */
static inline bool nicstride_may_have_keys(const nicstride_peer_t *p)
{
    return __atomic_load_n(&p->unregistered, __ATOMIC_RELAXED) == 0;
}

/** The piece that holds byte `at`, NULL where there is none. */
nicstride_key_piece_t *nicstride_key_piece_find(nicstride_key_pieces_t *t, uint64_t at);
/** Adds a piece in its place; NULL where memory is exhausted, or they are too many. */
nicstride_key_piece_t *nicstride_key_piece_add(nicstride_key_pieces_t *t,
                                               const nicstride_key_piece_t *piece);
/** There are none any more. */
void nicstride_key_pieces_free(nicstride_key_pieces_t *t);

/** The functions of a row that has some; NULL where the number is of none. */
const nicstride_rkey_ops_t *nicstride_rkey_ops(unsigned row);

/** A target has told: the cache of keys takes over what the rows have made of it. */
void nicstride_rkey_cache_add_locked(nicstride_peer_t *p, const nicstride_key_piece_t *piece,
                                     const nicstride_of_rows_t *word);

/** All keys of a dynamic window are void: dropped when nothing under way uses them. */
void nicstride_rkey_cache_void_locked(nicstride_peer_t *p);

/** The peer goes away. */
void nicstride_rkey_cache_free_locked(nicstride_peer_t *p);

/* ---- asking for them ------------------------------------------------------------------------- */

/** The key of a row for the byte `at` of the target's window, with the region that it is good for.
 *  NULL: there is none. Then the target has been asked for one, unless it has refused, and will be
 *  for those of all bytes up to `end`, which the caller needs, too: one after the other, so that it
 *  registers one piece at a time and serves others in between. */
void *nicstride_key_locked(nicstride_peer_t *p, nicstride_method_t row, uint64_t at, uint64_t end,
                           nicstride_span_t *span);

/** The same for the word that counts the generations of a dynamic window; NULL: there is none. */
void *nicstride_word_key_locked(nicstride_peer_t *p, nicstride_method_t row);

/** The target has told: asks it for the next of the bytes that were asked for. */
void nicstride_ask_on_locked(nicstride_peer_t *p);

/** Sends keys: the question for a place, or the answer, as `what` says. */
typedef enum nicstride_keys_what { NICSTRIDE_KEYS_ASK, NICSTRIDE_KEYS_TELL } nicstride_keys_what_t;
void nicstride_send_keys_locked(nicstride_peer_t *p, nicstride_keys_what_t what, uint64_t at,
                                const nicstride_keys_t *k);
