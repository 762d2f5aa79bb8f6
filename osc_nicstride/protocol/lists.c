/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Lists of blocks that a process keeps for others; see lists.h. */
#include "osc_nicstride/protocol/lists.h"

#include <stdlib.h>

/** Bytes of a list of so many runs, while it comes and when it is there. */
static size_t bytes_of(uint64_t nruns)
{
    return sizeof(nicstride_list_t) + (size_t)nruns * (sizeof(onic_run_t) + sizeof(uint64_t));
}

/* ---- lists ----------------------------------------------------------------------------------- */

static void drop_if_unused(nicstride_lists_t *all, nicstride_list_t *l)
{
    if (l->names != NULL || l->held > 0)
        return;
    nicstride_list_t **at = &all->first;
    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
    all->bytes -= l->bytes;
    all->n--;
    onic_layout_fini(&l->layout);
    free(l);
}

void nicstride_lists_hold(nicstride_list_t *list)
{
    list->held++;
}

void nicstride_lists_release(nicstride_lists_t *all, nicstride_list_t *list)
{
    list->held--;
    drop_if_unused(all, list);
}

/** The list of these blocks that is kept already. */
static nicstride_list_t *find_same(const nicstride_lists_t *all, uint64_t hash,
                                   const onic_layout_t *layout)
{
    nicstride_list_t *l = all->first;

    while (l != NULL && (l->hash != hash || !onic_layout_same_list(&l->layout, layout)))
        l = l->next;
    return l;
}

/* ---- names ----------------------------------------------------------------------------------- */

static bool same_name(const nicstride_name_t *a, const nicstride_name_t *b)
{
    return a->hash == b->hash && a->slot == b->slot && a->number == b->number;
}

static void forget(nicstride_lists_t *all, nicstride_named_t *named)
{
    nicstride_list_t *l = named->list;
    nicstride_named_t **at;

    if (l == NULL)
        return;
    for (at = &l->names; *at != named;)
        at = &(*at)->next;
    *at = named->next;
    named->list = NULL;
    drop_if_unused(all, l);
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
        forget(all, &of->slot[i]);
}

nicstride_list_t *nicstride_lists_find(const nicstride_listed_t *of, const nicstride_name_t *name)
{
    const nicstride_named_t *named = &of->slot[name->slot % NICSTRIDE_NAMES];

    return named->list != NULL && same_name(&named->name, name) ? named->list : NULL;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

/** The first piece of a list: is there room for it? Its slot is free now. */
static bool begin(nicstride_lists_t *all, nicstride_listed_t *of, const nicstride_msg_t *msg,
                  const nicstride_name_t *name)
{
    stop_coming(all, of);
    forget(all, &of->slot[name->slot]);
    if (msg->disp < 2 || msg->disp > UINT32_MAX || all->n >= NICSTRIDE_LISTS_MAX ||
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

/** All of it has come: makes the list, or takes the one that there is. */
static bool end(nicstride_lists_t *all, nicstride_listed_t *of)
{
    nicstride_named_t *named = &of->slot[of->name.slot];
    const size_t bytes = bytes_of(of->nruns);
    onic_layout_t layout;

    /* It stays a list, whatever may be found in it: what is around it has its own levels. */
    if (onic_layout_from_runs(&layout, &of->runs, ONIC_LAYOUT_MAX_LEVELS) != ONIC_LAYOUT_OK)
        return false;
    nicstride_list_t *l =
        layout.nruns > 0 && layout.offset == 0 ? find_same(all, of->name.hash, &layout) : NULL;
    if (l == NULL && layout.nruns > 0 && layout.offset == 0 &&
        (l = calloc(1, sizeof(*l))) != NULL) {
        onic_layout_dup(&l->layout, &layout);
        l->hash = of->name.hash;
        l->bytes = bytes;
        all->bytes += bytes;
        all->n++;
        l->next = all->first;
        all->first = l;
    }
    onic_layout_fini(&layout);
    if (l == NULL)
        return false;
    *named = (nicstride_named_t){.list = l, .next = l->names, .name = of->name};
    l->names = named;
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
    const nicstride_name_t name = {
        .hash = msg->handle, .slot = msg->op, .number = (uint32_t)msg->len};
    nicstride_answer_t answer = NICSTRIDE_LIST_ON;

    if (name.slot >= NICSTRIDE_NAMES || msg->len > UINT32_MAX ||
        (msg->offset == 0 && !begin(all, of, msg, &name)) || !of->coming ||
        !same_name(&of->name, &name) || msg->offset != of->here)
        return NICSTRIDE_LIST_NO;
    if (!append(of, msg, layout))
        answer = NICSTRIDE_LIST_NO;
    else if (of->here == of->size)
        answer = end(all, of) ? NICSTRIDE_LIST_HAD : NICSTRIDE_LIST_NO;
    if (answer != NICSTRIDE_LIST_ON)
        stop_coming(all, of);
    return answer;
}
