/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/layout/layout_cache.h"

#include <stdlib.h>
#include <string.h>

typedef struct onic_cached_layout {
    TAILQ_ENTRY(onic_cached_layout) use; /* most recently used first */
    LIST_ENTRY(onic_cached_layout) next; /* in the bucket */
    uint64_t print;
    size_t bytes; /* in all */
    onic_layout_t layout;
    size_t len;
    unsigned char contents[];
} one_t;

static void drop(onic_layout_cache_t *c, one_t *o)
{
    LIST_REMOVE(o, next);
    TAILQ_REMOVE(&c->by_use, o, use);
    c->bytes -= o->bytes;
    c->n--;
    onic_layout_fini(&o->layout);
    free(o);
}

void onic_layout_cache_fini(onic_layout_cache_t *c)
{
    while (c->n > 0)
        drop(c, TAILQ_FIRST(&c->by_use));
}

bool onic_layout_cache_find(onic_layout_cache_t *c, const onic_contents_t *from, onic_layout_t *l)
{
    one_t *o = LIST_FIRST(&c->bucket[from->print % ONIC_LAYOUT_CACHE_BUCKETS]);

    while (o != NULL && (o->print != from->print || o->len != from->len ||
                         !from->same(o->contents, from->bytes, from->len)))
        o = LIST_NEXT(o, next);
    if (o == NULL)
        return false;
    TAILQ_REMOVE(&c->by_use, o, use);
    TAILQ_INSERT_HEAD(&c->by_use, o, use);
    c->hits++;
    onic_layout_dup(l, &o->layout);
    return true;
}

static bool comes_again(onic_layout_cache_t *c, uint64_t print)
{
    for (unsigned i = 0; i < ONIC_LAYOUT_CACHE_SEEN; i++)
        if (c->seen[i] == print)
            return true;
    c->seen[c->turn++ % ONIC_LAYOUT_CACHE_SEEN] = print;
    return false;
}

void onic_layout_cache_add(onic_layout_cache_t *c, const onic_contents_t *from, onic_layout_t *l)
{
    const size_t list = (size_t)l->nruns * (sizeof(onic_run_t) + sizeof(uint64_t));
    const size_t bytes = sizeof(one_t) + sizeof(*l) + from->len + list;

    if (bytes > c->limit || !comes_again(c, from->print))
        return;
    while (c->bytes > c->limit - bytes || c->n == ONIC_LAYOUT_CACHE_MAX)
        drop(c, TAILQ_LAST(&c->by_use, onic_cached_by_use));
    if (c->n == 0)
        TAILQ_INIT(&c->by_use);
    one_t *o = malloc(sizeof(*o) + from->len);
    if (o == NULL)
        return;
    if (l->nruns > 0)
        onic_layout_set_number(l, ++c->numbers);
    o->print = from->print;
    o->bytes = bytes;
    o->len = from->len;
    memcpy(o->contents, from->bytes, from->len);
    onic_layout_dup(&o->layout, l);
    LIST_INSERT_HEAD(&c->bucket[from->print % ONIC_LAYOUT_CACHE_BUCKETS], o, next);
    TAILQ_INSERT_HEAD(&c->by_use, o, use);
    c->bytes += bytes;
    c->n++;
}
