/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Texts for the user that must not be lost, of any thread: below MPI_THREAD_MULTIPLE Open
 *  MPI's output is for MPI threads alone. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/support/export.h"

/** Tells Open MPI to look for help texts beside the object that holds `inside`, which may have been
 *  moved since it was installed; in `otherwise` where that cannot be found out. */
ONIC_EXPORT void onic_add_help_dir(const void *inside, const char *otherwise);

/** The folder that this library was loaded from, where its components lie, into `dir` of `cap`
 *  bytes. False where that cannot be found out. Any thread. */
ONIC_EXPORT bool onic_component_dir(char *dir, size_t cap);

/** Prints a line. Any thread. */
ONIC_EXPORT void onic_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Prints a line. Equal ones of all that one mpirun has started on a node are printed once: for
 *  what each process would say, with nothing in it that differs between them. Reads no structure of
 *  Open MPI's, so it may be called in another series of it. Any thread. */
ONIC_EXPORT void onic_say_once(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Prints the text `topic` of a help file, with its arguments put in as printf does; equal texts
 *  once, as onic_say_once. Not by opal_show_help: that of Open MPI 4.1 over a distribution's PMIx
 *  loses every second text. MPI thread. */
ONIC_EXPORT void onic_help(const char *file, const char *topic, ...);

/** The same, each time. */
ONIC_EXPORT void onic_help_each(const char *file, const char *topic, ...);
