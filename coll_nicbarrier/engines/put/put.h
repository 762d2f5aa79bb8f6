/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What the files of engine put share: flags and what stands in them, groups and their steps.
 *  Everything of a group belongs to the transport lock, which is held in all calls for it, but for
 * what is atomic. */
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
 * Those of a group are a registered region, which another one has after it: memory follows the
 * groups that there are at a time, not those that there ever were. When the last put into a region
 * has come is not known: they are taken again in the order in which they were given back, and not
 * before many others are idle. What comes yet later (from a member that learns late that a group
 * has failed) is known by the tag that the flags' owner has chosen for the group, which each word
 * carries.
 */

/** A flag, alone on its cache lines: a word of the rule (rule.h) with a tag, or 0. */
typedef struct nicbarrier_put_flag {
    _Alignas(128) _Atomic uint64_t word;
} nicbarrier_put_flag_t;

/** The flags of a group: NICBARRIER_RULE_STEPS of them. */
typedef struct nicbarrier_put_flags {
    nicbarrier_put_flag_t *flag;
    onic_region_t *region;
    uint32_t tag;                            /**< of the words that belong here now */
    STAILQ_ENTRY(nicbarrier_put_flags) next; /**< of those that are idle */
} nicbarrier_put_flags_t;

/** Flags for a group: zeros. NULL where no memory can be had that can be put into. These functions
 *  must not be called with the transport lock held. */
nicbarrier_put_flags_t *nicbarrier_put_flags_take(void);
/** Returns flags that this process no longer reads. */
void nicbarrier_put_flags_give(nicbarrier_put_flags_t *flags);
/** All have been given back. Before the transport is closed, which keeps their memory until nothing
 * can come any more. */
void nicbarrier_put_flags_close(void);

/** In a flag, from the highest bit: failed (rule.h), the tag, the epoch. So of two words of a group
 *  the greater one says more. At a barrier each microsecond epochs last for nine years. */
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

/** What goes to the partner of one step. */
typedef struct nicbarrier_outlet {
    onic_remote_t *remote; /**< NULL where this step sends nothing */
    uint64_t word;         /**< in flight; its address is known to UCX */
    uint64_t wanted;       /**< what must be there at last */
    uint64_t offset;       /**< of the flag there */
    uint32_t tag;          /**< of words there */
    bool busy;             /**< a put is in flight */
    bool lost;             /**< the partner cannot be reached: nothing more is tried */
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
    unsigned losses; /**< of connections, when the partners were last looked at */
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

/** Reads the flags, goes as far as it gets, sends what can be sent. Returns how many words were
 *  new. */
int nicbarrier_put_progress(nicbarrier_net_t *net);

/** Sends what had to wait for the puts before it. */
void nicbarrier_put_send(nicbarrier_net_t *net);

/** True if a word is still to go out, or under way, to a partner that can be reached. */
bool nicbarrier_put_sends(const nicbarrier_net_t *net);

/** Is something still to come for what this process has entered: from partners or, before that,
 * from processes behind it? */
bool nicbarrier_put_waits(const nicbarrier_net_t *net);

/** The group has failed: its members are notified. */
void nicbarrier_put_fail(nicbarrier_net_t *net);
