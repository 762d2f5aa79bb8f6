/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/window/gate.h"

#include <stdlib.h>

#include "common/node/segment.h"
#include "osc_nicstride/window/keys.h"
#include "osc_nicstride/window/state.h"

/** The longest key. */
enum { KEY_MAX = 1024 };

/** Does an adapter do atomics in the memory of that process, or is that emulated where it should?
 */
static bool has_atomics(onic_peer_t *wire)
{
    const nicstride_adapter_t mode = nicstride_component.params.adapter_locks;

    return onic_wire_atomics() && mode != NICSTRIDE_ADAPTER_OFF &&
           (mode == NICSTRIDE_ADAPTER_ON || onic_peer_atomics_by_rdma(wire));
}

static bool open_own(nicstride_module_t *m, nicstride_gatehouse_t *g)
{
    unsigned char key[KEY_MAX];
    const size_t len = onic_region_key_locked(g->region, key, sizeof(key));
    int rc;

    if (len > 0)
        g->own = onic_remote_open(m->near[m->node.me], key, len, &rc);
    return g->own != NULL;
}

static nicstride_gatehouse_t *make(nicstride_module_t *m)
{
    const size_t bytes =
        onic_whole_pages(NICSTRIDE_GATE_MARKS + (size_t)m->size * sizeof(uint32_t));
    nicstride_gatehouse_t *g = calloc(1, sizeof(*g));

    if (g == NULL)
        return NULL;
    g->of = m;
    /* In pages of its own: children of this process may not get those that an adapter writes. */
    g->word = aligned_alloc(onic_whole_pages(1), bytes);
    if (g->word != NULL) {
        g->marks = (uint32_t *)((char *)g->word + NICSTRIDE_GATE_MARKS);
        for (int i = 0; i < m->size; i++)
            g->marks[i] = NICSTRIDE_MARK_OUT;
        *g->word = NICSTRIDE_GATE_CLOSED;
        g->region = onic_region_over_locked(g->word, bytes);
    }
    m->gate = g;
    if (g->region != NULL && open_own(m, g))
        return g;
    nicstride_gate_free_locked(m);
    return NULL;
}

size_t nicstride_gate_offer_locked(nicstride_module_t *m, void *bytes, size_t cap)
{
    if (m->gate == NULL && !m->gateless && !m->no_locks && has_atomics(m->near[m->node.me]))
        m->gate = make(m);
    m->gateless = m->gate == NULL;
    return m->gate != NULL ? onic_region_key_locked(m->gate->region, bytes, cap) : 0;
}

void nicstride_gate_told_locked(nicstride_peer_t *p, const void *bytes, size_t len)
{
    nicstride_entrance_t *e;
    int rc;

    if (p->local >= 0 || p->keys->entrance != NULL || !has_atomics(p->wire))
        return;
    e = calloc(1, sizeof(*e));
    if (e != NULL)
        e->key = onic_remote_open(p->wire, bytes, len, &rc);
    if (e != NULL && e->key == NULL) {
        free(e);
        e = NULL;
    }
    p->keys->entrance = e;
}

void nicstride_gate_free_locked(nicstride_module_t *m)
{
    nicstride_gatehouse_t *g = m->gate;

    if (g == NULL)
        return;
    if (g->own != NULL)
        onic_remote_close(g->own);
    if (g->region != NULL)
        onic_region_free_locked(g->region);
    free(g->word);
    free(g);
    m->gate = NULL;
}

void nicstride_entrance_free_locked(nicstride_entrance_t *e)
{
    if (e != NULL)
        onic_remote_close(e->key);
    free(e);
}
