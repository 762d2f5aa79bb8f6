/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/protocol/names.h"

#include <stdlib.h>
#include <string.h>

#define LOST_MAX 16

_Static_assert(sizeof(nicstride_name_t) == NICSTRIDE_NAME_BYTES, "as it travels");
/* Form, offset, levels: a byte and numbers of ten. */
_Static_assert(NICSTRIDE_NAME_BYTES + 11 + 20 * ONIC_LAYOUT_MAX_LEVELS <= ONIC_LAYOUT_ENCODED_MAX,
               "room for a name and what is around the list");

static nicstride_names_slot_t *find_slot(nicstride_names_t *n, uint64_t list)
{
    for (nicstride_names_slot_t *s = n->slot; s < n->slot + NICSTRIDE_NAMES; s++)
        if (s->list == list)
            return s;
    return NULL;
}

/** For a new list: one that is free, or else not used for longest, of those that are not known if
 *  there is one. That of a list on its way stays. */
static nicstride_names_slot_t *slot_to_take(nicstride_names_t *n)
{
    nicstride_names_slot_t *best = NULL;

    for (nicstride_names_slot_t *s = n->slot; s < n->slot + NICSTRIDE_NAMES; s++) {
        const bool known = s->state == NICSTRIDE_NAME_KNOWN;
        const bool worse = best != NULL && best->state == NICSTRIDE_NAME_KNOWN;

        if (s->state != NICSTRIDE_NAME_SENT &&
            (best == NULL || known < worse || (known == worse && s->last < best->last)))
            best = s;
    }
    return best;
}

void nicstride_names_fini(nicstride_names_t *n)
{
    if (n->sending)
        onic_layout_fini(&n->list);
    n->sending = false;
}

static void begin_sending(nicstride_names_t *n, nicstride_names_slot_t *s, const onic_layout_t *l)
{
    const uint32_t slot = (uint32_t)(s - n->slot);

    s->state = NICSTRIDE_NAME_SENT;
    s->uses = 0;
    s->name = (nicstride_name_t){slot, ++n->numbers};
    n->sending = true;
    n->sent = slot;
    n->ahead = 0;
    onic_layout_list(&n->list, l);
    onic_cursor_init(&n->cursor, &n->list, 0);
}

bool nicstride_names_use(nicstride_names_t *n, const onic_layout_t *l)
{
    const uint64_t list = onic_layout_number(l);
    nicstride_names_slot_t *s = find_slot(n, list);

    if (s == NULL) {
        s = slot_to_take(n);
        /* The name that it had is not used any more. */
        s->state = NICSTRIDE_NAME_NONE;
        s->list = list;
        s->uses = s->lost = 0;
    }
    s->last = ++n->turn;
    if (s->uses < UINT32_MAX)
        s->uses++;
    if (n->sending || s->state != NICSTRIDE_NAME_NONE || s->uses < UINT32_C(2) << s->lost)
        return false;
    begin_sending(n, s, l);
    return true;
}

bool nicstride_names_find(nicstride_names_t *n, const onic_layout_t *l, nicstride_name_t *name)
{
    const nicstride_names_slot_t *s = find_slot(n, onic_layout_number(l));

    if (s == NULL || s->state != NICSTRIDE_NAME_KNOWN)
        return false;
    *name = s->name;
    return true;
}

bool nicstride_names_valid(const nicstride_names_t *n, const nicstride_name_t *name)
{
    return n->slot[name->slot].state == NICSTRIDE_NAME_KNOWN &&
           n->slot[name->slot].name.number == name->number;
}

bool nicstride_names_may_send(const nicstride_names_t *n)
{
    return n->sending && n->ahead < NICSTRIDE_PIECES && n->cursor.pos < n->list.size;
}

bool nicstride_names_piece(nicstride_names_t *n, nicstride_msg_t *msg, unsigned char *layout,
                           size_t cap)
{
    const nicstride_name_t *name = &n->slot[n->sent].name;
    size_t len = 0;
    uint64_t data;

    msg->offset = n->cursor.pos;
    if (!n->sending || n->cursor.pos == n->list.size ||
        onic_layout_encode_slice(&n->cursor, n->list.size, 1, layout, cap, &len, &data) !=
            ONIC_LAYOUT_OK)
        return false;
    n->ahead++;
    msg->layout_len = (uint32_t)len;
    msg->op = (uint16_t)name->slot;
    msg->len = name->number;
    msg->count = n->list.size;
    msg->disp = n->list.nruns;
    return true;
}

void nicstride_names_answer(nicstride_names_t *n, const nicstride_msg_t *answer)
{
    const bool had = answer->dtype == NICSTRIDE_LIST_HAD;
    nicstride_names_slot_t *s = &n->slot[n->sent];

    if (!n->sending || n->sent != answer->op || s->name.number != answer->len)
        return;
    if (answer->dtype == NICSTRIDE_LIST_ON) {
        n->ahead -= n->ahead > 0;
    } else if (!had || n->cursor.pos == n->list.size) {
        nicstride_names_fini(n);
        s->state = had ? NICSTRIDE_NAME_KNOWN : NICSTRIDE_NAME_NONE;
        s->uses = 0;
        s->lost = had ? 0 : s->lost + (s->lost < LOST_MAX);
    }
}

