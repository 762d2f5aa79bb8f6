/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The flags of all groups; see put.h. */
#include <pthread.h>
#include <stdlib.h>

#include "coll_nicbarrier/engines/put/put.h"

/** Idle regions needed before the oldest one is used again. */
#define IDLE 16

/** Any thread may prepare and disconnect groups. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static STAILQ_HEAD(list, nicbarrier_put_flags) idle = STAILQ_HEAD_INITIALIZER(idle),
                                               others = STAILQ_HEAD_INITIALIZER(others);
static int n_idle;

static nicbarrier_put_flags_t *make(void)
{
    nicbarrier_put_flags_t *flags = calloc(1, sizeof(*flags));
    if (flags == NULL)
        return NULL;
    flags->region = onic_region_new(NICBARRIER_RULE_STEPS * sizeof(flags->flag[0]));
    if (flags->region == NULL) {
        free(flags);
        return NULL;
    }
    flags->flag = onic_region_base(flags->region);
    return flags;
}

static nicbarrier_put_flags_t *take(void)
{
    nicbarrier_put_flags_t *flags = n_idle < IDLE ? make() : NULL;
    if (flags == NULL && (flags = STAILQ_FIRST(&idle)) != NULL) {
        STAILQ_REMOVE_HEAD(&idle, next);
        n_idle--;
    }
    if (flags == NULL)
        return NULL;
    for (int k = 0; k < NICBARRIER_RULE_STEPS; k++)
        atomic_store_explicit(&flags->flag[k].word, 0, memory_order_relaxed);
    return flags;
}

nicbarrier_put_flags_t *nicbarrier_put_flags_take(void)
{
    pthread_mutex_lock(&lock);
    nicbarrier_put_flags_t *flags = take();
    pthread_mutex_unlock(&lock);
    return flags;
}

void nicbarrier_put_flags_give(nicbarrier_put_flags_t *flags)
{
    pthread_mutex_lock(&lock);
    if (flags->done)
        STAILQ_INSERT_TAIL(&idle, flags, next);
    else
        STAILQ_INSERT_TAIL(&others, flags, next);
    n_idle += flags->done;
    pthread_mutex_unlock(&lock);
}

void nicbarrier_put_flags_close(void)
{
    nicbarrier_put_flags_t *flags;
    STAILQ_CONCAT(&idle, &others);
    while ((flags = STAILQ_FIRST(&idle)) != NULL) {
        STAILQ_REMOVE_HEAD(&idle, next);
        onic_region_leave(flags->region);
        free(flags);
    }
    n_idle = 0;
}
