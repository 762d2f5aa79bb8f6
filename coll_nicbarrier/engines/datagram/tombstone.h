/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What remains of groups whose communicators were freed, to answer NACKs of slower members.
 *
 * Freeing a communicator does not synchronise, and a member that has completed all it entered may
 * be the only one who can repeat what another has missed. All its messages were sent by then, up to
 * the last epoch, which therefore answers for every step.
 *
 * Memory is bounded by NICBARRIER_TOMBSTONES: the oldest is forgotten. What is asked about a
 * forgotten group is granted as asked. That is sound, because nobody can ask a process about a
 * group before it has given its endpoint for it, so a group that it has no knowledge of is one that
 * it completed and freed; and because a correct program has entered the same epochs everywhere. The
 * records make it robust where that does not hold: a group that failed to connect has one with
 * epoch 0, and grants nothing.
 *
 * Pure; the caller serialises.
 */
#ifndef NICBARRIER_TOMBSTONE_H
#define NICBARRIER_TOMBSTONE_H

#include <stdbool.h>
#include <stdint.h>

#define NICBARRIER_TOMBSTONES 4096

/** Zero-initialise. */
typedef struct nicbarrier_tombstones {
    uint64_t n; /**< buried so far */
    struct {
        uint64_t key;
        uint64_t last;
    } ring[NICBARRIER_TOMBSTONES];
} nicbarrier_tombstones_t;

/** Beside the failure bit of what is kept: a member was dead. */
#define NICBARRIER_TOMBSTONE_DEAD (UINT64_C(1) << 62)

/** The group of that key, complete up to the epoch in `last` (and entered no further), exists no
 *  more. `last` is a word (rule.h): it may have failed, and a member of it be dead. */
void nicbarrier_tombstones_add(nicbarrier_tombstones_t *t, uint64_t key, uint64_t last);

/**
 * A NACK came that asks for `epoch` of a group that is not there (any more).
 *
 * @return true where the answer is the word `*word_p`, which may have NICBARRIER_TOMBSTONE_DEAD
 */
bool nicbarrier_tombstones_answer(const nicbarrier_tombstones_t *t, uint64_t key, uint64_t epoch,
                                  uint64_t *word_p);

#endif
