/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/layout/layout_cache.h"

#include <stdlib.h>
#include <string.h>

typedef struct onic_cached_layout {
    uint64_t print;
    size_t bytes; /* in all */
    onic_layout_t layout;
    size_t len;
    unsigned char contents[];
} one_t;

static void drop(onic_layout_cache_t *c, one_t **kept)
{
    if (*kept == NULL)
        return;
    c->bytes -= (*kept)->bytes;
    onic_layout_fini(&(*kept)->layout);
    free(*kept);
    *kept = NULL;
}

void onic_layout_cache_fini(onic_layout_cache_t *c)
{
    for (unsigned i = 0; i < ONIC_LAYOUT_CACHE_ENTRIES; i++)
        drop(c, &c->entry[i].kept);
}

bool onic_layout_cache_find(onic_layout_cache_t *c, const onic_contents_t *from, onic_layout_t *l)
{
    const one_t *o = c->entry[from->print % ONIC_LAYOUT_CACHE_ENTRIES].kept;

    if (o == NULL || o->print != from->print || o->len != from->len ||
        !from->same(o->contents, from->bytes, from->len))
        return false;
    c->hits++;
    onic_layout_dup(l, &o->layout);
    return true;
}

void onic_layout_cache_add(onic_layout_cache_t *c, const onic_contents_t *from, onic_layout_t *l)
{
    const unsigned i = (unsigned)(from->print % ONIC_LAYOUT_CACHE_ENTRIES);
    const size_t list = (size_t)l->nruns * (sizeof(onic_run_t) + sizeof(uint64_t));
    const size_t bytes = sizeof(one_t) + from->len + list;
    const bool again = c->entry[i].seen == from->print;
    one_t *o = again && bytes <= c->limit ? malloc(sizeof(*o) + from->len) : NULL;

    c->entry[i].seen = from->print;
    if (o == NULL)
        return;
    drop(c, &c->entry[i].kept);
    if (c->bytes > c->limit - bytes)
        onic_layout_cache_fini(c);
    if (l->nruns > 0)
        onic_layout_set_number(l, ++c->numbers);
    o->print = from->print;
    o->bytes = bytes;
    o->len = from->len;
    memcpy(o->contents, from->bytes, from->len);
    onic_layout_dup(&o->layout, l);
    c->entry[i].kept = o;
    c->bytes += bytes;
}
