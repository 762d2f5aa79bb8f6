/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Flow control and remote completion between one origin and one target of a window.
 *
 * Every message that has an effect at the target is numbered by the origin (`sent`) and counted by
 * the target when its effect is done (`applied`), in whatever order they came. The target reports
 * `applied` in acknowledgements. The origin never has more than `window` messages unacknowledged,
 * which bounds the memory of the target. Since the counters do not name messages and some overtake
 * others, nothing is known to be complete but everything: when all that was sent is acknowledged.
 * A flush is a request for an acknowledgement at a number and needs no identifier: later requests
 * swallow earlier ones. Who waits for it must hold new messages back.
 *
 * What counts are credits and not messages: most messages take one, those that the target may have
 * to put aside as many as their length asks for (nicstride_credits), since a window of long ones
 * would bound nothing. Below, `sent`, `applied` and `window` are in credits.
 *
 * The windows of a process share what one target grants it (nicstride_quota_t): a program may have
 * many windows, and the target has one memory.
 *
 * In active target nobody asks. Who closes an epoch says how many messages it has sent in all, and
 * the target waits until it has applied as many. That the target went on tells the origin, at the
 * next synchronisation, that they are (nicstride_tx_known).
 *
 * Why an origin never stays blocked. Let all messages and acknowledgements have arrived and let
 * each acknowledgement that was due have been sent. Then `acked` equals the target's `reported`.
 * Were the origin at a full window, the target would have applied a whole window since its last
 * report; but it reports after half of that, rounded up and so at least one credit. An origin that
 * is blocked before its window is full, by a long message or by other windows' messages, asks
 * (nicstride_tx_is_short). And were a flush open, `wanted` would have been reached without a
 * report, which rx_applied or rx_flush, whichever came last, does not let happen.
 *
 * Pure; the caller serialises. Values from the peer are not trusted. Inlined, since all of it comes
 * with every message.
 */
#ifndef NICSTRIDE_CREDIT_H
#define NICSTRIDE_CREDIT_H

#include <stdbool.h>
#include <stdint.h>

/** Origin side. Zero-initialise but for `window` (1 .. 2^31). */
typedef struct nicstride_tx {
    uint64_t sent;
    uint64_t acked;
    uint64_t heard; /**< the target said so itself: at most acked */
    uint64_t asked; /**< highest number that a flush request was sent for */
    uint32_t window;
    int error; /**< first error that the target reported and nobody was told of; 0 if none */
} nicstride_tx_t;

/** Target side. Zero-initialise but for `window`, the same as the origin's. */
typedef struct nicstride_rx {
    uint64_t applied;
    uint64_t reported;
    uint64_t wanted; /**< an acknowledgement is wanted once applied reaches this */
    uint32_t window;
    int error; /**< first error since the last acknowledgement */
} nicstride_rx_t;

/** Bytes that one credit pays for, and the most credits that a message takes. */
#define NICSTRIDE_CREDIT_BYTES 4096
#define NICSTRIDE_CREDITS_MAX  1025

/** The credits of a message whose `kept` bytes the target may have to put aside; 0 for those that
 *  it handles as they come. */
static inline uint32_t nicstride_credits(uint64_t kept)
{
    const uint64_t more = kept / NICSTRIDE_CREDIT_BYTES;

    return 1 + (uint32_t)(more < NICSTRIDE_CREDITS_MAX ? more : NICSTRIDE_CREDITS_MAX - 1);
}

/** Bytes that the target needs for a message that it puts aside, beside layout and data. */
#define NICSTRIDE_CREDIT_RECORD 128

/** Most bytes of layout and data of a message that the target may have to put aside, such that it
 *  takes at most `limit` >= 1 credits: what is longer would go alone, and break the bound. */
static inline uint64_t nicstride_credit_room(uint64_t limit)
{
    const uint64_t most = limit < NICSTRIDE_CREDITS_MAX ? limit : NICSTRIDE_CREDITS_MAX;

    return most * NICSTRIDE_CREDIT_BYTES - 1 - NICSTRIDE_CREDIT_RECORD;
}

/** The window that a process gets from a target which has `bytes` for `origins` processes, in
 *  credits; at least two, so that one message can be sent while another is acknowledged. */
static inline uint32_t nicstride_credit_share(uint64_t bytes, uint64_t origins)
{
    const uint64_t share = bytes / NICSTRIDE_CREDIT_BYTES / (origins > 0 ? origins : 1);

    return share < 2 ? 2 : share > UINT32_MAX / 4 ? UINT32_MAX / 4 : (uint32_t)share;
}

