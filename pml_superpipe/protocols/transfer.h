/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The rules of a message that is under way, whatever its protocol. A sender is over when its
 *  message has found a receive, where it has to wait for that, and its memory is not needed any
 *  more; a receiver when all bytes that it wanted are there. Either may break off, and is over then
 *  as soon as nothing works on its memory.
 *
 *      sender                                   receiver
 *      EAGER (whole)                     ->     data is there             -> ACK, if synchronous
 *      RTS, EARLY ...                    ->     takes, took; requests the rest, or copies it
 *      requested: fragments, or buffers  <-     CTS
 *      DATA ... / buffers                ->     takes, took / moved
 *      refuses                           ->     NACK: requests again, as a stream
 *      acknowledged                      <-     ACK (it has copied, or needs nothing)
 *
 *  The caller sets in_flight, moved, moving, fragments and broken. Pure; the caller serialises. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/** Fragments of a message that the transport has at a time, and that are given to it in one go. */
#define SUPERPIPE_FRAGMENTS 16

/** One end of a message. */
typedef struct superpipe_transfer {
    uint64_t length; /**< bytes of this end's memory */
    uint64_t wanted; /**< bytes that travel, at most length */
    uint64_t early;  /**< of these, those that need no CTS, from the beginning */
    uint64_t moved;  /**< sender: given to the transport. Receiver: there, or received in place */
    unsigned in_flight; /**< operations on its memory that are not complete, without `moving` */
    bool sends;
    bool matched;   /**< it has found its other end, or need not wait for that */
    bool sent;      /**< sender: nothing is left to be given away */
    bool requested; /**< sender: the receiver has the data, or gets it */
    bool fragments; /**< sender: what was requested goes in DATA messages */
    bool moving;    /**< its protocol has all of it, and calls superpipe_transfer_moved */
    bool queued;    /**< it is in the queue of those that go on with fragments */
    bool broken;    /**< it ends as soon as nothing of it is under way */
    bool done;      /**< it is over: nothing changes any more */
} superpipe_transfer_t;

/** Begins an end with `length` bytes of memory. */
static inline void superpipe_transfer_begin(superpipe_transfer_t *t, bool sends, uint64_t length)
{
    *t = (superpipe_transfer_t){.sends = sends, .length = length, .wanted = length};
}

/** True once, when it is over: the caller completes it. To be called after each change. */
static inline bool superpipe_transfer_is_over(superpipe_transfer_t *t)
{
    const bool complete = t->matched && (t->sends ? t->sent : t->moved == t->wanted);

    if (t->done || t->in_flight > 0 || t->moving || t->queued || !(complete || t->broken))
        return false;
    t->done = true;
    return true;
}

/** An operation on its memory has ended. */
static inline void superpipe_transfer_ended(superpipe_transfer_t *t, bool good)
{
    t->in_flight--;
    t->broken = t->broken || !good;
}

/** The protocol that has all of it is done: all is packed, or taken. */
void superpipe_transfer_moved(superpipe_transfer_t *t, bool good);

/** Bytes behind the early ones. */
static inline uint64_t superpipe_transfer_remaining(const superpipe_transfer_t *t)
{
    return t->wanted - t->early;
}

/* ---- sender ---------------------------------------------------------------------------------- */

/** Its first `bytes` are given to the transport without a CTS. If that is all, `waits` as below. */
static inline void superpipe_transfer_begins_early(superpipe_transfer_t *t, uint64_t bytes,
                                                   bool waits)
{
    t->early = bytes;
    t->matched = bytes == t->length && !waits;
}

/** The data goes with the envelope, or a copy is sent instead. `waits`: it must find a receive. */
static inline void superpipe_transfer_sent_whole(superpipe_transfer_t *t, bool waits)
{
    t->matched = !waits;
    t->sent = true;
}

/** CTS came, for the bytes up to `wanted` behind the early ones. False: NACK is to be sent. Where
 *  the protocol cannot do it the caller takes back `requested`, and the receiver may request once
 *  more. */
bool superpipe_transfer_requested(superpipe_transfer_t *t, uint64_t wanted);

/** True if all early bytes have been given to the transport: what is no stream waits for that. */
static inline bool superpipe_transfer_gave_early(const superpipe_transfer_t *t)
{
    return t->moved >= t->early;
}

/** A receiver in the same process copies, until superpipe_transfer_copied. False: it may not. */
bool superpipe_transfer_lend(superpipe_transfer_t *t);
void superpipe_transfer_copied(superpipe_transfer_t *t);

/** ACK came. */
void superpipe_transfer_acknowledged(superpipe_transfer_t *t);

/** Bytes of the next fragment, `most` at most; 0: none may be given to the transport now. */
uint64_t superpipe_transfer_fragment(const superpipe_transfer_t *t, uint64_t most);

/** A fragment was given to it; `pending`: the transport will call back when it has left. */
static inline void superpipe_transfer_given(superpipe_transfer_t *t, uint64_t bytes, bool pending)
{
    t->moved += bytes;
    t->sent = t->moved == t->wanted;
    t->in_flight += pending;
}

/** True if it has more fragments and nothing would bring it back to send them: then it is queued.
 */
bool superpipe_transfer_is_idle(const superpipe_transfer_t *t);

/* ---- receiver -------------------------------------------------------------------------------- */

/** It has found a message, of which `early` bytes come without a CTS. True: it is too long. */
static inline bool superpipe_transfer_fit(superpipe_transfer_t *t, uint64_t length, uint64_t early)
{
    t->matched = true;
    t->wanted = length < t->length ? length : t->length;
    t->early = early < t->wanted ? early : t->wanted;
    return length > t->length;
}

/** How many of the early bytes [at, at + bytes) belong to what is wanted: the first ones. */
uint64_t superpipe_transfer_takes_early(const superpipe_transfer_t *t, uint64_t at, uint64_t bytes);

/** True if DATA for bytes [at, at + bytes) may be taken: it is not broken, and they lie within it.
 */
bool superpipe_transfer_takes(const superpipe_transfer_t *t, uint64_t at, uint64_t bytes);
