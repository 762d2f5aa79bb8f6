/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Blocks with words: both machines against each other over a network that delivers puts byte by
 * byte in the order of their addresses, into slots that still hold what was there before.
 */
#include "common/mover/pipe/blocks.h"

#include <string.h>

#include "test/unit/unit.h"

enum { SLOTS = 4, PAGES = 3, SLOT_BYTES = PAGES * ONIC_BLOCK_BYTES };

/** A put under way: bytes [from, to) of a slot, of which those below `at` have come. */
typedef struct put {
    unsigned slot;
    size_t at, to;
} put_t;

typedef struct wire {
    onic_blocks_t b;
    _Alignas(64) unsigned char bounce[SLOTS][SLOT_BYTES];
    _Alignas(64) unsigned char landing[SLOTS][SLOT_BYTES];
    put_t put[64];
    unsigned nputs;
    uint64_t acknowledged[SLOTS];
    onic_sender_t sender;
    onic_receiver_t receiver;
    bool committed;       /* the lease is the real one */
    uint64_t early;       /* the last word before */
    uint32_t sent[SLOTS]; /* blocks of the present chunk that were put */
    uint64_t packed, taken;
    unit_random_t r;
} wire_t;

static wire_t w;

static unsigned char byte_at(uint64_t pos)
{
    return (unsigned char)(pos * 7 + (pos >> 8) * 13 + 1);
}

/** Some more bytes of the first put come. */
static void deliver(uint64_t most)
{
    put_t *p = &w.put[0];
    size_t n = 1 + unit_below(&w.r, most);

    if (w.nputs == 0)
        return;
    n = n < p->to - p->at ? n : p->to - p->at;
    /* A word of 8 bytes comes as a whole. */
    n = (p->at + n) % 8 == 0 || p->at + n == p->to ? n : (p->at + n) / 8 * 8 + 8 - p->at;
    memcpy(w.landing[p->slot] + p->at, w.bounce[p->slot] + p->at, n);
    p->at += n;
    if (p->at == p->to)
        memmove(p, p + 1, --w.nputs * sizeof(*p));
}

/** What the carrier does: a put when the chunk ends, or now and then. */
static void publish(unsigned slot, uint64_t word)
{
    const uint32_t upto = onic_blocks_of(&w.b, onic_word_bytes(word));

    onic_blocks_mark(&w.b, w.bounce[slot], word);
    if (!w.committed) {
        w.early = word;
        return;
    }
    if (!onic_word_ends(word) && !unit_once_in(&w.r, 3))
        return;
    UNIT_CHECK(w.nputs < 64);
    w.put[w.nputs++] = (put_t){slot, (size_t)w.sent[slot] * w.b.bytes, (size_t)upto * w.b.bytes};
    w.sent[slot] = onic_word_ends(word) ? 0 : upto;
}

static bool send_some(void)
{
    onic_piece_t piece;
    const onic_turn_t turn = onic_sender_next(&w.sender, w.acknowledged[w.sender.slot], &piece);

    if (turn != ONIC_TURN_MOVE) {
        UNIT_CHECK(turn != ONIC_TURN_FAILED);
        return turn != ONIC_TURN_DONE;
    }
    const uint32_t n = piece.len;
    char *to = (char *)w.bounce[piece.slot] + onic_blocks_at(&w.b, piece.offset);

    UNIT_CHECK(piece.len <= onic_blocks_run(&w.b, piece.offset));
    for (uint32_t i = 0; i < n; i++)
        to[i] = (char)byte_at(piece.pos + i);
    w.packed += n;
    publish(piece.slot, onic_sender_filled(&w.sender, &piece, n));
    return true;
}

static bool take_some(void)
{
    onic_piece_t piece;
    const onic_receiver_t *r = &w.receiver;
    const unsigned char *slot = w.landing[r->slot];
    const uint64_t word = onic_blocks_look(&w.b, slot, SLOT_BYTES, r->round, r->published);
    const onic_turn_t turn = onic_receiver_next(&w.receiver, word, &piece);

    UNIT_CHECK(turn != ONIC_TURN_FAILED);
    if (turn != ONIC_TURN_MOVE)
        return turn != ONIC_TURN_DONE;
    uint32_t n = onic_blocks_run(&w.b, piece.offset);

    n = n < piece.len ? n : piece.len;
    for (uint32_t i = 0; i < n; i++)
        UNIT_CHECK(slot[onic_blocks_at(&w.b, piece.offset) + i] == byte_at(piece.pos + i));
    w.taken += n;
    const onic_consumed_t consumed = onic_receiver_taken(&w.receiver, &piece, n);

    if (consumed.acknowledge != 0)
        w.acknowledged[piece.slot] = consumed.acknowledge;
    return true;
}

