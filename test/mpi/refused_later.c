/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-3 */
/* windows: create dynamic */
/* methods: auto cma sieve pack pipeline */
/* p2p: */
/**
 * @file
 * Processes that forbid themselves to copy, by a filter of system calls, after MPI has done so for
 * a while, each with an error of its own: messages and windows go on, those made before and those
 * made after, and the kernel is asked once for each peer and each window that knew better.
 */
#include <errno.h>
#include <stdlib.h>

#include "test/mpi/refused.h"

int main(int argc, char **argv)
{
    static const int errors[] = {EPERM, ENOSYS, EACCES};
    void *from = tl_alloc(REFUSED_BYTES), *to = tl_alloc(REFUSED_BYTES);
    void *first = tl_alloc(REFUSED_BYTES), *second = tl_alloc(REFUSED_BYTES);

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        tl_window_t before = refused_window(kind, first), after;
        int all;

        refused_message(from, to, 0);
        refused_accesses(&before);
        all = refused_forbid(true, errors[tl_rank()]);
        TL_MPI(MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD));
        if (!all)
            tl_skip("system calls cannot be filtered here");
        const int calls = refused_calls();
        for (int i = 0; i < 4; i++)
            refused_message(from, to, i);
        refused_accesses(&before);
        refused_accesses(&before);
        after = refused_window(kind, second);
        refused_accesses(&after);
        /* By the receiver of messages, and by a put and a get in each window. */
        TL_CHECK(refused_calls() - calls <= 5, "window %s: the kernel was asked %d times",
                 tl_kind_name(kind), refused_calls() - calls);
        refused_window_free(&before, first);
        refused_window_free(&after, second);
    }
    free(from);
    free(to);
    free(first);
    free(second);
    return tl_finish();
}
