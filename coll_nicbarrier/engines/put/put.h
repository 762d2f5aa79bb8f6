/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What the files of engine put share: a group, and its steps.
 *
 * Everything belongs to the wire lock, which is held in all calls here, but for what is atomic.
 */
#ifndef NICBARRIER_PUT_H
#define NICBARRIER_PUT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "coll_nicbarrier/engines/engine.h"
#include "coll_nicbarrier/engines/put/flags.h"
#include "coll_nicbarrier/epoch/rule.h"
#include "common/wire/put.h"

/** What goes to the partner of one step. */
typedef struct nicbarrier_outlet {
    onic_put_t put;
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

/** Enters all epochs up to `epoch`. */
void nicbarrier_put_enter(nicbarrier_net_t *net, uint64_t epoch);

/** Reads the flags, goes as far as it gets, sends what can be sent. Returns how many words were
 *  new. */
int nicbarrier_put_progress(nicbarrier_net_t *net);

/** Sends what had to wait for the puts before it. */
void nicbarrier_put_send(nicbarrier_net_t *net);

/** Is a word still to go out, or under way, to a partner that can be reached? */
bool nicbarrier_put_sends(const nicbarrier_net_t *net);

/** The group has failed: its members are notified. */
void nicbarrier_put_fail(nicbarrier_net_t *net);

#endif
