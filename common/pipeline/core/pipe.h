/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The superpipeline as two state machines, which decide what the sender may fill next and
 *  what the receiver may take next (A. Denis 2011, section 4). Pure: they see only the words that
 *  their caller passes.
 *
 *  "Pipeline folding using N-buffering": the lease is a set of buffers, used in the order of their
 *  numbers, round after round. Each buffer has a word that the sender writes: round, bytes of the
 *  chunk that are there so far, whether the chunk ends there, and whether the buffer will be used
 *  again. If so, the receiver counts the rounds that it has consumed in another word, and the
 *  sender waits for that. All words are 0 before the lease is handed over; rounds count from 1.
 *
 *  "Sub-blocking": words are published block by block, so that the receiver begins before the chunk
 *  is complete. The first chunk is copied during the handshake: a sender may begin with a single
 *  buffer before it knows its lease (onic_sender_replace_lease).
 *
 *  The receiver needs no schedule: words say where a chunk ends. A word that counts bytes outside
 *  of the buffer or of the transfer makes the transfer fail. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/pipeline/core/chunks.h"
#include "common/support/export.h"

/** Most bytes of a buffer. */
#define ONIC_RX_BUFFER_BYTES_MAX (UINT32_C(1) << 28)

/** Most buffers of a receive pool. */
#define ONIC_RX_BUFFERS_MAX 64

typedef enum onic_pipe_action {
    ONIC_PIPE_WAIT,  /**< nothing to do until the other side has acted */
    ONIC_PIPE_MOVE,  /**< move the bytes of the piece */
    ONIC_PIPE_DONE,  /**< the whole transfer has been moved */
    ONIC_PIPE_FAILED /**< the other side has given up, or a word was wrong */
} onic_pipe_action_t;

/** The flag of a sender's word that gives up. */
#define ONIC_WORD_FAILS (UINT64_C(1) << 29)

/** In a sender's word: the round of its buffer, and the bytes of the chunk available. */
static inline uint32_t onic_word_round(uint64_t word)
{
    return (uint32_t)(word >> 32);
}
static inline uint32_t onic_word_bytes(uint64_t word)
{
    return (uint32_t)(word & (ONIC_WORD_FAILS - 1));
}
/** True if the chunk ends with the bytes of this word. */
static inline bool onic_word_ends(uint64_t word)
{
    return (word & (UINT64_C(1) << 31)) != 0;
}
static inline bool onic_word_fails(uint64_t word)
{
    return (word & ONIC_WORD_FAILS) != 0;
}

/** True if `word`, of the same buffer and sender, was made after `before`; it then includes what
 *  that said. */
static inline bool onic_word_is_newer(uint64_t word, uint64_t before)
{
    if (onic_word_fails(word) || onic_word_fails(before))
        return !onic_word_fails(before);
    return onic_word_round(word) > onic_word_round(before) ||
           (onic_word_round(word) == onic_word_round(before) &&
            onic_word_bytes(word) > onic_word_bytes(before));
}

/** Bytes to be moved: offset .. offset + len of a buffer, which are pos .. pos + len of the
 *  transfer. */
typedef struct onic_piece {
    uint64_t pos;
    uint32_t offset;
    uint32_t len;
    unsigned buffer;
} onic_piece_t;

/** The part of a lease that both machines know. */
typedef struct onic_lease {
    uint64_t buffers;      /**< bit mask; at least one */
    uint32_t buffer_bytes; /**< 1 .. ONIC_RX_BUFFER_BYTES_MAX */
} onic_lease_t;

/* ---- sender ---------------------------------------------------------------------------------- */

typedef struct onic_sender {
    uint64_t len;
    uint64_t pos; /**< bytes filled so far */
    onic_lease_t lease;
    onic_schedule_t schedule;
    uint32_t block; /**< most bytes between two publications */
    uint32_t chunk; /**< bytes of the present chunk; 0: not begun yet */
    uint32_t filled;
    uint32_t round;
    unsigned buffer;
    bool failed;
} onic_sender_t;

/** Begins a transfer of `len` bytes. All pieces except the last are multiples of `granule` (1 ..
 *  buffer_bytes). `block` is the size of sub-blocks; 0: none. */
ONIC_EXPORT void onic_sender_init(onic_sender_t *s, uint64_t len, const onic_lease_t *lease,
                                  const onic_schedule_t *schedule, uint32_t block,
                                  uint32_t granule);

/** True if the next step needs the acknowledgements of buffer `s->buffer`; otherwise 0 can be
 *  passed. */
static inline bool onic_sender_asks(const onic_sender_t *s)
{
    return s->chunk == 0 && s->round > 1;
}

/** The next action. `acknowledged`: the acknowledgement word of buffer `s->buffer`. */
ONIC_EXPORT onic_pipe_action_t onic_sender_next(onic_sender_t *s, uint64_t acknowledged,
                                                onic_piece_t *piece);

/** A piece is cut short by less than this many bytes. */
#define ONIC_CUT 8

/** The first `n` > 0 bytes of the piece are in the buffer: all of them, or at most ONIC_CUT - 1
 *  fewer if an element that must not be split would end outside the piece; the last piece of a
 *  transfer is not cut short. Returns the word to be published for piece->buffer. */
ONIC_EXPORT uint64_t onic_sender_filled(onic_sender_t *s, const onic_piece_t *piece, uint32_t n);

/** Replaces the lease of a sender that was begun with a single buffer and is still within its first
 *  chunk, or at its end. `word` is the last word made, 0 for none; returns the word to use instead,
 *  for the first of `buffers`. */
ONIC_EXPORT uint64_t onic_sender_replace_lease(onic_sender_t *s, uint64_t buffers, uint64_t word);

/** Gives up. Returns the word to be published for buffer `s->buffer`; nothing may be written after
 *  it. */
ONIC_EXPORT uint64_t onic_sender_fail(onic_sender_t *s);

/* ---- receiver -------------------------------------------------------------------------------- */

typedef struct onic_receiver {
    uint64_t len;
    uint64_t pos; /**< bytes taken so far */
    onic_lease_t lease;
    uint32_t taken;     /**< bytes of the present chunk that were taken */
    uint32_t published; /**< bytes of the present chunk that are known to be published */
    uint32_t round;
    unsigned buffer;
    bool ends;     /**< the chunk ends at `published` */
    bool again;    /**< its buffer will be used again */
    bool failed;   /**< for any reason */
    bool given_up; /**< the sender has given up, and writes nothing more */
} onic_receiver_t;

ONIC_EXPORT void onic_receiver_init(onic_receiver_t *r, uint64_t len, const onic_lease_t *lease);

/** The next action. `word`: the word of buffer `r->buffer`. */
ONIC_EXPORT onic_pipe_action_t onic_receiver_next(onic_receiver_t *r, uint64_t word,
                                                  onic_piece_t *piece);

/** Results of taking bytes. */
typedef struct onic_consumed {
    uint64_t acknowledge; /**< to be written to the acknowledgement word of the piece's buffer; 0:
                             nothing */
    bool free;            /**< the buffer no longer belongs to the lease, and may be released */
} onic_consumed_t;

/** The first `n` bytes of the piece have been taken, 0 < n <= piece->len. */
ONIC_EXPORT onic_consumed_t onic_receiver_taken(onic_receiver_t *r, const onic_piece_t *piece,
                                                uint32_t n);