/** The real lease comes: what was packed so far stands in its first slot, and nothing of it went.
 */
static void commit(uint64_t slots)
{
    const unsigned slot = (unsigned)__builtin_ctzll(slots);
    const uint64_t word = onic_sender_replace_lease(&w.sender, slots, w.early);
    const onic_lease_t lease = {slots, w.sender.lease.slot_bytes};

    if (slot != 0)
        memcpy(w.bounce[slot], w.bounce[0], SLOT_BYTES);
    onic_receiver_init(&w.receiver, w.sender.len, &lease);
    w.committed = true;
    if (word != 0)
        publish(slot, word);
}

static void run_one(uint64_t len, uint32_t granule)
{
    const uint64_t slots = 1 + unit_below(&w.r, (1 << SLOTS) - 1);
    onic_lease_t lease = {1, 0};
    onic_schedule_t schedule;
    bool sends = true, takes = true;

    w.b = onic_blocks_cut(granule);
    lease.slot_bytes = onic_blocks_room(&w.b, SLOT_BYTES);
    onic_schedule_growing(&schedule, 1 + (double)unit_below(&w.r, 2 * ONIC_BLOCK_BYTES),
                          1 + (double)unit_below(&w.r, 20) / 10, w.b.data, lease.slot_bytes);
    onic_sender_init(&w.sender, len, &lease, &schedule, w.b.data, granule);
    onic_receiver_init(&w.receiver, len, &lease);
    memset(w.acknowledged, 0, sizeof(w.acknowledged));
    w.packed = w.taken = w.early = 0;
    w.committed = false;
    for (unsigned s = 0; s < SLOTS; s++)
        onic_blocks_clear(&w.b, w.landing[s], SLOT_BYTES);
    while (!w.committed || sends || takes || w.nputs > 0) {
        if (!w.committed && unit_once_in(&w.r, 6))
            commit(slots);
        switch (unit_below(&w.r, 3)) {
        case 0:
            sends = w.nputs >= 60 || send_some();
            break;
        case 1:
            deliver(unit_once_in(&w.r, 2) ? 16 : 3 * ONIC_BLOCK_BYTES);
            break;
        default:
            takes = !w.committed || take_some();
        }
    }
    UNIT_CHECK(w.packed == len && w.taken == len);
}

/** Transfers one after another in the same memory, without clearing more than the words. */
START_TEST(transfers)
{
    static const uint32_t granules[] = {1, 8, 12, 16, 24, 3000, ONIC_BLOCK_BYTES - 8};

    w.r.state = unit_seed() + (uint64_t)_i;
    for (int n = 0; n < 200; n++) {
        const uint32_t granule = granules[unit_below(&w.r, 7)];
        const uint64_t most = unit_once_in(&w.r, 3) ? 10 : 100000;

        run_one(granule * (1 + unit_below(&w.r, 1 + most / granule)), granule);
    }
}
END_TEST

/** Whatever the memory holds: nothing outside the slot is read, and the machine survives it. */
START_TEST(garbage)
{
    unit_random_t r = {unit_seed()};
    unsigned char *slot = malloc(SLOT_BYTES);

    ck_assert(slot != NULL);
    for (int n = 0; n < 20000; n++) {
        const onic_blocks_t b = {ONIC_BLOCK_BYTES,
                                 1 + (uint32_t)unit_below(&r, ONIC_BLOCK_BYTES - 8)};
        const onic_lease_t lease = {1, onic_blocks_room(&b, SLOT_BYTES)};
        const uint32_t round = 1 + (uint32_t)unit_below(&r, 3);
        onic_receiver_t receiver;
        onic_piece_t piece;

        onic_receiver_init(&receiver, 1 + unit_below(&r, 100000), &lease);
        receiver.round = round;
        for (uint32_t k = 0; k < PAGES; k++) {
            uint64_t word = unit_random64(&r);

            if (!unit_once_in(&r, 4))
                word = (uint64_t)round << 32 | (word & 0xe0003fff);
            memcpy(slot + (k + 1) * ONIC_BLOCK_BYTES - 8, &word, sizeof(word));
        }
        const uint64_t word = onic_blocks_look(&b, slot, SLOT_BYTES, round,
                                               (uint32_t)unit_below(&r, lease.slot_bytes + 1));

        if (onic_receiver_next(&receiver, word, &piece) == ONIC_TURN_MOVE)
            UNIT_CHECK(piece.offset + piece.len <= lease.slot_bytes);
    }
    free(slot);
}
END_TEST

int main(void)
{
    return UNIT_RUN("mover_blocks", UNIT_LOOP(transfers, 0, 5), UNIT_ONCE(garbage));
}
