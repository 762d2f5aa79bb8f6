/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Flow control and remote completion between one origin and one target of a window.
 *
 *  Every message that has an effect at the target is numbered by the origin (`sent`) and counted by
 *  the target when its effect is done (`applied`), in whatever order they came. The target reports
 *  `applied` in acknowledgements. The origin never has more than `window` messages unacknowledged.
 *  The counters do not name messages, so nothing is known to be complete but everything. A flush is
 *  a request for an acknowledgement at a number: later requests swallow earlier ones. A thread that
 *  waits for it must keep new messages back.
 *
 *  Memory. Most puts leave nothing behind. What the target may have to keep for a while
 *  (accumulates that wait for a lock, replies, records) is counted in bytes (`kept`,
 *  nicstride_msg_kept), which all windows of a process share (nicstride_quota_t): each process has
 *  its part of the target's memory for good (nicstride_quota_part), and knows it since the window
 *  was made.
 *
 *  In active target nobody asks. An origin that closes an epoch publishes how many messages it has
 *  sent in all, and the target waits until it has applied as many, which the origin sees at the
 *  next synchronisation (nicstride_tx_known).
 *
 *  Why an origin never stays blocked. Let all messages and acknowledgements have arrived. Then
 *  `acked` equals the target's `reported`. Were the origin at a full window, the target would have
 *  applied a whole window since its last report; but it reports after half of that. An origin that
 *  is blocked before, by what is kept, in this window or others, asks (nicstride_tx_is_short). And
 *  were a flush open, `wanted` would have been reached without a report, which rx_applied or
 *  rx_flush, whichever came last, does not let happen.
 *
 *  Pure; the caller serialises. Inlined: all of it comes with every message. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "osc_nicstride/protocol/limits.h"

/** Origin side. Zero-initialise but for `window` (1 .. 2^31). Messages, if not said otherwise. */
typedef struct nicstride_tx {
    uint64_t sent;
    uint64_t acked;
    uint64_t confirmed; /**< the target has acknowledged so many itself: at most acked */
    uint64_t asked;     /**< highest number that a flush request was sent for */
    uint64_t kept;      /**< bytes that the target may have had to keep for them, in all */
    uint64_t freed;     /**< of these, known not to be kept any more */
    uint32_t window;
    int error; /**< first error that the target reported and no call has returned; 0 if none */
} nicstride_tx_t;

/** Target side. Zero-initialise but for `window`, the same as the origin's. */
typedef struct nicstride_rx {
    uint64_t applied;
    uint64_t reported;
    uint64_t wanted; /**< an acknowledgement is wanted once applied reaches this */
    uint64_t freed;  /**< bytes that those applied have taken up at most, in all */
    uint32_t window;
    int error; /**< first error since the last acknowledgement */
} nicstride_rx_t;

/** What a target may keep for one process, in all windows, in bytes. Zero-initialise. */
typedef struct nicstride_quota {
    uint64_t out;
    uint64_t limit; /**< the process's part; 0 before a window has told it */
} nicstride_quota_t;

/** The part of each of so many processes in `bytes` of memory; at least one short message each. */
static inline uint64_t nicstride_quota_part(uint64_t bytes, uint64_t processes)
{
    const uint64_t part = bytes / processes;

    if (part > NICSTRIDE_KEPT_MAX)
        return NICSTRIDE_KEPT_MAX;
    return part > NICSTRIDE_KEPT_MIN ? part : NICSTRIDE_KEPT_MIN;
}

/** A window tells the process's part. The least counts: with windows over several jobs a target
 *  divides its memory among more. */
static inline void nicstride_quota_told(nicstride_quota_t *q, uint64_t part)
{
    if (q->limit == 0 || part < q->limit)
        q->limit = part;
}

/** May a message be sent now for which the target may have to keep so many bytes? One that takes
 *  more than there can be goes alone. */
static inline bool nicstride_tx_can_send(const nicstride_tx_t *tx, const nicstride_quota_t *q,
                                         uint64_t kept)
{
    return tx->sent - tx->acked < tx->window &&
           (kept == 0 || q->out == 0 || q->out + kept <= q->limit);
}

/** Is a message held up though the window is not full? Then nobody may come to acknowledge what is
 *  out, in this window or in others, before it is asked. */
static inline bool nicstride_tx_is_short(const nicstride_tx_t *tx, const nicstride_quota_t *q,
                                         uint64_t kept)
{
    return !nicstride_tx_can_send(tx, q, kept) && tx->sent - tx->acked < tx->window;
}

/** Counts a message; returns its number (the value `acked` must reach). */
static inline uint64_t nicstride_tx_send(nicstride_tx_t *tx, nicstride_quota_t *q, uint64_t kept)
{
    q->out += kept;
    tx->kept += kept;
    return ++tx->sent;
}

static inline void nicstride_tx_freed(nicstride_tx_t *tx, nicstride_quota_t *q, uint64_t freed)
{
    if (freed <= tx->freed)
        return;
    q->out -= freed - tx->freed;
    tx->freed = freed;
}

/** The first `applied` messages, at most as many as were sent, are known to be applied: a
 *  synchronisation has shown it, without a message. Errors come by themselves. */
static inline void nicstride_tx_known(nicstride_tx_t *tx, nicstride_quota_t *q, uint64_t applied)
{
    if (applied > tx->acked)
        tx->acked = applied;
    if (tx->acked == tx->sent)
        nicstride_tx_freed(tx, q, tx->kept);
}

