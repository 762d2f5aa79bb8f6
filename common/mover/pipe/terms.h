/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What the two sides of a transfer by puts have agreed on so far: one record for each side,
 *  and what messages (rma/carrier_rma.h) and the end of the transfer do to it.
 *
 *      sender                        receiver
 *      (request, in the ticket)  ->  its turn comes
 *      over the granted slots    <-  GRANT; for a get the ticket itself
 *      COMMIT: those that it uses -> the others are free again
 *      WORD for each chunk       ->
 *                                <-  ACK where a slot will be used again
 *
 *  A grant is always answered by COMMIT and at least one word, though the transfer has been given
 *  up: the receiver learns its end from words alone. Messages of one process come in their order,
 *  but for words, each of which is sent when the puts before it can be seen: a slot's word is the
 *  one of the latest round, and the one that gives up is the last.
 *
 *  Pure; one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/mover/pipe/pipe.h"
#include "common/support/export.h"

/** All zero at first, but for `sends`. */
typedef struct onic_terms {
    bool sends;
    bool waits;       /**< its request has not been answered */
    bool over;        /**< there is no transfer any more */
    bool committed;   /**< the machine runs over `lease` */
    uint64_t lease;   /**< slots that are used; receiver: or granted, as long as it is not known */
    uint64_t early;   /**< sender: the last word before it had a lease; 0: none */
    uint64_t granted; /**< slots; 0: not yet; receiver: those that are used */
    uint64_t word[ONIC_SLOTS_MAX]; /**< acknowledgements; receiver: words that came */
} onic_terms_t;

/** What a message comes to. */
typedef enum onic_terms_result {
    ONIC_TERMS_IGNORED, /**< it is not for this record, or not now: nothing is changed */
    ONIC_TERMS_TAKEN,
    ONIC_TERMS_LATE, /**< the transfer is over: the caller commits at once */
    ONIC_TERMS_WRONG /**< it cannot be: the other side is not to be trusted */
} onic_terms_result_t;

/** Sender: `slots` are granted, of an area that has those in `all`. */
ONIC_EXPORT onic_terms_result_t onic_terms_on_grant(onic_terms_t *t, uint64_t slots, uint64_t all);

/** Receiver: these slots are used. *unused_p: those that are free again. */
ONIC_EXPORT onic_terms_result_t onic_terms_on_commit(onic_terms_t *t, uint64_t slots,
                                                     uint64_t *unused_p);

/** Receiver: a slot's word has come. Sender: so many rounds of it are consumed. */
ONIC_EXPORT void onic_terms_on_word(onic_terms_t *t, unsigned slot, uint64_t word);
ONIC_EXPORT void onic_terms_on_ack(onic_terms_t *t, unsigned slot, uint64_t rounds);

/** Sender: the machine, which ran over a single slot, runs over the lowest `most` > 0 of those that
 *  were granted (t->lease). Returns the word to be put for the first of them; 0: none yet. */
ONIC_EXPORT uint64_t onic_terms_commit(onic_terms_t *t, onic_sender_t *s, unsigned most);

/** What is left to do for one whose transfer is over. */
typedef struct onic_closing {
    bool commit;      /**< sender: it has a grant, and is to commit */
    uint64_t release; /**< receiver: slots that are free again */
} onic_closing_t;

/** The transfer is over. `unknown`: the other side knows nothing of the ticket. A receiver is over
 *  before its turn only where its peer is lost, or the mover is closed. */
ONIC_EXPORT onic_closing_t onic_terms_close(onic_terms_t *t, bool unknown);

/** The other side is lost. Receiver: returns the slots that its transfer still looks at. */
ONIC_EXPORT uint64_t onic_terms_lose(onic_terms_t *t);

/** Sender that has published all: is it over? Not before the grant, nor while puts, flushes or
 *  messages are `under_way`: the receiver would wait for the sender's next progress. */
static inline bool onic_terms_left(const onic_terms_t *t, unsigned under_way)
{
    return t->committed && under_way == 0;
}

/** May the record be forgotten, as far as the other side goes? */
static inline bool onic_terms_done(const onic_terms_t *t)
{
    return t->over && !t->waits;
}
