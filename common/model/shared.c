/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Samples in memory that the processes of a node share, and put together. */
#include "common/model/calibrate.h"

#include <string.h>

/* Who has brought the word from NOTHING to WRITING, and nobody else, writes the samples, then
 * READY; after that nobody writes. A writer that dies leaves WRITING. READY tells how many samples
 * there are, so that a library with others of them takes nothing. */
#define NOTHING UINT64_C(0)
#define WRITING UINT64_C(1)
#define READY   (UINT64_C(0x6d6f64656c000000) | ONIC_MODEL_SHARED_WORDS)

_Static_assert(sizeof(double) == sizeof(uint64_t), "a sample is a word");

bool onic_model_take(const onic_model_shared_t *shared, onic_measured_t *measured)
{
    uint64_t words[ONIC_MODEL_SHARED_WORDS];

    if (__atomic_load_n(&shared->state, __ATOMIC_ACQUIRE) != READY)
        return false;
    for (unsigned i = 0; i < ONIC_MODEL_SHARED_WORDS; i++)
        words[i] = __atomic_load_n(&shared->sample[i], __ATOMIC_RELAXED);
    memcpy(measured, words, sizeof(words));
    return true;
}

bool onic_model_publish(onic_model_shared_t *shared, const onic_measured_t *measured)
{
    uint64_t words[ONIC_MODEL_SHARED_WORDS], was = NOTHING;

    if (!__atomic_compare_exchange_n(&shared->state, &was, WRITING, false, __ATOMIC_RELAXED,
                                     __ATOMIC_RELAXED))
        return false;
    memcpy(words, measured, sizeof(words));
    for (unsigned i = 0; i < ONIC_MODEL_SHARED_WORDS; i++)
        __atomic_store_n(&shared->sample[i], words[i], __ATOMIC_RELAXED);
    __atomic_store_n(&shared->state, READY, __ATOMIC_RELEASE);
    return true;
}

/* What is no number counts as not measured. */
static bool is_better(const onic_samples_t *theirs, const onic_samples_t *mine)
{
    return (theirs->packed > 0 && !(mine->packed > 0)) || (theirs->call > 0 && !(mine->call > 0));
}

static bool add_pair(onic_pair_samples_t *mine, const onic_pair_samples_t *theirs)
{
    if (mine->ping > 0 || !(theirs->ping > 0))
        return false;
    *mine = *theirs;
    return true;
}

bool onic_measured_add(onic_measured_t *known, const onic_measured_t *others)
{
    const bool alone = is_better(&others->alone, &known->alone);
    const bool node = add_pair(&known->node, &others->node);
    const bool net = add_pair(&known->net, &others->net);

    if (alone)
        known->alone = others->alone;
    return alone || node || net;
}
