/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The handshake of transfers between hosts, each rule by itself, and all of the protocol in a
 * simulation (pipeline_sim.h): transfers are cancelled on both sides, senders die while their puts
 * are under way, or go on to put when the receiver has lost them. Each transfer ends, no buffer of
 * the lost is used again, and in the end nothing else is left.
 */
#include <string.h>

#include "test/unit/pipeline_sim.h"

/** No transfer with it begins any more. */
static bool is_over(unsigned p)
{
    return w.dead[p] || w.asker[p].lost;
}

static void run(uint64_t seed, bool cancels, bool deaths)
{
    static const unsigned totals[] = {1, 2, 3, 5, 64};
    const unsigned most = 150, total = totals[seed % 5];
    unsigned long steps = 0;

    sim_begin(seed, total);
    while ((w.starts < most || !sim_is_quiet()) && steps++ < 4000000) {
        sim_happen(most, cancels, deaths);
        if (is_over(0) && is_over(1) && is_over(2))
            w.starts = most;
    }
    ck_assert_msg(sim_is_quiet(), "%u buffers, seed %" PRIu64 ": something never ends", total,
                  seed);
    ck_assert_uint_eq(w.free | sim_lost(), onic_buffers_first(total));
    for (unsigned p = 0; p < PEERS; p++)
        ck_assert(w.asker[p].held == 0 || w.asker[p].lost);
    if (!cancels && !deaths)
        ck_assert_int_eq(w.bad, 0);
    ck_assert_int_gt(w.good + (deaths ? 1 : 0), 0);
}

START_TEST(all_end_well)
{
    run((uint64_t)_i, false, false);
}
END_TEST

START_TEST(cancels_on_both_sides)
{
    run((uint64_t)_i, true, false);
    ck_assert_int_gt(w.cancels, 0);
}
END_TEST

START_TEST(senders_die_or_are_lost)
{
    run((uint64_t)_i, true, true);
}
END_TEST

/* ---- single rules ---------------------------------------------------------------------------- */

/** The word that gives up may overtake, or be overtaken by, that of the same buffer's round before:
 *  it stands. The receiver waited for ever where the other one came last. */
START_TEST(the_last_word_stands)
{
    static onic_rma_handshake_t t;
    const uint64_t chunk = UINT64_C(1) << 32 | UINT64_C(1) << 31 | 8,
                   later = chunk + (UINT64_C(1) << 32);
    onic_sender_t s = {.round = 2};
    const uint64_t fails = onic_sender_fail(&s);

    memset(&t, 0, sizeof(t));
    onic_rma_handshake_on_word(&t, 3, later);
    onic_rma_handshake_on_word(&t, 3, chunk);
    ck_assert(t.word[3] == later);
    onic_rma_handshake_on_word(&t, 3, fails);
    onic_rma_handshake_on_word(&t, 3, later);
    onic_rma_handshake_on_word(&t, ONIC_RX_BUFFERS_MAX, later);
    ck_assert(t.word[3] == fails);
}
END_TEST

/** A chunk is put block by block, and its newest word counts, in whatever order they come. */
START_TEST(blocks_of_a_chunk)
{
    static onic_rma_handshake_t s, r;
    const uint64_t round = UINT64_C(1) << 32, ends = UINT64_C(1) << 31;
    const uint64_t words[] = {round | 16, round | 40, round | 41 | ends, 2 * round | 8 | ends};
    const uint32_t froms[] = {0, 16, 40, 0}, bytes[] = {16, 24, 1, 8};
    uint32_t from;

    memset(&s, 0, sizeof(s));
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_uint_eq(onic_rma_handshake_put(&s, words[i], &from), bytes[i]);
        ck_assert_uint_eq(from, froms[i]);
    }
    ck_assert_uint_eq(onic_rma_handshake_put(&s, ONIC_WORD_FAILS, &from), 0);
    for (unsigned from_word = 0; from_word < 4; from_word++)
        for (unsigned step = 1; step < 4; step += 2) {
            unsigned newest = 0;
            memset(&r, 0, sizeof(r));
            for (unsigned i = 0; i < 4; i++) {
                const unsigned k = (from_word + i * step) % 4;
                newest = k > newest ? k : newest;
                onic_rma_handshake_on_word(&r, 3, words[k]);
                ck_assert(r.word[3] == words[newest]);
            }
        }
}
END_TEST

/** Buffers that there are not are never put to; a grant of one that was given up, or to a side that
 *  receives, changes nothing. */
START_TEST(wrong_grants)
{
    static onic_rma_handshake_t t;

    memset(&t, 0, sizeof(t));
    t.waits = true;
    ck_assert_int_eq(onic_rma_handshake_on_grant(&t, 1, 7), ONIC_GRANT_IGNORED);
    ck_assert(t.waits && t.lease == 0);
    t.sends = true;
    ck_assert_int_eq(onic_rma_handshake_on_grant(&t, 9, 7), ONIC_GRANT_REFUSED);
    ck_assert_int_eq(onic_rma_handshake_on_grant(&t, 1, 7), ONIC_GRANT_IGNORED);
    onic_rma_handshake_on_ack(&t, ONIC_RX_BUFFERS_MAX, 1);
    ck_assert(t.lease == 0);
}
END_TEST

int main(void)
{
    return UNIT_RUN("rma_handshake", UNIT_LOOP(all_end_well, 0, 50),
                    UNIT_LOOP(cancels_on_both_sides, 0, 50),
                    UNIT_LOOP(senders_die_or_are_lost, 0, 50), UNIT_ONCE(the_last_word_stands),
                    UNIT_ONCE(blocks_of_a_chunk), UNIT_ONCE(wrong_grants));
}
