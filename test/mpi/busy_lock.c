/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE
#include "test/mpi/busy_lock.h"

#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>

static struct {
    void *pages;
    size_t bytes;
    long ms;
    void (*held)(bool);
    volatile sig_atomic_t waited;
} trap;

/** Whoever reads the pages waits here; then they can be read. */
static void on_trap(int signal_number, siginfo_t *info, void *context)
{
    const char *at = info->si_addr, *from = trap.pages;
    const struct timespec time = {trap.ms / 1000, trap.ms % 1000 * 1000000L};

    (void)context;
    if (at < from || at >= from + trap.bytes) {
        signal(signal_number, SIG_DFL);
        return;
    }
    trap.waited = 1;
    if (trap.held != NULL)
        trap.held(true);
    nanosleep(&time, NULL);
    if (trap.held != NULL)
        trap.held(false);
    mprotect(trap.pages, trap.bytes, PROT_READ | PROT_WRITE);
}

void busy_lock_hold(const tl_window_t *w, MPI_Aint disp, int longs, long ms, void (*held)(bool))
{
    const struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    struct sigaction before;

    trap.bytes = (size_t)longs * sizeof(int64_t);
    trap.ms = ms;
    trap.held = held;
    trap.waited = 0;
    trap.pages = mmap(NULL, trap.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    TL_CHECK(trap.pages != MAP_FAILED, "no memory");
    sigaction(SIGSEGV, &action, &before);
    TL_MPI(MPI_Accumulate(trap.pages, longs, MPI_INT64_T, 0, tl_disp(w, 0, disp), longs,
                          MPI_INT64_T, MPI_SUM, w->win));
    TL_MPI(MPI_Win_flush(0, w->win));
    sigaction(SIGSEGV, &before, NULL);
    TL_CHECK(trap.waited, "the lock was not held");
    munmap(trap.pages, trap.bytes);
}
