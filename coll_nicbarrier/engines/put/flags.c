/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The flags of all groups; see put.h. */
#include <pthread.h>
#include <string.h>

#include "coll_nicbarrier/engines/put/put.h"

#define BYTES (NICBARRIER_RULE_STEPS * sizeof(nicbarrier_put_flag_t))

/** Idle regions needed before the oldest one is used again, and most that are kept for that. Others
 *  stay until the transport ends, since a member that learns late of a failure still puts. */
enum { IDLE = 16, IDLE_MAX = 1024 };

/** Any thread may prepare and disconnect groups. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static onic_region_t *idle[IDLE_MAX]; /**< a ring: the oldest at first % IDLE_MAX */
static unsigned first, n_idle;

/** Takes the oldest idle region where there are this many; else NULL. */
static onic_region_t *oldest(unsigned least)
{
    if (n_idle < least)
        return NULL;
    n_idle--;
    return idle[first++ % IDLE_MAX];
}

onic_region_t *nicbarrier_put_flags_take(void)
{
    pthread_mutex_lock(&lock);
    onic_region_t *region = oldest(IDLE);
    pthread_mutex_unlock(&lock);
    if (region == NULL)
        return onic_region_new(BYTES);
    memset(onic_region_base(region), 0, BYTES);
    return region;
}

void nicbarrier_put_flags_give(onic_region_t *region, bool done)
{
    onic_region_t *spare = NULL;
    if (!done) {
        onic_region_leave(region);
        return;
    }
    pthread_mutex_lock(&lock);
    spare = oldest(IDLE_MAX);
    idle[(first + n_idle++) % IDLE_MAX] = region;
    pthread_mutex_unlock(&lock);
    if (spare != NULL)
        onic_region_leave(spare);
}

void nicbarrier_put_flags_close(void)
{
    while (n_idle > 0)
        onic_region_leave(oldest(1));
}
