/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "common/layout/layout.h"
#include "common/layout/layout_walk.h"

/** Stored with the runs of a list. */
typedef struct list {
    atomic_uint layouts; /**< layouts that share it */
    uint64_t number;     /**< see onic_layout_number */
    uint64_t blocks;     /**< in all runs */
    uint64_t start[];
} list_t;

static list_t *list_of(const onic_layout_t *l)
{
    return (list_t *)(void *)((char *)l->run_start - offsetof(list_t, start));
}

uint64_t *onic_list_positions(const onic_run_t *run, size_t nruns)
{
    list_t *list = malloc(sizeof(*list) + (nruns + 1) * sizeof(list->start[0]));

    if (list == NULL)
        return NULL;
    atomic_init(&list->layouts, 1);
    list->number = list->blocks = list->start[0] = 0;
    for (size_t i = 0; i < nruns; i++) {
        list->blocks += run[i].count;
        list->start[i + 1] = list->start[i] + run[i].block * run[i].count;
    }
    return list->start;
}

uint64_t onic_list_blocks(const onic_layout_t *l)
{
    return list_of(l)->blocks;
}

void onic_list_release(onic_layout_t *l)
{
    if (atomic_fetch_sub_explicit(&list_of(l)->layouts, 1, memory_order_acq_rel) == 1) {
        free(l->runs);
        free(list_of(l));
    }
}

void onic_layout_dup(onic_layout_t *dst, const onic_layout_t *src)
{
    if (src->nruns > 0)
        atomic_fetch_add_explicit(&list_of(src)->layouts, 1, memory_order_relaxed);
    *dst = *src;
}

void onic_layout_set_number(onic_layout_t *l, uint64_t number)
{
    list_of(l)->number = number;
}

uint64_t onic_layout_number(const onic_layout_t *l)
{
    return l->nruns > 0 ? list_of(l)->number : 0;
}
