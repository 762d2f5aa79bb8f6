/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Engine datagram: its state and lock; see group.h. */
#include <sched.h>

#include "coll_nicbarrier/engines/datagram/group.h"

nicbarrier_datagram_t nicbarrier_datagram;

void nicbarrier_datagram_lock(void)
{
    while (!nicbarrier_datagram_trylock()) {
        sched_yield();
    }
}
