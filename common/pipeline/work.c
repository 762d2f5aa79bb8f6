/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Moves the bytes of one transfer, by the thread that has claimed it, without a lock. */
#include "common/pipeline/transfers.h"

#include "ompi/constants.h"

#include "common/layout/pack.h"
#include "common/support/clock.h"
#include "common/support/pause.h"

/** Looks at a word while the other side is active: it publishes the next block sooner than that. */
#define SPINS 64
/** Unsuccessful looks between two readings of the clock. */
#define LOOKS 256
/** Nanoseconds without anything to do after which the other side's life is checked. */
#define DEAD_AFTER_NSEC UINT64_C(5000000)
/** Buffers released at a time, since each release costs a cache line. */
#define BUFFERS_TOGETHER 8

/* ---- coming to an end ------------------------------------------------------------------------ */

static void report(onic_transfer_t *t, int status)
{
    t->reports = t->has_end;
    t->status = status;
}

/** Releases buffers to which nothing is written any more. */
static void release(onic_transfer_t *t, uint64_t buffers)
{
    if (buffers != 0) {
        t->buffers &= ~buffers;
        t->freed &= ~buffers;
        t->carrier->release(t, buffers);
    }
}

/** Ends the transfer. A sender that has misbehaved keeps its buffers until it is dead. */
static void end(onic_transfer_t *t, int status, bool sender_is_done)
{
    t->over = true;
    report(t, status);
    if (t->role == ONIC_RECEIVES)
        release(t, sender_is_done ? t->buffers : t->freed);
}

static void stop(onic_transfer_t *t, unsigned why)
{
    if ((why & ONIC_STOP_LEASE) != 0) {
        end(t, OMPI_ERROR, true);
        t->reports = false;
    } else if (t->role == ONIC_RECEIVES) {
        report(t, OMPI_ERROR);
    } else {
        const unsigned buffer = t->sender.buffer;
        t->carrier->publish(t, buffer, onic_sender_fail(&t->sender));
        end(t, OMPI_ERROR, true);
    }
}

/* ---- sender ---------------------------------------------------------------------------------- */

/** How many bytes of a piece go together: elements that the receiver must store at once are not
 *  split. */
static uint32_t whole(const onic_transfer_t *t, const onic_piece_t *piece)
{
    const onic_pipeline_end_t *e = &t->end;
    if (e->granule > 1 || piece->pos + piece->len == e->len)
        return piece->len;
    const uint64_t n =
        onic_layout_whole(&e->layout, (uint64_t)(uintptr_t)e->base, e->at + piece->pos, piece->len);
    return piece->len - n < ONIC_CUT ? (uint32_t)n : piece->len;
}

/** Counts that the other side has to act first; once for each such wait. */
static void count_wait(onic_transfer_t *t)
{
    t->waits += !t->waits_now;
    t->waits_now = true;
}

static void fill(onic_transfer_t *t, char *to, uint32_t n)
{
    const bool streams = t->streams && n >= ONIC_STREAM_FROM;
    (void)(streams ? onic_pack_streaming : onic_pack)(&t->cursor, t->end.base, to, n);
}

/** The action when the machine has finished. */
static onic_pipe_action_t leave(const onic_transfer_t *t)
{
    return t->carrier->left == NULL || t->carrier->left(t) ? ONIC_PIPE_DONE : ONIC_PIPE_WAIT;
}

static onic_pipe_action_t send(onic_transfer_t *t)
{
    onic_sender_t *s = &t->sender;
    onic_piece_t piece;
    const uint64_t seen = onic_sender_asks(s) ? t->carrier->acknowledged(t, s->buffer) : 0;
    const onic_pipe_action_t action = onic_sender_next(s, seen, &piece);
    char *to = action == ONIC_PIPE_MOVE ? t->carrier->at(t, piece.buffer, piece.offset) : NULL;
    if (to != NULL) {
        const uint32_t n = whole(t, &piece);
        fill(t, to, n);
        t->carrier->publish(t, piece.buffer, onic_sender_filled(s, &piece, n));
        t->chunks += s->chunk == 0;
        t->waits_now = false;
        return ONIC_PIPE_MOVE;
    }
    if (action == ONIC_PIPE_DONE || action == ONIC_PIPE_FAILED)
        return action == ONIC_PIPE_DONE ? leave(t) : action;
    count_wait(t);
    return ONIC_PIPE_WAIT;
}

