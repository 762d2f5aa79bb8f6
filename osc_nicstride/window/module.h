/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The state of one window and of its peers.
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

#include "common/layout/layout.h"
#include "common/transport/account.h"
#include "osc_nicstride/protocol/alone.h"
#include "common/transport/shm/node.h"
#include "common/transport/shm/presence.h"
#include "common/ompi_compat.h"
#include "common/transport/transport.h"
#include "osc_nicstride/protocol/asked_lock.h"
#include "osc_nicstride/protocol/completion.h"
#include "osc_nicstride/protocol/epoch.h"
#include "osc_nicstride/protocol/fence.h"
#include "osc_nicstride/protocol/message.h"
#include "osc_nicstride/protocol/method.h"
#include "osc_nicstride/protocol/peer_layout_cache.h"
#include "osc_nicstride/protocol/order.h"
#include "osc_nicstride/protocol/reply_line.h"
#include "osc_nicstride/window/place.h"
#include "osc_nicstride/window/region.h"
#include ONIC_MUTEX_HEADER

#include "mpi.h"
#include "ompi/communicator/communicator.h"
#include "ompi/mca/osc/osc.h"
#include "ompi/win/win.h"

/** A process, with its state for all windows. */
typedef struct nicstride_process {
    LIST_ENTRY(nicstride_process) next;
    LIST_HEAD(, nicstride_peer) peers; /**< its peers in all windows */
    unsigned queued;                   /**< operations in the queues of these peers; if not 0: */
    LIST_ENTRY(nicstride_process) of_queueing;
    void *of_row[NICSTRIDE_METHODS_MAX]; /**< what each method's row keeps for it, or NULL */
} nicstride_process_t;

/** The processes for which operations are queued. Transport lock. */
extern LIST_HEAD(nicstride_processes, nicstride_process) nicstride_queueing;

/** Adds `more` (negative: fewer) to the operations queued for the process. */
static inline void nicstride_queued_locked(nicstride_process_t *p, int more)
{
    if (p->queued == 0 && more > 0)
        LIST_INSERT_HEAD(&nicstride_queueing, p, of_queueing);
    p->queued += (unsigned)more;
    if (p->queued == 0 && more < 0)
        LIST_REMOVE(p, of_queueing);
}

typedef struct nicstride_op nicstride_op_t;
typedef struct nicstride_rkey_cache nicstride_rkey_cache_t;

/** Messages to and from a peer (completion.h). Transport lock. */
typedef struct nicstride_flow {
    nicstride_tx_t tx;
    nicstride_rx_t rx;
    uint64_t closed;  /**< messages sent there in all when an epoch was last closed */
    size_t frag_max;  /**< bytes; 0 until asked for */
    unsigned posting; /**< messages that the transport has not finished sending */
    /** Short messages that wait to be sent together (send.h); NULL: none. */
    struct nicstride_sent_batch *batch;
    nicstride_msg_type_t vector; /**< type of the last of these messages, if it is a vector that may
                                    grow (vector.h); else 0 */
    unsigned records;            /**< records of that vector */
    nicstride_op_t *gets;        /**< the operation of a vector of gets */
    LIST_ENTRY(nicstride_peer) waiting; /**< link in the list of peers with waiting messages */
    /** Where the peer answers this process; NULL: by message only. */
    const nicstride_reply_line_t *reply_line;
    uint64_t reply_line_seen; /**< the last answer seen there */
    /** Where this process answers the peer; NULL: by message only. */
    nicstride_reply_line_t *reply_line_there;
} nicstride_flow_t;

/** Operations to a peer. Transport lock, except that `enqueued` and `clean` may be read without
 *  it. */
typedef struct nicstride_queue {
    STAILQ_HEAD(, nicstride_op) waiting; /**< operations with fragments still to send */
    uint32_t length;                     /**< the number of these */
    /** Operations that are not locally complete, in order. */
    TAILQ_HEAD(nicstride_live, nicstride_op) live;
    uint64_t enqueued; /**< operations ever queued, which is the number of the last one */
    uint64_t urgent; /**< a local flush waits for all operations up to this number, so they are not
                        held back */
    uint64_t clean;  /**< all operations up to this number are known to be done at the target */
    bool flushing;   /**< a thread waits for all operations up to number `goal`, and later ones are
                        held back */
    uint64_t goal;
    bool sending; /**< the first operation is, and what a message to oneself sets off at once, where
                     UCX carries those, is not to send behind it */
} nicstride_queue_t;

/** The peer's transfers through receive buffers to or from this process (methods/pipeline.c). They
 *  take their turn. Transport lock. */
