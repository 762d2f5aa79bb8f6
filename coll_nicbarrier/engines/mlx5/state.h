/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Engine mlx5: declarations shared by its files. mlx5.c has the engine's row, parameters, the
 * device, and the list of groups.
 *
 * Two members that follow each other in a step have a connection of their own. One end writes
 * epochs into the other member's flag. The other end says, in the opposite direction, that the
 * group has failed; and if a wait takes long it checks that the adapter there still answers.
 *
 * The adapter takes the steps (chain.h). The process enters, refills the adapter's rings, and reads
 * the flags to see what is complete.
 *
 * One lock protects everything that is not atomic.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "coll_nicbarrier/engines/engine.h"
#include "coll_nicbarrier/engines/mlx5/chain.h"
#include "common/transport/verbs/connect.h"

/** State of the process, shared by all groups. */
typedef struct nicbarrier_mlx5 {
    onic_verbs_port_t port;
    uint8_t mtu;    /**< as verbs has it */
    uint32_t depth; /**< epochs for which rings have room */
} nicbarrier_mlx5_t;

/** One end of a connection. */
typedef struct nicbarrier_end {
    struct ibv_qp *qp;          /**< NULL: none */
    nicbarrier_wqe_word_t word; /**< the partner's word that this end writes */
    /* of the end that sends: its ring */
    nicbarrier_wqe_place_t next;
    uint64_t written; /**< epochs up to this one have been written, as completions show */
    /* of the other end */
    unsigned under_way; /**< writes by the process in flight: failures and questions */
} nicbarrier_end_t;

/* A request's id holds the epoch, which end posted it, and the step. */
enum { NICBARRIER_MLX5_STEP = 0x7f, NICBARRIER_MLX5_IN = 0x80, NICBARRIER_MLX5_EPOCH_SHIFT = 8 };

struct nicbarrier_net {
    nicbarrier_net_t *next;
    nicbarrier_shm_t *node; /**< NULL: none, or it is leaving */
    nicbarrier_rule_t rule;
    nicbarrier_group_t group;
    uint32_t depth;  /**< epochs for which each ring has room, at least 1 */
    uint64_t posted; /**< epochs up to this one have been posted to all rings */
    bool connected, leaving;
    bool broken;    /**< a connection is broken */
    unsigned waits; /**< calls of progress since something came */
    struct ibv_mr *words;
    struct ibv_cq *completions;
    nicbarrier_end_t out[NICBARRIER_RULE_STEPS], in[NICBARRIER_RULE_STEPS];
    _Atomic uint64_t completed;
    atomic_bool failed;
};

/* pairs.c */

/** Makes the memory and queue pairs of a group, and writes its endpoint. 0, or -1 and the reason;
 *  then nicbarrier_mlx5_free follows. */
int nicbarrier_mlx5_make(nicbarrier_net_t *net, const nicbarrier_mlx5_t *m,
                         const nicbarrier_group_t *group, nicbarrier_endpoint_t *mine,
                         nicbarrier_reason_t *why);
/** Connects all queue pairs. Errors as above. */
int nicbarrier_mlx5_connect(nicbarrier_net_t *net, const nicbarrier_mlx5_t *m,
                            const nicbarrier_endpoints_t *endpoints, nicbarrier_reason_t *why);
void nicbarrier_mlx5_free(nicbarrier_net_t *net);

/* step.c */

/** Enters all epochs up to `epoch`, and those that the processes behind this one have entered, and
 *  advances as far as possible. Returns how many flags were new. */
int nicbarrier_mlx5_progress(nicbarrier_net_t *net, uint64_t epoch);
/** Marks the group as failed, and notifies the members that write to this one. */
void nicbarrier_mlx5_fail(nicbarrier_net_t *net);
/** True if all epochs entered are complete and the adapter has written all messages. */
bool nicbarrier_mlx5_is_done(const nicbarrier_net_t *net);

/* adapter.c */

/** Why the device cannot take steps by itself; NULL if it can. */
const char *nicbarrier_mlx5_obstacle(struct ibv_context *context);
/** A queue pair with room for this many requests of chain.h, or NULL. */
struct ibv_qp *nicbarrier_mlx5_pair(struct ibv_pd *pd, struct ibv_cq *completions, uint32_t sends);
/** Posts the requests of all epochs behind the last one posted, up to `last`, to the ring of step
 * k. False if that fails. */
bool nicbarrier_mlx5_fill(nicbarrier_net_t *net, uint32_t k, uint64_t last);
