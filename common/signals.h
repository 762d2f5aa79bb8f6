/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The signals that helper threads leave to the application's threads. */
#ifndef ONIC_SIGNALS_H
#define ONIC_SIGNALS_H

#include <signal.h>
#include <stddef.h>

/** All but those of faults of the thread itself: where these are blocked the kernel ends the
 * process without anybody's report. */
static inline void onic_signals_to_block(sigset_t *set)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};

    sigfillset(set);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        sigdelset(set, faults[i]);
}

#endif
