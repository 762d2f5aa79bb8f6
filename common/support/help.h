/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Texts for the user that must not be lost, of any thread. What helper threads say waits
 *  until an MPI thread makes progress: below MPI_THREAD_MULTIPLE Open MPI's output is for those. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/support/export.h"

/** Tells Open MPI to look for help texts beside the object that holds `inside`, which may have been
 *  moved since it was installed; in `otherwise` where that cannot be found out. */
ONIC_EXPORT void onic_add_help_dir(const void *inside, const char *otherwise);

/** The folder that this library was loaded from, where its components lie, into `dir` of `cap`
 * bytes. False where that cannot be found out. Any thread. */
ONIC_EXPORT bool onic_component_dir(char *dir, size_t cap);

/** Prints the text `topic` of a help file, with its arguments put in as printf does; equal texts
 *  once by all processes of a job on a node together. Not by opal_show_help: that of Open MPI 4.1
 *  over a distribution's PMIx loses every second text. Any thread; of a helper thread only topic
 *  and file. */
ONIC_EXPORT void onic_help(const char *file, const char *topic, ...);

/** Prints a line. Equal ones of all that one mpirun has started on a node are printed once: for
 * what each process would say, with nothing in it that differs between them. Reads no structure of
 * Open MPI's, so it may be called in another series of it. Any thread. */
ONIC_EXPORT void onic_say_once(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Something has failed that needs descriptors: says so where none is left. Any thread. */
ONIC_EXPORT void onic_say_descriptors(void);

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
