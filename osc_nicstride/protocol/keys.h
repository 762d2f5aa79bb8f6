/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What processes tell each other of their memory, so that an adapter can reach it: the
 *  contents of NICSTRIDE_MSG_KEYS. An origin asks for a place of a target's window; the target
 *  answers with the region around it, and for each method with keys a blob that its row alone
 *  understands. Question and answer may carry one of each row.
 *
 *      at (8 bytes)  size (8)  generation (8)  { row (1)  part (1)  length (2)  blob }*
 *
 *  Host byte order. Blobs are in ascending order of row and part, and none is empty; those of
 *  unknown rows are skipped. A question names no region, nor does an answer that refuses. Pure;
 *  nothing is trusted. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Bytes of a region in a window, or of an address space where that is dynamic. */
typedef struct nicstride_span {
    uint64_t at; /**< from the window's begin, or an address */
    uint64_t size;
    uint64_t generation; /**< dynamic: of the window, when that was told */
} nicstride_span_t;

/** What a blob is for. */
typedef enum nicstride_part_of {
    NICSTRIDE_OF_REGION, /**< the region; in a question: the process that asks */
    NICSTRIDE_OF_WORD,   /**< dynamic: the word that counts the window's generations */
    NICSTRIDE_OF_GATE,   /**< the gate to the target's lock (gate.h) */
    NICSTRIDE_PARTS
} nicstride_part_of_t;

/** A blob where it stands in the message. */
typedef struct nicstride_blob {
    unsigned row;
    nicstride_part_of_t part;
    const void *bytes;
    size_t len;
} nicstride_blob_t;

/** The longest message: what a row has to say are some hundred bytes. */
#define NICSTRIDE_KEYS_MAX 4096
/** Bytes before the first blob, and before the bytes of each. */
#define NICSTRIDE_KEYS_HEAD 24
#define NICSTRIDE_BLOB_HEAD 4

/** A message under construction. */
typedef struct nicstride_keys {
    size_t len;
    unsigned char bytes[NICSTRIDE_KEYS_MAX];
} nicstride_keys_t;

/** Begins one; `span` NULL: it names no region. */
void nicstride_keys_begin(nicstride_keys_t *k, const nicstride_span_t *span);

/** Where the next blob's bytes are to be written, and how many there is room for; 0: none. */
void *nicstride_keys_room(nicstride_keys_t *k, size_t *cap_p);

/** They are written, `len` of them; 0: there is no blob. Rows and parts come in ascending order. */
void nicstride_keys_add(nicstride_keys_t *k, unsigned row, nicstride_part_of_t part, size_t len);

/** Is all of it right? `span` gets the region, of size 0 if none. NULL, or what is wrong. */
const char *nicstride_keys_check(const void *bytes, size_t len, nicstride_span_t *span);

/** The blob at `*at_p` (first NICSTRIDE_KEYS_HEAD) of a right message; moves on. False: none. */
bool nicstride_keys_next(const void *bytes, size_t len, size_t *at_p, nicstride_blob_t *blob);

/** Bytes [at, at + len) in the span? */
static inline bool nicstride_span_holds(const nicstride_span_t *s, uint64_t at, uint64_t len)
{
    return at >= s->at && at - s->at <= s->size && len <= s->size - (at - s->at);
}

/** Does a span that was checked answer the question for byte `place` of a window of `bytes`? It
 *  refuses, or holds that byte and does not lead out of the window. */
static inline bool nicstride_span_answers(const nicstride_span_t *s, uint64_t place, uint64_t bytes)
{
    return s->size == 0 || (nicstride_span_holds(s, place, 1) && s->at + s->size <= bytes);
}

/** The piece of a region that is registered for the byte `at` in it: regions are cut into pieces of
 *  `piece` > 0 bytes from their begin on. */
nicstride_span_t nicstride_piece_of(const nicstride_span_t *region, uint64_t at, uint64_t piece);

/* ---- asking once more ---------------------------------------------------------------------------
 *
 * When an origin asks a target for keys once more, because a method needs a connection and has
 * none. A question for the keys of a window carries this side's end of a connection, the answer
 * the other one's; all windows share the connection. It may go at any time, to make room for
 * others. So a window can have keys and no connection: then its keys are given up and asked for
 * again.
 *
 * Nobody waits for any of this: what cannot go by the method goes by message meanwhile. */

typedef enum nicstride_connection {
    NICSTRIDE_UNCONNECTED = 0,
    NICSTRIDE_OFFERED, /**< this side's end is made, and went with a question */
    NICSTRIDE_CONNECTED
} nicstride_connection_t;

/** A window whose transfer finds no key, or no connection. */
typedef struct nicstride_asking {
    nicstride_connection_t connection;
    bool given_up; /**< there will be none to that process */
    bool had;      /**< offered: the window with whose question last is there, and not refused */
    bool any;      /**< a question of any window to that process is not answered yet, */
    bool asked;    /**< one of this window */
    bool refused;  /**< the target has no more keys for this window */
    bool busy;     /**< something is under way there by keys of this window */
} nicstride_asking_t;

typedef enum nicstride_ask {
    NICSTRIDE_ASK_NOTHING,
    NICSTRIDE_ASK_LEAVE,   /**< the end that was offered is taken back: no answer took it */
    NICSTRIDE_ASK_GIVE_UP, /**< likewise, and the process is not asked any more */
    NICSTRIDE_ASK_ANEW     /**< the window's keys are given up, and asked for with a new end */
} nicstride_ask_t;

/** What is to be done. An offer that the target has passed over, though it gave other keys, means
 *  that it has no connections; where it gave no keys the window has none, and that says nothing of
 *  others. */
static inline nicstride_ask_t nicstride_ask_again(const nicstride_asking_t *a)
{
    if (a->given_up || a->asked)
        return NICSTRIDE_ASK_NOTHING;
    if (a->connection == NICSTRIDE_OFFERED && !a->any)
        return a->had ? NICSTRIDE_ASK_GIVE_UP : NICSTRIDE_ASK_LEAVE;
    if (a->connection == NICSTRIDE_UNCONNECTED && !a->refused && !a->busy)
        return NICSTRIDE_ASK_ANEW;
    return NICSTRIDE_ASK_NOTHING;
}
