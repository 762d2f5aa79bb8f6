/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Sender and receiver of a transfer against each other. */
#include "common/pipeline/core/pipe.h"

#include <string.h>

#include "test/unit/unit.h"

enum { BUFFER_MAX = 300, LEN_MAX = 20000, LATE = 8 };

/** A word and what is on its way to it, which comes in order for each word by itself. */
typedef struct slow_word {
    uint64_t now;
    uint64_t coming[LATE];
    unsigned ncoming;
} slow_word_t;

static void store(slow_word_t *w, uint64_t value)
{
    if (w->ncoming == LATE) {
        w->now = w->coming[0];
        memmove(w->coming, w->coming + 1, (LATE - 1) * sizeof(w->coming[0]));
        w->ncoming--;
    }
    w->coming[w->ncoming++] = value;
}

static uint64_t load(unit_random_t *r, slow_word_t *w, uint64_t patience)
{
    while (w->ncoming > 0 && !unit_once_in(r, patience)) {
        w->now = w->coming[0];
        memmove(w->coming, w->coming + 1, --w->ncoming * sizeof(w->coming[0]));
    }
    return w->now;
}

/** A transfer, its buffers, and what both sides must not touch. */
typedef struct pipe_case {
    uint64_t len;
    onic_lease_t lease;
    uint32_t granule;
    uint64_t cut_in;  /**< one in so many pieces is cut short by the sender, 0: none */
    uint64_t part_in; /**< one in so many is taken in part only */
    uint64_t patience;
    onic_sender_t sender;
    onic_receiver_t receiver;
    slow_word_t word[ONIC_RX_BUFFERS_MAX], acknowledged[ONIC_RX_BUFFERS_MAX];
    unsigned char buffer[ONIC_RX_BUFFERS_MAX][BUFFER_MAX + 1];
    uint64_t free; /**< buffers given back */
    uint64_t packed, taken;
} pipe_case_t;

static unsigned char byte_at(uint64_t pos)
{
    return (unsigned char)(pos * 7 + (pos >> 8) * 31 + 1);
}

static void begin(unit_random_t *r, pipe_case_t *p)
{
    onic_schedule_t schedule;
    const unsigned nbuffers = 1 + (unsigned)unit_below(r, unit_once_in(r, 3) ? 64 : 4);

    memset(p, 0, sizeof(*p));
    p->len = 1 + unit_below(r, unit_once_in(r, 3) ? 50 : LEN_MAX);
    p->lease.buffer_bytes = 1 + (uint32_t)unit_below(r, BUFFER_MAX);
    for (unsigned i = 0; i < nbuffers; i++)
        p->lease.buffers |= UINT64_C(1) << unit_below(r, 64);
    p->granule = 1 + (uint32_t)unit_below(r, unit_once_in(r, 2) ? 1 : p->lease.buffer_bytes);
    p->cut_in = p->granule == 1 && unit_once_in(r, 2) ? 1 + unit_below(r, 5) : 0;
    p->part_in = unit_once_in(r, 2) ? 1 + unit_below(r, 5) : 0;
    p->patience = 2 + unit_below(r, 10);
    onic_schedule_growing(&schedule, 1 + (double)unit_below(r, BUFFER_MAX),
                          1 + (double)unit_below(r, 2000) / 1000, p->granule,
                          p->lease.buffer_bytes);
    onic_sender_init(&p->sender, p->len, &p->lease, &schedule, (uint32_t)unit_below(r, BUFFER_MAX),
                     p->granule);
    onic_receiver_init(&p->receiver, p->len, &p->lease);
    for (unsigned i = 0; i < ONIC_RX_BUFFERS_MAX; i++)
        memset(p->buffer[i], 0xa5, sizeof(p->buffer[i]));
}

static void check_piece(const pipe_case_t *p, const onic_piece_t *piece, uint64_t pos)
{
    UNIT_CHECK(piece->buffer < 64 && (p->lease.buffers >> piece->buffer & 1) != 0);
    UNIT_CHECK(piece->len > 0 && piece->len <= p->lease.buffer_bytes);
    UNIT_CHECK(piece->offset + piece->len <= p->lease.buffer_bytes);
    UNIT_CHECK(piece->pos == pos && pos + piece->len <= p->len);
}

