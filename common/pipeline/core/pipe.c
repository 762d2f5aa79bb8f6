/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/pipeline/core/pipe.h"

/* The sender's word: the round in the upper half, then flags, then bytes. */
#define WORD_ENDS  (UINT64_C(1) << 31)
#define WORD_AGAIN (UINT64_C(1) << 30)

static unsigned lowest_buffer(uint64_t buffers)
{
    return (unsigned)__builtin_ctzll(buffers);
}

/** The buffer after this one. After the last it is the first again, and the round is incremented.
 */
static unsigned next_buffer(const onic_lease_t *lease, unsigned buffer, uint32_t *round)
{
    const uint64_t above = buffer < 63 ? lease->buffers >> (buffer + 1) << (buffer + 1) : 0;

    if (above != 0)
        return lowest_buffer(above);
    ++*round;
    return lowest_buffer(lease->buffers);
}

/* ---- sender ---------------------------------------------------------------------------------- */

void onic_sender_init(onic_sender_t *s, uint64_t len, const onic_lease_t *lease,
                      const onic_schedule_t *schedule, uint32_t block, uint32_t granule)
{
    block -= block % granule;
    *s = (onic_sender_t){.len = len,
                         .lease = *lease,
                         .schedule = *schedule,
                         .block = block > 0 ? block : UINT32_MAX,
                         .round = 1,
                         .buffer = lowest_buffer(lease->buffers)};
}

static onic_pipe_action_t begin_chunk(onic_sender_t *s, uint64_t acknowledged)
{
    const uint64_t left = s->len - s->pos;

    /* The receiver has not yet consumed the buffer's earlier content. */
    if (s->round > 1 && acknowledged < s->round - 1)
        return ONIC_PIPE_WAIT;
    s->chunk = onic_schedule_next(&s->schedule);
    if (s->chunk > left)
        s->chunk = (uint32_t)left;
    s->filled = 0;
    return ONIC_PIPE_MOVE;
}

onic_pipe_action_t onic_sender_next(onic_sender_t *s, uint64_t acknowledged, onic_piece_t *piece)
{
    onic_pipe_action_t action = ONIC_PIPE_MOVE;

    if (s->failed)
        return ONIC_PIPE_FAILED;
    if (s->pos == s->len)
        return ONIC_PIPE_DONE;
    if (s->chunk == 0)
        action = begin_chunk(s, acknowledged);
    if (action == ONIC_PIPE_MOVE) {
        const uint32_t left = s->chunk - s->filled;

        *piece = (onic_piece_t){.pos = s->pos,
                                .offset = s->filled,
                                .len = left < s->block ? left : s->block,
                                .buffer = s->buffer};
    }
    return action;
}

/** True if the present buffer will be used again, because the others of the lease do not hold the
 *  rest. */
static bool comes_again(const onic_sender_t *s)
{
    const unsigned others = (unsigned)__builtin_popcountll(s->lease.buffers) - 1;

    return !onic_schedule_holds(&s->schedule, others, s->len - s->pos, ONIC_CUT - 1);
}

uint64_t onic_sender_filled(onic_sender_t *s, const onic_piece_t *piece, uint32_t n)
{
    uint64_t word = (uint64_t)s->round << 32;

    s->filled += n;
    s->pos += n;
    word |= s->filled;
    if (piece->offset + piece->len < s->chunk)
        return word;
    word |= WORD_ENDS | (comes_again(s) ? WORD_AGAIN : 0);
    s->buffer = next_buffer(&s->lease, s->buffer, &s->round);
    s->chunk = 0;
    return word;
}

uint64_t onic_sender_replace_lease(onic_sender_t *s, uint64_t buffers, uint64_t word)
{
    s->lease.buffers = buffers;
    s->buffer = lowest_buffer(buffers);
    s->round = 1;
    if ((word & WORD_ENDS) == 0)
        return word;
    word &= ~WORD_AGAIN;
    word |= comes_again(s) ? WORD_AGAIN : 0;
    s->buffer = next_buffer(&s->lease, s->buffer, &s->round);
    return word;
}

uint64_t onic_sender_fail(onic_sender_t *s)
{
    s->failed = true;
    return (uint64_t)s->round << 32 | ONIC_WORD_FAILS;
}

/* ---- receiver -------------------------------------------------------------------------------- */

void onic_receiver_init(onic_receiver_t *r, uint64_t len, const onic_lease_t *lease)
{
    *r = (onic_receiver_t){
        .len = len, .lease = *lease, .round = 1, .buffer = lowest_buffer(lease->buffers)};
}

/** Takes over a word. False if it counts bytes outside of the buffer or of the transfer. */
static bool read_word(onic_receiver_t *r, uint64_t word)
{
    const uint32_t bytes = onic_word_bytes(word);

    /* The word still belongs to the round before. */
    if (onic_word_round(word) != r->round)
        return true;
    if (bytes > r->lease.buffer_bytes || bytes < r->taken || bytes - r->taken > r->len - r->pos)
        return false;
    r->published = bytes;
    r->ends = (word & WORD_ENDS) != 0;
    r->again = (word & WORD_AGAIN) != 0;
    return true;
}

onic_pipe_action_t onic_receiver_next(onic_receiver_t *r, uint64_t word, onic_piece_t *piece)
{
    if (r->failed)
        return ONIC_PIPE_FAILED;
    if (r->pos == r->len)
        return ONIC_PIPE_DONE;
    if ((word & ONIC_WORD_FAILS) != 0) {
        r->given_up = r->failed = true;
        return ONIC_PIPE_FAILED;
    }
    /* A complete chunk is taken to its end, even if the word changes. */
    if (!r->ends && !read_word(r, word)) {
        r->failed = true;
        return ONIC_PIPE_FAILED;
    }
    if (r->published == r->taken)
        return ONIC_PIPE_WAIT;
    *piece = (onic_piece_t){
        .pos = r->pos, .offset = r->taken, .len = r->published - r->taken, .buffer = r->buffer};
    return ONIC_PIPE_MOVE;
}

onic_consumed_t onic_receiver_taken(onic_receiver_t *r, const onic_piece_t *piece, uint32_t n)
{
    onic_consumed_t consumed = {0, false};

    (void)piece;
    r->taken += n;
    r->pos += n;
    if (!r->ends || r->taken < r->published)
        return consumed;
    if (r->again && r->pos < r->len)
        consumed.acknowledge = r->round;
    if (!r->again) {
        consumed.free = true;
        r->lease.buffers &= ~(UINT64_C(1) << r->buffer);
    }
    r->taken = r->published = 0;
    r->ends = false;
    if (r->lease.buffers != 0)
        r->buffer = next_buffer(&r->lease, r->buffer, &r->round);
    else if (r->pos < r->len)
        r->failed = true;
    return consumed;
}