/** What one process may have under way to another, in all windows. Zero-initialise but for
 *  `limit`, which is the least that the target has said. */
typedef struct nicstride_quota {
    uint64_t out;
    uint64_t limit;
} nicstride_quota_t;

/** May a message of so many credits be sent now? One that takes more than there can be goes
 *  alone. */
static inline bool nicstride_tx_can_send(const nicstride_tx_t *tx, const nicstride_quota_t *q,
                                         uint32_t credits)
{
    const uint64_t out = tx->sent - tx->acked;

    return (out == 0 || out + credits <= tx->window) &&
           (q->out == 0 || q->out + credits <= q->limit);
}

/** Is a message of so many credits held up though the window is not full? Then nobody may come to
 *  acknowledge what is out, in this window or in others, before it is asked. */
static inline bool nicstride_tx_is_short(const nicstride_tx_t *tx, const nicstride_quota_t *q,
                                         uint32_t credits)
{
    return !nicstride_tx_can_send(tx, q, credits) &&
           (tx->sent - tx->acked < tx->window || q->out >= q->limit);
}

/** Counts a message; returns its number (the value `acked` must reach). */
static inline uint64_t nicstride_tx_send(nicstride_tx_t *tx, nicstride_quota_t *q, uint32_t credits)
{
    q->out += credits;
    tx->sent += credits;
    return tx->sent;
}

/** The first `applied` credits, at most as many as were sent, are known to be applied: a
 *  synchronisation has shown it, without a message. Errors come by themselves. */
static inline void nicstride_tx_known(nicstride_tx_t *tx, nicstride_quota_t *q, uint64_t applied)
{
    if (applied <= tx->acked)
        return;
    q->out -= applied - tx->acked;
    tx->acked = applied;
}

/** Nothing that is under way will be acknowledged any more. */
static inline void nicstride_tx_forget(nicstride_tx_t *tx, nicstride_quota_t *q)
{
    nicstride_tx_known(tx, q, tx->sent);
}

/** An acknowledgement came. False where it is impossible (more than was sent); an old one, that
 *  says less than is known, is ignored but for its error. */
static inline bool nicstride_tx_ack(nicstride_tx_t *tx, nicstride_quota_t *q, uint64_t applied,
                                    int error)
{
    if (applied > tx->sent)
        return false;
    nicstride_tx_known(tx, q, applied);
    if (applied > tx->heard)
        tx->heard = applied;
    if (tx->error == 0)
        __atomic_store_n(&tx->error, error, __ATOMIC_RELAXED);
    return true;
}

/** Has the target not yet said by itself, with an error if there was one, that everything is
 *  applied? Then it is to be asked once more, with the number in `*upto_p`. */
static inline bool nicstride_tx_ask_again(nicstride_tx_t *tx, uint64_t *upto_p)
{
    if (tx->heard == tx->sent || tx->asked == tx->sent)
        return false;
    tx->asked = tx->sent;
    *upto_p = tx->sent;
    return true;
}

/** True where everything sent so far is acknowledged. */
static inline bool nicstride_tx_idle(const nicstride_tx_t *tx)
{
    return tx->acked == tx->sent;
}

/** True where a flush request must be sent to get the rest acknowledged; marks it as sent.
 *  `*upto_p` gets the number to ask for. */
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
 *  now (a flush is satisfied, half a window has gone unreported, or there is an error: in a counted
 *  epoch nobody would ask for it). */
static inline bool nicstride_rx_applied(nicstride_rx_t *rx, uint32_t credits, int error)
{
    const uint32_t half = rx->window - rx->window / 2;

    rx->applied += credits;
    if (rx->error == 0)
        rx->error = error;
    return error != 0 || rx->applied - rx->reported >= half || nicstride_rx_flush_due(rx);
}

/** A flush request for number `upto` came. True where an acknowledgement is due now. */
static inline bool nicstride_rx_flush(nicstride_rx_t *rx, uint64_t upto)
{
    if (upto <= rx->reported)
        return false; /* the report that says so is on its way */
    /* The origin may know of half a window more than was reported, see nicstride_tx_known, and a
     * message may take more than the window has. */
    if (upto - rx->reported > 2 * ((uint64_t)rx->window + NICSTRIDE_CREDITS_MAX))
        return false; /* more than the origin may have sent: forged */
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

#endif
