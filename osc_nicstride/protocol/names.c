/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Names of lists of blocks at a target; see names.h. */
#include "osc_nicstride/protocol/names.h"

#include <string.h>

#define LOST_MAX 16

_Static_assert(sizeof(nicstride_name_t) == NICSTRIDE_NAME_BYTES, "as it travels");
/* Form, offset, levels: a byte and numbers of ten. */
_Static_assert(NICSTRIDE_NAME_BYTES + 11 + 20 * ONIC_LAYOUT_MAX_LEVELS <= ONIC_LAYOUT_ENCODED_MAX,
               "room for a name and what is around the list");

static bool find_slot(const nicstride_names_t *n, uint64_t list, uint32_t *slot)
{
    for (uint32_t i = 0; i < NICSTRIDE_NAMES; i++) {
        if (n->slot[i].list == list) {
            *slot = i;
            return true;
        }
    }
    return false;
}

/** For a new list: one that is free, or else not used for longest, of those that are not known if
 *  there is one. That of a list on its way stays. */
static uint32_t slot_to_take(const nicstride_names_t *n)
{
    uint32_t best = NICSTRIDE_NAMES;

    for (uint32_t i = 0; i < NICSTRIDE_NAMES; i++) {
        const bool known = n->slot[i].state == NICSTRIDE_NAME_KNOWN;

        if (n->slot[i].state == NICSTRIDE_NAME_SENT)
            continue;
        if (best == NICSTRIDE_NAMES || known < (n->slot[best].state == NICSTRIDE_NAME_KNOWN) ||
            (known == (n->slot[best].state == NICSTRIDE_NAME_KNOWN) &&
             n->slot[i].last < n->slot[best].last))
            best = i;
    }
    return best;
}

static void stop_sending(nicstride_names_t *n)
{
    if (n->sending)
        onic_layout_fini(&n->list);
    n->sending = false;
}

static void begin_sending(nicstride_names_t *n, uint32_t slot, const onic_layout_t *l)
{
    n->slot[slot].state = NICSTRIDE_NAME_SENT;
    n->slot[slot].uses = 0;
    n->slot[slot].name =
        (nicstride_name_t){.hash = onic_layout_hash(l), .slot = slot, .number = ++n->numbers};
    n->sending = true;
    n->sent = slot;
    n->ahead = 0;
    onic_layout_list(&n->list, l);
    onic_cursor_init(&n->cursor, &n->list, 0);
}

bool nicstride_names_use(nicstride_names_t *n, const onic_layout_t *l)
{
    const uint64_t list = onic_layout_number(l);
    uint32_t slot;

    if (!find_slot(n, list, &slot)) {
        slot = slot_to_take(n);
        /* The name that it had is not used any more. */
        n->slot[slot].state = NICSTRIDE_NAME_NONE;
        n->slot[slot].list = list;
        n->slot[slot].uses = n->slot[slot].lost = 0;
    }
    n->slot[slot].last = ++n->turn;
    if (n->slot[slot].uses < UINT32_MAX)
        n->slot[slot].uses++;
    if (n->sending || n->slot[slot].state != NICSTRIDE_NAME_NONE ||
        n->slot[slot].uses < UINT32_C(2) << n->slot[slot].lost)
        return false;
    begin_sending(n, slot, l);
    return true;
}

bool nicstride_names_find(const nicstride_names_t *n, const onic_layout_t *l,
                          nicstride_name_t *name)
{
    uint32_t slot;

    if (!find_slot(n, onic_layout_number(l), &slot) || n->slot[slot].state != NICSTRIDE_NAME_KNOWN)
        return false;
    *name = n->slot[slot].name;
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
    msg->handle = name->hash;
    msg->count = n->list.size;
    msg->disp = n->list.nruns;
    return true;
}

void nicstride_names_answer(nicstride_names_t *n, const nicstride_msg_t *answer)
{
    const uint32_t slot = answer->op;

    if (slot >= NICSTRIDE_NAMES || n->slot[slot].name.number != answer->len || !n->sending ||
        n->sent != slot)
        return;
    if (answer->dtype == NICSTRIDE_LIST_ON) {
        n->ahead -= n->ahead > 0;
    } else if (answer->dtype != NICSTRIDE_LIST_HAD || n->cursor.pos == n->list.size) {
        const bool had = answer->dtype == NICSTRIDE_LIST_HAD;

        stop_sending(n);
        n->slot[slot].state = had ? NICSTRIDE_NAME_KNOWN : NICSTRIDE_NAME_NONE;
        n->slot[slot].uses = 0;
        n->slot[slot].lost = had ? 0 : n->slot[slot].lost + (n->slot[slot].lost < LOST_MAX);
    }
}

void nicstride_names_fini(nicstride_names_t *n)
{
    stop_sending(n);
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
