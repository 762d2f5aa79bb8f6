/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_DEFAULT */
#endif
#include "test/mpi/testlib.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *tl_alloc(size_t bytes)
{
    void *memory = calloc(bytes > 0 ? bytes : 1, 1);

    if (memory == NULL)
        tl_die("out of memory");
    return memory;
}

/** What it notes of memory is memory of the process. */
static bool under_valgrind(void)
{
    const char *preloaded = getenv("LD_PRELOAD");
    return preloaded != NULL && strstr(preloaded, "vgpreload") != NULL;
}

size_t tl_private(void)
{
    unsigned long total = 0, resident = 0, shared = 0;
    FILE *file = NULL;

    if (dlsym(RTLD_DEFAULT, "__asan_init") == NULL && !under_valgrind())
        file = fopen("/proc/self/statm", "r");
    if (file != NULL) {
        if (fscanf(file, "%lu %lu %lu", &total, &resident, &shared) != 3)
            resident = shared = 0;
        fclose(file);
    }
    return (size_t)(resident - shared) * (size_t)sysconf(_SC_PAGESIZE);
}

size_t tl_allocated(void)
{
    const struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

void tl_growth_step(tl_growth_t *g, int i, int warm_up, int n)
{
    const int part = (n - warm_up) / TL_GROWTH_PARTS;

    if (i < warm_up || (i - warm_up) % part != 0 || i > warm_up + TL_GROWTH_PARTS * part)
        return;
    const size_t now = tl_private(), growth = i > warm_up && now > g->before ? now - g->before : 0;

    g->least = i == warm_up ? SIZE_MAX : growth < g->least ? growth : g->least;
    g->before = now;
}
