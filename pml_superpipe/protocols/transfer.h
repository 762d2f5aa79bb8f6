/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The rules of a message in flight, for all protocols. A sender is over when its message has
 *  found a receive, if it has to wait for that, and its memory is not needed any more; a receiver
 *  is over when all bytes that it wanted have arrived. Either may abort, and is over as soon as
 *  nothing uses its memory.
 *
 *      sender                                   receiver
 *      SHORT (whole)                     ->     data is there
 *      RTS, EARLY ...                    ->     takes, took; requests the rest, or copies it
 *      requested: fragments, or buffers  <-     CTS
 *      DATA ... / buffers                ->     takes, took / moved
 *      acknowledged                      <-     ACK (it has copied, or needs nothing)
 *
 *  The caller sets in_flight, moved, moving, fragments and broken. Pure; the caller serialises. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/** Fragments of a message that the transport has at a time, and that are passed to it in one call.
 */
#define SUPERPIPE_FRAGMENTS 16

/** One end of a message. */
typedef struct superpipe_transfer {
    uint64_t length; /**< bytes of this end's memory */
    uint64_t wanted; /**< bytes that travel, at most length */
    uint64_t early;  /**< of these, the first ones, which need no CTS */
    uint64_t moved; /**< sender: bytes passed to the transport; receiver: bytes arrived, or received
                       in place */
    unsigned in_flight; /**< operations on its memory that are incomplete, not counting `moving` */
    bool sends;
    bool matched;   /**< it has found its other end, or need not wait for that */
    bool sent;      /**< sender: nothing is left to be sent */
    bool fragments; /**< sender: the requested data goes in DATA messages */
    bool moving;    /**< its protocol has all of it, and will call superpipe_transfer_moved */
    bool broken;    /**< it ends as soon as nothing of it is in flight */
    bool done;      /**< it is over: nothing changes any more */
} superpipe_transfer_t;

/** Begins an end with `length` bytes of memory. */
static inline void superpipe_transfer_begin(superpipe_transfer_t *t, bool sends, uint64_t length)
{
    *t = (superpipe_transfer_t){.sends = sends, .length = length, .wanted = length};
}

/** True once, when it is over: then the caller completes it. To be called after each change. */
static inline bool superpipe_transfer_is_over(superpipe_transfer_t *t)
{
    const bool complete = t->matched && (t->sends ? t->sent : t->moved == t->wanted);

    if (t->done || t->in_flight > 0 || t->moving || !(complete || t->broken))
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

/** The protocol that has all of it is done: everything is packed, or received. */
void superpipe_transfer_moved(superpipe_transfer_t *t, bool good);

/** Bytes after the early ones. */
static inline uint64_t superpipe_transfer_remaining(const superpipe_transfer_t *t)
{
    return t->wanted - t->early;
}

/* ---- sender ---------------------------------------------------------------------------------- */

/** The first `bytes` are passed to the transport without a CTS, before anything else happens. If
 *  that is all, `waits` says whether the message must still find a receive. */
static inline void superpipe_transfer_begins_early(superpipe_transfer_t *t, uint64_t bytes,
                                                   bool waits)
{
    t->early = bytes;
    t->matched = bytes == t->length && !waits;
}

/** The data goes with the envelope, or a copy is sent instead. */
static inline void superpipe_transfer_sent_whole(superpipe_transfer_t *t)
{
    t->matched = t->sent = true;
}

/** CTS has come, for the bytes after the early ones up to `wanted`. False if that cannot be. */
bool superpipe_transfer_requested(superpipe_transfer_t *t, uint64_t wanted);

/** A receiver in the same process copies, until superpipe_transfer_copied. False if it may not. */
bool superpipe_transfer_lend(superpipe_transfer_t *t);
void superpipe_transfer_copied(superpipe_transfer_t *t);

/** ACK has come. */
void superpipe_transfer_acknowledged(superpipe_transfer_t *t);

/** Bytes of the next fragment, at most `most`; 0: none may be passed to the transport now. */
uint64_t superpipe_transfer_fragment(const superpipe_transfer_t *t, uint64_t most);

/** A fragment was passed to the transport; `pending`: it will call back when the fragment has left.
 */
static inline void superpipe_transfer_given(superpipe_transfer_t *t, uint64_t bytes, bool pending)
{
    t->moved += bytes;
    t->sent = t->moved == t->wanted;
    t->in_flight += pending;
}

/** True if there are more fragments and nothing in flight would continue sending them; then it must
 *  be queued, which counts as an operation. */
bool superpipe_transfer_is_idle(const superpipe_transfer_t *t);

/* ---- receiver -------------------------------------------------------------------------------- */

/** The receive has found a message, of which `early` bytes come without a CTS. True if the message
 *  is too long. */
static inline bool superpipe_transfer_fit(superpipe_transfer_t *t, uint64_t length, uint64_t early)
{
    t->matched = true;
    t->wanted = length < t->length ? length : t->length;
    t->early = early < t->wanted ? early : t->wanted;
    return length > t->length;
}

/** How many of the early bytes [at, at + bytes) are wanted: a number of first ones. */
uint64_t superpipe_transfer_takes_early(const superpipe_transfer_t *t, uint64_t at, uint64_t bytes);

/** True if DATA for bytes [at, at + bytes) may be accepted: the transfer is not broken, and they
 *  lie within it. */
bool superpipe_transfer_takes(const superpipe_transfer_t *t, uint64_t at, uint64_t bytes);
