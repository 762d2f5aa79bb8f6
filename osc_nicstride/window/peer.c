/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/window/peer.h"

#include <stdlib.h>

#include "common/ompi_compat.h"
#include "osc_nicstride/window/state.h"

#include "mpi.h"

/* ---- processes ------------------------------------------------------------------------------- */

/* All processes. Transport lock. */
static LIST_HEAD(, nicstride_process) processes = LIST_HEAD_INITIALIZER(processes);

nicstride_process_t *nicstride_process_of_locked(onic_peer_t *peer)
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

struct nicstride_queueing nicstride_queueing = LIST_HEAD_INITIALIZER(nicstride_queueing);

void nicstride_peer_free_locked(nicstride_peer_t *p)
{
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

int nicstride_lost_class(const onic_peer_t *peer)
{
    return onic_peer_has_died(peer) ? ONIC_ERR_PROC_FAILED : MPI_ERR_OTHER;
}
