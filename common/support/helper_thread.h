/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What helper threads have in common: how they are started, when MPI threads count as away
 *  (they have not called for a whole nap), and how long they nap between two looks: longer where
 *  looking has been of no use. */
#pragma once

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Naps between `least` and `most`, of any unit; `now` begins as `least`. */
typedef struct onic_naps {
    unsigned least;
    unsigned most;
    unsigned now;
} onic_naps_t;

#define ONIC_NAPS(least, most) ((onic_naps_t){(least), (most), (least)})

/** The next nap is twice as long, if that is allowed. */
static inline void onic_naps_lengthen(onic_naps_t *n)
{
    n->now = n->now < n->most / 2 ? 2 * n->now : n->most;
}

/** The next nap is the shortest. */
static inline void onic_naps_shorten(onic_naps_t *n)
{
    n->now = n->least;
}

/** All signals but those of faults of the thread itself: these are to be reported. */
static inline void onic_signals_to_block(sigset_t *set)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};

    sigfillset(set);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        sigdelset(set, faults[i]);
}

/** Starts a thread of that name (15 letters at most) which leaves all signals to the application's
 *  threads. @return 0, or an errno */
static inline int onic_helper_start(pthread_t *thread, const char *name, void *(*run)(void *),
                                    void *arg)
{
    sigset_t all, before;

    onic_signals_to_block(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int rc = pthread_create(thread, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc == 0)
        (void)pthread_setname_np(*thread, name);
    return rc;
}
