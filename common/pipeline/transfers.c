/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The transfers of this process, their steps and their ends. The transport lock is held. */
#include "common/pipeline/transfers.h"

#include <limits.h>
#include <stdlib.h>

#include "ompi/constants.h"

#include "common/layout/pack.h"
#include "common/support/pause.h"

/** Pieces of one transfer before others, and other threads, get their turn. */
#define TURN 64
/** Looks at a word while the other side is active: it publishes the next block sooner than that. */
#define SPINS 64

static TAILQ_HEAD(, onic_transfer) transfers = TAILQ_HEAD_INITIALIZER(transfers);

/** Their number. Changed with the lock, read without it. */
static atomic_uint active;

bool onic_pipeline_idle(void)
{
    return atomic_load_explicit(&active, memory_order_relaxed) == 0;
}

/* ---- making and freeing ---------------------------------------------------------------------- */

onic_transfer_t *onic_transfer_new(onic_role_t role, const onic_carrier_t *carrier,
                                   onic_peer_t *peer, const onic_pipeline_end_t *end)
{
    onic_transfer_t *t = calloc(1, sizeof(*t));
    if (t != NULL) {
        t->role = role;
        t->carrier = carrier;
        t->peer = peer;
        t->has_end = end != NULL;
        if (end != NULL)
            t->end = *end;
    }
    return t;
}

void onic_transfer_begun(onic_transfer_t *t, onic_pipeline_end_t *end)
{
    if (end != NULL) {
        if (t->role == ONIC_SENDS || end->take == NULL)
            onic_cursor_init(&t->cursor, &t->end.layout, t->end.at);
        end->layout.nruns = 0;
        end->layout.runs = NULL;
        end->layout.run_start = NULL;
    }
    TAILQ_INSERT_TAIL(&transfers, t, list);
    atomic_fetch_add_explicit(&active, 1, memory_order_relaxed);
    onic_transport_ask(ONIC_AM_PIPELINE, ONIC_LOCKED);
}

/** Gives up the end, and with it the user's memory. */
static void drop_end(onic_transfer_t *t)
{
    if (t->has_end)
        onic_layout_fini(&t->end.layout);
    t->has_end = t->reports = false;
}

static void unlist(onic_transfer_t *t)
{
    TAILQ_REMOVE(&transfers, t, list);
    drop_end(t);
    if (t->carrier->closed != NULL)
        t->carrier->closed(t);
    free(t);
    atomic_fetch_sub_explicit(&active, 1, memory_order_relaxed);
}

/* ---- coming to an end ------------------------------------------------------------------------ */

/** `done` is to be called with that status. */
static void to_report(onic_transfer_t *t, int status)
{
    t->reports = t->has_end;
    t->status = status;
}

/** Calls `done` if that is due. */
static int report(onic_transfer_t *t)
{
    if (!t->reports)
        return 0;
    void (*done)(void *, int) = t->end.done;
    void *arg = t->end.arg;
    drop_end(t);
    done(arg, t->status);
    return 1;
}

/** Releases buffers to which nothing is written any more. */
static void release(onic_transfer_t *t, uint64_t buffers)
{
    if (buffers != 0) {
        t->buffers &= ~buffers;
        t->carrier->release(t, buffers);
    }
}

/** Ends the transfer. A sender that has misbehaved keeps its buffers. */
static void end(onic_transfer_t *t, int status, bool sender_is_done)
{
    t->over = true;
    to_report(t, status);
    if (t->role == ONIC_RECEIVES && sender_is_done)
        release(t, t->buffers);
}

