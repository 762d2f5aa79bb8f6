/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Many ranks in one process that run the agreement with each other: messages between two ranks keep
 * their order, everything else happens in a random one.
 */
#ifndef NICBARRIER_AGREE_SIM_H
#define NICBARRIER_AGREE_SIM_H

#include "coll_nicbarrier/agree/protocol.h"
#include "test/unit/unit.h"

/** What goes wrong at a rank. Masks are of engines. */
typedef struct sim_faults {
    bool failed;   /**< from the start */
    bool make;     /**< no segment */
    bool unnamed;  /**< needs a name */
    bool unmapped; /**< with or without */
    bool settle;   /**< memory exhausted */
    bool table;
    uint8_t prepare, keep, connect, trial;
} sim_faults_t;

typedef struct sim_rank {
    nicbarrier_protocol_t m;
    nicbarrier_reason_t why;
    struct sim *sim;
    sim_faults_t faults;
    int32_t me;
    int32_t next;         /**< on its node */
    uint64_t key;         /**< of the group it has prepared for */
    int engine;           /**< that it has prepared */
    int32_t index;        /**< in that group */
    uint32_t connections; /**< endpoints it has kept */
    uint32_t connections_xor;
    bool connected, expects;
    bool listed; /**< in the list of those that can do something */
    bool shared;
    uint32_t mail, last_mail; /**< messages that wait, by number + 1 */
    uint32_t sent;
    uint32_t *table;
} sim_rank_t;

typedef struct sim_message {
    uint32_t next;
    int32_t from;
    uint16_t len;
    unsigned char bytes[NICBARRIER_MESSAGE_MAX > 272 ? NICBARRIER_MESSAGE_MAX : 272];
} sim_message_t;

/** What becomes of one message. */
typedef enum sim_harm {
    SIM_SOUND,
    SIM_STALE,    /**< one of an earlier agreement comes before it */
    SIM_CUT,      /**< it is too short */
    SIM_LONG,     /**< or longer than what is received */
    SIM_MISTAKEN, /**< it is about something else */
    SIM_HARMS
} sim_harm_t;

typedef struct sim {
    int32_t n;
    sim_rank_t *rank;
    sim_message_t *pool;
    uint32_t pool_size, pool_free, pool_used;
    int32_t *list; /**< ranks that can do something */
    int32_t listed;
    unit_random_t random;
    bool in_order; /**< instead of a random one: faster */
    int32_t connected, leaders;
    uint64_t messages, bytes;
    sim_harm_t harm;
    bool (*harmed)(const unsigned char *bytes); /**< which messages can be */
    int32_t harm_at;                            /**< of those, this one */
    bool harm_done;
    int32_t harm_to;
} sim_t;

/** n ranks; node[r] is the node of rank r. All have engines 1 and 2, of scores 80 and 50. */
void sim_init(sim_t *sim, int32_t n, const int32_t *node, nicbarrier_setup_t common);
void sim_fini(sim_t *sim);
/** Runs until all are at their ends, or nobody can do anything. */
void sim_run(sim_t *sim);
/** How many have come to their ends. */
int32_t sim_ended(const sim_t *sim);

/** Bytes of an endpoint here. */
#define SIM_ENDPOINT 16

#endif
