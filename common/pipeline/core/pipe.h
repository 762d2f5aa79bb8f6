/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The superpipeline as two state machines: what may the sender fill next, what may the
 *  receiver take next? (A. Denis 2011, section 4.) Pure: they see only the words that their caller
 *  hands them.
 *
 *  "Pipeline folding using N-buffering": the lease is a set of buffers, used in the order of their
 *  numbers, round after round. Each buffer has a word that the sender writes: round, bytes of the
 *  chunk that are there so far, whether the chunk ends there, and whether the buffer will be used
 *  again. If so the receiver counts in another word the rounds that it has consumed, for which the
 *  sender waits. All words are 0 before the lease is handed over; rounds count from 1.
 *
 *  "Sub-blocking": words are published block by block, so that the receiver begins before the chunk
 *  is complete. The first chunk is copied during the handshake: a sender may begin over a single
 *  buffer before it knows its lease (onic_sender_replace_lease).
 *
 *  The receiver needs no schedule: words say where a chunk ends. One that counts bytes outside of
 *  the buffer or of the transfer fails it. */
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
    ONIC_PIPE_WAIT,  /**< nothing to do before the other side has done something */
    ONIC_PIPE_MOVE,  /**< move the bytes of the piece */
    ONIC_PIPE_DONE,  /**< the whole transfer has been moved */
    ONIC_PIPE_FAILED /**< the other side has given up, or a word's bytes were wrong */
} onic_pipe_action_t;

/** The sender's word that gives up. */
#define ONIC_WORD_FAILS (UINT64_C(1) << 29)

/** Of a sender's word: the round of its buffer, and the bytes of the chunk that are there. */
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

/** True if `word`, of the same buffer and sender, was made after `before`: it says all that that
 *  did. */
static inline bool onic_word_is_newer(uint64_t word, uint64_t before)
{
    if (onic_word_fails(word) || onic_word_fails(before))
        return !onic_word_fails(before);
    return onic_word_round(word) > onic_word_round(before) ||
           (onic_word_round(word) == onic_word_round(before) &&
            onic_word_bytes(word) > onic_word_bytes(before));
}

/** Bytes to be moved: offset .. offset + len of a buffer are pos .. pos + len of the transfer. */
typedef struct onic_piece {
    uint64_t pos;
    uint32_t offset;
    uint32_t len;
    unsigned buffer;
} onic_piece_t;

/** What both machines know of a lease. */
typedef struct onic_lease {
    uint64_t buffers;      /**< a bit for each; at least one */
    uint32_t buffer_bytes; /**< 1 .. ONIC_RX_BUFFER_BYTES_MAX */
} onic_lease_t;

/* ---- sender ---------------------------------------------------------------------------------- */

typedef struct onic_sender {
    uint64_t len;
    uint64_t pos; /**< bytes filled so far */
    onic_lease_t lease;
    onic_schedule_t schedule;
    uint32_t block; /**< most bytes from one publishing to the next */
    uint32_t chunk; /**< bytes of the present chunk; 0: not begun */
    uint32_t filled;
    uint32_t round;
    unsigned buffer;
    bool failed;
} onic_sender_t;

/** Begins a transfer of `len` bytes. Pieces are multiples of `granule` (1 .. buffer_bytes), but for
 *  the last. `block` is the size of sub-blocks; 0: none. */
ONIC_EXPORT void onic_sender_init(onic_sender_t *s, uint64_t len, const onic_lease_t *lease,
                                  const onic_schedule_t *schedule, uint32_t block,
                                  uint32_t granule);

/** True if the next step needs the acknowledgements of buffer `s->buffer`; else 0 will do. */
static inline bool onic_sender_asks(const onic_sender_t *s)
{
    return s->chunk == 0 && s->round > 1;
}

/** What may be done now. `acknowledged`: the word of buffer `s->buffer`. */
ONIC_EXPORT onic_pipe_action_t onic_sender_next(onic_sender_t *s, uint64_t acknowledged,
                                                onic_piece_t *piece);

/** A piece is cut short by less than so many bytes. */
#define ONIC_CUT 8

/** The first `n` > 0 bytes of the piece are in the buffer: all, or ONIC_CUT - 1 fewer at most where
 *  something that must not be split would end outside the piece; a piece that ends the transfer is
 *  not cut short. Returns the word to be published for piece->buffer. */
ONIC_EXPORT uint64_t onic_sender_filled(onic_sender_t *s, const onic_piece_t *piece, uint32_t n);

/** The lease is another one, for a sender that was begun over a single buffer and has come no
 *  further than to the end of its first chunk. `word` is the last one it made, 0 for none; returns
 *  what that must be in truth. It stands for the first of `buffers`. */
ONIC_EXPORT uint64_t onic_sender_replace_lease(onic_sender_t *s, uint64_t buffers, uint64_t word);

/** Gives up. Returns the word to be published for buffer `s->buffer`; nothing is written after
 *  it. */
ONIC_EXPORT uint64_t onic_sender_fail(onic_sender_t *s);

/* ---- receiver -------------------------------------------------------------------------------- */

typedef struct onic_receiver {
    uint64_t len;
    uint64_t pos; /**< bytes taken so far */
    onic_lease_t lease;
    uint32_t taken;     /**< of the present chunk */
    uint32_t published; /**< of the present chunk, as seen */
    uint32_t round;
    unsigned buffer;
    bool ends;     /**< the chunk ends at `published` */
    bool again;    /**< its buffer will be used again */
    bool failed;   /**< for whatever reason */
    bool given_up; /**< by the sender, which writes nothing more */
} onic_receiver_t;

ONIC_EXPORT void onic_receiver_init(onic_receiver_t *r, uint64_t len, const onic_lease_t *lease);

/** What may be done now. `word`: that of buffer `r->buffer`. */
ONIC_EXPORT onic_pipe_action_t onic_receiver_next(onic_receiver_t *r, uint64_t word,
                                                  onic_piece_t *piece);

/** What follows when bytes were taken. */
typedef struct onic_consumed {
    uint64_t acknowledge; /**< to be written to the other word of the piece's buffer; 0: nothing */
    bool free;            /**< the buffer is not part of the lease any more: may be given back */
} onic_consumed_t;

/** The first `n` bytes of the piece have been taken, 0 < n <= piece->len. */
ONIC_EXPORT onic_consumed_t onic_receiver_taken(onic_receiver_t *r, const onic_piece_t *piece,
                                                uint32_t n);