size_t nicstride_name_encode(const nicstride_name_t *name, const onic_layout_t *l,
                             unsigned char buf[ONIC_LAYOUT_ENCODED_MAX])
{
    unsigned char around[ONIC_LAYOUT_ENCODED_MAX];
    const size_t len = onic_layout_encode_around(l, around);

    memcpy(buf, name, sizeof(*name));
    memcpy(buf + sizeof(*name), around, len);
    return sizeof(*name) + len;
}

nicstride_name_t nicstride_name_decode(const void *layout)
{
    nicstride_name_t name;

    memcpy(&name, layout, sizeof(name));
    return name;
}

/* ---- at the target --------------------------------------------------------------------------- */

/** Bytes of a list of so many runs, while it comes and when it is there. */
static size_t bytes_of(uint64_t nruns)
{
    return sizeof(nicstride_list_t) + (size_t)nruns * (sizeof(onic_run_t) + sizeof(uint64_t));
}

void nicstride_lists_hold(nicstride_list_t *list)
{
    list->held++;
}

void nicstride_lists_release(nicstride_lists_t *all, nicstride_list_t *list)
{
    if (--list->held > 0)
        return;
    all->bytes -= list->bytes;
    onic_layout_fini(&list->layout);
    free(list);
}

static void forget(nicstride_lists_t *all, nicstride_listed_t *of, uint32_t slot)
{
    if (of->slot[slot].list != NULL)
        nicstride_lists_release(all, of->slot[slot].list);
    of->slot[slot].list = NULL;
}

static void stop_coming(nicstride_lists_t *all, nicstride_listed_t *of)
{
    if (!of->coming)
        return;
    all->bytes -= bytes_of(of->nruns);
    onic_runs_fini(&of->runs);
    of->coming = false;
}

void nicstride_lists_leave(nicstride_lists_t *all, nicstride_listed_t *of)
{
    stop_coming(all, of);
    for (unsigned i = 0; i < NICSTRIDE_NAMES; i++)
        forget(all, of, i);
}

nicstride_list_t *nicstride_lists_find(const nicstride_listed_t *of, const nicstride_name_t *name)
{
    const uint32_t slot = name->slot % NICSTRIDE_NAMES;

    return of->slot[slot].number == name->number ? of->slot[slot].list : NULL;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

/** The first piece of a list: is there room for it? Its slot is free now. */
static bool begin(nicstride_lists_t *all, nicstride_listed_t *of, const nicstride_msg_t *msg,
                  const nicstride_name_t *name)
{
    stop_coming(all, of);
    forget(all, of, name->slot);
    if (msg->disp < 2 || msg->disp > UINT32_MAX ||
        bytes_of((uint64_t)msg->disp) > all->limit - all->bytes)
        return false;
    of->coming = true;
    of->name = *name;
    of->size = msg->count;
    of->here = 0;
    of->nruns = (size_t)msg->disp;
    all->bytes += bytes_of(of->nruns);
    return true;
}

/** All of it has come: makes the list. */
static bool end(nicstride_lists_t *all, nicstride_listed_t *of)
{
    nicstride_list_t *l = NULL;
    onic_layout_t layout;

    /* It stays a list, whatever may be found in it: what is around it has its own levels. */
    if (onic_layout_from_runs(&layout, &of->runs, ONIC_LAYOUT_MAX_LEVELS) != ONIC_LAYOUT_OK)
        return false;
    if (layout.nruns > 0 && layout.offset == 0)
        l = malloc(sizeof(*l));
    if (l == NULL) {
        onic_layout_fini(&layout);
        return false;
    }
    *l = (nicstride_list_t){.held = 1, .bytes = bytes_of(of->nruns), .layout = layout};
    all->bytes += l->bytes;
    of->slot[of->name.slot].list = l;
    of->slot[of->name.slot].number = of->name.number;
    return true;
}

/** Appends a piece: the next one of the list on its way. */
static bool append(nicstride_listed_t *of, const nicstride_msg_t *msg, const void *layout)
{
    uint64_t data = 0;

    if (onic_runs_decode(&of->runs, layout, msg->layout_len, of->nruns, &data) != ONIC_LAYOUT_OK ||
        data > of->size - of->here)
        return false;
    of->here += data;
    return true;
}

nicstride_answer_t nicstride_lists_piece(nicstride_lists_t *all, nicstride_listed_t *of,
                                         const nicstride_msg_t *msg, const void *layout)
{
    const nicstride_name_t name = {.slot = msg->op, .number = (uint32_t)msg->len};
    nicstride_answer_t answer = NICSTRIDE_LIST_ON;

    if (name.slot >= NICSTRIDE_NAMES || msg->len > UINT32_MAX ||
        (msg->offset == 0 && !begin(all, of, msg, &name)) || !of->coming ||
        of->name.slot != name.slot || of->name.number != name.number || msg->offset != of->here)
        return NICSTRIDE_LIST_NO;
    if (!append(of, msg, layout))
        answer = NICSTRIDE_LIST_NO;
    else if (of->here == of->size)
        answer = end(all, of) ? NICSTRIDE_LIST_HAD : NICSTRIDE_LIST_NO;
    if (answer != NICSTRIDE_LIST_ON)
        stop_coming(all, of);
    return answer;
}
