/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Makes and frees windows of all four kinds. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "perf/bench.h"

const char *const bench_window_names[BENCH_WIN_KINDS] = {"create", "allocate", "dynamic", "shared"};

static bool owns_memory(bench_window_kind_t kind)
{
    return kind == BENCH_WIN_CREATE || kind == BENCH_WIN_DYNAMIC;
}

/** A separate mapping, touched: memory from malloc may have been used by an earlier window. */
static char *map_memory(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        fprintf(stderr, "out of memory: %zu bytes\n", bytes);
        MPI_Abort(MPI_COMM_WORLD, BENCH_EXIT_NO_MEMORY);
    }
    return memset(p, 0, bytes);
}

static void unmap_memory(const bench_window_t *w)
{
    if (owns_memory(w->kind))
        munmap(w->base, w->bytes);
}

static int make_window(bench_window_t *w, MPI_Aint bytes, MPI_Comm comm)
{
    switch (w->kind) {
    case BENCH_WIN_CREATE:
        return MPI_Win_create(w->base, bytes, 1, MPI_INFO_NULL, comm, &w->win);
    case BENCH_WIN_ALLOCATE:
        return MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, comm, &w->base, &w->win);
    case BENCH_WIN_SHARED:
        return MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, comm, &w->base, &w->win);
    case BENCH_WIN_DYNAMIC:
        return MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &w->win);
    default:
        return MPI_ERR_ARG;
    }
}

static int attach(bench_window_t *w, MPI_Aint bytes, MPI_Aint *disp_p)
{
    *disp_p = 0;
    if (w->kind != BENCH_WIN_DYNAMIC)
        return MPI_SUCCESS;
    MPI_Get_address(w->base, disp_p);
    return MPI_Win_attach(w->win, w->base, bytes);
}

/** True if all ranks have succeeded; if not, rank 0 prints why. */
static bool agreed(int rc, const char *what, bench_window_kind_t kind, MPI_Comm comm)
{
    int rank, ok = rc == MPI_SUCCESS;
    MPI_Comm_rank(comm, &rank);
    MPI_Allreduce(MPI_IN_PLACE, &ok, 1, MPI_INT, MPI_MIN, comm);
    if (!ok && rank == 0) {
        char text[MPI_MAX_ERROR_STRING] = "another rank failed";
        int length;
        if (rc != MPI_SUCCESS)
            MPI_Error_string(rc, text, &length);
        fprintf(stderr, "window %s: %s failed: %s\n", bench_window_names[kind], what, text);
    }
    return ok;
}

int bench_window_open(bench_window_kind_t kind, size_t bytes, MPI_Comm comm, bench_window_t *w_p)
{
    MPI_Aint disp = 0;
    int ranks;
    MPI_Comm_size(comm, &ranks);
    *w_p = (bench_window_t){.kind = kind, .win = MPI_WIN_NULL, .bytes = bytes};
    if (owns_memory(kind))
        w_p->base = map_memory(bytes);
    MPI_Barrier(comm);
    double start = bench_now();
    int rc = make_window(w_p, (MPI_Aint)bytes, comm);
    w_p->make_seconds = bench_now() - start;
    if (!agreed(rc, "making it", kind, comm)) {
        unmap_memory(w_p);
        return -1;
    }
    start = bench_now();
    rc = attach(w_p, (MPI_Aint)bytes, &disp);
    w_p->make_seconds += bench_now() - start;
    if (!agreed(rc, "attaching memory", kind, comm)) {
        MPI_Win_free(&w_p->win);
        unmap_memory(w_p);
        return -1;
    }
    w_p->disp = bench_alloc((size_t)ranks * sizeof(*w_p->disp));
    MPI_Allgather(&disp, 1, MPI_AINT, w_p->disp, 1, MPI_AINT, comm);
    memset(w_p->base, 0, bytes);
    MPI_Barrier(comm);
    return 0;
}

void bench_window_close(bench_window_t *w)
{
    if (w->kind == BENCH_WIN_DYNAMIC)
        MPI_Win_detach(w->win, w->base);
    MPI_Win_free(&w->win);
    unmap_memory(w);
    free(w->disp);
}