typedef struct nicstride_served {
    bool moving;      /**< data of a put or an accumulate is coming */
    unsigned waiting; /**< transfers that wait behind it */
} nicstride_served_t;

/** The kinds of notices. */
typedef enum nicstride_notice_of {
    NICSTRIDE_POST,
    NICSTRIDE_COMPLETE,
    NICSTRIDE_NOTICES
} nicstride_notice_of_t;

/** Notices of post and complete. `come`, for messages from other nodes, is guarded by the transport
 *  lock; `used`, for all peers, by the module mutex. */
typedef struct nicstride_notices {
    uint32_t come[NICSTRIDE_NOTICES];
    uint32_t used[NICSTRIDE_NOTICES];
    uint64_t count; /**< messages that the peer had sent in all at its last complete */
} nicstride_notices_t;

/** What kind of peer it is, and whether it responds (presence.h). Values that never change are read
 *  without a lock once the flag before them is set. The rest is guarded by the transport lock. */
typedef struct nicstride_observation {
    bool looked_up;   /**< the next two are valid */
    onic_kind_t kind; /**< its kind */
    /** Its signs of life, or NULL; also valid once `wakes` is known. */
    const onic_presence_t *presence;
    int wakes;         /**< 1: its helper thread can be woken; -1: it cannot; 0: unknown */
    uint64_t looked;   /**< ticks when its presence was last checked; no lock */
    uint64_t answered; /**< ticks at the end of the last flush, after which it responded; no lock */
    uint64_t woken;    /**< in a wait for requests: ticks when it was last woken; 0: not yet */
    uint64_t awaited;  /**< the oldest operation when a wait was last checked */
} nicstride_observation_t;

/** The lock of a target on another node (queue/ask_lock.h). Transport lock. */
typedef struct nicstride_peer_lock {
    nicstride_asked_t asked;
    struct nicstride_lock_request *request; /**< the request, until it is answered; NULL: none */
} nicstride_peer_lock_t;

/** One rank of the window, as seen from this process. Made when first needed. Members outside the
 *  sub-structures are set then, unless stated otherwise. */
typedef struct nicstride_peer {
    struct nicstride_module *module;
    onic_peer_t *peer;
    nicstride_process_t *process;
    onic_account_t *account; /**< credit between the two processes */
    /** Link in the process's list of peers; transport lock. */
    LIST_ENTRY(nicstride_peer) of_process;
    uint32_t win; /**< the peer's name for the window */
    uint32_t me;  /**< this process's rank in the window */
    int rank;
    int local; /**< index on this node, or -1 */
    /** What each method's row has found out, for gets and for everything else: 1: it reaches the
     *  peer; -1: it does not; 0: unknown. Atomic. */
    int known[NICSTRIDE_METHODS_MAX][2];
    nicstride_rkey_cache_t *keys; /**< keys of its memory (keys.h), or NULL; transport lock */
    int unregistered;             /**< 1: there will be no keys; read without the lock */
    bool failed; /**< it cannot be reached, so nobody waits for it; transport lock */
    struct nicstride_peer *next; /**< the one that was made before it */
    nicstride_flow_t flow;
    nicstride_queue_t queue;
    nicstride_peer_lock_t lock;
    bool nocheck; /**< its lock is not taken (MPI_MODE_NOCHECK); module mutex */
    nicstride_served_t served;
    nicstride_notices_t notices;
    nicstride_observation_t observed;
    /** Lists that this process sent to it; NULL: none yet; transport lock. */
    nicstride_sent_layouts_t *sent;
    nicstride_layout_cache_t *kept; /**< its lists that are cached here; as above */
    nicstride_order_t order; /**< what was written to it; noted with the transport lock held */
} nicstride_peer_t;

/** Where a method's row keeps whether it reaches the peer for such a transfer. */
static inline int *nicstride_known(nicstride_peer_t *p, nicstride_method_t method,
                                   nicstride_msg_type_t type)
{
    return &p->known[method][type == NICSTRIDE_MSG_GET];
}

/** Offsets of the parts of a control block, and its size. */
typedef struct nicstride_ctl_parts {
    size_t stripes, counts, notices, granted, reply_lines, lockq, board, bytes;
} nicstride_ctl_parts_t;

typedef struct nicstride_check nicstride_check_t;

typedef struct nicstride_module {
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

    onic_peer_t **near; /**< the processes of the node */
    /** The window is made, and knows these. */
    bool refers;
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
    /** The request by message for the window's lock, which rank 0 keeps. */
    nicstride_asked_t window_asked;
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
    uint8_t *epoch_target;
    int *start_ranks; /**< access group of MPI_Win_start */
    int start_n;
    int *post_ranks; /**< exposure group of MPI_Win_post */
    int post_n;
} nicstride_module_t;

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

