/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Operations of all kinds between all ranks; see pipeline_traffic.h. */
#include "test/mpi/testlib.h"

#include <string.h>

#include "ompi/constants.h"

#include "test/mpi/pipeline_traffic.h"

enum { AT_ONCE = 6 };

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