/** Nothing that is under way will be acknowledged any more. */
static inline void nicstride_tx_forget(nicstride_tx_t *tx, nicstride_quota_t *q)
{
    nicstride_tx_known(tx, q, tx->sent);
}

/** An acknowledgement came, which may say 0 for `freed`. An old one, that says less than is known,
 *  is ignored but for its error. */
static inline void nicstride_tx_ack(nicstride_tx_t *tx, nicstride_quota_t *q, uint64_t applied,
                                    uint64_t freed, int error)
{
    nicstride_tx_freed(tx, q, freed);
    nicstride_tx_known(tx, q, applied);
    if (applied > tx->confirmed)
        tx->confirmed = applied;
    if (tx->error == 0)
        __atomic_store_n(&tx->error, error, __ATOMIC_RELAXED);
}

/** Has the target not yet said by itself, with an error if there was one, that everything is
 *  applied? Then it is to be asked once more, with the number in `*upto_p`. */
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

/** Must a flush request be sent to get the rest acknowledged? Marks it as sent, for `*upto_p`. */
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

/** The effect of one message is done, for which so many bytes may have been kept, with `error` (0:
 *  none). True where an acknowledgement is due now: a flush is satisfied, half a window has gone
 *  unreported, or there is an error (in a counted epoch nobody would ask for it). */
static inline bool nicstride_rx_applied(nicstride_rx_t *rx, uint64_t kept, int error)
{
    const uint32_t half = rx->window - rx->window / 2;

    rx->applied++;
    rx->freed += kept;
    if (rx->error == 0)
        rx->error = error;
    return error != 0 || rx->applied - rx->reported >= half || nicstride_rx_flush_due(rx);
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

/* ---- reply lines --------------------------------------------------------------------------------
 *
 * Where a process of the same node answers a single small operation: a cache line in memory
 * that both have mapped, one for each origin and target of a window.
 *
 * A message between two processes of a node is several cache lines and some hundred instructions
 * on either side. The origin of such an operation waits for nothing but its answer, so the target
 * leaves that where the origin looks: what is applied and, of an operation that fetches, a few
 * bytes of data. Only the answer to a message that asks for one itself goes there, and an origin
 * has sent no second such message before it knew the first to be answered: so at most one answer
 * is under way, and nobody writes while the other reads. All other acknowledgements are messages:
 * they wake an origin's helper thread, which a word in memory does not.
 *
 * It earns a fifth of a get or a compare-and-swap of 8 bytes with its flush, and a third of a put,
 * an accumulate or a fetch_and_op.
 *
 * Pure. */

/** All zero: no answer yet. */
typedef struct nicstride_reply_line {
    _Alignas(64) uint64_t applied; /**< as in an acknowledgement (credit.h); written last */
    uint32_t handle;               /**< of the operation that the data is for; 0: no data */
    uint32_t len;
    unsigned char data[NICSTRIDE_REPLY_LINE_DATA];
} nicstride_reply_line_t;

_Static_assert(sizeof(nicstride_reply_line_t) == 64, "one cache line");

/** How many reply lines each process of a window has, with so many of them on its node. */
static inline int nicstride_reply_line_count(int processes)
{
    return processes > 1 && processes <= NICSTRIDE_REPLY_LINE_PROCESSES ? processes : 0;
}

/**
 * Does an answer go into the reply line? Else it is a message.
 *
 * @param asked    the count with which the message asks for its own acknowledgement; 0: it does not
 * @param applied  what the answer acknowledges; 0: nothing, others must be applied first
 * @param len      bytes of its data
 */
static inline bool nicstride_reply_line_takes(uint64_t asked, uint64_t applied, size_t len)
{
    return asked != 0 && applied != 0 && len <= NICSTRIDE_REPLY_LINE_DATA;
}

/** The target answers. `applied` must have grown since the last answer.
 *
 *  @param handle  the operation's, as in short headers; 0 where there is no data
 *  @param len     0 .. NICSTRIDE_REPLY_LINE_DATA */
static inline void nicstride_reply_line_answer(nicstride_reply_line_t *s, uint64_t applied,
                                               uint32_t handle, const void *data, size_t len)
{
    if (len == sizeof(uint64_t))
        memcpy(s->data, data, sizeof(uint64_t));
    else if (len > 0)
        memcpy(s->data, data, len);
    s->handle = handle;
    s->len = (uint32_t)len;
    /* What the operation did at the target comes before this, too. */
    __atomic_store_n(&s->applied, applied, __ATOMIC_RELEASE);
}

/** Is there an answer that the origin has not taken, the last of which was `*seen`? Then that
 *  becomes the new one's number, and the rest of the answer may be read. */
static inline bool nicstride_reply_line_look(const nicstride_reply_line_t *s, uint64_t *seen)
{
    const uint64_t applied = __atomic_load_n(&s->applied, __ATOMIC_ACQUIRE);

    if (applied == *seen)
        return false;
    *seen = applied;
    return true;
}

/** The data of the answer that was just found: for the operation `*handle_p`, `*len_p` bytes. NULL
 *  where there is none, `*handle_p` being 0 then, or where it is more than a reply line holds. */
static inline const void *nicstride_reply_line_data(const nicstride_reply_line_t *s,
                                                    uint32_t *handle_p, size_t *len_p)
{
    *handle_p = __atomic_load_n(&s->handle, __ATOMIC_RELAXED);
    *len_p = __atomic_load_n(&s->len, __ATOMIC_RELAXED);
    return *handle_p != 0 && *len_p <= NICSTRIDE_REPLY_LINE_DATA ? s->data : NULL;
}
