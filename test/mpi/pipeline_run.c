/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Operations of all kinds between all ranks; see pipeline_traffic.h. */
#include "test/mpi/testlib.h"

#include <string.h>
#include <unistd.h>

#include "ompi/constants.h"

#include "test/mpi/pipeline_traffic.h"

enum { AT_ONCE = 6, PAGE = 4096, SERVED = 4 };

static uint64_t some_length(tl_rng_t *rng, uint64_t most)
{
    static const uint64_t edges[] = {1,    7,    8,    9,     4087,  4088,  4089,
                                     4095, 4096, 4097, 28616, 28617, 32768, 65537};
    const uint64_t pick = (uint64_t)tl_range(rng, 0, 9);

    if (pick < 4)
        return edges[tl_range(rng, 0, sizeof(edges) / sizeof(edges[0]) - 1)];
    return pick == 9 ? most : 1 + (uint64_t)tl_range(rng, 0, (int64_t)(most >> 2 * pick));
}

static void choose(tl_rng_t *rng, move_t *m, uint64_t most)
{
    memset(m, 0, sizeof(*m));
    m->kind = tl_range(rng, 0, 1) ? PUT : GET;
    m->target = (tl_rank() + (int)tl_range(rng, 1, tl_size() - 1)) % tl_size();
    m->mine = (shape_t)tl_range(rng, 0, m->kind == GET ? SHAPES - 1 : SHAPES - 2);
    m->theirs = (shape_t)tl_range(rng, 0, m->kind == PUT ? SHAPES - 1 : SHAPES - 2);
    m->len = some_length(rng, most);
    m->seed = (uint64_t)tl_range(rng, 0, 1 << 20);
    move_prepare(m);
}

void moves_run(tl_rng_t *rng, int n, uint64_t most)
{
    move_t m[AT_ONCE];
    enum { IDLE, CHOSEN, STARTED } state[AT_ONCE] = {IDLE};
    const double end = MPI_Wtime() + MOVES_PATIENCE;
    int begun = 0, done = 0;

    while (done < n && MPI_Wtime() < end) {
        for (int i = 0; i < AT_ONCE; i++) {
            if (state[i] == IDLE && begun < n) {
                choose(rng, &m[i], begun % 16 == 0 ? most : most / 8 + 1);
                begun++;
                state[i] = CHOSEN;
            }
            if (state[i] == CHOSEN && move_start(&m[i])) {
                state[i] = STARTED;
            } else if (state[i] == STARTED && move_is_done(&m[i])) {
                /* Only then: the helper thread hears of it at any time. */
                if (m[i].refused) {
                    state[i] = CHOSEN;
                    continue;
                }
                TL_CHECK(m[i].status == OMPI_SUCCESS, "an operation failed: %d", m[i].status);
                move_finish(&m[i]);
                done++;
                state[i] = IDLE;
            }
        }
        onic_transport_progress();
    }
    if (!TL_CHECK(done == n, "%d of %d operations are done", done, n))
        tl_die("operations hang");
}

void moves_pairs(size_t rx_pool, size_t buffer, int n, uint64_t most)
{
    tl_rng_t rng = tl_rng(tl_seed() + rx_pool, (uint64_t)tl_rank());

    moves_open(rx_pool, buffer);
    TL_CHECK(onic_pipeline_rx_bytes() <= (rx_pool > PAGE ? rx_pool : PAGE) || rx_pool == 0,
             "a receive pool of %zu bytes", onic_pipeline_rx_bytes());
    moves_run(&rng, n * tl_factor(), most);
    moves_meet(MPI_COMM_WORLD);
    TL_CHECK(atomic_load(&moves.wrong) == 0, "%ld transfers were wrong at their target",
             atomic_load(&moves.wrong));
    moves_close();
}

/* ---- receivers that are away ----------------------------------------------------------------- */

/** Wakes a helper thread that is asleep each millisecond. */
static void wait_waking(const move_t *m)
{
    const double end = MPI_Wtime() + MOVES_PATIENCE;

    for (double last = 0; !move_is_done(m) && MPI_Wtime() < end; onic_transport_progress()) {
        if (MPI_Wtime() < last)
            continue;
        onic_transport_lock();
        const bool can = onic_peer_can_wake(moves.peers[m->target]);
        onic_transport_unlock();
        if (can)
            onic_peer_wake(moves.peers[m->target]);
        last = MPI_Wtime() + 0.001;
    }
}

static void move_with_all(bool wakes)
{
    usleep(10000);
    for (int i = 0; i < SERVED * (tl_size() - 1); i++) {
        move_t m = {.kind = i % 2 ? PUT : GET,
                    .target = 1 + i / SERVED,
                    .mine = BLOCKS_8,
                    .theirs = NESTED,
                    .len = (100 << 10) + (uint64_t)i,
                    .seed = (uint64_t)i};
        move_prepare(&m);
        TL_CHECK(move_start(&m), "no buffer");
        if (wakes)
            wait_waking(&m);
        move_wait(&m);
        move_finish(&m);
    }
}

void moves_away(bool wanted, bool wakes)
{
    atomic_store(&moves.taken, 0);
    atomic_store(&moves.foreign, 0);
    moves_open(4 * PAGE, PAGE);
    onic_transport_want_server(wanted);
    moves_meet(MPI_COMM_WORLD);
    if (tl_rank() == 0) {
        move_with_all(wakes);
    } else {
        /* Not in MPI until all are done. */
        for (int i = 0; i < 6000 && atomic_load(&moves.taken) < SERVED; i++)
            usleep(10000);
        TL_CHECK(atomic_load(&moves.taken) == SERVED && atomic_load(&moves.foreign) == SERVED,
                 "%ld of %d are done, %ld by the helper thread", atomic_load(&moves.taken), SERVED,
                 atomic_load(&moves.foreign));
        TL_CHECK(atomic_load(&moves.wrong) == 0, "wrong data");
    }
    moves_meet(MPI_COMM_WORLD);
    onic_transport_want_server(false);
    moves_close();
}

/* ---- leases that are withdrawn --------------------------------------------------------------- */

static void withdrawn(void *arg, int status)
{
    (void)arg;
    TL_CHECK(false, "a transfer that was withdrawn has ended: %d", status);
}

void moves_withdraw(void)
{
    memory_t memory = memory_make(IRREGULAR, 100 << 10, 1);
    onic_peer_t *other = moves.peers[(tl_rank() + 1) % tl_size()];
    onic_ticket_t ticket;
    int had = 0;

    moves_open(4 * PAGE, PAGE);
    for (int i = 0; i < 100; i++) {
        onic_pipeline_end_t end = memory_end(&memory, IRREGULAR, true, withdrawn, NULL);
        onic_transport_lock();
        onic_transfer_t *t = onic_pipeline_expect_locked(other, &end, &ticket);
        onic_transport_unlock();
        if (i % 2)
            onic_transport_progress();
        onic_transport_lock();
        if (t != NULL) {
            onic_pipeline_withdraw_locked(t);
            had++;
        }
        onic_transport_unlock();
        onic_transport_progress();
        onic_layout_fini(&end.layout);
    }
    TL_CHECK(had >= 50, "only %d of 100 could be had", had);
    memory_free(&memory);
    moves_close();
}
