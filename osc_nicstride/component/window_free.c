/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Freeing windows. This is collective, except for windows that the user forgot. */
#include <stdlib.h>

#include "common/pipeline/pipeline.h"
#include "osc_nicstride/check/check.h"
#include "ompi/runtime/mpiruntime.h"
#include "osc_nicstride/component/setup.h"
#include "osc_nicstride/queue/ask_lock.h"
#include "osc_nicstride/queue/flow.h"
#include "osc_nicstride/queue/operation.h"
#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/queue/wait.h"
#include "osc_nicstride/sync/fence.h"
#include "osc_nicstride/sync/lock_queue.h"
#include "osc_nicstride/target/target.h"
#include "osc_nicstride/window/state.h"
#include "osc_nicstride/queue/keys.h"
#include "osc_nicstride/window/module.h"

void nicstride_window_delist(nicstride_module_t *m)
{
    onic_transport_lock();
    opal_hash_table_remove_value_uint32(&nicstride_component.windows, m->name);
    (void)nicstride_end_accesses_locked(m, true);
    onic_transport_unlock();
}

void nicstride_window_destroy(nicstride_module_t *m)
{
    onic_transport_lock();
    nicstride_forget_accesses_locked(m);
    nicstride_withdraw_locked(m);
    for (nicstride_peer_t *p = m->peers, *next; p != NULL; p = next) {
        next = p->next;
        nicstride_drop_waiting_locked(p);
        nicstride_keys_free_locked(p);
        nicstride_peer_free_locked(p);
    }
    onic_transport_unlock();
    nicstride_check_end(m);
    onic_segment_unmap(&m->segment);
    onic_node_fini(&m->node);
    nicstride_regions_fini(&m->regions);
    free(m->own);
    free(m->mapped);
    free(m->near);
    free(m->peer);
    free(m->epoch.target);
    free(m->start_ranks);
    free(m->post_ranks);
    free(m->done);
    free(m->firsts);
    if (m->comm != NULL)
        ompi_comm_free(&m->comm);
    OBJ_DESTRUCT(&m->lock);
    free(m);
}

/** Leaves a window that the user forgot, or that sends still point at, as it is until the process
 *  ends. Its queued operations are dropped: freeing another window could make room for them, but
 *  nobody is left to send them to. */
static void orphan(nicstride_module_t *m)
{
    onic_transport_lock();
    for (nicstride_peer_t *p = m->peers; p != NULL; p = p->next) {
        nicstride_queue_drop_locked(p);
        nicstride_forget_lock_locked(p);
    }
    onic_transport_unlock();
    ompi_comm_free(&m->comm);
    m->next_orphan = nicstride_component.orphans;
    nicstride_component.orphans = m;
}

/** Ends operations that a flush has given up with an error. */
static void end_operations(nicstride_module_t *m)
{
    onic_transport_lock();
    for (nicstride_peer_t *p = m->peers; p != NULL; p = p->next)
        nicstride_ops_fail_locked(p);
    onic_transport_unlock();
}

static bool has_left(void *arg)
{
    nicstride_peer_t *p = arg;

    return p->flow.posting == 0 || nicstride_peer_failed_locked(p);
}

/** Waits until lists, keys and answers to these are sent, for which no flush waits. None is handled
 *  any more. */
static void await_sent(nicstride_module_t *m)
{
    for (nicstride_peer_t *p = nicstride_peers(m); p != NULL; p = p->next)
        nicstride_wait(p, NICSTRIDE_WAKE, has_left, p);
}

/** True if something is still being sent. After a flush that is so only if the flush failed. */
static bool in_flight(const nicstride_module_t *m)
{
    bool found = false;

    onic_transport_lock();
    for (nicstride_peer_t *p = m->peers; p != NULL && !found; p = p->next)
        found = nicstride_ops_in_flight_locked(p);
    onic_transport_unlock();
    return found;
}

int nicstride_win_free(ompi_win_t *win)
{
    nicstride_module_t *m = nicstride_module(win);
    /* MPI_Finalize frees a window that the user forgot. Others may have freed theirs, or free them
     * in another order, so no collective step is safe here. None is needed, either: a fence of all
     * processes came before. */
    const bool forgotten = ompi_mpi_state >= OMPI_MPI_STATE_FINALIZE_PAST_COMM_SELF_DESTRUCT;

    if (m == NULL)
        return OMPI_SUCCESS;
    if (!forgotten) {
        const char *wrong = nicstride_epoch_free(&m->epoch);

        if (wrong != NULL)
            return nicstride_sync_error(m, "MPI_Win_free", wrong, -1);
        (void)nicstride_flush_all_peers(m, NICSTRIDE_FLUSH_REMOTE);
        (void)nicstride_meet(m);
        /* What targets have reported of earlier operations was sent before they came here. It is
         * printed, and not returned: MPI would then keep the handle of a window that no longer
         * exists. */
        (void)onic_transport_progress();
        (void)nicstride_flush_all_peers(m, NICSTRIDE_FLUSH_LOCAL);
    }
    if (m->wants_server)
        onic_transport_want_server(false);
    nicstride_window_delist(m);
    win->w_osc_module = NULL;
    if (!forgotten) {
        await_sent(m);
        end_operations(m);
    }
    if (forgotten || in_flight(m))
        orphan(m);
    else
        nicstride_window_destroy(m);
    return OMPI_SUCCESS;
}
