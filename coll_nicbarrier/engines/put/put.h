/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Declarations shared by the files of engine put: flags and their words, groups and their
 * steps. The transport lock protects everything that is not atomic, and is held in all calls for a
 * group.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "coll_nicbarrier/engines/engine.h"
#include "coll_nicbarrier/epoch/rule.h"
#include "common/transport/put.h"

/* ---- flags: flags.c -------------------------------------------------------------------------
 *
 * The flags of a group are a registered region, which is reused by later groups, so memory use
 * follows the number of groups at a time. It is not known when the last put into a region has
 * arrived, so regions are reused in the order in which they became idle, and only while many others
 * are idle. An even later put (from a member that learns late that a group has failed) is
 * recognised by its tag: each word carries the tag that the flags' owner has chosen for the group.
 */

/** A flag, alone on its cache lines: 0, or a word of the rule (rule.h) with a tag. */
typedef struct nicbarrier_put_flag {
    _Alignas(128) _Atomic uint64_t word;
} nicbarrier_put_flag_t;

/** The flags of a group: NICBARRIER_RULE_STEPS of them. */
typedef struct nicbarrier_put_flags {
    nicbarrier_put_flag_t *flag;
    onic_region_t *region;
    uint32_t tag;                            /**< carried by the words of the current group */
    STAILQ_ENTRY(nicbarrier_put_flags) next; /**< in the list of idle regions */
} nicbarrier_put_flags_t;

/** Zeroed flags for a group. NULL if there is no memory that can be put into. These functions must
 *  not be called with the transport lock held. */
nicbarrier_put_flags_t *nicbarrier_put_flags_take(void);
/** Returns flags that this process no longer reads. */
void nicbarrier_put_flags_give(nicbarrier_put_flags_t *flags);
/** Frees all flags, which have been given back. Called before the transport is closed, which keeps
 *  their memory until no more puts can come. */
void nicbarrier_put_flags_close(void);

/** A word in a flag consists, from the highest bit, of the failure bit (rule.h), the tag and the
 * epoch. So the greater of two words of a group is the newer one. With a barrier each microsecond
 * the epochs last for nine years. */
#define NICBARRIER_PUT_TAG_SHIFT 48
#define NICBARRIER_PUT_TAGS      32768
#define NICBARRIER_PUT_EPOCH_MAX ((UINT64_C(1) << NICBARRIER_PUT_TAG_SHIFT) - 1)

/** @param tag  1 .. NICBARRIER_PUT_TAGS - 1 */
static inline uint64_t nicbarrier_put_mark(uint64_t word, uint32_t tag)
{
    return word | (uint64_t)tag << NICBARRIER_PUT_TAG_SHIFT;
}

static inline uint32_t nicbarrier_put_tag(uint64_t marked)
{
    return (uint32_t)(marked >> NICBARRIER_PUT_TAG_SHIFT) & (NICBARRIER_PUT_TAGS - 1);
}

static inline uint64_t nicbarrier_put_word(uint64_t marked)
{
    return marked & (NICBARRIER_WORD_FAILED | NICBARRIER_PUT_EPOCH_MAX);
}

/* ---- groups --------------------------------------------------------------------------------- */

/** The outgoing side of one step. */
typedef struct nicbarrier_outlet {
    onic_remote_t *remote; /**< NULL if this step sends nothing */
    uint64_t word;         /**< the word in flight; UCX reads it here */
    uint64_t wanted;       /**< the last word that must be put */
    uint64_t offset;       /**< of the partner's flag */
    uint32_t tag;          /**< of words for that flag */
    bool busy;             /**< a put is in flight */
    bool lost;             /**< the partner cannot be reached: nothing more is put */
    nicbarrier_net_t *net;
} nicbarrier_outlet_t;

struct nicbarrier_net {
    nicbarrier_net_t *next;
    nicbarrier_group_t group;
    nicbarrier_net_events_t events;
    nicbarrier_put_flags_t *flags; /**< NULL once it is leaving */
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

/** Enters all epochs up to `epoch`. */
void nicbarrier_put_enter(nicbarrier_net_t *net, uint64_t epoch);

/** Reads the flags, advances as far as possible, sends what can be sent. Returns how many words
 *  were new. */
int nicbarrier_put_progress(nicbarrier_net_t *net);

/** Sends words that had to wait for earlier puts. */
void nicbarrier_put_send(nicbarrier_net_t *net);

/** True if a word still has to be put, or is in flight, to a partner that can be reached. */
bool nicbarrier_put_sends(const nicbarrier_net_t *net);

/** True if something is still missing for the epochs that this process has entered: from partners
 *  or, before that, from processes behind it. */
bool nicbarrier_put_waits(const nicbarrier_net_t *net);

/** Marks the group as failed, and notifies its members. */
void nicbarrier_put_fail(nicbarrier_net_t *net);
