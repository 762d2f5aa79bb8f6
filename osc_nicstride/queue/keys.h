/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Keys, with which an adapter reaches the memory of a window. An origin has the keys that
 *  targets have told it (protocol/message.h); a target keeps the memory that it has registered for
 *  them.
 *
 *  Memory is registered when the first origin asks for it, in pieces of at most
 *  osc_nicstride_key_piece bytes, each of which has its own question. It stays registered until the
 *  window is freed or the memory is detached. A failed registration is not tried again, and an
 *  origin that was refused does not ask again. Without a key, data goes by message.
 *
 *  Memory of a dynamic window may be given back while origins have keys for it. So such a window
 *  has a word that counts its generations, in registered memory of its own. Every detach changes
 *  the word before the memory is given back. An origin reads the word by the adapter before each
 *  put or get: if it has changed, all keys for that window are void. A program must not detach
 *  memory that is being accessed.
 *
 *  Only a method's row knows what the pointers point to (nicstride_rkey_ops_t). Transport lock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "osc_nicstride/protocol/message.h"
#include "osc_nicstride/window/module.h"

/** What each row keeps, or NULL. */
typedef struct nicstride_of_rows {
    void *row[NICSTRIDE_METHODS_MAX];
} nicstride_of_rows_t;

/** A piece of a target's window for which there are keys, or a piece of this process's memory that
 *  is registered. */
typedef struct nicstride_key_piece {
    nicstride_span_t span;
    nicstride_of_rows_t of;
    uint32_t tried; /**< own memory: the set of rows that have tried to register it */
} nicstride_key_piece_t;

/** The most pieces; more are refused, so that a target which announces bytes one by one does not
 *  exhaust an origin's memory. */
#define NICSTRIDE_KEY_PIECES_MAX 65536

/** Pieces sorted by place. Zero-initialise. */
typedef struct nicstride_key_pieces {
    nicstride_key_piece_t *piece;
    size_t n, cap;
    size_t last; /**< the piece that was found last */
} nicstride_key_pieces_t;

/** What a row has begun with a target whose end it has not seen. Maintained by the row. */
typedef struct nicstride_begun {
    uint64_t put; /**< the number of the last put, of all puts to the process */
    /** The row's transfers that are not locally complete, and so use keys. */
    uint32_t under_way;
} nicstride_begun_t;

/** What an origin keeps for a target: nicstride_peer_t's `keys`. */
struct nicstride_rkey_cache {
    nicstride_key_pieces_t pieces;
    nicstride_of_rows_t word; /**< dynamic windows: keys of the word */
    uint64_t generation;      /**< dynamic windows: the generation with which the keys are valid */
    uint32_t rows;            /**< the set of rows that could be used */
    nicstride_begun_t begun[NICSTRIDE_METHODS_MAX]; /**< what each row has begun there */
    bool asked;                                     /**< an answer is awaited */
    uint64_t place;                                 /**< the byte that was asked for */
    uint64_t end; /**< further bytes, up to here, will be asked for after that */
    bool refused; /**< no more keys will come */
    bool stale;   /**< all keys are void, and will be dropped when nothing uses them */
};

/** The peer's cache of keys, made if needed; NULL: memory is exhausted, or no row with keys is
 *  usable. */
nicstride_rkey_cache_t *nicstride_rkey_cache_locked(nicstride_peer_t *p);

/** True if the peer has such a cache, or could have one. No lock: false is the common case without
 *  an adapter. */
static inline bool nicstride_may_have_keys(const nicstride_peer_t *p)
{
    return __atomic_load_n(&p->unregistered, __ATOMIC_RELAXED) == 0;
}

/** The piece that holds byte `at`; NULL if there is none. */
nicstride_key_piece_t *nicstride_key_piece_find(nicstride_key_pieces_t *t, uint64_t at);
/** Adds a piece in its place; NULL if memory is exhausted, or there are too many pieces. */
nicstride_key_piece_t *nicstride_key_piece_add(nicstride_key_pieces_t *t,
                                               const nicstride_key_piece_t *piece);
/** Frees all pieces. */
void nicstride_key_pieces_free(nicstride_key_pieces_t *t);

/** The functions for keys of a row; NULL if the row has none. */
const nicstride_rkey_ops_t *nicstride_rkey_ops(unsigned row);

/** Adds what a target has told: the keys that the rows have made of it. */
void nicstride_rkey_cache_add_locked(nicstride_peer_t *p, const nicstride_key_piece_t *piece,
                                     const nicstride_of_rows_t *word);

/** Makes all keys of a dynamic window void; they are dropped when nothing under way uses them. */
void nicstride_rkey_cache_void_locked(nicstride_peer_t *p);

/** Frees the cache of a peer that goes away. */
void nicstride_rkey_cache_free_locked(nicstride_peer_t *p);

/* ---- asking for them ------------------------------------------------------------------------- */

/** The row's key for byte `at` of the target's window; `span` gets the region for which it is
 *  valid. NULL if there is none: then the target has been asked for one, unless it has refused. It
 *  will also be asked for keys of all further bytes up to `end`, which the caller needs, too. It is
 *  asked for one after the other, so that it registers one piece at a time and serves others in
 *  between. */
void *nicstride_key_locked(nicstride_peer_t *p, nicstride_method_t row, uint64_t at, uint64_t end,
                           nicstride_span_t *span);

/** The same for the word that counts the generations of a dynamic window; NULL if there is none. */
void *nicstride_word_key_locked(nicstride_peer_t *p, nicstride_method_t row);

/** Asks the target, which has just answered, for the next of the bytes that were asked for. */
void nicstride_ask_on_locked(nicstride_peer_t *p);

/** Sends a message about keys: the question for a place, or the answer, as `what` says. */
typedef enum nicstride_keys_what { NICSTRIDE_KEYS_ASK, NICSTRIDE_KEYS_TELL } nicstride_keys_what_t;
void nicstride_send_keys_locked(nicstride_peer_t *p, nicstride_keys_what_t what, uint64_t at,
                                const nicstride_keys_t *k);
