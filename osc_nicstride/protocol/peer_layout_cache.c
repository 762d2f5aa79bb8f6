/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/protocol/peer_layout_cache.h"

#include <string.h>

/* Form, offset and levels: one byte, then numbers of up to ten bytes each. */
_Static_assert(NICSTRIDE_LAYOUT_ID_BYTES + 11 + 20 * ONIC_LAYOUT_MAX_LEVELS <=
                   ONIC_LAYOUT_ENCODED_MAX,
               "room for an id and what is around the list");

/* ---- at the origin --------------------------------------------------------------------------- */

static uint64_t entry_of(uint64_t list)
{
    return list % NICSTRIDE_LAYOUT_CACHE_ENTRIES;
}

uint64_t nicstride_layout_send(nicstride_sent_layouts_t *s, uint64_t list, uint32_t nruns)
{
    struct nicstride_sent_layout *l = &s->entry[entry_of(list)];

    if (l->list == list || s->nruns - l->nruns + nruns > NICSTRIDE_LAYOUT_CACHE_MOST)
        return 0;
    s->nruns += nruns - (uint64_t)l->nruns;
    *l = (struct nicstride_sent_layout){.list = list,
                                        .id = ++s->sent * NICSTRIDE_LAYOUT_CACHE_ENTRIES +
                                              entry_of(list),
                                        .nruns = nruns};
    return l->id;
}

uint64_t nicstride_layout_id(const nicstride_sent_layouts_t *s, uint64_t list)
{
    const struct nicstride_sent_layout *l = &s->entry[entry_of(list)];

    return l->list == list ? l->id : 0;
}

/* ---- at the target --------------------------------------------------------------------------- */

void nicstride_layouts_leave(nicstride_layout_cache_t *k)
{
    onic_runs_fini(&k->runs);
    for (uint32_t i = 0; i < NICSTRIDE_LAYOUT_CACHE_ENTRIES; i++)
        onic_layout_fini(&k->entry[i].layout);
}

const onic_layout_t *nicstride_layout_cached(const nicstride_layout_cache_t *k, const void *layout)
{
    const struct nicstride_cached_layout *l;
    uint64_t id;

    memcpy(&id, layout, sizeof(id));
    l = &k->entry[entry_of(id)];
    return l->layout.nruns > 0 && l->id == id ? &l->layout : NULL;
}

/** Makes the list when all of it has arrived. It stays a list even if it is regular, as the layout
 *  around it has its own levels. */
static void end(nicstride_layout_cache_t *k, uint64_t id)
{
    struct nicstride_cached_layout *l = &k->entry[entry_of(id)];
    onic_layout_t list;

    onic_layout_fini(&l->layout);
    if (k->broken ||
        onic_layout_from_runs(&list, &k->runs, ONIC_LAYOUT_MAX_LEVELS) != ONIC_LAYOUT_OK)
        return;
    if (list.nruns == 0 || list.offset != 0) {
        onic_layout_fini(&list);
        return;
    }
    l->id = id;
    l->layout = list;
}

void nicstride_layout_slice(nicstride_layout_cache_t *k, const nicstride_msg_t *msg,
                            const void *layout)
{
    uint64_t data = 0;

    if (msg->offset == 0) {
        onic_runs_fini(&k->runs);
        k->here = 0;
        k->broken = false;
    }
    k->broken = k->broken || msg->offset != k->here || k->runs.n > NICSTRIDE_LAYOUT_CACHE_MOST ||
                onic_runs_decode(&k->runs, layout, msg->layout_len, &data) != ONIC_LAYOUT_OK;
    k->here += data;
    if (msg->op == 0)
        return;
    end(k, msg->count);
    onic_runs_fini(&k->runs);
}
