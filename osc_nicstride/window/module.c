/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/window/module.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "osc_nicstride/window/control.h"
#include "osc_nicstride/window/state.h"

#include "opal/util/output.h"

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
    nicstride_process_t *process = peer != NULL ? nicstride_process_of_locked(peer) : NULL;
    if (process == NULL) {
        free(p);
        return NULL;
    }
    p->module = m;
    p->peer = peer;
    p->process = process;
    p->account = onic_peer_account(peer);
    STAILQ_INIT(&p->queue.waiting);
    TAILQ_INIT(&p->queue.live);
    p->rank = rank;
    p->win = its->win;
    p->me = (uint32_t)m->rank;
    p->local = onic_node_index(&m->node, rank);
    p->notices.from = p->local < 0 ? &p->notices.come : nicstride_pair(m, m->node.me, p->local);
    find_reply_lines(m, p);
    p->next = m->peers;
    /* Other MPI threads read these without the lock. */
    __atomic_store_n(&m->peers, p, __ATOMIC_RELEASE);
    __atomic_store_n(&m->peer[rank], p, __ATOMIC_RELEASE);
    return p;
}

void nicstride_peers_each_locked(void (*f)(nicstride_peer_t *p, void *arg), void *arg)
{
    nicstride_module_t *m;
    uint32_t name;

    OPAL_HASH_TABLE_FOREACH(name, uint32, m, &nicstride_component.windows)
    {
        for (nicstride_peer_t *p = nicstride_peers(m); p != NULL; p = p->next)
            f(p, arg);
    }
}

/* ---- texts for failing calls ----------------------------------------------------------------- */

/* A program that continues after errors (MPI_ERRORS_RETURN) may make thousands of them. The texts
 * do not go through opal_show_help, which drops texts that come too fast. */
#define TEXTS_MAX 16

int nicstride_error(const nicstride_module_t *m, const char *call, int error, const char *format,
                    ...)
{
    static _Atomic unsigned texts;
    unsigned shown = atomic_fetch_add(&texts, 1);
    char reason[384];
    va_list args;

    if (shown >= TEXTS_MAX)
        return error;
    va_start(args, format);
    vsnprintf(reason, sizeof(reason), format, args);
    va_end(args);
    opal_output(0, "%s failed in rank %d of window \"%s\": %s%s", call, m->rank,
                ONIC_NAME(m->win->w_name), reason,
                shown + 1 == TEXTS_MAX ? " (further errors are returned without text)" : "");
    return error;
}

int nicstride_sync_error(const nicstride_module_t *m, const char *call, const char *wrong,
                         int target)
{
    if (target >= 0)
        return nicstride_error(m, call, OMPI_ERR_RMA_SYNC, "%s (target rank %d)", wrong, target);
    return nicstride_error(m, call, OMPI_ERR_RMA_SYNC, "%s", wrong);
}