static onic_pipe_action_t send_step(unit_random_t *r, pipe_case_t *p)
{
    const unsigned buffer = p->sender.buffer;
    const uint64_t seen =
        onic_sender_asks(&p->sender) ? load(r, &p->acknowledged[buffer], p->patience) : 0;
    onic_piece_t piece;
    const onic_pipe_action_t action = onic_sender_next(&p->sender, seen, &piece);

    if (action != ONIC_PIPE_MOVE)
        return action;
    check_piece(p, &piece, p->packed);
    UNIT_CHECK(piece.len % p->granule == 0 || piece.pos + piece.len == p->len);
    UNIT_CHECK((p->free >> piece.buffer & 1) == 0);
    uint32_t n = piece.len;
    if (p->cut_in > 0 && unit_once_in(r, p->cut_in) && n >= ONIC_CUT && piece.pos + n < p->len)
        n -= (uint32_t)unit_below(r, ONIC_CUT);
    for (uint32_t i = 0; i < n; i++)
        p->buffer[piece.buffer][piece.offset + i] = byte_at(p->packed + i);
    p->packed += n;
    store(&p->word[piece.buffer], onic_sender_filled(&p->sender, &piece, n));
    return action;
}

static onic_pipe_action_t receive_step(unit_random_t *r, pipe_case_t *p)
{
    const unsigned buffer = p->receiver.buffer;
    onic_piece_t piece;
    const onic_pipe_action_t action =
        onic_receiver_next(&p->receiver, load(r, &p->word[buffer], p->patience), &piece);

    if (action != ONIC_PIPE_MOVE)
        return action;
    check_piece(p, &piece, p->taken);
    uint32_t n = piece.len;
    if (p->part_in > 0 && unit_once_in(r, p->part_in))
        n = 1 + (uint32_t)unit_below(r, n);
    for (uint32_t i = 0; i < n; i++) {
        UNIT_CHECK(p->buffer[piece.buffer][piece.offset + i] == byte_at(p->taken + i));
        p->buffer[piece.buffer][piece.offset + i] = 0xa5;
    }
    p->taken += n;
    const onic_consumed_t c = onic_receiver_taken(&p->receiver, &piece, n);
    if (c.acknowledge != 0)
        store(&p->acknowledged[piece.buffer], c.acknowledge);
    if (c.free)
        p->free |= UINT64_C(1) << piece.buffer;
    return action;
}

START_TEST(all_arrives)
{
    static pipe_case_t p;
    unit_random_t r = {unit_seed() + (uint64_t)_i};

    for (int round = 0; round < 400; round++) {
        onic_pipe_action_t sent = ONIC_PIPE_MOVE, received = ONIC_PIPE_MOVE;
        const uint64_t bias = 2 + unit_below(&r, 20);
        const bool fast_sender = unit_once_in(&r, 2);

        begin(&r, &p);
        for (long step = 0; sent != ONIC_PIPE_DONE || received != ONIC_PIPE_DONE; step++) {
            UNIT_CHECK(step < 100 * LEN_MAX);
            if (unit_once_in(&r, bias) != fast_sender)
                sent = send_step(&r, &p);
            else
                received = receive_step(&r, &p);
            UNIT_CHECK(sent != ONIC_PIPE_FAILED && received != ONIC_PIPE_FAILED);
            UNIT_CHECK(p.taken <= p.packed);
        }
        UNIT_CHECK(p.taken == p.len && p.packed == p.len);
        for (unsigned i = 0; i < ONIC_RX_BUFFERS_MAX; i++)
            for (unsigned k = 0; k <= BUFFER_MAX; k++)
                UNIT_CHECK(p.buffer[i][k] == 0xa5);
    }
}
END_TEST

