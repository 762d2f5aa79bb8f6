/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>

#include "osc_nicstride/window/control.h"
#include "osc_nicstride/window/module.h"
#include "osc_nicstride/window/state.h"

/* ---- processes ------------------------------------------------------------------------------- */

/* All processes. Transport lock. */
static LIST_HEAD(, nicstride_process) processes = LIST_HEAD_INITIALIZER(processes);

struct nicstride_processes nicstride_queueing = LIST_HEAD_INITIALIZER(nicstride_queueing);

/** The record of a process, made if needed; NULL if memory is exhausted. */
static nicstride_process_t *process_of(onic_peer_t *peer)
{
    void **slot = onic_peer_slot(peer, ONIC_AM_OSC);
    nicstride_process_t *p = *slot;

    if (p != NULL)
        return p;
    p = calloc(1, sizeof(*p));
    if (p == NULL)
        return NULL;
    LIST_INSERT_HEAD(&processes, p, next);
    *slot = p;
    return p;
}

static void free_process(nicstride_process_t *p)
{
    for (unsigned i = 0; i < NICSTRIDE_METHODS_MAX; i++)
        if (p->of_row[i] != NULL)
            nicstride_component.methods[i]->leave(p->of_row[i]);
    LIST_REMOVE(p, next);
    free(p);
}

void nicstride_processes_fini(void)
{
    while (!LIST_EMPTY(&processes))
        free_process(LIST_FIRST(&processes));
}

/* ---- peers ----------------------------------------------------------------------------------- */

/** Finds the reply lines through which this process and one on the same node answer each other. */
static void find_reply_lines(const nicstride_module_t *m, nicstride_peer_t *p)
{
    nicstride_reply_line_t *mine, *its;

    if (nicstride_reply_line_count(m->node.n) == 0 || p->local < 0 || p->rank == m->rank)
        return;
    mine = nicstride_ctl_part(m, m->node.me, m->ctl.reply_lines);
    its = nicstride_ctl_part(m, p->local, m->ctl.reply_lines);
    p->flow.reply_line = &mine[p->local];
    p->flow.reply_line_there = &its[m->node.me];
}

onic_peer_t *nicstride_onic_peer_locked(const nicstride_module_t *m, int rank)
{
    const int local = onic_node_index(&m->node, rank);

    return local >= 0 ? m->near[local] : onic_peer_named(nicstride_info(m, rank)->name);
}

nicstride_peer_t *nicstride_peer_make_locked(nicstride_module_t *m, int rank)
{
    const nicstride_rank_info_t *its = nicstride_info(m, rank);
    nicstride_peer_t *p = calloc(1, sizeof(*p));
    onic_peer_t *peer = p != NULL ? onic_peer_named(nicstride_info(m, rank)->name) : NULL;
    nicstride_process_t *process = peer != NULL ? process_of(peer) : NULL;
    if (process == NULL) {
        free(p);
        return NULL;
    }
    p->module = m;
    p->peer = peer;
    p->process = process;
    p->account = onic_peer_account(peer);
    LIST_INSERT_HEAD(&process->peers, p, of_process);
    STAILQ_INIT(&p->queue.waiting);
    TAILQ_INIT(&p->queue.live);
    p->rank = rank;
    p->win = its->win;
    p->me = (uint32_t)m->rank;
    p->local = onic_node_index(&m->node, rank);
    find_reply_lines(m, p);
    p->next = m->peers;
    /* Other MPI threads read these without the lock. */
    __atomic_store_n(&m->peers, p, __ATOMIC_RELEASE);
    __atomic_store_n(&m->peer[rank], p, __ATOMIC_RELEASE);
    return p;
}

void nicstride_peer_free_locked(nicstride_peer_t *p)
{
    LIST_REMOVE(p, of_process);
    if (p->kept != NULL)
        nicstride_layouts_leave(p->kept);
    free(p->sent);
    free(p->kept);
    free(p);
}

/* ---- lost ------------------------------------------------------------------------------------ */

bool nicstride_peer_failed_locked(nicstride_peer_t *p)
{
    if (!p->failed && onic_peer_lost(p->peer))
        __atomic_store_n(&p->failed, true, __ATOMIC_RELAXED);
    return p->failed;
}

bool nicstride_rank_failed_locked(nicstride_module_t *m, int rank)
{
    if (m->peer[rank] != NULL)
        return nicstride_peer_failed_locked(m->peer[rank]);
    onic_peer_t *peer = nicstride_onic_peer_locked(m, rank);
    return peer == NULL || onic_peer_lost(peer);
}

int nicstride_lost_class(const onic_peer_t *peer)
{
    return onic_peer_has_died(peer) ? ONIC_ERR_PROC_FAILED : MPI_ERR_OTHER;
}

bool nicstride_node_has_lost(const nicstride_module_t *m)
{
    bool lost = false;

    for (int i = 0; i < m->node.n && !lost && onic_transport_losses() > 0; i++)
        lost = onic_peer_has_died(m->near[i]);
    return lost;
}

/* ---- all peers ------------------------------------------------------------------------------- */

void nicstride_peers_each_locked(void (*f)(nicstride_peer_t *p, void *arg), void *arg)
{
    opal_hash_table_t *windows = &nicstride_component.windows;
    void *m, *node;
    uint32_t name;

    for (int rc = opal_hash_table_get_first_key_uint32(windows, &name, &m, &node);
         rc == OPAL_SUCCESS;
         rc = opal_hash_table_get_next_key_uint32(windows, &name, &m, node, &node))
        for (nicstride_peer_t *p = nicstride_peers(m); p != NULL; p = p->next)
            f(p, arg);
}
