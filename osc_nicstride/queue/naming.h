/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Long lists of blocks are sent to a target once, and named then (protocol/names.h). With
 *  1,000 blocks of 8 bytes a message is a third shorter so, and neither side writes or reads
 *  slices.
 *
 *  All is called with the wire lock held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/layout/layout.h"
#include "osc_nicstride/protocol/names.h"
#include "osc_nicstride/queue/operation.h"
#include "osc_nicstride/window/module.h"

/** Might its list have a name? */
static inline bool nicstride_is_nameable(const onic_layout_t *l)
{
    return l->nruns >= NICSTRIDE_NAMED_RUNS && onic_layout_number(l) != 0;
}

/** A transfer to the peer with such a layout was started by message: its list may be on its way
 *  then. */
void nicstride_naming_used_locked(nicstride_peer_t *p, const onic_layout_t *l);

/** Describes the layout by a name that the peer has, in `buf`; returns the bytes, or 0. It is good
 *  while the lock is held, or nicstride_naming_holds_locked says so. */
size_t nicstride_naming_describe_locked(const nicstride_peer_t *p, const onic_layout_t *l,
                                        unsigned char buf[ONIC_LAYOUT_ENCODED_MAX]);

/** May the message, which perhaps names a list, still be sent? */
bool nicstride_naming_holds_locked(const nicstride_peer_t *p, const nicstride_msg_t *msg,
                                   const void *layout);

/** NICSTRIDE_MSG_ANSWER came. */
void nicstride_on_answer(const nicstride_incoming_t *in);
/** NICSTRIDE_MSG_LIST: a piece of a list of blocks, or the end of its name. */
void nicstride_on_list(const nicstride_incoming_t *in);
/** The list that a message of a peer names; NULL where it names none, or one that is not there. */
nicstride_list_t *nicstride_named_list(const nicstride_peer_t *p, const nicstride_msg_t *msg,
                                       const void *layout);
