/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Counters of the component, by which a test knows that what it tests has happened. */
#ifndef TEST_MPI_COUNTER_H
#define TEST_MPI_COUNTER_H

#include <stdbool.h>

/** A counter of this process. Not for several threads. */
typedef struct counter counter_t;

/** Starts to count what happens from now on. `name` is that of a performance variable: of class
 *  counter, or of class level, which has its value whenever it began. NULL where there is none, as
 *  with components of others. */
counter_t *counter_begin(const char *name);

/** How often it has happened since; 0 of NULL. */
unsigned long long counter_read(const counter_t *c);

/** Frees it; c may be NULL. */
void counter_end(counter_t *c);

/** Checks that the level `name`, of objects in use, is 0 or soon gets there. Where there is no such
 *  variable nothing is wrong. */
void counter_check_pool(const char *name);

#endif
