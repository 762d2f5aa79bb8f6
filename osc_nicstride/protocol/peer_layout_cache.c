/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/protocol/peer_layout_cache.h"

#include <stdlib.h>
#include <string.h>

#define LOST_MAX 16

/* Form, offset and levels: one byte, then numbers of up to ten bytes each. */
_Static_assert(NICSTRIDE_LAYOUT_ID_BYTES + 11 + 20 * ONIC_LAYOUT_MAX_LEVELS <=
                   ONIC_LAYOUT_ENCODED_MAX,
               "room for an id and what is around the list");

/* ---- at the origin --------------------------------------------------------------------------- */

bool nicstride_layout_is_due(const nicstride_sent_layouts_t *s, uint64_t list)
{
    const struct nicstride_sent_layout *l = &s->entry[list % NICSTRIDE_LAYOUT_CACHE_ENTRIES];

    return l->list == list && l->state == NICSTRIDE_LAYOUT_UNSENT &&
           l->uses + 1 >= UINT32_C(2) << l->lost;
}

uint32_t nicstride_layout_used(nicstride_sent_layouts_t *s, uint64_t list)
{
    struct nicstride_sent_layout *l = &s->entry[list % NICSTRIDE_LAYOUT_CACHE_ENTRIES];
    const bool due = nicstride_layout_is_due(s, list);

    if (l->list != list)
        *l = (struct nicstride_sent_layout){.list = list};
    l->uses++;
    if (!due)
        return 0;
    l->uses = 0;
    l->state = NICSTRIDE_LAYOUT_SENT;
    s->ids = s->ids < UINT32_MAX / NICSTRIDE_LAYOUT_CACHE_ENTRIES - 1 ? s->ids + 1 : 1;
    l->id =
        s->ids * NICSTRIDE_LAYOUT_CACHE_ENTRIES + (uint32_t)(list % NICSTRIDE_LAYOUT_CACHE_ENTRIES);
    return l->id;
}

bool nicstride_layout_is(const nicstride_sent_layouts_t *s, uint32_t id,
                         nicstride_sent_state_t state)
{
    const struct nicstride_sent_layout *l = &s->entry[id % NICSTRIDE_LAYOUT_CACHE_ENTRIES];

    return l->id == id && l->state == state;
}

uint32_t nicstride_layout_find(const nicstride_sent_layouts_t *s, uint64_t list)
{
    const struct nicstride_sent_layout *l = &s->entry[list % NICSTRIDE_LAYOUT_CACHE_ENTRIES];

    return l->list == list && l->state == NICSTRIDE_LAYOUT_KNOWN ? l->id : 0;
}

void nicstride_layout_answered(nicstride_sent_layouts_t *s, uint32_t id, bool had)
{
    struct nicstride_sent_layout *l = &s->entry[id % NICSTRIDE_LAYOUT_CACHE_ENTRIES];

    if (!nicstride_layout_is(s, id, NICSTRIDE_LAYOUT_SENT))
        return;
    l->state = had ? NICSTRIDE_LAYOUT_KNOWN : NICSTRIDE_LAYOUT_UNSENT;
    l->lost = had ? 0 : l->lost + (l->lost < LOST_MAX);
}

/* ---- at the target --------------------------------------------------------------------------- */

/** Bytes of a list of `nruns` runs, while it arrives and when it is complete. */
static size_t bytes_of(size_t nruns)
{
    return sizeof(nicstride_cached_layout_t) + nruns * (sizeof(onic_run_t) + sizeof(uint64_t));
}

static nicstride_layout_id_t id_of(const void *layout)
{
    nicstride_layout_id_t id;

    memcpy(&id, layout, sizeof(id));
    return id;
}

static void forget(nicstride_layout_room_t *room, nicstride_layout_cache_t *k, uint32_t entry)
{
    nicstride_cached_layout_t *l = k->entry[entry];

    if (l == NULL)
        return;
    room->bytes -= l->bytes;
    onic_layout_fini(&l->layout);
    free(l);
    k->entry[entry] = NULL;
}

static void stop_coming(nicstride_layout_room_t *room, nicstride_layout_cache_t *k)
{
    room->bytes -= k->bytes;
    k->bytes = 0;
    k->coming = 0;
    onic_runs_fini(&k->runs);
}

void nicstride_layouts_leave(nicstride_layout_room_t *room, nicstride_layout_cache_t *k)
{
    stop_coming(room, k);
    for (uint32_t i = 0; i < NICSTRIDE_LAYOUT_CACHE_ENTRIES; i++)
        forget(room, k, i);
}

nicstride_cached_layout_t *nicstride_layout_cached(const nicstride_layout_cache_t *k,
                                                   const void *layout)
{
    const uint32_t id = id_of(layout).number;
    nicstride_cached_layout_t *l = k->entry[id % NICSTRIDE_LAYOUT_CACHE_ENTRIES];

    return l != NULL && l->id == id ? l : NULL;
}

/** Appends a slice. A run takes at least two bytes of it. */
static bool append(nicstride_layout_room_t *room, nicstride_layout_cache_t *k, const void *slice,
                   size_t len)
{
    const size_t others = room->bytes - k->bytes;
    uint64_t data = 0;

    if (bytes_of(k->runs.n + len / 2) > room->limit - others ||
        onic_runs_decode(&k->runs, slice, len, &data) != ONIC_LAYOUT_OK)
        return false;
    k->here += data;
    k->bytes = bytes_of(k->runs.n);
    room->bytes = others + k->bytes;
    return true;
}

/** Makes the list when all of it has arrived. It stays a list even if it is regular, as the layout
 *  around it has its own levels. */
static bool end(nicstride_layout_cache_t *k)
{
    nicstride_cached_layout_t *l = malloc(sizeof(*l));
    onic_layout_t layout;

    if (l == NULL ||
        onic_layout_from_runs(&layout, &k->runs, ONIC_LAYOUT_MAX_LEVELS) != ONIC_LAYOUT_OK) {
        free(l);
        return false;
    }
    if (layout.nruns == 0 || layout.offset != 0) {
        onic_layout_fini(&layout);
        free(l);
        return false;
    }
    *l = (nicstride_cached_layout_t){.id = k->coming, .bytes = k->bytes, .layout = layout};
    k->entry[k->coming % NICSTRIDE_LAYOUT_CACHE_ENTRIES] = l;
    k->bytes = 0;
    return true;
}

nicstride_layout_answer_t nicstride_layout_slice(nicstride_layout_room_t *room,
                                                 nicstride_layout_cache_t *k,
                                                 const nicstride_msg_t *msg, const void *layout)
{
    const nicstride_layout_id_t id = id_of(layout);
    bool good;

    if (msg->offset == 0) {
        stop_coming(room, k);
        forget(room, k, id.number % NICSTRIDE_LAYOUT_CACHE_ENTRIES);
        k->coming = id.number;
        k->here = 0;
    }
    /* The rest of a list that was refused. */
    if (id.number == 0 || k->coming != id.number)
        return NICSTRIDE_LAYOUT_MORE;
    good = msg->offset == k->here &&
           append(room, k, (const char *)layout + sizeof(id), msg->layout_len - sizeof(id));
    if (good && id.last == 0)
        return NICSTRIDE_LAYOUT_MORE;
    good = good && end(k);
    stop_coming(room, k);
    return good ? NICSTRIDE_LAYOUT_HAD : NICSTRIDE_LAYOUT_REFUSED;
}
