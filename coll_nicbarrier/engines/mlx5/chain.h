/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Barriers as chains of work requests (Yu, Buntinas, Graham and Panda 2004, section 7): the adapter
 * begins each step when the messages before it have come. Pure.
 *
 * A member has a word for each step that waits, its *flag*, which the step's sender writes; and a
 * word that says which epoch the process has entered. Each step that sends has a queue pair of its
 * own. For each epoch its ring of requests has, by the rule of rule.h: a wait for the process's
 * entry, one for each flag of the steps before, and then the write of the epoch. Requests of a ring
 * are taken one after another, those of different rings at any time. So a process that has entered
 * has nothing more to do: what remains is taken by the adapter, as messages come.
 *
 * Rings are filled epochs ahead. Places in a ring are free again when the adapter has shown that
 * the write behind them is done.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "coll_nicbarrier/epoch/rule.h"

/* ---- the bytes of a request ------------------------------------------------------------------
 *
 * As the adapter reads them from its send queue. A request is made of segments of 16 bytes, all
 * numbers in network byte order, and takes a block of 64 bytes of the queue. That of a write is in
 * mlx5dv.h (mlx5_wqe_ctrl_seg, _raddr_seg, _inl_data_seg). That of a wait for memory ("wait on
 * data", ConnectX-7) is not; public programs for these adapters (DPDK, UCC) have it.
 */

#define NICBARRIER_WQE_BYTES 64

typedef struct nicbarrier_wqe {
    _Alignas(16) unsigned char bytes[NICBARRIER_WQE_BYTES];
} nicbarrier_wqe_t;

/** Where a request stands. */
typedef struct nicbarrier_wqe_place {
    uint32_t qpn;   /**< of the queue pair, 24 bits */
    uint16_t index; /**< requests that were ever put into its queue before, modulo 2^16 */
} nicbarrier_wqe_place_t;

/** An aligned word of 8 bytes in registered memory, in network byte order. */
typedef struct nicbarrier_wqe_word {
    uint64_t addr;
    uint32_t key;
} nicbarrier_wqe_word_t;

/** What stands behind it in the queue is not begun before the process's own word is `least` or
 *  more. "More" is meant cyclically: by less than 2^63. */
void nicbarrier_wqe_wait(nicbarrier_wqe_t *w, nicbarrier_wqe_place_t place,
                         nicbarrier_wqe_word_t mine, uint64_t least);

/** Writes a value, which it carries itself, to a word of another process, and shows its end, and so
 *  that of all before it, in the completion queue. */
void nicbarrier_wqe_write(nicbarrier_wqe_t *w, nicbarrier_wqe_place_t place,
                          nicbarrier_wqe_word_t theirs, uint64_t value);

/* ---- chains ---------------------------------------------------------------------------------- */

/** The words of a member, each on cache lines of its own: flags, then these. */
enum {
    NICBARRIER_CHAIN_ENTERED = NICBARRIER_RULE_STEPS, /**< the epoch that the process has entered */
    NICBARRIER_CHAIN_FAILED, /**< not 0: a partner says that the group has failed */
    NICBARRIER_CHAIN_WORDS
};
#define NICBARRIER_CHAIN_STRIDE 128
#define NICBARRIER_CHAIN_BYTES  (NICBARRIER_CHAIN_WORDS * NICBARRIER_CHAIN_STRIDE)

/** One of the words that begin at a place. */
static inline nicbarrier_wqe_word_t nicbarrier_chain_word(nicbarrier_wqe_word_t words, uint32_t i)
{
    return (nicbarrier_wqe_word_t){words.addr + (uint64_t)i * NICBARRIER_CHAIN_STRIDE, words.key};
}

/** The ring of a step that sends. */
typedef struct nicbarrier_chain_ring {
    nicbarrier_wqe_place_t next;
    nicbarrier_wqe_word_t flag; /**< the partner's */
    uint64_t written;           /**< epochs up to this one are shown as written */
} nicbarrier_chain_ring_t;

typedef struct nicbarrier_chain {
    uint32_t nsteps;
    uint64_t sends, waits;       /**< as in rule.h */
    nicbarrier_wqe_word_t words; /**< mine */
    uint32_t depth;              /**< epochs that each ring has room for, at least 1 */
    uint64_t posted;             /**< epochs up to this one are in the rings, or done */
    nicbarrier_chain_ring_t ring[NICBARRIER_RULE_STEPS];
} nicbarrier_chain_t;

/** Most requests of an epoch in a ring. */
#define NICBARRIER_CHAIN_REQUESTS (NICBARRIER_RULE_STEPS + 1)

/** Requests of an epoch in the ring of step k: a ring has `depth` times as many places. */
uint32_t nicbarrier_chain_requests(const nicbarrier_chain_t *c, uint32_t k);

/** The requests of the next epoch in the ring of step k, which sends; the last of them is shown.
 *  @return how many */
uint32_t nicbarrier_chain_build(nicbarrier_chain_t *c, uint32_t k, uint64_t epoch,
                                nicbarrier_wqe_t wqe[NICBARRIER_CHAIN_REQUESTS]);

/** The write of an epoch by step k has been shown. */
void nicbarrier_chain_shown(nicbarrier_chain_t *c, uint32_t k, uint64_t epoch);

/** All epochs up to this one are written, by all steps that send; no epoch: by none. */
uint64_t nicbarrier_chain_written(const nicbarrier_chain_t *c);
