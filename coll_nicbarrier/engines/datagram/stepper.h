/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * A stepper takes the steps of groups of engine datagram, as the rule says (rule.h). A new one is a
 * file with a row, a line in steppers.c, and a word of parameter stepper. When a group is made, the
 * rows are asked in turn whether they can have it. The last one, host, steps in the process and can
 * always.
 *
 * Others go on by themselves, while no process of the node runs, and show what they have done in
 * the group's page (bpf/state.h). They may keep packets of kind EPOCH whose word is not wrong; all
 * others reach the engine's socket, and so do words that bring a failure. The engine does
 * everything else: it asks for what does not come, and repeats what others have missed. If such a
 * stepper can no longer do its work, the process takes the steps over (steps.c).
 *
 * Calls hold the engine's lock, except for `install`, which may wait: no other thread uses the
 * group then.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "coll_nicbarrier/engines/engine.h"

typedef struct nicbarrier_stepper {
    /** Takes the group, whose steps and partners are known; sets net->page, unless the process
     *  steps. @return false and the reason if it cannot have it */
    bool (*install)(nicbarrier_net_t *net, nicbarrier_reason_t *why);

    /* If one of the next two returns false, it has not been carried out, and the stepper does
     * nothing more for the group: the engine calls `stop` and goes on from the snapshot. */

    /** Enters all epochs up to this one. */
    bool (*enter)(nicbarrier_net_t *net, uint64_t epoch);
    /** A word for my step k has come to the engine, and is new; or the engine has found that the
     *  group has failed, and repeats the last epoch with the failure bit. */
    bool (*take)(nicbarrier_net_t *net, uint32_t k, uint64_t word);

    /* Only of steppers with a page. */

    /** Brings net->rule up to date: with the effects of earlier calls, and no number less than what
     *  the page showed before. */
    void (*snapshot)(nicbarrier_net_t *net);
    /** From now on it neither keeps nor sends packets; page and snapshot stay as they are. */
    void (*stop)(nicbarrier_net_t *net);
    /** Frees what `install` has made; `stop` may not have been called. */
    void (*remove)(nicbarrier_net_t *net);
} nicbarrier_stepper_t;

/** The best first, and host last; ends with NULL. See steppers.c. */
extern const nicbarrier_stepper_t *const nicbarrier_steppers[];

extern const nicbarrier_stepper_t nicbarrier_stepper_bpf;  /* stepper_bpf.c */
extern const nicbarrier_stepper_t nicbarrier_stepper_host; /* stepper_host.c */
