/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Counters of the component, by which a test knows that what it tests has happened. */
#pragma once

#include <stdbool.h>

/** A counter of this process. Not for several threads. */
typedef struct counter counter_t;

/** Is the component loaded whose variable is called so, as osc_nicstride_messages? Open MPI has
 *  variables with its prefix then. MPI_T must be initialised. */
bool counter_loaded(const char *name);

/** The index of a performance variable of class counter, level or high-water mark. False where the
 *  component is not loaded; where it is, but has no such variable, that is a failed check, so that
 *  nothing goes unseen because a variable was renamed. MPI_T must be initialised. */
bool counter_find(const char *name, int *index_p);

/** Starts to count what happens from now on. `name` is that of a performance variable: of class
 *  counter, or of class level, which has its value whenever it began. NULL where counter_find is
 *  false. */
counter_t *counter_begin(const char *name);

/** How often it has happened since; 0 of NULL. */
unsigned long long counter_read(const counter_t *c);

/** Frees it; c may be NULL. */
void counter_end(counter_t *c);

/** Checks that the level `name`, of objects in use, is 0 or soon gets there. Where the component is
 *  not loaded nothing is wrong. */
void counter_check_pool(const char *name);
