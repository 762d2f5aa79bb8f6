/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-2 */
/* windows: allocate */
/* methods: auto */
/* engines: put */
/* p2p: auto */
/**
 * @file
 * The application's calls for memory do what the kernel's do, whichever component has loaded UCX,
 * whose hooks of memory up to 1.14 lose the address that memory is to be moved to: they are left
 * out where UCX has no use for them, and stand behind Open MPI's where there is an adapter. And
 * what is said to UCX about it stays out of the environment, which children inherit.
 */
#define _GNU_SOURCE
#include "test/mpi/testlib.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define BYTES ((size_t)1 << 20)
#define MODE  "UCX_MEM_MMAP_HOOK_MODE"

static unsigned char *map(void)
{
    void *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (at == MAP_FAILED)
        tl_die("no memory");
    return at;
}

/** Memory moves to where the application wants it, with all that is in it. */
static void check_move(const char *when)
{
    unsigned char *from = map(), *to = map(), *got;

    memset(from, 0x5a, BYTES);
    got = mremap(from, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, to);
    if (TL_CHECK(got == to, "%s: moved to %p in place of %p", when, (void *)got, (void *)to))
        TL_CHECK(to[0] == 0x5a && to[BYTES - 1] == 0x5a, "%s: what was there is lost", when);
    munmap(to, BYTES);
}

int main(int argc, char **argv)
{
    const char *given = getenv(MODE);

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    check_move("after MPI_Init");
    TL_CHECK(given != NULL || getenv(MODE) == NULL, "%s is in the environment", MODE);

    tl_window_t w = tl_win_make(tl_first_kind(), 4096, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    TL_MPI(MPI_Win_fence(0, w.win));
    for (int i = 0; i < 20; i++)
        TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    TL_MPI(MPI_Win_fence(0, w.win));
    check_move("with a window, after barriers");
    tl_win_free(&w);
    return tl_finish();
}
