/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Remote completion between one origin and one target of a window.
 *
 *  Every message that has an effect at the target is numbered by the origin (`sent`) and counted by
 *  the target when its effect is done (`applied`), in whatever order they came. The target reports
 *  `applied` in acknowledgements, when it is asked or an operation has failed. The counters do not
 *  name messages, so nothing is known to be complete but everything. A flush is a request for an
 *  acknowledgement at a number: later requests swallow earlier ones. A thread that waits for it
 * must keep new messages back.
 *
 *  In active target nobody asks. An origin that closes an epoch publishes how many messages it has
 *  sent in all, and the target waits until it has applied as many, which the origin sees at the
 *  next synchronisation (nicstride_tx_known).
 *
 *  How much may be under way is not decided here: the transport holds a sender back where nothing
 * is kept at the target, and credit where something is (common/transport/row/credit.h).
 *
 *  Why no flush waits for ever. Let all messages and acknowledgements have arrived. Were a flush
 *  open, `wanted` would have been reached without a report, which rx_applied or rx_flush, whichever
 *  came last, does not let happen.
 *
 *  Pure; the caller serialises. Inlined: all of it comes with every message. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/** Origin side. Zero-initialise. Messages, if not said otherwise. */
typedef struct nicstride_tx {
    uint64_t sent;
    uint64_t acked;
    uint64_t confirmed; /**< the target has acknowledged so many itself: at most acked */
    uint64_t asked;     /**< highest number that a flush request was sent for */
    int error; /**< first error that the target reported and no call has returned; 0 if none */
} nicstride_tx_t;

/** Target side. Zero-initialise. */
typedef struct nicstride_rx {
    uint64_t applied;
    uint64_t reported;
    uint64_t wanted; /**< an acknowledgement is wanted once applied reaches this */
    int error;       /**< first error since the last acknowledgement */
} nicstride_rx_t;

/** Counts a message; returns its number (the value `acked` must reach). */
static inline uint64_t nicstride_tx_send(nicstride_tx_t *tx)
{
    return ++tx->sent;
}

/** The first `applied` messages, at most as many as were sent, are known to be applied: a
 *  synchronisation has shown it, without a message. Errors come by themselves. */
static inline void nicstride_tx_known(nicstride_tx_t *tx, uint64_t applied)
{
    if (applied > tx->acked)
        tx->acked = applied;
}

/** Nothing that is under way will be acknowledged any more. */
static inline void nicstride_tx_forget(nicstride_tx_t *tx)
{
    nicstride_tx_known(tx, tx->sent);
}

/** An acknowledgement came. An old one, that says less than is known, is ignored but for its
 *  error. */
static inline void nicstride_tx_ack(nicstride_tx_t *tx, uint64_t applied, int error)
{
    nicstride_tx_known(tx, applied);
    if (applied > tx->confirmed)
        tx->confirmed = applied;
    if (tx->error == 0)
        __atomic_store_n(&tx->error, error, __ATOMIC_RELAXED);
}

/** True if the target has not yet said by itself, with an error if there was one, that everything
 *  is applied. Then it is to be asked once more, with the number in `*upto_p`. */
static inline bool nicstride_tx_ask_again(nicstride_tx_t *tx, uint64_t *upto_p)
{
    if (tx->confirmed == tx->sent || tx->asked == tx->sent)
        return false;
    tx->asked = tx->sent;
    *upto_p = tx->sent;
    return true;
}

/** May the next message ask for its own acknowledgement? It may come before others, so
 *  only where the target has said of all before it how they ended. */
static inline bool nicstride_tx_may_ask(const nicstride_tx_t *tx)
{
    return tx->confirmed == tx->sent;
}

/** True where everything sent so far is acknowledged. */
static inline bool nicstride_tx_idle(const nicstride_tx_t *tx)
{
    return tx->acked == tx->sent;
}

/** True if a flush request must be sent to get the rest acknowledged. Marks it as sent, for
 *  `*upto_p`. */
static inline bool nicstride_tx_ask(nicstride_tx_t *tx, uint64_t *upto_p)
{
    if (nicstride_tx_idle(tx) || tx->asked == tx->sent)
        return false;
    tx->asked = tx->sent;
    *upto_p = tx->sent;
    return true;
}

/** Takes the recorded error (0 if none) and clears it. */
static inline int nicstride_tx_take_error(nicstride_tx_t *tx)
{
    const int error = tx->error;

    /* Others look at it without the lock (nicstride_is_clean). */
    if (error != 0)
        __atomic_store_n(&tx->error, 0, __ATOMIC_RELAXED);
    return error;
}

/** A flush is answered by any report that reaches its number. */
static inline bool nicstride_rx_flush_due(const nicstride_rx_t *rx)
{
    return rx->wanted > rx->reported && rx->applied >= rx->wanted;
}

/** The effect of one message is done, with `error` (0: none). True where an acknowledgement is due
 *  now: a flush is satisfied, or there is an error (in a counted epoch nobody would ask for it). */
static inline bool nicstride_rx_applied(nicstride_rx_t *rx, int error)
{
    rx->applied++;
    if (rx->error == 0)
        rx->error = error;
    return error != 0 || nicstride_rx_flush_due(rx);
}

/** A flush request for number `upto` came. True where an acknowledgement is due now. */
static inline bool nicstride_rx_flush(nicstride_rx_t *rx, uint64_t upto)
{
    if (upto <= rx->reported)
        return false; /* the report that says so is on its way */
    if (upto > rx->wanted)
        rx->wanted = upto;
    return nicstride_rx_flush_due(rx);
}

/** Makes the acknowledgement: what to report; takes the error. */
static inline void nicstride_rx_ack(nicstride_rx_t *rx, uint64_t *applied_p, int *error_p)
{
    *applied_p = rx->applied;
    *error_p = rx->error;
    rx->reported = rx->applied;
    rx->error = 0;
}
