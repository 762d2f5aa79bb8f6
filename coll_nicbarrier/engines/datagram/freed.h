/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Records of groups whose communicators were freed, to answer NACKs of slower members.
 *
 * Freeing a communicator does not synchronise, and a member that has completed all it entered may
 * be the only one that can repeat what another has missed. All its messages were sent by then, up
 * to the last epoch, which therefore answers for every step.
 *
 * Memory is bounded by NICBARRIER_FREED_MAX: the oldest record is dropped. A NACK for a group
 * without a record is granted as asked. That is sound: a process is asked about a group only after
 * it has given its endpoint for it, so a group that it does not know is one that it completed and
 * freed; and a correct program has entered the same epochs everywhere. The records make it robust
 * where that does not hold: a group that failed to connect has one with epoch 0, and grants
 * nothing.
 *
 * Pure; the caller serialises.
 */
#ifndef NICBARRIER_FREED_H
#define NICBARRIER_FREED_H

#include <stdbool.h>
#include <stdint.h>

#define NICBARRIER_FREED_MAX 4096

/** Zero-initialise. */
typedef struct nicbarrier_freed {
    uint64_t n; /**< added so far */
    struct {
        uint64_t key;
        uint64_t word;
    } ring[NICBARRIER_FREED_MAX];
} nicbarrier_freed_t;

/** The group of that key is freed: complete up to the epoch in `word` (rule.h), and entered no
 *  further; or it has failed. */
void nicbarrier_freed_add(nicbarrier_freed_t *f, uint64_t key, uint64_t word);

/**
 * A NACK came that asks for `epoch` of a group that is not there (any more).
 *
 * @return true where the answer is the word `*word_p`
 */
bool nicbarrier_freed_answer(const nicbarrier_freed_t *f, uint64_t key, uint64_t epoch,
                             uint64_t *word_p);

#endif