/* Without folding nothing is acknowledged, and each buffer is free as soon as it is consumed. */
START_TEST(once_round_needs_no_acknowledgement)
{
    static pipe_case_t p;
    unit_random_t r = {unit_seed()};
    onic_schedule_t schedule;
    unsigned buffers = 0;

    begin(&r, &p);
    p.len = 1000;
    p.lease = (onic_lease_t){0x3f0, 256};
    p.granule = 1;
    p.cut_in = p.part_in = 0;
    onic_schedule_growing(&schedule, 256, 1, 1, 256);
    onic_sender_init(&p.sender, p.len, &p.lease, &schedule, 64, 1);
    onic_receiver_init(&p.receiver, p.len, &p.lease);
    while (send_step(&r, &p) == ONIC_PIPE_MOVE)
        ;
    ck_assert_uint_eq(p.packed, 1000);
    for (int i = 0; i < 1000 && receive_step(&r, &p) != ONIC_PIPE_DONE; i++)
        if ((unsigned)__builtin_popcountll(p.free) != buffers)
            ck_assert_uint_eq(p.free, (UINT64_C(16) << ++buffers) - 16);
    ck_assert_uint_eq(buffers, 4);
    for (unsigned i = 0; i < ONIC_RX_BUFFERS_MAX; i++)
        ck_assert_uint_eq(p.acknowledged[i].now + p.acknowledged[i].ncoming, 0);
}
END_TEST

/* The receiver begins before the chunk is complete. */
START_TEST(takes_blocks_as_they_come)
{
    static pipe_case_t p;
    unit_random_t r = {unit_seed()};
    onic_schedule_t schedule;

    begin(&r, &p);
    p.len = 256;
    p.patience = UINT64_MAX;
    p.granule = 1;
    p.cut_in = p.part_in = 0;
    p.lease = (onic_lease_t){2, 256};
    onic_schedule_growing(&schedule, 256, 1, 1, 256);
    onic_sender_init(&p.sender, p.len, &p.lease, &schedule, 64, 1);
    onic_receiver_init(&p.receiver, p.len, &p.lease);
    for (int i = 1; i <= 4; i++) {
        UNIT_CHECK(send_step(&r, &p) == ONIC_PIPE_MOVE);
        UNIT_CHECK(receive_step(&r, &p) == ONIC_PIPE_MOVE);
        ck_assert_uint_eq(p.taken, 64 * (uint64_t)i);
        ck_assert_int_eq(receive_step(&r, &p), i < 4 ? ONIC_PIPE_WAIT : ONIC_PIPE_DONE);
    }
}
END_TEST

/* ---- failures -------------------------------------------------------------------------------- */

START_TEST(sender_gives_up)
{
    static pipe_case_t p;
    unit_random_t r = {unit_seed() + 1};

    for (int round = 0; round < 1000; round++) {
        onic_pipe_action_t received = ONIC_PIPE_MOVE;

        begin(&r, &p);
        for (uint64_t step = unit_below(&r, 300); step > 0; step--)
            if (unit_once_in(&r, 2))
                (void)send_step(&r, &p);
            else
                received = receive_step(&r, &p);
        if (p.packed == p.len)
            continue;
        const unsigned buffer = p.sender.buffer;
        store(&p.word[buffer], onic_sender_fail(&p.sender));
        UNIT_CHECK(send_step(&r, &p) == ONIC_PIPE_FAILED);
        for (int i = 0; received != ONIC_PIPE_FAILED; i++) {
            UNIT_CHECK(i < 20 * LEN_MAX && received != ONIC_PIPE_DONE);
            received = receive_step(&r, &p);
        }
        UNIT_CHECK(p.receiver.given_up && p.taken <= p.packed);
    }
}
END_TEST

/** A word that may pass for one. */
static uint64_t any_word(unit_random_t *r, const pipe_case_t *p)
{
    uint64_t word = unit_random64(r);

    if (unit_once_in(r, 2))
        word = (uint64_t)(p->receiver.round + unit_below(r, 3) - 1) << 32 | (uint32_t)word;
    if (unit_once_in(r, 2))
        word = (word & ~UINT64_C(0x1fffffff)) | unit_below(r, BUFFER_MAX + 2);
    return word;
}

/* Whatever stands in the words: no piece is outside its buffer or the transfer, no buffer is used
 * after it is free, and it comes to an end or waits. */
