/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Changes of the lock queues of targets of this node, and the grants that follow: the one place
 * that takes a queue's lock for anything but a request.
 */
#ifndef NICSTRIDE_CHANGE_QUEUE_H
#define NICSTRIDE_CHANGE_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "osc_nicstride/window/module.h"

/** A queue's lock is not free. */
#define NICSTRIDE_QUEUE_BUSY (-1)

/** What is to be done with the queue of a target of this node, whose lock is had. False: nothing
 *  has changed, and nobody can have got the lock by it. */
typedef bool (*nicstride_change_t)(nicstride_module_t *m, int local, uint32_t origin);

/** Changes the queue of a target of this node, if `change` is not NULL, and sends to those that
 *  have the lock by that, or never will. Nothing is sent, and no endpoint made, before the queue's
 *  lock is given back. An error where that cannot be had any more. Without the wire lock: MPI
 *  threads. With it NICSTRIDE_QUEUE_BUSY where the lock is not free. */
int nicstride_change_queue(nicstride_module_t *m, int local, nicstride_change_t change,
                           uint32_t origin, bool wire_locked);

/** Changes my queue. False where that must be tried again. */
bool nicstride_change_mine_locked(nicstride_module_t *m, nicstride_change_t change,
                                  uint32_t origin);

/** Tells a process of another node that it has the lock of a target, or, by `status`, that it will
 *  not. */
void nicstride_send_grant_locked(nicstride_module_t *m, int local, uint32_t origin, int status);

#endif
