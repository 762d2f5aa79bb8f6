/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * May a target be accessed now?
 */
#ifndef NICSTRIDE_ENTER_H
#define NICSTRIDE_ENTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/support/device.h"
#include "osc_nicstride/window/module.h"

/** NULL, or why the target may not be accessed now. Notes that it is, and waits until it is done
 *  with the last fence. */
const char *nicstride_enter(nicstride_module_t *m, int target);

/** The target's lock is wanted in the epoch of MPI_Win_lock_all that is open. An error where it
 *  cannot be had; that of a target which is lost shows with the operation. */
int nicstride_lock_one_of_all(nicstride_module_t *m, nicstride_peer_t *p);

/** The same in any epoch, for an operation that goes by message. MPI threads, no lock held. */
static inline int nicstride_lock_for_use(nicstride_module_t *m, nicstride_peer_t *p)
{
    if (p->local >= 0 || __atomic_load_n(&p->lock.of_all, __ATOMIC_RELAXED) ||
        __atomic_load_n(&m->epoch.access, __ATOMIC_RELAXED) != NICSTRIDE_ACCESS_LOCK_ALL)
        return OMPI_SUCCESS;
    return nicstride_lock_one_of_all(m, p);
}

/** Request-based calls are for passive-target epochs. */
int nicstride_check_passive(nicstride_module_t *m, const char *call, int target);

#endif
