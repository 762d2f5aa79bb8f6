/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What a rank does by itself in an agreement: the segment of its node, its team, its
 *  endpoints. The machine of protocol.h says when. */
#ifndef NICBARRIER_LOCAL_H
#define NICBARRIER_LOCAL_H

#include "common/ompi_compat.h"

#include "coll_nicbarrier/agree/agree.h"
#include "coll_nicbarrier/agree/protocol.h"
#include "common/node/node.h"

/** An endpoint goes to each partner; it stays until all messages have gone out. */
typedef struct nicbarrier_outgoing {
    uint32_t len;
    unsigned char bytes[NICBARRIER_TOPIC_SIZE + NICBARRIER_ENDPOINT_MAX];
} nicbarrier_outgoing_t;

typedef struct nicbarrier_local {
    struct ompi_communicator_t *comm;
    unsigned long long *trials;
    nicbarrier_reason_t why;
    nicbarrier_team_t *team;
    onic_segment_key_t key; /**< of the segment that I have made */
    onic_segment_t segment;
    int n, limit, index; /**< members of the node, most in an area, my index */
    bool connected;
    nicbarrier_outgoing_t *outgoing[NICBARRIER_ENGINES_MAX]; /**< of each attempt, or NULL */
    int attempts;
    nicbarrier_endpoint_t endpoint[2 * NICBARRIER_STEPS_MAX]; /**< of partners */
    int endpoints;
    uint32_t *table;
} nicbarrier_local_t;

/** Begins, with a team. `failed` where there is no memory for that. Says in the setup who shares
 *  the node, what engines are open, and whether this rank has failed. */
void nicbarrier_local_init(nicbarrier_local_t *local, struct ompi_communicator_t *comm,
                           const nicbarrier_agreement_config_t *config, bool failed,
                           nicbarrier_setup_t *setup);

/** Frees what is left: the team, too, unless it was taken. */
void nicbarrier_local_fini(nicbarrier_local_t *local);

/** Frees all but what messages may still be sent from. */
void nicbarrier_local_abandon(nicbarrier_local_t *local);

/** Functions of nicbarrier_host_t, whose `arg` is a nicbarrier_local_t. */
int32_t nicbarrier_local_member(void *arg, int32_t after);
bool nicbarrier_local_make(void *arg, int32_t n, int32_t limit, bool named, unsigned char *key);
nicbarrier_mapped_t nicbarrier_local_map(void *arg, const unsigned char *key, int32_t index,
                                         int32_t n, int32_t limit);
bool nicbarrier_local_settle(void *arg, bool shared, bool others);
bool nicbarrier_local_prepare(void *arg, int engine, const nicbarrier_group_t *group);
bool nicbarrier_local_keep(void *arg, int32_t member, const void *bytes, size_t len);
bool nicbarrier_local_connect(void *arg);
void nicbarrier_local_expect(void *arg);
int nicbarrier_local_trial(void *arg);
void nicbarrier_local_drop(void *arg);
uint32_t *nicbarrier_local_table(void *arg, int32_t n);

#endif
