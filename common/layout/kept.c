/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/layout/kept.h"

#include <stdlib.h>
#include <string.h>

typedef struct onic_kept_one {
    struct onic_kept_one *newer, *older; /* by their last use */
    struct onic_kept_one *next;          /* in the bucket */
    uint64_t print;
    size_t bytes; /* of all of it */
    onic_layout_t layout;
    size_t len;
    unsigned char contents[];
} one_t;

size_t onic_layout_bytes(const onic_layout_t *l)
{
    return sizeof(*l) + (size_t)l->nruns * (sizeof(onic_run_t) + sizeof(uint64_t));
}

static one_t **bucket_of(onic_kept_t *k, uint64_t print)
{
    return &k->bucket[print % ONIC_KEPT_BUCKETS];
}

/* ---- by their last use ----------------------------------------------------------------------- */

static void unlink_one(onic_kept_t *k, one_t *o)
{
    *(o->newer != NULL ? &o->newer->older : &k->newest) = o->older;
    *(o->older != NULL ? &o->older->newer : &k->oldest) = o->newer;
}

static void link_newest(onic_kept_t *k, one_t *o)
{
    o->newer = NULL;
    o->older = k->newest;
    *(k->newest != NULL ? &k->newest->newer : &k->oldest) = o;
    k->newest = o;
}

static void drop(onic_kept_t *k, one_t *o)
{
    one_t **at = bucket_of(k, o->print);

    while (*at != o)
        at = &(*at)->next;
    *at = o->next;
    unlink_one(k, o);
    k->bytes -= o->bytes;
    k->n--;
    onic_layout_fini(&o->layout);
    free(o);
}

void onic_kept_fini(onic_kept_t *k)
{
    while (k->oldest != NULL)
        drop(k, k->oldest);
}

/* ---- finding and keeping --------------------------------------------------------------------- */

bool onic_kept_find(onic_kept_t *k, const onic_contents_t *from, onic_layout_t *l)
{
    one_t *o = *bucket_of(k, from->print);

    while (o != NULL && (o->print != from->print || o->len != from->len ||
                         !from->same(o->contents, from->bytes, from->len)))
        o = o->next;
    if (o == NULL)
        return false;
    unlink_one(k, o);
    link_newest(k, o);
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
    const size_t bytes = sizeof(one_t) + from->len + onic_layout_bytes(l);

    if (bytes > k->limit || !comes_again(k, from->print))
        return;
    while (k->bytes > k->limit - bytes || k->n == ONIC_KEPT_MAX)
        drop(k, k->oldest);
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
    o->next = *bucket_of(k, from->print);
    *bucket_of(k, from->print) = o;
    k->bytes += bytes;
    k->n++;
    link_newest(k, o);
}
