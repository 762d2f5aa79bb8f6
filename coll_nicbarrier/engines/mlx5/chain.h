/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Barriers as chains of work requests (Yu, Buntinas, Graham and Panda 2004, section 7): the adapter
 * starts each step when the messages of earlier steps have come. Pure.
 *
 * A member has a word for each step that waits, its *flag*, which the step's sender writes; and a
 * word that says which epoch the process has entered. Each step that sends has a queue pair of its
 * own. For each epoch its ring of requests has, by the rule of rule.h: a wait for the process's
 * entry, one for each flag of the steps before, and then the write of the epoch. Requests of a ring
 * are taken one after another, those of different rings at any time. So a process that has entered
 * has nothing more to do: the adapter takes the remaining steps as messages come.
 *
 * Rings are filled epochs ahead. Places in a ring are free again when the adapter has shown that
 * the write behind them is done (step.c).
 */
#pragma once

#include <stdint.h>

#include "coll_nicbarrier/epoch/rule.h"

/* ---- the bytes of a request ------------------------------------------------------------------
 *
 * The format in which the adapter reads requests from its send queue. A request consists of
 * segments of 16 bytes, all numbers in network byte order, and takes a block of 64 bytes of the
 * queue. The format of a write is in mlx5dv.h (mlx5_wqe_ctrl_seg, _raddr_seg, _inl_data_seg). That
 * of a wait for memory ("wait on data", ConnectX-7) is not, but public programs for these adapters
 * (DPDK, UCC) have it.
 */

#define NICBARRIER_WQE_BYTES 64

typedef struct nicbarrier_wqe {
    _Alignas(16) unsigned char bytes[NICBARRIER_WQE_BYTES];
} nicbarrier_wqe_t;

/** The place of a request in a queue. */
typedef struct nicbarrier_wqe_place {
    uint32_t qpn;   /**< of the queue pair, 24 bits */
    uint16_t index; /**< number of requests ever put into the queue before, modulo 2^16 */
} nicbarrier_wqe_place_t;

/** An aligned word of 8 bytes in registered memory, in network byte order. */
typedef struct nicbarrier_wqe_word {
    uint64_t addr;
    uint32_t key;
} nicbarrier_wqe_word_t;

/** Later requests of the queue are not started before the process's own word is `least` or more.
 *  The comparison is cyclic: "more" means by less than 2^63. */
void nicbarrier_wqe_wait(nicbarrier_wqe_t *w, nicbarrier_wqe_place_t place,
                         nicbarrier_wqe_word_t mine, uint64_t least);

/** Writes a value, which the request itself carries, to a word of another process. Its completion,
 *  which also stands for that of all requests before it, goes to the completion queue. */
void nicbarrier_wqe_write(nicbarrier_wqe_t *w, nicbarrier_wqe_place_t place,
                          nicbarrier_wqe_word_t theirs, uint64_t value);

/* ---- chains ---------------------------------------------------------------------------------- */

/** The words of a member, each on its own cache lines: the flags, then these. */
enum {
    NICBARRIER_CHAIN_ENTERED = NICBARRIER_RULE_STEPS, /**< the last epoch the process entered */
    NICBARRIER_CHAIN_FAILED, /**< not 0: a partner says that the group has failed */
    NICBARRIER_CHAIN_WORDS
};
#define NICBARRIER_CHAIN_STRIDE 128
#define NICBARRIER_CHAIN_BYTES  (NICBARRIER_CHAIN_WORDS * NICBARRIER_CHAIN_STRIDE)

/** The i-th of the words that begin at a place. */
static inline nicbarrier_wqe_word_t nicbarrier_chain_word(nicbarrier_wqe_word_t words, uint32_t i)
{
    return (nicbarrier_wqe_word_t){words.addr + (uint64_t)i * NICBARRIER_CHAIN_STRIDE, words.key};
}

/** Most requests of one epoch in a ring. */
#define NICBARRIER_CHAIN_REQUESTS (NICBARRIER_RULE_STEPS + 1)

/** Requests of an epoch in the ring of step k, of a member whose steps `waits` wait (rule.h). */
uint32_t nicbarrier_chain_requests(uint64_t waits, uint32_t k);

/** Builds the requests of an epoch for the ring of step k, whose next place is *next: waits for
 *  words of `mine`, and the write to the partner's flag. Only the last of them makes a completion.
 *  @return how many */
uint32_t nicbarrier_chain_build(uint64_t waits, uint32_t k, uint64_t epoch,
                                nicbarrier_wqe_place_t *next, nicbarrier_wqe_word_t mine,
                                nicbarrier_wqe_word_t flag,
                                nicbarrier_wqe_t wqe[NICBARRIER_CHAIN_REQUESTS]);