/** Frees a peer to which nothing is under way. */
void nicstride_peer_free_locked(nicstride_peer_t *p);

/** True if nothing will come from the peer any more. Every loop that waits must ask this:
 *  connections between live processes break, connected jobs end, and processes die in a job that
 *  goes on. Transport lock. */
bool nicstride_peer_failed_locked(nicstride_peer_t *p);
/** The same for a rank that may not have a peer yet. */
bool nicstride_rank_failed_locked(nicstride_module_t *m, int rank);
/** The error class of operations that waited for a lost peer. */
int nicstride_lost_class(const onic_peer_t *peer);
/** True if a process of the node has died, so that nothing that needs all of them can end. No
 *  lock. */
bool nicstride_node_has_lost(const nicstride_module_t *m);

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

/** Frees all processes, when MPI ends. */
void nicstride_processes_fini(void);

/** Prints what was wrong with a call, unless too many texts were printed before, and returns
 *  `error`. MPI threads. */
int nicstride_error(const nicstride_module_t *m, const char *call, int error, const char *format,
                    ...) __attribute__((format(printf, 4, 5)));

/** The same for a call that the epoch does not allow. `target`: negative if no target is
 *  concerned. */
int nicstride_sync_error(const nicstride_module_t *m, const char *call, const char *wrong,
                         int target);

/** Prints why a window could not be made, and returns `rc`. */
int nicstride_select_error(int rc, const char *reason);

/** True if everything started was flushed and no error is still to be returned. No lock. Inlined:
 *  the common case for mapped windows. */
static inline bool nicstride_is_clean(const nicstride_peer_t *p)
{
    return __atomic_load_n(&p->queue.enqueued, __ATOMIC_RELAXED) ==
               __atomic_load_n(&p->queue.clean, __ATOMIC_ACQUIRE) &&
           !__atomic_load_n(&p->failed, __ATOMIC_RELAXED) &&
           __atomic_load_n(&p->flow.tx.error, __ATOMIC_RELAXED) == 0;
}

/** The peer that was made last; the others follow by `next`. So work on all peers costs only what a
 *  program uses. Any thread; no lock. Peers that this thread has used are never missed. */
static inline nicstride_peer_t *nicstride_peers(const nicstride_module_t *m)
{
    return __atomic_load_n(&m->peers, __ATOMIC_ACQUIRE);
}

/** Calls `f` for all peers of all windows. Transport lock. */
void nicstride_peers_each_locked(void (*f)(nicstride_peer_t *p, void *arg), void *arg);

/* ---- transfers ----------------------------------------------------------------------------------
 *
 * A communication call: what it moves from where to where, and which paths it can take. */

struct nicstride_request;

typedef struct nicstride_transfer {
    const char *call; /**< name of the MPI call, for texts */
    nicstride_module_t *m;
    nicstride_peer_t *peer;
    nicstride_msg_type_t type; /**< PUT, GET, ACC, GET_ACC or CAS */
    uint16_t op;               /**< accumulates: predefined operation and element type */
    uint16_t dtype;
    uint32_t granule; /**< bytes of an element that must not be torn; 1 for puts and gets */
    onic_layout_t origin;
    onic_layout_t target;
    onic_layout_t result; /**< GET, GET_ACC, CAS: where the returned data goes */
    char *origin_base;    /**< may be 0 (MPI_BOTTOM); CAS: the compare value */
    bool has_origin;      /**< data is sent from the origin, or put there */
    const char *swap;     /**< CAS: the new value */
    char *result_base;
    struct nicstride_request *request; /**< the request of a request-based call, else NULL */
    int64_t disp; /**< bytes from the window's base, or an address for dynamic windows */
    bool mapped;  /**< the target's memory is mapped in this process */
    char *direct; /**< the address of `disp` there; may be 0 (MPI_BOTTOM), so only `mapped` tells if
                     it is valid */
    uint64_t remote; /**< address of `disp` in the target's address space, if the target is on this
                        node */
    unsigned way;    /**< the way that it takes (protocol/order.h) */
    uint64_t from;   /**< the bytes that it accesses: from here to `to`; from the window's base, or
                        addresses */
    uint64_t to;
} nicstride_transfer_t;

/** True if the transfer changes bytes of the target. */
static inline bool nicstride_writes(const nicstride_transfer_t *t)
{
    return t->type != NICSTRIDE_MSG_GET && t->has_origin;
}

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