/* ---- receiver -------------------------------------------------------------------------------- */

/** Takes bytes from the beginning of a piece. Returns how many; 0: none now; negative: failed. */
static int64_t take(onic_transfer_t *t, const onic_piece_t *piece)
{
    const char *data = t->carrier->at(t, piece->buffer, piece->offset);
    if (!t->has_end)
        return piece->len;
    if (t->end.take != NULL)
        return t->end.take(t->end.arg, t->end.at + piece->pos, data, piece->len);
    return (int64_t)onic_unpack(&t->cursor, t->end.base, data, piece->len);
}

static void consume(onic_transfer_t *t, const onic_piece_t *piece, uint32_t n)
{
    const onic_consumed_t c = onic_receiver_taken(&t->receiver, piece, n);
    if (c.acknowledge != 0)
        t->carrier->acknowledge(t, piece->buffer, c.acknowledge);
    if (c.free) {
        t->freed |= UINT64_C(1) << piece->buffer;
        if (__builtin_popcountll(t->freed) >= BUFFERS_TOGETHER)
            release(t, t->freed);
    }
}

static onic_pipe_action_t receive(onic_transfer_t *t)
{
    onic_piece_t piece;
    const onic_pipe_action_t action =
        onic_receiver_next(&t->receiver, t->carrier->word(t, t->receiver.buffer), &piece);
    if (action == ONIC_PIPE_WAIT && t->receiver.pos > 0)
        count_wait(t);
    if (action != ONIC_PIPE_MOVE)
        return action;
    t->waits_now = false;
    const int64_t n = take(t, &piece);
    if (n == 0) {
        /* A taker that waits is no sign of a dead sender. */
        t->stalls = 0;
        return ONIC_PIPE_WAIT;
    }
    if (n < 0 || n > piece.len)
        report(t, OMPI_ERROR);
    else
        consume(t, &piece, (uint32_t)n);
    return ONIC_PIPE_MOVE;
}

/* ---- both ------------------------------------------------------------------------------------ */

static onic_pipe_action_t step(onic_transfer_t *t)
{
    return t->role == ONIC_SENDS ? send(t) : receive(t);
}

/** Called after a long time without progress: checks whether the other side is dead. */
static void look_after(onic_transfer_t *t)
{
    if (++t->stalls % LOOKS != 0)
        return;
    const uint64_t now = onic_now_nsec();
    if (t->stalled == 0) {
        t->stalled = now;
    } else if (now - t->stalled > DEAD_AFTER_NSEC) {
        t->stalled = now;
        /* What it published before it died can still be taken. */
        if (t->carrier->is_dead(t) && step(t) == ONIC_PIPE_WAIT && t->stalls > 0)
            end(t, OMPI_ERR_UNREACH, true);
    }
}

int onic_transfer_work(onic_transfer_t *t, int limit)
{
    int moved = 0, spins = 0;
    for (;;) {
        if (atomic_load_explicit(&t->stop, memory_order_relaxed) != 0)
            stop(t, atomic_exchange(&t->stop, 0));
        if (moved >= limit || t->over || t->reports)
            return moved;
        const onic_pipe_action_t action = step(t);
        if (action == ONIC_PIPE_MOVE) {
            moved++;
            spins = 0;
            t->stalls = 0;
            t->stalled = 0;
        } else if (action == ONIC_PIPE_DONE) {
            end(t, OMPI_SUCCESS, true);
        } else if (action == ONIC_PIPE_FAILED) {
            end(t, OMPI_ERROR, t->role == ONIC_SENDS || t->receiver.given_up);
        } else if (moved > 0 && !t->carrier->locked && ++spins < SPINS) {
            onic_pause();
        } else {
            look_after(t);
            return moved;
        }
    }
}
