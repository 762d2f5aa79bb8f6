/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-3 */
/* windows: create dynamic */
/* methods: auto cma sieve pack pipeline rdma */
/* p2p: */
/* timeout: 120 */
/**
 * @file
 * Processes that give up their rights after MPI_Init, before they have talked to another one: rank
 * 1 becomes another user, of the same group, and rank 2 lets nobody look into it. They cannot open
 * the files of others then, and messages and windows work all the same.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <unistd.h>

#include "test/mpi/refused.h"

/** Not root; it has nothing on the machine. */
#define USER 65534

int main(int argc, char **argv)
{
    void *from, *to, *memory;

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    if (geteuid() != 0)
        tl_skip("only root can become another user");
    if (tl_rank() == 1)
        TL_CHECK(setresuid(USER, USER, USER) == 0, "setresuid");
    else if (tl_rank() == 2)
        tl_closed(true);
    from = tl_alloc(REFUSED_BYTES);
    to = tl_alloc(REFUSED_BYTES);
    memory = tl_alloc(REFUSED_BYTES);
    for (int i = 0; i < 4; i++)
        refused_message(from, to, i);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        tl_window_t w = refused_window(kind, memory);

        refused_accesses(&w);
        for (int i = 0; i < 4; i++)
            refused_message(from, to, i);
        refused_accesses(&w);
        refused_window_free(&w, memory);
    }
    free(from);
    free(to);
    free(memory);
    return tl_finish();
}
