/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Whether another process of this machine is dead. A process is known by its number, the
 *  time at which it began, and the namespaces in which the two have a meaning. Where any of that
 *  cannot be known, no process counts as dead. A process that is stopped is not dead. No MPI. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/support/export.h"

/** What tells a process from others of its machine; it travels. All zero: not known. */
typedef struct onic_life {
    int64_t pid;
    uint64_t began;          /**< clock ticks since the machine began; field 22 of its stat */
    uint64_t pid_namespace;  /**< inodes */
    uint64_t time_namespace; /**< 0 where the kernel has none */
} onic_life_t;

/** This process. Takes some tens of microseconds at the first call. Any thread. */
ONIC_EXPORT onic_life_t onic_life_mine(void);

/** True if the process is known to have ended. Any thread; some tens of microseconds. */
ONIC_EXPORT bool onic_life_is_dead(const onic_life_t *life);

/* ---- what decides: pure ---------------------------------------------------------------------- */

/** What /proc/PID/stat says. */
typedef struct onic_stat {
    char state;
    int64_t threads;
    uint64_t began;
} onic_stat_t;

/** Reads the text of such a file; false if it is malformed. The name in it may be anything. */
bool onic_stat_read(const char *text, onic_stat_t *stat);

/** True if `mine` can know whether `other` is dead: both are known and in the same namespaces. */
bool onic_life_comparable(const onic_life_t *mine, const onic_life_t *other);

/** True if the process that the file is about has taken the number of `life`, or has ended and not
 *  been waited for. Its first thread may end before others do. */
bool onic_life_ended(const onic_life_t *life, const onic_stat_t *stat);
