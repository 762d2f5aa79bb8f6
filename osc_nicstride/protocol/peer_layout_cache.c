/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/protocol/peer_layout_cache.h"

#include <string.h>

/* Form, offset and levels: one byte, then numbers of up to ten bytes each. */
_Static_assert(NICSTRIDE_LIST_NUMBER_BYTES + 11 + 20 * ONIC_LAYOUT_MAX_LEVELS <=
                   ONIC_LAYOUT_ENCODED_MAX,
               "room for a number and what is around the list");

/* ---- at the origin --------------------------------------------------------------------------- */

static uint64_t entry_of(uint64_t list)
{
    return list % NICSTRIDE_LAYOUT_CACHE_ENTRIES;
}

bool nicstride_layout_is_sent(const nicstride_sent_layouts_t *s, uint64_t list)
{
    return s->entry[entry_of(list)].list == list;
}

bool nicstride_layout_send(nicstride_sent_layouts_t *s, uint64_t list, uint32_t nruns)
{
    struct nicstride_sent_layout *l = &s->entry[entry_of(list)];
    const uint64_t all = s->nruns - l->nruns + nruns;

    if (l->list == list || all > NICSTRIDE_LAYOUT_CACHE_MOST)
        return false;
    s->nruns = all;
    *l = (struct nicstride_sent_layout){.list = list, .nruns = nruns};
    return true;
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
    uint64_t list;

    memcpy(&list, layout, sizeof(list));
    l = &k->entry[entry_of(list)];
    return l->layout.nruns > 0 && l->list == list ? &l->layout : NULL;
}

/** Makes the list when all of it has arrived. It stays a list even if it is regular, as the layout
 *  around it has its own levels. */
static void end(nicstride_layout_cache_t *k, uint64_t number)
{
    struct nicstride_cached_layout *l = &k->entry[entry_of(number)];
    onic_layout_t list;

    onic_layout_fini(&l->layout);
    if (k->broken ||
        onic_layout_from_runs(&list, &k->runs, ONIC_LAYOUT_MAX_LEVELS) != ONIC_LAYOUT_OK)
        return;
    if (list.nruns == 0 || list.offset != 0) {
        onic_layout_fini(&list);
        return;
    }
    l->list = number;
    l->layout = list;
}

void nicstride_layout_slice(nicstride_layout_cache_t *k, const nicstride_msg_t *msg,
                            const void *layout)
{
    uint64_t data;

    if (msg->offset == 0) {
        onic_runs_fini(&k->runs);
        k->broken = false;
    }
    k->broken = k->broken || k->runs.n > NICSTRIDE_LAYOUT_CACHE_MOST ||
                onic_runs_decode(&k->runs, layout, msg->layout_len, &data) != ONIC_LAYOUT_OK;
    if (msg->op == 0)
        return;
    end(k, msg->count);
    onic_runs_fini(&k->runs);
}
