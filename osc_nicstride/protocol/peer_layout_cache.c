/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/protocol/peer_layout_cache.h"

#include <stdlib.h>
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

uint64_t nicstride_layout_send(nicstride_sent_layouts_t *s, uint64_t list)
{
    struct nicstride_sent_layout *l = &s->entry[entry_of(list)];

    if (l->list == list)
        return 0;
    *l = (struct nicstride_sent_layout){
        .list = list, .id = ++s->sent * NICSTRIDE_LAYOUT_CACHE_ENTRIES + entry_of(list)};
    return l->id;
}

uint64_t nicstride_layout_id(const nicstride_sent_layouts_t *s, uint64_t list)
{
    const struct nicstride_sent_layout *l = &s->entry[entry_of(list)];

    return l->list == list && l->known ? l->id : 0;
}

void nicstride_layout_answered(nicstride_sent_layouts_t *s, uint64_t id, bool had)
{
    struct nicstride_sent_layout *l = &s->entry[id % NICSTRIDE_LAYOUT_CACHE_ENTRIES];

    l->known = l->known || (had && l->id == id);
}

/* ---- at the target --------------------------------------------------------------------------- */

static size_t bytes_of(size_t nruns)
{
    return sizeof(nicstride_cached_layout_t) + nruns * (sizeof(onic_run_t) + sizeof(uint64_t));
}

static void forget(nicstride_layout_room_t *room, nicstride_cached_layout_t **entry)
{
    nicstride_cached_layout_t *l = *entry;

    if (l == NULL)
        return;
    room->bytes -= bytes_of(l->layout.nruns);
    onic_layout_fini(&l->layout);
    free(l);
    *entry = NULL;
}

void nicstride_layouts_leave(nicstride_layout_room_t *room, nicstride_layout_cache_t *k)
{
    onic_runs_fini(&k->runs);
    for (uint32_t i = 0; i < NICSTRIDE_LAYOUT_CACHE_ENTRIES; i++)
        forget(room, &k->entry[i]);
}

nicstride_cached_layout_t *nicstride_layout_cached(const nicstride_layout_cache_t *k,
                                                   const void *layout)
{
    nicstride_cached_layout_t *l;
    uint64_t id;

    memcpy(&id, layout, sizeof(id));
    l = k->entry[id % NICSTRIDE_LAYOUT_CACHE_ENTRIES];
    return l != NULL && l->id == id ? l : NULL;
}

/** Makes the list when all of it has arrived, if there is room. It stays a list even if it is
 *  regular, as the layout around it has its own levels. */
static bool end(nicstride_layout_room_t *room, nicstride_layout_cache_t *k, uint64_t id)
{
    const size_t bytes = bytes_of(k->runs.n);
    nicstride_cached_layout_t *l = malloc(sizeof(*l));

    if (l == NULL || k->refused || room->bytes > room->limit || bytes > room->limit - room->bytes ||
        onic_layout_from_runs(&l->layout, &k->runs, ONIC_LAYOUT_MAX_LEVELS) != ONIC_LAYOUT_OK) {
        free(l);
        return false;
    }
    if (l->layout.nruns == 0 || l->layout.offset != 0) {
        onic_layout_fini(&l->layout);
        free(l);
        return false;
    }
    l->id = id;
    room->bytes += bytes_of(l->layout.nruns);
    k->entry[id % NICSTRIDE_LAYOUT_CACHE_ENTRIES] = l;
    return true;
}

void nicstride_layout_slice(nicstride_layout_room_t *room, nicstride_layout_cache_t *k,
                            const nicstride_msg_t *msg, const void *layout, bool *had_p)
{
    uint64_t data = 0;

    if (msg->offset == 0) {
        onic_runs_fini(&k->runs);
        k->here = 0;
        k->refused = false;
    }
    k->refused = k->refused || msg->offset != k->here || k->runs.n > NICSTRIDE_LAYOUT_CACHE_MOST ||
                 onic_runs_decode(&k->runs, layout, msg->layout_len, &data) != ONIC_LAYOUT_OK;
    k->here += data;
    if (msg->op == 0)
        return;
    forget(room, &k->entry[msg->count % NICSTRIDE_LAYOUT_CACHE_ENTRIES]);
    *had_p = end(room, k, msg->count);
    onic_runs_fini(&k->runs);
}
