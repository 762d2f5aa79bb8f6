/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The state of the agreement between the two sides of a transfer by puts: one record for
 *  each side, and how messages (rma/carrier_rma.h) and the end of the transfer change it.
 *
 *      sender                        receiver
 *      (request, in the ticket)  ->  its turn comes
 *      over the granted buffers  <-  GRANT; for a get the ticket itself
 *      WORD for each block       ->
 *                                <-  ACK if a buffer will be used again
 *
 *  A grant is always answered by at least one word, even if the transfer has been given up: the
 *  receiver learns of the end only from words. A grant of no buffers refuses the request and ends
 *  the transfer on both sides: lost processes have all buffers (grant_queue.h). Messages of one
 * process arrive in order, except words, each of which is sent when the puts before it are visible:
 *  the newest word of a buffer counts, and the one that gives up is the last.
 *
 *  Pure; one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/pipeline/core/pipe.h"

/** Initially all zero, except `sends`. */
typedef struct onic_rma_handshake {
    bool sends;
    bool waits;     /**< the request has not been answered */
    bool over;      /**< the transfer no longer exists */
    uint64_t lease; /**< granted buffers; receiver: without the released ones; 0: not yet */
    uint32_t put;   /**< sender: bytes of the present chunk for which puts were started */
    uint64_t word[ONIC_RX_BUFFERS_MAX]; /**< sender: acknowledgements; receiver: words received */
} onic_rma_handshake_t;

/** The result of a grant. */
typedef enum onic_granted {
    ONIC_GRANT_IGNORED, /**< the other side has been given up, or this side receives: nothing
                            changes */
    ONIC_GRANT_TAKEN,
    ONIC_GRANT_LATE,   /**< the transfer is over: the caller answers with a word that says so */
    ONIC_GRANT_REFUSED /**< the transfer must fail, unless it is over; also if the grant names
                          buffers that do not exist */
} onic_granted_t;

/** Sender: `buffers` are granted, in a receive pool whose buffers are `all`. */
static inline onic_granted_t onic_rma_handshake_on_grant(onic_rma_handshake_t *t, uint64_t buffers,
                                                         uint64_t all)
{
    if (!t->sends || !t->waits)
        return ONIC_GRANT_IGNORED;
    t->waits = false;
    if (buffers == 0 || (buffers & ~all) != 0)
        return ONIC_GRANT_REFUSED;
    t->lease = buffers;
    return t->over ? ONIC_GRANT_LATE : ONIC_GRANT_TAKEN;
}

/** Receiver: the word of a buffer has come. */
static inline void onic_rma_handshake_on_word(onic_rma_handshake_t *t, unsigned buffer,
                                              uint64_t word)
{
    if (buffer < ONIC_RX_BUFFERS_MAX && onic_word_is_newer(word, t->word[buffer]))
        t->word[buffer] = word;
}

/** Sender with a lease: the machine has made this word. Returns how many bytes of the chunk, from
 *  `*from` on, must be put before it; 0 for a word that gives up. */
static inline uint32_t onic_rma_handshake_put(onic_rma_handshake_t *t, uint64_t word,
                                              uint32_t *from)
{
    const uint32_t filled = onic_word_fails(word) ? t->put : onic_word_bytes(word);
    const uint32_t bytes = filled - t->put;

    *from = t->put;
    t->put = onic_word_ends(word) ? 0 : filled;
    return bytes;
}

/** Sender: this many rounds of a buffer have been consumed. */
static inline void onic_rma_handshake_on_ack(onic_rma_handshake_t *t, unsigned buffer,
                                             uint64_t rounds)
{
    if (buffer < ONIC_RX_BUFFERS_MAX)
        t->word[buffer] = rounds;
}
