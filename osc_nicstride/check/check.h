/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Checks of what programs do with a window (parameter `check`). For each checked window this
 *  process keeps its calls under way (under_way.h). Where the processes of a node map each other's
 *  memory, they also share shadows of it (shadow.h). Conflicts are reported; the calls are made all
 *  the same, or refused, as the parameter says.
 *
 *  For MPI threads that hold no lock, unless stated otherwise. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "osc_nicstride/check/rule.h"
#include "osc_nicstride/window/module.h"
#include "osc_nicstride/window/transfer.h"

/** Starts to check a window whose memory exists. Collective over the window's processes on the
 *  node. Without shared memory for shadows each process is checked by itself, and the user is told.
 *  Returns an error if messages fail. */
int nicstride_check_begin(nicstride_module_t *m, const nicstride_promises_t *promises);
void nicstride_check_end(nicstride_module_t *m);

/** Checks a communication call that is about to be made, whose arguments are all valid, on a window
 *  that is checked. `*number_p` is set to its number, for nicstride_check_returned. Returns
 *  MPI_ERR_RMA_CONFLICT if the call conflicts with another one and must be refused. */
int nicstride_check_call(const nicstride_transfer_t *t, uint64_t *number_p);

/** Notes that the request of a call is complete. The window is found by its name and may no longer
 *  exist. */
void nicstride_check_returned(uint32_t window, uint64_t number);

/** Reports a message with another process's access outside of a window that is checked. Transport
 *  lock, any thread. */
void nicstride_report_refused_locked(const nicstride_module_t *m, const nicstride_peer_t *p,
                                     const nicstride_msg_t *msg);

/** The same, if the message was refused for that. `error`: why it was; 0: it was not. */
static inline void nicstride_check_refused_locked(const nicstride_module_t *m,
                                                  const nicstride_peer_t *p,
                                                  const nicstride_msg_t *msg, int error)
{
    if (m->check != NULL && error == MPI_ERR_RMA_RANGE)
        nicstride_report_refused_locked(m, p, msg);
}

/** Notes that this process's calls to `target` (negative: to all targets) are complete there, or,
 *  with `here`, locally. Must be called before other processes can learn of it. This and what
 *  follows does nothing for a window that is not checked. */
void nicstride_check_over(nicstride_module_t *m, int target, bool here);
/** Notes the end of a fence. `nothing_precedes`: the program asserted that the fence completes no
 *  calls. */
void nicstride_check_fence(nicstride_module_t *m, bool nothing_precedes);
/** Notes the end of this process's exposure epoch. */
void nicstride_check_unexposed(nicstride_module_t *m);
