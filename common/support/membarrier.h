/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file A memory barrier that one process makes for all others, so that these need none. Two
 *  processes that each store a word and then load the other's may both miss the other's store,
 *  unless both have a full barrier in between. Where one side does so with each message and the
 *  other seldom, the second makes it for both by membarrier(2); the first needs one of the
 *  compiler. */
#pragma once

#include <linux/membarrier.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

/** This process takes part. False where it cannot: then its threads need barriers of their own. */
static inline bool onic_membarrier_register(void)
{
    return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

/** A full barrier, here and in all processes of this machine that take part; some microseconds.
 *  False where the kernel does not let us: it is one here only. */
static inline bool onic_membarrier(void)
{
    atomic_thread_fence(memory_order_seq_cst);
    return syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0;
}
