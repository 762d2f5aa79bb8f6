/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The flags of all groups; see put.h. */
#include <pthread.h>
#include <stdlib.h>

#include "coll_nicbarrier/engines/put/put.h"

#define PIECE_BYTES (NICBARRIER_RULE_STEPS * sizeof(nicbarrier_put_flag_t))
/** Of one region: 64 KiB. */
#define PIECES 16
/** So many are idle before one of them is taken again. */
#define IDLE 64

typedef struct slab {
    struct slab *next;
    onic_region_t *region;
    nicbarrier_put_flags_t piece[PIECES];
} slab_t;

/** Groups are prepared and disconnected by any threads. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static slab_t *slabs;
static int fresh; /**< pieces of the first slab that have never been in use */
static nicbarrier_put_flags_t *first, **last = &first;
static int idle;

static void add_slab(void)
{
    slab_t *slab = calloc(1, sizeof(*slab));
    if (slab == NULL)
        return;
    slab->region = onic_region_new(PIECES * PIECE_BYTES);
    if (slab->region == NULL) {
        free(slab);
        return;
    }
    for (uint32_t i = 0; i < PIECES; i++) {
        nicbarrier_put_flag_t *flags = onic_region_base(slab->region);
        slab->piece[i] =
            (nicbarrier_put_flags_t){.region = slab->region,
                                     .offset = i * (uint32_t)PIECE_BYTES,
                                     .flag = flags + (size_t)i * NICBARRIER_RULE_STEPS};
    }
    slab->next = slabs;
    slabs = slab;
    fresh = PIECES;
}

static nicbarrier_put_flags_t *take(void)
{
    if (fresh == 0 && idle < IDLE)
        add_slab();
    nicbarrier_put_flags_t *flags = first;
    if (fresh > 0) {
        flags = &slabs->piece[--fresh];
    } else if (first != NULL) {
        first = first->next;
        last = first == NULL ? &first : last;
        idle--;
    } else {
        return NULL;
    }
    flags->tag = flags->tag % (NICBARRIER_PUT_TAGS - 1) + 1;
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
    flags->next = NULL;
    *last = flags;
    last = &flags->next;
    idle++;
    pthread_mutex_unlock(&lock);
}

void nicbarrier_put_flags_close(void)
{
    while (slabs != NULL) {
        slab_t *slab = slabs;
        slabs = slab->next;
        onic_region_leave(slab->region);
        free(slab);
    }
    first = NULL;
    last = &first;
    fresh = idle = 0;
}
