/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Peers in use; see used.h. */
#include "osc_nicstride/window/used.h"

/* Windows whose lists are not empty; wire lock. */
static nicstride_module_t *windows;

void nicstride_enlist_locked(nicstride_peer_t *p)
{
    nicstride_module_t *m = p->module;

    if (p->used)
        return;
    p->used = true;
    p->next_used = NULL;
    if (m->used == NULL) {
        m->used_end = &m->used;
        m->next_in_use = windows;
        m->in_use_link = &windows;
        if (windows != NULL)
            windows->in_use_link = &m->next_in_use;
        windows = m;
    }
    /* A walk reads it without the lock. */
    __atomic_store_n(m->used_end, p, __ATOMIC_RELEASE);
    m->used_end = &p->next_used;
}

static bool is_done_with(const nicstride_peer_t *p)
{
    return nicstride_is_clean(p) && p->queue.live == NULL && !p->lock.of_all;
}

static void leave(nicstride_module_t *m)
{
    *m->in_use_link = m->next_in_use;
    if (m->next_in_use != NULL)
        m->next_in_use->in_use_link = m->in_use_link;
}

/** Takes out those that there is nothing to be done with, or all. */
static void thin(nicstride_module_t *m, bool all)
{
    nicstride_peer_t **link = &m->used;

    if (m->used == NULL || m->walks > 0)
        return;
    while (*link != NULL) {
        nicstride_peer_t *p = *link;

        if (!all && !is_done_with(p)) {
            link = &p->next_used;
            continue;
        }
        /* nicstride_any_used reads it without the lock. */
        __atomic_store_n(link, p->next_used, __ATOMIC_RELAXED);
        p->used = false;
    }
    m->used_end = link;
    if (m->used == NULL)
        leave(m);
}

void nicstride_unuse_all_locked(nicstride_module_t *m)
{
    thin(m, true);
}

nicstride_peer_t *nicstride_used_begin(nicstride_module_t *m)
{
    nicstride_peer_t *first;

    onic_wire_lock();
    m->walks++;
    first = m->used;
    onic_wire_unlock();
    return first;
}

void nicstride_used_end(nicstride_module_t *m)
{
    onic_wire_lock();
    m->walks--;
    thin(m, false);
    onic_wire_unlock();
}

void nicstride_used_each_locked(void (*f)(nicstride_peer_t *p, void *arg), void *arg)
{
    for (nicstride_module_t *m = windows, *next; m != NULL; m = next) {
        next = m->next_in_use;
        for (nicstride_peer_t *p = m->used; p != NULL; p = p->next_used)
            f(p, arg);
        thin(m, false);
    }
}
