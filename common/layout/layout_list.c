/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/layout/layout.h"
#include "common/layout/kept.h"
#include "common/layout/layout_walk.h"

/** Beside the runs of a list. */
typedef struct list {
    atomic_uint layouts; /**< that have it */
    uint64_t number;     /**< see onic_layout_number */
    uint64_t start[];
} list_t;

static list_t *list_of(const onic_layout_t *l)
{
    return (list_t *)(void *)((char *)l->run_start - offsetof(list_t, start));
}

uint64_t *onic_list_positions(size_t nruns)
{
    list_t *list = malloc(sizeof(*list) + (nruns + 1) * sizeof(list->start[0]));

    if (list == NULL)
        return NULL;
    atomic_init(&list->layouts, 1);
    list->number = 0;
    return list->start;
}

void onic_layout_fini(onic_layout_t *l)
{
    if (l->nruns > 0 &&
        atomic_fetch_sub_explicit(&list_of(l)->layouts, 1, memory_order_acq_rel) == 1) {
        free(l->runs);
        free(list_of(l));
    }
    *l = (onic_layout_t){0};
}

void onic_layout_dup(onic_layout_t *dst, const onic_layout_t *src)
{
    if (src->nruns > 0)
        atomic_fetch_add_explicit(&list_of(src)->layouts, 1, memory_order_relaxed);
    *dst = *src;
}

void onic_layout_list(onic_layout_t *list, const onic_layout_t *l)
{
    onic_layout_dup(list, l);
    while (list->nlevels > 0) {
        const onic_stride_t *top = &list->level[--list->nlevels];
        const int64_t span = (int64_t)(top->count - 1) * top->stride;

        list->size /= top->count;
        *(span < 0 ? &list->lb : &list->ub) -= span;
    }
    list->lb -= list->offset;
    list->ub -= list->offset;
    list->offset = 0;
}

void onic_layout_set_number(onic_layout_t *l, uint64_t number)
{
    list_of(l)->number = number;
}

uint64_t onic_layout_number(const onic_layout_t *l)
{
    return l->nruns > 0 ? list_of(l)->number : 0;
}

/* ---- layouts that are kept ------------------------------------------------------------------- */

typedef struct onic_kept_one {
    TAILQ_ENTRY(onic_kept_one) use; /* the newest first */
    LIST_ENTRY(onic_kept_one) next; /* in the bucket */
    uint64_t print;
    size_t bytes; /* of all of it */
    onic_layout_t layout;
    size_t len;
    unsigned char contents[];
} one_t;

static void drop(onic_kept_t *k, one_t *o)
{
    LIST_REMOVE(o, next);
    TAILQ_REMOVE(&k->by_use, o, use);
    k->bytes -= o->bytes;
    k->n--;
    onic_layout_fini(&o->layout);
    free(o);
}

void onic_kept_fini(onic_kept_t *k)
{
    while (k->n > 0)
        drop(k, TAILQ_FIRST(&k->by_use));
}

bool onic_kept_find(onic_kept_t *k, const onic_contents_t *from, onic_layout_t *l)
{
    one_t *o = LIST_FIRST(&k->bucket[from->print % ONIC_KEPT_BUCKETS]);

    while (o != NULL && (o->print != from->print || o->len != from->len ||
                         !from->same(o->contents, from->bytes, from->len)))
        o = LIST_NEXT(o, next);
    if (o == NULL)
        return false;
    TAILQ_REMOVE(&k->by_use, o, use);
    TAILQ_INSERT_HEAD(&k->by_use, o, use);
    k->hits++;
    onic_layout_dup(l, &o->layout);
    return true;
}

static bool comes_again(onic_kept_t *k, uint64_t print)
{
    for (unsigned i = 0; i < ONIC_KEPT_SEEN; i++)
        if (k->seen[i] == print)
            return true;
    k->seen[k->turn++ % ONIC_KEPT_SEEN] = print;
    return false;
}

void onic_kept_add(onic_kept_t *k, const onic_contents_t *from, onic_layout_t *l)
{
    const size_t list = (size_t)l->nruns * (sizeof(onic_run_t) + sizeof(uint64_t));
    const size_t bytes = sizeof(one_t) + sizeof(*l) + from->len + list;

    if (bytes > k->limit || !comes_again(k, from->print))
        return;
    while (k->bytes > k->limit - bytes || k->n == ONIC_KEPT_MAX)
        drop(k, TAILQ_LAST(&k->by_use, onic_kept_by_use));
    if (k->n == 0)
        TAILQ_INIT(&k->by_use);
    one_t *o = malloc(sizeof(*o) + from->len);
    if (o == NULL)
        return;
    if (l->nruns > 0)
        onic_layout_set_number(l, ++k->numbers);
    o->print = from->print;
    o->bytes = bytes;
    o->len = from->len;
    memcpy(o->contents, from->bytes, from->len);
    onic_layout_dup(&o->layout, l);
    LIST_INSERT_HEAD(&k->bucket[from->print % ONIC_KEPT_BUCKETS], o, next);
    TAILQ_INSERT_HEAD(&k->by_use, o, use);
    k->bytes += bytes;
    k->n++;
}