START_TEST(garbage_at_the_receiver)
{
    static pipe_case_t p;
    unit_random_t r = {unit_seed() + 2};
    unsigned ended = 0;

    for (int round = 0; round < 20000; round++) {
        begin(&r, &p);
        for (int step = 0; step < 50; step++) {
            onic_piece_t piece;
            const onic_pipe_action_t action =
                onic_receiver_next(&p.receiver, any_word(&r, &p), &piece);
            if (action == ONIC_PIPE_WAIT)
                continue;
            if (action != ONIC_PIPE_MOVE) {
                ended++;
                UNIT_CHECK(onic_receiver_next(&p.receiver, any_word(&r, &p), &piece) == action);
                break;
            }
            check_piece(&p, &piece, p.taken);
            UNIT_CHECK((p.free >> piece.buffer & 1) == 0);
            const uint32_t n = 1 + (uint32_t)unit_below(&r, piece.len);
            p.taken += n;
            if (onic_receiver_taken(&p.receiver, &piece, n).free)
                p.free |= UINT64_C(1) << piece.buffer;
        }
    }
    UNIT_CHECK(ended > 10000);
}
END_TEST

/* Beyond the buffer, beyond the transfer: the transfer ends. */
START_TEST(wrong_words_end_it)
{
    const onic_lease_t lease = {.buffers = 3, .buffer_bytes = 4096};
    const uint64_t first = UINT64_C(1) << 32, words[] = {first | 4097, first | 3001};
    onic_piece_t piece;
    onic_receiver_t r;

    for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        onic_receiver_init(&r, i == 0 ? 10000 : 3000, &lease);
        ck_assert(onic_receiver_next(&r, 8, &piece) == ONIC_PIPE_WAIT);
        ck_assert(onic_receiver_next(&r, words[i], &piece) == ONIC_PIPE_FAILED);
        ck_assert(!r.given_up);
    }
}
END_TEST

/* Positions have 64 bits: what is sent and taken meets beyond 4 GiB, and ends where it should. */
START_TEST(more_than_32_bits)
{
    const onic_lease_t lease = {.buffers = 5, .buffer_bytes = UINT32_C(1) << 27};
    const uint64_t len = (UINT64_C(1) << 34) + 12345;
    uint64_t word[3] = {0}, acknowledged[3] = {0}, sent = 0, taken = 0;
    onic_pipe_action_t sends, takes;
    onic_schedule_t schedule;
    onic_receiver_t r;
    onic_piece_t piece;
    onic_sender_t s;

    onic_schedule_growing(&schedule, 65536, 2, 1, lease.buffer_bytes);
    onic_sender_init(&s, len, &lease, &schedule, 0, 1);
    onic_receiver_init(&r, len, &lease);
    do {
        sends = onic_sender_next(&s, acknowledged[s.buffer], &piece);
        if (sends == ONIC_PIPE_MOVE) {
            UNIT_CHECK(piece.pos == sent && piece.len <= len - sent);
            sent += piece.len;
            word[piece.buffer] = onic_sender_filled(&s, &piece, piece.len);
        }
        takes = onic_receiver_next(&r, word[r.buffer], &piece);
        if (takes == ONIC_PIPE_MOVE) {
            UNIT_CHECK(piece.pos == taken && piece.len <= sent - taken);
            taken += piece.len;
            const onic_consumed_t c = onic_receiver_taken(&r, &piece, piece.len);
            acknowledged[piece.buffer] =
                c.acknowledge != 0 ? c.acknowledge : acknowledged[piece.buffer];
        }
        UNIT_CHECK(sends != ONIC_PIPE_FAILED && takes != ONIC_PIPE_FAILED);
    } while (sends != ONIC_PIPE_DONE || takes != ONIC_PIPE_DONE);
    UNIT_CHECK(sent == len && taken == len);
}
END_TEST

int main(void)
{
    return UNIT_RUN("pipeline pipe", UNIT_LOOP(all_arrives, 0, 8),
                    UNIT_ONCE(once_round_needs_no_acknowledgement),
                    UNIT_ONCE(takes_blocks_as_they_come), UNIT_ONCE(sender_gives_up),
                    UNIT_ONCE(garbage_at_the_receiver), UNIT_ONCE(wrong_words_end_it),
                    UNIT_ONCE(more_than_32_bits));
}
