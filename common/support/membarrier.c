/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE
#include "common/support/membarrier.h"

#include <linux/membarrier.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool command(int what)
{
    return syscall(SYS_membarrier, what, 0, 0) == 0;
}

bool onic_membarrier_register(void)
{
    return command(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
}

bool onic_membarrier(void)
{
    atomic_thread_fence(memory_order_seq_cst);
    return command(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}