/** Ends the transfer with an error, unless it has ended, and reports that. */
static void stop(onic_transfer_t *t)
{
    if (t->reports) {
        /* It has ended already. */
    } else if (t->role == ONIC_RECEIVES) {
        to_report(t, OMPI_ERROR);
    } else {
        const unsigned buffer = t->sender.buffer;
        t->carrier->publish(t, buffer, onic_sender_fail(&t->sender));
        end(t, OMPI_ERROR, true);
    }
    (void)report(t);
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
        onic_pipeline_counters.chunks += s->chunk == 0;
        return ONIC_PIPE_MOVE;
    }
    if (action == ONIC_PIPE_DONE)
        return leave(t);
    return action == ONIC_PIPE_FAILED ? action : ONIC_PIPE_WAIT;
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
    if (c.free)
        release(t, UINT64_C(1) << piece->buffer);
}

static onic_pipe_action_t receive(onic_transfer_t *t)
{
    onic_piece_t piece;
    const onic_pipe_action_t action =
        onic_receiver_next(&t->receiver, t->carrier->word(t, t->receiver.buffer), &piece);
    if (action != ONIC_PIPE_MOVE)
        return action;
    const int64_t n = take(t, &piece);
    if (n == 0)
        return ONIC_PIPE_WAIT;
    if (n < 0 || n > piece.len)
        to_report(t, OMPI_ERROR);
    else
        consume(t, &piece, (uint32_t)n);
    return ONIC_PIPE_MOVE;
}

/* ---- both ------------------------------------------------------------------------------------ */

static onic_pipe_action_t step(onic_transfer_t *t)
{
    return t->role == ONIC_SENDS ? send(t) : receive(t);
}

/** True if only the other side can go on, not a taker. */
static bool needs_other_side(const onic_transfer_t *t)
{
    return t->role == ONIC_SENDS || t->receiver.taken == t->receiver.published;
}

/** Nothing can be done: ends the transfer if the other side is dead. What that has published before
 *  can still be taken. */
static void look_after(onic_transfer_t *t)
{
    if (needs_other_side(t) && t->carrier->is_dead(t) && step(t) == ONIC_PIPE_WAIT &&
        needs_other_side(t))
        end(t, OMPI_ERR_UNREACH, true);
}

/** Moves at most `limit` pieces; returns how many. */
static int work_on(onic_transfer_t *t, int limit)
{
    int moved = 0, spins = 0;
    while (moved < limit && !t->over && !t->reports) {
        const onic_pipe_action_t action = step(t);
        if (action == ONIC_PIPE_MOVE) {
            moved++;
            spins = 0;
        } else if (action == ONIC_PIPE_DONE) {
            end(t, OMPI_SUCCESS, true);
        } else if (action == ONIC_PIPE_FAILED) {
            end(t, OMPI_ERROR, t->role == ONIC_SENDS || t->receiver.given_up);
        } else if (moved > 0 && t->carrier->is_shared && ++spins < SPINS) {
            onic_pause();
        } else {
            look_after(t);
            break;
        }
    }
    return moved;
}

int onic_transfers_progress(void)
{
    int n = 0;
    for (onic_transfer_t *t = TAILQ_FIRST(&transfers), *next; t != NULL; t = next) {
        n += work_on(t, TURN) + report(t);
        /* What was reported may have begun or ended others, but only this frees any. */
        next = TAILQ_NEXT(t, list);
        if (t->over)
            unlist(t);
    }
    return n;
}

void onic_pipeline_run_locked(onic_transfer_t *t)
{
    (void)work_on(t, INT_MAX);
}

/* ---- giving up ------------------------------------------------------------------------------- */

void onic_pipeline_cancel_locked(const void *arg)
{
    onic_transfer_t *t;
    TAILQ_FOREACH(t, &transfers, list)
        if (t->has_end && t->end.arg == arg)
            stop(t);
}

bool onic_pipeline_withdraw_locked(onic_transfer_t *t)
{
    if (t->reports)
        return false;
    drop_end(t);
    end(t, OMPI_ERROR, true);
    return true;
}

void onic_transfers_end(void)
{
    onic_transfer_t *t;
    TAILQ_FOREACH(t, &transfers, list)
        if (t->has_end)
            stop(t);
    while ((t = TAILQ_FIRST(&transfers)) != NULL)
        unlist(t);
}
