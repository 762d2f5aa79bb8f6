/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Texts of any thread, helper threads among them: below MPI_THREAD_MULTIPLE Open MPI's output is
 * for MPI threads alone. What helper threads say waits in a queue until an MPI thread makes
 * progress, or the end.
 */
#ifndef ONIC_SAY_H
#define ONIC_SAY_H

#include <stdatomic.h>
#include <stdbool.h>

#include "common/support/export.h"

/** Most texts that wait; those that come when there are so many are dropped. */
#define ONIC_SAY_MAX 64

/** Prints a line. In a helper thread it is printed later, by onic_say_waiting. Any thread. */
ONIC_EXPORT void onic_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** The calling thread is a helper thread: it prints nothing from now on. */
ONIC_EXPORT void onic_say_later(void);
ONIC_EXPORT bool onic_says_later(void);

/** How many texts wait. */
extern ONIC_EXPORT atomic_uint onic_say_count;

/** Prints what waits, in the order in which it was said. MPI threads. */
ONIC_EXPORT void onic_say_waiting_texts(void);

static inline void onic_say_waiting(void)
{
    if (atomic_load_explicit(&onic_say_count, memory_order_relaxed) != 0)
        onic_say_waiting_texts();
}

#endif
