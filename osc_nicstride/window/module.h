/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The state of one window.
 *
 *  Locking: what handlers of messages access is guarded by the transport lock; functions named
 *  ..._locked are called with it held. What only MPI threads access (epoch, groups, held locks) is
 *  guarded by the module's mutex, which is taken only under MPI_THREAD_MULTIPLE. The transport lock
 *  may be taken with the mutex held, never the other way round. Nobody waits with the transport
 *  lock held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "osc_nicstride/protocol/alone.h"
#include "common/transport/shm/node.h"
#include "common/ompi_compat.h"
#include "common/transport/transport.h"
#include "osc_nicstride/protocol/epoch.h"
#include "osc_nicstride/protocol/fence.h"
#include "osc_nicstride/window/peer.h"
#include "osc_nicstride/window/place.h"
#include "osc_nicstride/window/region.h"
#include ONIC_MUTEX_HEADER

#include "mpi.h"
#include "ompi/communicator/communicator.h"
#include "ompi/mca/osc/osc.h"
#include "ompi/win/win.h"

/** Offsets of the parts of a control block, and its size. */
typedef struct nicstride_ctl_parts {
    size_t stripes, pairs, reply_lines, lockq, board, bytes;
} nicstride_ctl_parts_t;

typedef struct nicstride_check nicstride_check_t;

struct nicstride_module {
    ompi_osc_base_module_t super;
    nicstride_check_t *check; /**< NULL: the window is not checked (check/check.h) */
    ompi_win_t *win;
    ompi_communicator_t *comm;
    int rank;
    int size;
    int flavor;
    bool no_locks;
    uint32_t name; /**< this process's name for the window */

    void *base; /**< this process's memory; NULL for dynamic windows */
    void *own;  /**< private memory that the component allocated and must free */
    struct nicstride_module *next_orphan;
    const nicstride_rank_info_t *info; /**< of every rank, in the segment */
    nicstride_parts_t parts;           /**< how the parts lie, if MPI allocated them */
    char **mapped; /**< for each process of the node the address at which its memory is mapped here,
                      or NULL */
    bool shared;   /**< the processes of the node map each other's memory */

    onic_node_t node;
    onic_segment_t segment;    /**< control blocks and data of the node */
    nicstride_ctl_parts_t ctl; /**< the layout of a control block (control.h) */

    onic_peer_t **near;      /**< the processes of the node */
    nicstride_peer_t **peer; /**< per rank; NULL until needed; set under the transport lock */
    nicstride_peer_t *peers; /**< all that were made, the last one first; they stay */
    bool wants_server;
    nicstride_alone_t alone; /**< long transfers to private memory since the last synchronisation */

    /* transport lock */
    /** Accesses to this process's memory by messages that are still being handled. */
    LIST_HEAD(nicstride_accesses, nicstride_pending_access) accesses;
    nicstride_regions_t regions; /**< dynamic window: memory attached here */
    /** This process's memory, as each row has registered it (keys.h), or NULL. */
    void *registered[NICSTRIDE_METHODS_MAX];
    uint32_t registering; /**< the set of rows that have tried to */
    int window_refused;   /**< why rank 0 has refused the window's lock, or 0 */
    int applied_error; /**< the first error of an active-target operation applied here that no call
                          has returned yet */

    nicstride_fence_t fence; /**< used by one thread at a time */
    int *firsts;             /**< the first rank of each node, ascending */
    uint32_t fenced; /**< the last fence that had a mark: before they are accessed targets must be
                        done with it */
    uint32_t *done;  /**< for each rank the last fence that it is known to be done with; a window on
                        several nodes has one value for all */
    size_t done_step; /**< 1, or 0 with one value for all */

    /* module mutex */
    opal_mutex_t lock;
    nicstride_epoch_t epoch;
    bool nocheck_all; /**< lock_all with MPI_MODE_NOCHECK: no locks are taken */
    uint32_t stays;   /**< epochs that use the window's lock (sync/window_lock.c) */
    bool stay_busy;   /**< a thread is asking for it or giving it back */
    int *start_ranks; /**< access group of MPI_Win_start */
    int start_n;
    int *post_ranks; /**< exposure group of MPI_Win_post */
    int post_n;
};

