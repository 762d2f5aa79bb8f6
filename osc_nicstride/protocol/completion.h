/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Remote completion between one origin and one target of a window.
 *
 *  The origin numbers every message that has an effect at the target (`sent`). The target counts it
 *  when the effect is done (`applied`), in whatever order messages arrive. The target reports
 *  `applied` in acknowledgements, when it is asked or an operation has failed. The counters do not
 *  identify messages, so completion is known only once all are applied. A flush requests an
 *  acknowledgement at a number; later requests include earlier ones. A thread that waits for one
 *  must hold new messages back.
 *
 *  In active target nobody asks. An origin that closes an epoch publishes how many messages it has
 *  sent in all. The target waits until it has applied that many; the origin learns this at the next
 *  synchronisation (nicstride_tx_known).
 *
 *  This file does not limit what is under way: the transport holds a sender back for messages that
 *  the target handles at once, and credit does for those that it keeps
 *  (common/transport/row/credit.h).
 *
 *  Why no flush waits for ever: let all messages and acknowledgements have arrived. If a flush were
 *  still open, `wanted` would have been reached without a report. But rx_applied or rx_flush,
 *  whichever came last, makes one.
 *
 *  Pure; the caller serialises. Everything is inlined, as it runs for every message. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/** Origin side. Zero-initialise. Values count messages, unless stated otherwise. */
typedef struct nicstride_tx {
    uint64_t sent;
    uint64_t acked;
    uint64_t confirmed; /**< messages that the target has acknowledged by itself; at most `acked` */
    uint64_t asked;     /**< the highest number for which a flush request was sent */
    int error; /**< the first error that the target reported and no call has returned yet; 0: none
                */
} nicstride_tx_t;

/** Target side. Zero-initialise. */
typedef struct nicstride_rx {
    uint64_t applied;
    uint64_t reported;
    uint64_t wanted; /**< an acknowledgement is wanted once `applied` reaches this */
    int error;       /**< first error since the last acknowledgement */
} nicstride_rx_t;

/** Counts a message; returns its number, which `acked` must reach. */
static inline uint64_t nicstride_tx_send(nicstride_tx_t *tx)
{
    return ++tx->sent;
}

/** Notes that the first `applied` messages, limited to those sent, are known to be applied because
 *  a synchronisation has shown it, without a message. Errors are reported separately. */
static inline void nicstride_tx_known(nicstride_tx_t *tx, uint64_t applied)
{
    if (applied > tx->acked)
        tx->acked = applied;
}

/** Gives up acknowledgements: nothing under way will be acknowledged any more. */
static inline void nicstride_tx_forget(nicstride_tx_t *tx)
{
    nicstride_tx_known(tx, tx->sent);
}

/** Notes an acknowledgement. If it says less than is known already, only its error counts. */
static inline void nicstride_tx_ack(nicstride_tx_t *tx, uint64_t applied, int error)
{
    nicstride_tx_known(tx, applied);
    if (applied > tx->confirmed)
        tx->confirmed = applied;
    if (tx->error == 0)
        __atomic_store_n(&tx->error, error, __ATOMIC_RELAXED);
}

/** True if the next message may ask for its own acknowledgement. It may overtake others, so this is
 *  allowed only if the target has reported the outcome of all messages before it. */
static inline bool nicstride_tx_may_ask(const nicstride_tx_t *tx)
{
    return tx->confirmed == tx->sent;
}

/** True if everything sent so far is acknowledged. */
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

    /* Other threads read this without the lock (nicstride_is_clean). */
    if (error != 0)
        __atomic_store_n(&tx->error, 0, __ATOMIC_RELAXED);
    return error;
}

/** True if a flush waits for the current number. Any report that reaches its number answers it. */
static inline bool nicstride_rx_flush_due(const nicstride_rx_t *rx)
{
    return rx->wanted > rx->reported && rx->applied >= rx->wanted;
}

/** Counts one message whose effect is done, with `error` (0: none). True if an acknowledgement is
 *  due now: a flush is satisfied, or there is an error, as in a counted epoch nobody would ask for
 *  it. */
static inline bool nicstride_rx_applied(nicstride_rx_t *rx, int error)
{
    rx->applied++;
    if (rx->error == 0)
        rx->error = error;
    return error != 0 || nicstride_rx_flush_due(rx);
}

/** Notes a flush request for number `upto`. True if an acknowledgement is due now. */
static inline bool nicstride_rx_flush(nicstride_rx_t *rx, uint64_t upto)
{
    if (upto <= rx->reported)
        return false; /* that report is on its way */
    if (upto > rx->wanted)
        rx->wanted = upto;
    return nicstride_rx_flush_due(rx);
}

/** Makes an acknowledgement: returns what to report and clears the error. */
static inline void nicstride_rx_ack(nicstride_rx_t *rx, uint64_t *applied_p, int *error_p)
{
    *applied_p = rx->applied;
    *error_p = rx->error;
    rx->reported = rx->applied;
    rx->error = 0;
}
