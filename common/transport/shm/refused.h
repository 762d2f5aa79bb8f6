/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What it means that the kernel has not copied between two processes. In no case is it an
 *  error of the program: the data goes another way, and its own process touches the memory. Pure.
 */
#pragma once

#include <errno.h>

/** What a refusal says of later copies. */
typedef enum onic_refused {
    ONIC_REFUSED_NOT,     /**< not refused */
    ONIC_REFUSED_NOW,     /**< says nothing: memory was short, or the other process is ending */
    ONIC_REFUSED_MEMORY,  /**< the kernel does not copy such memory: of a device, secret, unmapped
                           */
    ONIC_REFUSED_PROCESS, /**< this process may not copy at all, or not from or to that one */
} onic_refused_t;

/** `error`: that of the system call; 0 if it has copied less than all. Filters of system calls may
 *  give any error. */
static inline onic_refused_t onic_refused_by(int error)
{
    switch (error) {
    case 0:
    case EFAULT:
        return ONIC_REFUSED_MEMORY;
    case ENOMEM:
    case ESRCH:
        return ONIC_REFUSED_NOW;
    default:
        return ONIC_REFUSED_PROCESS;
    }
}