/** Runs a statement on state that the mutex guards. */
#define NICSTRIDE_LOCKED(m, statement)                                                             \
    do {                                                                                           \
        OPAL_THREAD_LOCK(&(m)->lock);                                                              \
        statement;                                                                                 \
        OPAL_THREAD_UNLOCK(&(m)->lock);                                                            \
    } while (0)

static inline nicstride_module_t *nicstride_module(const ompi_win_t *win)
{
    return (nicstride_module_t *)win->w_osc_module;
}

/** What a rank has sent about its part of the window. */
static inline const nicstride_rank_info_t *nicstride_info(const nicstride_module_t *m, int rank)
{
    return &m->info[rank];
}

/** The process of a rank. Its record is made if needed; NULL if memory is exhausted. */
onic_peer_t *nicstride_onic_peer_locked(const nicstride_module_t *m, int rank);

/** Makes the peer of a rank that has none; NULL if memory is exhausted. */
nicstride_peer_t *nicstride_peer_make_locked(nicstride_module_t *m, int rank);

/** The peer of a rank, made if needed; NULL if memory is exhausted. */
static inline nicstride_peer_t *nicstride_peer_locked(nicstride_module_t *m, int rank)
{
    return m->peer[rank] != NULL ? m->peer[rank] : nicstride_peer_make_locked(m, rank);
}

/** The same; takes the transport lock if the peer must be made. */
static inline nicstride_peer_t *nicstride_peer(nicstride_module_t *m, int rank)
{
    nicstride_peer_t *p = __atomic_load_n(&m->peer[rank], __ATOMIC_ACQUIRE);

    if (p == NULL) {
        onic_transport_lock();
        p = nicstride_peer_locked(m, rank);
        onic_transport_unlock();
    }
    return p;
}

/** True if the target of an access is known to be done with the last fence that had a mark. */
static inline bool nicstride_is_past_fence(const nicstride_module_t *m, int target)
{
    return __atomic_load_n(&m->done[(size_t)target * m->done_step], __ATOMIC_ACQUIRE) == m->fenced;
}

/** True if accesses are now of active target. Messages are then counted when the epoch closes. If
 *  other threads open epochs meanwhile this is a guess; both answers are correct then. */
static inline bool nicstride_is_active(const nicstride_module_t *m)
{
    const nicstride_access_t access = __atomic_load_n(&m->epoch.access, __ATOMIC_RELAXED);

    return access == NICSTRIDE_ACCESS_FENCE || access == NICSTRIDE_ACCESS_PSCW;
}

/** Prints what was wrong with a call, unless too many texts were printed before, and returns
 *  `error`. MPI threads. */
int nicstride_error(const nicstride_module_t *m, const char *call, int error, const char *format,
                    ...) __attribute__((format(printf, 4, 5)));

/** The same for a call that the epoch does not allow. `target`: negative if no target is
 *  concerned. */
int nicstride_sync_error(const nicstride_module_t *m, const char *call, const char *wrong,
                         int target);

/** The peer that was made last; the others follow by `next`. So work on all peers costs only what a
 *  program uses. Any thread; no lock. Peers that this thread has used are never missed. */
static inline nicstride_peer_t *nicstride_peers(const nicstride_module_t *m)
{
    return __atomic_load_n(&m->peers, __ATOMIC_ACQUIRE);
}

/** Calls `f` for all peers of all windows. Transport lock. */
void nicstride_peers_each_locked(void (*f)(nicstride_peer_t *p, void *arg), void *arg);

/** True if something is under way to a target that a load or store could overtake now. No lock. */
static inline bool nicstride_has_unlanded(const nicstride_module_t *m, int target)
{
    const nicstride_peer_t *p = __atomic_load_n(&m->peer[target], __ATOMIC_ACQUIRE);

    return p != NULL && !nicstride_order_is_idle(&p->order);
}

/** True if the target's memory is mapped here and is to be accessed by loads and stores. */
static inline bool nicstride_is_mapped(const nicstride_module_t *m, int target)
{
    const int local = onic_node_index(&m->node, target);

    return local >= 0 && m->mapped[local] != NULL && m->flavor != MPI_WIN_FLAVOR_DYNAMIC;
}
