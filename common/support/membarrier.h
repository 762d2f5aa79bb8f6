/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * A memory barrier that one process makes for all others, so that these need none.
 *
 * Two processes that each store a word and then load the other's may both miss the other's store,
 * unless both have a full barrier in between. Where one side does so with each message and the
 * other one seldom, the second makes it for both: Linux's membarrier(2) interrupts all processors
 * on which a process runs that has registered for it. The first keeps its two accesses in the order
 * of its program by a barrier of the compiler.
 */
#ifndef ONIC_MEMBARRIER_H
#define ONIC_MEMBARRIER_H

#include <stdbool.h>

/** This process takes part. False where it cannot: then its threads need barriers of their own. */
bool onic_membarrier_register(void);

/** A full barrier, here and in all processes of this machine that take part; some microseconds.
 *  False where the kernel does not let us: it is one here only. */
bool onic_membarrier(void);

#endif
