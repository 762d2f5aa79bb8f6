/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The handshake of transfers between hosts, rule by rule. All of the protocol, with both of
 *  its sides, transfers that are stopped and processes that are lost, is in test/explore/grants. */
#include "common/pipeline/core/rma_handshake.h"

#include <string.h>

#include "test/unit/unit.h"

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

/** What becomes of a grant: buffers that there are not are never put to; a grant to one that was
 *  given up, or to a side that receives, changes nothing. */
START_TEST(grants)
{
    static const struct {
        bool sends, waits, over;
        uint64_t buffers;
        onic_granted_t granted;
    } cases[] = {
        {false, true, false, 1, ONIC_GRANT_IGNORED}, {true, false, false, 1, ONIC_GRANT_IGNORED},
        {true, true, false, 9, ONIC_GRANT_REFUSED},  {true, true, false, 0, ONIC_GRANT_REFUSED},
        {true, true, false, 5, ONIC_GRANT_TAKEN},    {true, true, true, 5, ONIC_GRANT_LATE}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        onic_rma_handshake_t t = {
            .sends = cases[i].sends, .waits = cases[i].waits, .over = cases[i].over};
        const bool changes = cases[i].granted != ONIC_GRANT_IGNORED;
        const bool leased = changes && cases[i].granted != ONIC_GRANT_REFUSED;

        ck_assert_int_eq(onic_rma_handshake_on_grant(&t, cases[i].buffers, 7), cases[i].granted);
        ck_assert_int_eq(t.waits, cases[i].waits && !changes);
        ck_assert_uint_eq(t.lease, leased ? cases[i].buffers : 0);
    }
}
END_TEST

START_TEST(acknowledgements)
{
    onic_rma_handshake_t t = {.sends = true};

    onic_rma_handshake_on_ack(&t, 3, 2);
    onic_rma_handshake_on_ack(&t, ONIC_RX_BUFFERS_MAX, 1);
    ck_assert(t.word[3] == 2 && t.lease == 0);
}
END_TEST

int main(void)
{
    return UNIT_RUN("rma_handshake", UNIT_ONCE(the_last_word_stands), UNIT_ONCE(blocks_of_a_chunk),
                    UNIT_ONCE(grants), UNIT_ONCE(acknowledgements));
}
