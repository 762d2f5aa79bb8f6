/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Checks of what programs do (parameter `check`): a window that is checked has its calls
 *  under way (under_way.h), and where its memory is mapped by others of the node the shadows of all
 *  of it (shadow.h). What conflicts is said, and the calls are made all the same, or refused.
 *
 *  MPI threads, no lock held, where nothing else is said. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "osc_nicstride/check/rule.h"
#include "osc_nicstride/window/module.h"

/** Collective over the node of a window whose memory is made: begins to check it. Where there is no
 *  shared memory for shadows it does without, with a text. An error where messages fail. */
int nicstride_check_begin(nicstride_module_t *m, const nicstride_promises_t *promises);
void nicstride_check_end(nicstride_module_t *m);

/** A communication call is about to be made, all of whose arguments are right. `*number_p`: its
 *  number, for nicstride_check_returned. MPI_ERR_RMA_CONFLICT where it conflicts with another one
 *  and is to be refused. The window is checked. */
int nicstride_check_call(const nicstride_transfer_t *t, uint64_t *number_p);

/** The request of a call is complete. The window is found by its name, and may be gone. */
void nicstride_check_returned(uint32_t window, uint64_t number);

/** A message with an access of another process was refused. Transport lock, any thread. */
void nicstride_check_refused_locked(const nicstride_module_t *m, const nicstride_peer_t *p,
                                    const nicstride_msg_t *msg, int error);

void nicstride_check_completed(nicstride_module_t *m, int target, bool here);
void nicstride_check_fenced(nicstride_module_t *m, bool nothing_precedes);
void nicstride_check_waited(nicstride_module_t *m);

/** This process's calls to a target, or, with a negative one, to all, are complete there, or, with
 *  `here`, locally. Before others can learn of it. */
static inline void nicstride_check_over(nicstride_module_t *m, int target, bool here)
{
    if (m->check != NULL)
        nicstride_check_completed(m, target, here);
}

/** A fence is over; `nothing_precedes`: the program said that it ends no calls. */
static inline void nicstride_check_fence(nicstride_module_t *m, bool nothing_precedes)
{
    if (m->check != NULL)
        nicstride_check_fenced(m, nothing_precedes);
}

/** The exposure epoch of this process is over. */
static inline void nicstride_check_unexposed(nicstride_module_t *m)
{
    if (m->check != NULL)
        nicstride_check_waited(m);
}
