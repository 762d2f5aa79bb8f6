/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>

#include "perf/apps/epoch.h"
#include "perf/bench.h"

enum { TAG_NOTICE = 7 };

const char *const app_sync_names[APP_SYNCS] = {"fence", "pscw", "flush"};

/** Copies each rank once; returns how many there are. */
static int each_once(const int *ranks, int n, int *out)
{
    int kept = 0;
    for (int i = 0; i < n; i++) {
        int at = 0;
        while (at < kept && out[at] != ranks[i])
            at++;
        if (at == kept)
            out[kept++] = ranks[i];
    }
    return kept;
}

void app_peers_make(app_peers_t *p, MPI_Comm comm, const int *to, int nto, const int *from,
                    int nfrom)
{
    MPI_Group all;
    p->to = bench_alloc((size_t)nto * sizeof(*p->to));
    p->from = bench_alloc((size_t)nfrom * sizeof(*p->from));
    p->nto = each_once(to, nto, p->to);
    p->nfrom = each_once(from, nfrom, p->from);
    p->request = bench_alloc((size_t)(nto + nfrom) * sizeof(*p->request));
    MPI_Comm_group(comm, &all);
    MPI_Group_incl(all, p->nto, p->to, &p->to_group);
    MPI_Group_incl(all, p->nfrom, p->from, &p->from_group);
    MPI_Group_free(&all);
}

/** An empty group is predefined, and is not freed. */
static void free_group(MPI_Group *group)
{
    if (*group != MPI_GROUP_EMPTY)
        MPI_Group_free(group);
}

void app_peers_free(app_peers_t *p)
{
    free_group(&p->to_group);
    free_group(&p->from_group);
    free(p->to);
    free(p->from);
    free(p->request);
}

void app_epochs_open(app_epochs_t *e, MPI_Comm comm, MPI_Win win, app_sync_t sync)
{
    *e = (app_epochs_t){comm, win, sync};
    if (sync == APP_FLUSH)
        MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
    MPI_Barrier(comm);
}

void app_epochs_close(app_epochs_t *e)
{
    if (e->sync == APP_FLUSH)
        MPI_Win_unlock_all(e->win);
}

/** Sends an empty message to each rank of `tell` and receives one from each of `wait`. */
static void notify(const app_epochs_t *e, const app_peers_t *p, const int *tell, int ntell,
                   const int *wait, int nwait)
{
    for (int i = 0; i < nwait; i++)
        MPI_Irecv(NULL, 0, MPI_BYTE, wait[i], TAG_NOTICE, e->comm, &p->request[i]);
    for (int i = 0; i < ntell; i++)
        MPI_Isend(NULL, 0, MPI_BYTE, tell[i], TAG_NOTICE, e->comm, &p->request[nwait + i]);
    MPI_Waitall(ntell + nwait, p->request, MPI_STATUSES_IGNORE);
    MPI_Win_sync(e->win);
}

static void begin(const app_epochs_t *e, const app_peers_t *p)
{
    if (e->sync == APP_FENCE) {
        MPI_Win_fence(MPI_MODE_NOPRECEDE, e->win);
    } else if (e->sync == APP_PSCW) {
        MPI_Win_post(p->from_group, 0, e->win);
        MPI_Win_start(p->to_group, 0, e->win);
    } else {
        /* This rank's stores must precede the puts of others. */
        MPI_Win_sync(e->win);
    }
}

static void end(const app_epochs_t *e)
{
    if (e->sync == APP_FENCE) {
        MPI_Win_fence(MPI_MODE_NOSUCCEED, e->win);
    } else if (e->sync == APP_PSCW) {
        MPI_Win_complete(e->win);
        MPI_Win_wait(e->win);
    } else {
        MPI_Win_flush_all(e->win);
    }
}

void app_puts_begin(const app_epochs_t *e, const app_peers_t *p)
{
    begin(e, p);
}

void app_puts_end(const app_epochs_t *e, const app_peers_t *p)
{
    end(e);
    if (e->sync == APP_FLUSH)
        notify(e, p, p->to, p->nto, p->from, p->nfrom);
}

void app_gets_begin(const app_epochs_t *e, const app_peers_t *p)
{
    begin(e, p);
    if (e->sync == APP_FLUSH)
        notify(e, p, p->from, p->nfrom, p->to, p->nto);
}

void app_gets_end(const app_epochs_t *e, const app_peers_t *p)
{
    (void)p;
    end(e);
}
