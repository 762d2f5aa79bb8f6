/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * In place of the header of this name that Open MPI 5.0 does not install: what
 * opal/mca/threads/threads.h declares and leaves to it.
 */
#pragma once

#include <pthread.h>
#include <sched.h>

static inline void opal_thread_yield(void)
{
    (void)sched_yield();
}
