/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Declarations shared by the files of engine put: flags and their words, groups and their
 *  steps. The transport lock protects everything that is not atomic, and is held in all calls for a
 *  group.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "coll_nicbarrier/engines/engine.h"
#include "coll_nicbarrier/epoch/rule.h"
#include "common/transport/put.h"

/* ---- flags: flags.c -------------------------------------------------------------------------
 *
 * The flags of a group are a registered region. A group in which all epochs are complete has got
 * all words of its partners; only one that learns afterwards that the group has failed puts another
 * one. So its region is used again, for a later group, but only while many others are idle that
 * became so after it.
 */

/** A flag, alone on its cache lines: a word of the rule (rule.h). */
typedef struct nicbarrier_put_flag {
    _Alignas(128) _Atomic uint64_t word;
} nicbarrier_put_flag_t;

/** A region with NICBARRIER_RULE_STEPS zeroed flags. NULL if there is no memory that can be put
 *  into. These functions must not be called with the transport lock held. */
onic_region_t *nicbarrier_put_flags_take(void);
/** Returns flags that this process no longer reads. `done`: no more words come; else nobody gets
 *  them again. */
void nicbarrier_put_flags_give(onic_region_t *region, bool done);
/** Leaves all idle regions. Called before the transport is closed, which keeps their memory until
 *  no more puts can come. */
void nicbarrier_put_flags_close(void);

/* ---- groups --------------------------------------------------------------------------------- */

/** The outgoing side of one step. */
typedef struct nicbarrier_outlet {
    onic_remote_t *remote; /**< NULL if this step sends nothing */
    uint64_t word;         /**< the word in flight; UCX reads it here */
    uint64_t wanted;       /**< the last word that must be put */
    uint64_t offset;       /**< of the partner's flag */
    bool busy;             /**< a put is in flight */
    bool lost;             /**< the partner cannot be reached: nothing more is put */
    nicbarrier_net_t *net;
} nicbarrier_outlet_t;

struct nicbarrier_net {
    nicbarrier_net_t *next;
    nicbarrier_group_t group;
    nicbarrier_shm_t *node; /**< NULL: none */
    onic_region_t *region;  /**< with the flags; NULL once it is leaving */
    nicbarrier_put_flag_t *flag;
    nicbarrier_rule_t rule;
    nicbarrier_outlet_t outlet[NICBARRIER_RULE_STEPS];
    int in_flight;
    unsigned losses; /**< lost connections, as last counted */
    enum {
        NICBARRIER_PUT_PREPARED,
        NICBARRIER_PUT_CONNECTED,
        NICBARRIER_PUT_LEAVING,
        NICBARRIER_PUT_LEFT
    } state; /**< see put.c */
    _Atomic uint64_t completed;
    atomic_bool failed;
};

/* step.c */

/** Enters all epochs up to `epoch`, and those that the processes behind this one have entered,
 * reads the flags, advances as far as possible, sends what can be sent. Returns how many words were
 * new.
 */
int nicbarrier_put_progress(nicbarrier_net_t *net, uint64_t epoch);

/** Sends words that had to wait for earlier puts. */
void nicbarrier_put_send(nicbarrier_net_t *net);

/** True if a word still has to be put, or is in flight, to a partner that can be reached. */
bool nicbarrier_put_sends(const nicbarrier_net_t *net);

/** True if something is still missing for the epochs that this process has entered: from partners
 *  or, before that, from processes behind it. */
bool nicbarrier_put_waits(const nicbarrier_net_t *net);

/** Marks the group as failed, and notifies its members. */
void nicbarrier_put_fail(nicbarrier_net_t *net);
