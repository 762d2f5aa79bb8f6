/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What the parts of the machine share: protocol.c has the sweeps, protocol_node.c and
 *  protocol_leaders.c what is between them. Pure. */
#ifndef NICBARRIER_PROTOCOL_INTERNAL_H
#define NICBARRIER_PROTOCOL_INTERNAL_H

#include "coll_nicbarrier/agree/protocol.h"

/** What a rank does next. Those that end in _IN await a message. */
typedef enum nicbarrier_do {
    DO_CHILD_IN, /**< a sweep, on the way up */
    DO_REPORT,
    DO_PARENT_IN,
    DO_SPREAD, /**< and back */
    DO_MAKE,   /**< the first of a node */
    DO_ANSWER_IN,
    DO_TELL,
    DO_NODE_IN, /**< the others */
    DO_ANSWER,
    DO_FINGER_DOWN, /**< leaders */
    DO_FINGER_UP,
    DO_FINGER_UP_IN,
    DO_FINGER_DOWN_IN,
    DO_TABLE,
    DO_TABLE_IN,
    DO_PREPARE,
    DO_ENDPOINT,
    DO_ENDPOINT_IN,
    DO_CONNECT,
    DO_CONNECTED,
    DO_CONNECTED_IN,
    DO_TRIAL,
    DO_TRIED,
    DO_TRIED_IN,
    DO_OVER
} nicbarrier_do_t;

/** Sends a word. */
void nicbarrier_say(const nicbarrier_protocol_t *m, uint32_t rank, nicbarrier_subject_t subject,
                    int step, uint32_t word);
nicbarrier_topic_t nicbarrier_topic(const nicbarrier_protocol_t *m, nicbarrier_subject_t subject,
                                    int step);

/** The best engine that has not been tried and serves, or NICBARRIER_ANY_ENGINE. */
int8_t nicbarrier_choose(const nicbarrier_protocol_t *m);

/** The last sweep: m->engine has carried the trial epoch, or there is none. */
void nicbarrier_begin_result(nicbarrier_protocol_t *m);
/** Ends here, with an error. */
void nicbarrier_break(nicbarrier_protocol_t *m, const char *what);

/** The part on the node: ends in begin_leaders. */
void nicbarrier_begin_node(nicbarrier_protocol_t *m);
void nicbarrier_node_go(nicbarrier_protocol_t *m);
void nicbarrier_node_take(nicbarrier_protocol_t *m, const void *bytes, size_t len,
                          nicbarrier_fit_t fit);

/** The second sweep: what is on the node is as it will be. */
void nicbarrier_begin_leaders(nicbarrier_protocol_t *m);

/** The leaders' part: begins with m->ring's n, me, up[0] and down[0], ends in begin_result. */
void nicbarrier_begin_ring(nicbarrier_protocol_t *m);
void nicbarrier_leaders_go(nicbarrier_protocol_t *m);
void nicbarrier_leaders_take(nicbarrier_protocol_t *m, const void *bytes, size_t len,
                             nicbarrier_fit_t fit);
int32_t nicbarrier_leaders_source(const nicbarrier_protocol_t *m);
nicbarrier_topic_t nicbarrier_leaders_topic(const nicbarrier_protocol_t *m);

#endif
