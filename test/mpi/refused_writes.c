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
 * Processes that forbid themselves to write to others, and still may read: that puts are refused,
 * in a window that was made before, costs neither its gets nor those of the next window, nor
 * messages, their single copy.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "test/mpi/counter.h"
#include "test/mpi/refused.h"

/** Accesses, whose gets go by single copy where that is forced. */
static void accesses(const tl_window_t *w, const char *when)
{
    const char *method = getenv("OMPI_MCA_osc_nicstride_method");
    counter_t *c = NULL;

    if (method != NULL && strcmp(method, "cma") == 0)
        c = counter_begin("osc_nicstride_ops_cma");
    refused_accesses(w);
    TL_CHECK(c == NULL || counter_read(c) >= REFUSED_GETS, "window %s, made %s: %llu of %d gets",
             tl_kind_name(w->kind), when, counter_read(c), REFUSED_GETS);
    counter_end(c);
}

/** Messages: by single copy where that is forced. */
static void messages(void *from, void *to)
{
    const char *protocol = getenv("OMPI_MCA_pml_superpipe_protocol");
    counter_t *c = NULL;

    if (protocol != NULL && strcmp(protocol, "copy") == 0)
        c = counter_begin("pml_superpipe_messages_copy");
    refused_message(from, to, 0);
    TL_CHECK(c == NULL || counter_read(c) == 1, "a message went without single copy");
    counter_end(c);
}

int main(int argc, char **argv)
{
    void *from = tl_alloc(REFUSED_BYTES), *to = tl_alloc(REFUSED_BYTES);
    void *first = tl_alloc(REFUSED_BYTES), *second = tl_alloc(REFUSED_BYTES);
    int provided;

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        tl_window_t before = refused_window(kind, first), after;
        int all;

        refused_accesses(&before);
        all = refused_forbid(false, EPERM);
        TL_MPI(MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD));
        if (!all)
            tl_skip("system calls cannot be filtered here");
        accesses(&before, "before");
        after = refused_window(kind, second);
        accesses(&after, "after");
        messages(from, to);
        refused_window_free(&before, first);
        refused_window_free(&after, second);
    }
    free(from);
    free(to);
    free(first);
    free(second);
    MPI_T_finalize();
    return tl_finish();
}
