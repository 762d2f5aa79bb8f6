/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/**
 * @file
 * Measuring with a peer: all at once, each with the next; with one that is not in MPI; and given up
 * at any moment, after which what still comes does no harm. What is measured is so once for all.
 */
#include "test/mpi/testlib.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/mover/links.h"
#include "common/mover/mover.h"
#include "common/mover/pair.h"
#include "test/mpi/meet.h"

#define PATIENCE_USEC 20000000
#define ROUNDS        100

static onic_peer_t **peers;
static meet_t board;

static bool reaches(int rank)
{
    onic_wire_lock();
    const bool reaches = onic_mover_reaches_locked(peers[rank]);
    onic_wire_unlock();
    return reaches;
}

static bool is_nothing(const onic_pair_samples_t *s)
{
    return s->ping == 0 && s->messages == 0 && s->slot == 0 && s->slots == 0;
}

static void measure_well(int rank)
{
    onic_pair_samples_t s;

    onic_measure_pair(peers[rank], PATIENCE_USEC, &s);
    TL_CHECK(s.ping > 0 && s.messages > 0, "rank %d: a message takes %g ns, long ones %g", rank,
             s.ping, s.messages);
    TL_CHECK((s.slot > 0) == reaches(rank) && (s.slots > 0) == reaches(rank),
             "rank %d: reached %d, but slots take %g and %g ns", rank, reaches(rank), s.slot,
             s.slots);
}

/** Each with the next. */
static void measure_all(void)
{
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    measure_well((tl_rank() + 1) % tl_size());
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

/** Rank 1 makes no progress until rank 0 has given up. */
static void measure_silent(void)
{
    onic_pair_samples_t s = {.ping = 1, .messages = 1, .slot = 1, .slots = 1};
    const long before = meet_entered(&board, 0);

    if (tl_size() < 2) {
        return;
    }
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (tl_rank() == 1) {
        onic_wire_lock();
        while (meet_entered(&board, 0) == before) {
            usleep(100);
        }
        onic_wire_unlock();
    } else if (tl_rank() == 0) {
        onic_measure_pair(peers[1], 2000, &s);
        TL_CHECK(is_nothing(&s), "a silent rank answers within %g ns", s.ping);
        (void)meet_enter(&board);
    }
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

static onic_links_known_t known_now(void)
{
    onic_wire_lock();
    const onic_links_known_t known = *onic_links_known_locked();
    onic_wire_unlock();
    return known;
}

static bool same(const onic_links_known_t *a, const onic_links_known_t *b)
{
    return a->version == b->version && memcmp(&a->measured, &b->measured, sizeof(a->measured)) == 0;
}

/** Measures again; nothing of what is known changes. */
static onic_links_known_t measure_again(bool single_copy, onic_peer_t *near)
{
    const onic_links_known_t before = known_now();
    onic_links_measure(single_copy, near, NULL, ONIC_LINKS_USEC);
    const onic_links_known_t after = known_now();
    TL_CHECK(memcmp(&before.measured.alone, &after.measured.alone, sizeof(before.measured.alone)) ==
                 0,
             "what a process can measure by itself is measured twice");
    TL_CHECK(before.measured.node.ping == 0 || same(&before, &after), "a pair is measured twice");
    return after;
}

/** What is measured for one component is there for all. */
static void measure_for_all(void)
{
    onic_peer_t *next = peers[(tl_rank() + 1) % tl_size()];
    onic_measured_t theirs = {.alone = {.call = 1, .packed = 1}, .node = {.ping = 7}};

    onic_links_known_t known = known_now();
    if (known.version > 0) {
        return; /* the point-to-point layer has measured already */
    }
    TL_CHECK(memcmp(&onic_links_default, &known.links, sizeof(onic_links_default)) == 0,
             "numbers that nobody has measured");
    onic_links_measure(false, NULL, NULL, ONIC_LINKS_USEC);
    known = known_now();
    TL_CHECK(known.version == 1 && known.measured.alone.packed > 0 &&
                 known.measured.alone.call == 0 && is_nothing(&known.measured.node),
             "alone, without single copy: version %u, packed %g, call %g", known.version,
             known.measured.alone.packed, known.measured.alone.call);
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < ONIC_LINKS_TRIES; i++) {
        known = measure_again(false, next);
    }
    const bool measured = known.measured.node.ping > 0;
    TL_CHECK(known.version == (measured ? 2 : 1), "version %u", known.version);
    const onic_links_known_t later = measure_again(false, next);
    TL_CHECK(same(&known, &later), "a try more than there are");
    onic_links_take(&theirs);
    known = known_now();
    TL_CHECK(known.measured.alone.call == 1 && (measured || known.measured.node.ping == 7),
             "what others have measured is not taken");
    (void)measure_again(true, next);
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

static void measure_in_haste(void)
{
    tl_rng_t rng = tl_rng(1, (uint64_t)tl_rank());

    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < ROUNDS; i++) {
        onic_pair_samples_t s;

        onic_measure_pair(peers[(tl_rank() + i) % tl_size()], (unsigned)tl_range(&rng, 0, 400), &s);
        TL_CHECK(s.slots == 0 || (s.ping > 0 && s.messages > 0 && s.slot > 0),
                 "slots are measured, but not messages");
    }
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    const onic_wire_config_t config = {.single_copy = true, .tcp_seg_size = 65536};
    const onic_mover_config_t mover = {.area = 0};

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    board = meet_new(MPI_COMM_WORLD);
    peers = tl_alloc((size_t)tl_size() * sizeof(onic_peer_t *));
    TL_CHECK(onic_wire_open(&config) == 0, "the wire does not open");
    TL_CHECK(onic_mover_open(&mover) == 0, "the mover does not open");
    TL_CHECK(onic_wire_get_peers(MPI_COMM_WORLD, peers) == 0, "no peers");
    measure_for_all();
    measure_all();
    measure_silent();
    measure_all();
    measure_in_haste();
    measure_all();
    TL_CHECK(onic_mover_idle(), "something is under way when all is measured");
    onic_wire_put_peers(peers, tl_size());
    free(peers);
    onic_wire_flush();
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    onic_mover_close();
    onic_wire_close();
    meet_free(&board);
    return tl_finish();
}
