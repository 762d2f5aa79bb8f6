/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What the two sides of a transfer by puts have agreed on so far: one record for each side,
 *  and what messages (rma/carrier_rma.h) and the end of the transfer do to it.
 *
 *      sender                        receiver
 *      (request, in the ticket)  ->  its turn comes
 *      over the granted buffers  <-  GRANT; for a get the ticket itself
 *      WORD for each block       ->
 *                                <-  ACK where a buffer will be used again
 *
 *  A grant is always answered by at least one word, though the transfer has been given up: the
 *  receiver learns its end from words alone. A grant of no buffers refuses the request, and is the
 *  end for both sides: all buffers are those of lost processes (grant_queue.h). Messages of one
 *  process come in their order, but for words, each of which is sent when the puts before it can be
 *  seen: the newest word of a buffer counts, and the one that gives up is the last.
 *
 *  Pure; one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/pipeline/core/pipe.h"

/** All zero at first, but for `sends`. */
typedef struct onic_rma_handshake {
    bool sends;
    bool waits;     /**< its request has not been answered */
    bool over;      /**< there is no transfer any more */
    uint64_t lease; /**< buffers that are granted; receiver: and not released; 0: not yet */
    uint32_t put;   /**< sender: bytes of the present chunk for which puts are made */
    uint64_t word[ONIC_RX_BUFFERS_MAX]; /**< acknowledgements; receiver: words that came */
} onic_rma_handshake_t;

/** What a grant comes to. */
typedef enum onic_granted {
    ONIC_GRANT_IGNORED, /**< the other side has been given up: nothing is changed */
    ONIC_GRANT_TAKEN,
    ONIC_GRANT_LATE,   /**< the transfer is over: the caller answers by a word that says so */
    ONIC_GRANT_REFUSED /**< the transfer, unless it is over, is to fail; also where buffers are
                          named that there are not */
} onic_granted_t;

/** Sender: `buffers` are granted, of a receive pool that has those in `all`. */
static inline onic_granted_t onic_rma_handshake_on_grant(onic_rma_handshake_t *t, uint64_t buffers,
                                                         uint64_t all)
{
    if (!t->waits)
        return ONIC_GRANT_IGNORED;
    t->waits = false;
    if (buffers == 0 || (buffers & ~all) != 0)
        return ONIC_GRANT_REFUSED;
    t->lease = buffers;
    return t->over ? ONIC_GRANT_LATE : ONIC_GRANT_TAKEN;
}

/** Receiver: a buffer's word has come. */
static inline void onic_rma_handshake_on_word(onic_rma_handshake_t *t, unsigned buffer,
                                              uint64_t word)
{
    if (buffer < ONIC_RX_BUFFERS_MAX && onic_word_is_newer(word, t->word[buffer]))
        t->word[buffer] = word;
}

/** Sender with a lease: the machine has made this word. Returns how many bytes of the chunk are to
 *  be put before it, from `*from` on; 0 with a word that gives up. */
static inline uint32_t onic_rma_handshake_put(onic_rma_handshake_t *t, uint64_t word,
                                              uint32_t *from)
{
    const uint32_t filled = onic_word_fails(word) ? t->put : onic_word_bytes(word);
    const uint32_t bytes = filled - t->put;

    *from = t->put;
    t->put = onic_word_ends(word) ? 0 : filled;
    return bytes;
}

/** Sender: so many rounds of a buffer are consumed. */
static inline void onic_rma_handshake_on_ack(onic_rma_handshake_t *t, unsigned buffer,
                                             uint64_t rounds)
{
    if (buffer < ONIC_RX_BUFFERS_MAX)
        t->word[buffer] = rounds;
}

/** Receiver: its request is refused, and its machine finds that the sender has given up. */
static inline void onic_rma_handshake_refuse(onic_rma_handshake_t *t)
{
    t->waits = false;
    t->word[0] = ONIC_WORD_FAILS;
}

/** The other side is lost: it answers nothing. */
static inline void onic_rma_handshake_lose(onic_rma_handshake_t *t)
{
    t->waits = false;
}

/** Sender that has published all: is it over? Not before the grant, nor while puts, flushes or
 *  messages are `under_way`: the receiver would wait for the sender's next progress. */
static inline bool onic_rma_handshake_left(const onic_rma_handshake_t *t, unsigned under_way)
{
    return t->lease != 0 && under_way == 0;
}

/** True where the other side needs nothing more of the record, which may then be freed. */
static inline bool onic_rma_handshake_done(const onic_rma_handshake_t *t)
{
    return t->over && !t->waits;
}
