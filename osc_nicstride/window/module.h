/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The state of one window and of its peers.
 *
 *  Locking: what handlers of messages touch belongs to the transport lock; functions named
 * ..._locked are called with it held. What only MPI threads touch (epoch, groups, held locks)
 * belongs to the module's mutex, taken only under MPI_THREAD_MULTIPLE. The transport lock may be
 * taken inside the mutex, never the other way round. Nobody waits with the transport lock held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "common/layout/layout.h"
#include "common/transport/account.h"
#include "osc_nicstride/protocol/alone.h"
#include "common/transport/shm/node.h"
#include "osc_nicstride/protocol/patience.h"
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

/** A process, in all windows. */
typedef struct nicstride_process {
    LIST_ENTRY(nicstride_process) next;
    LIST_HEAD(, nicstride_peer) peers; /**< of all windows that have one for it */
    unsigned queued;                   /**< operations in the queues of these; where not 0: */
    LIST_ENTRY(nicstride_process) of_queueing;
    void *of_row[NICSTRIDE_METHODS_MAX]; /**< what a method's row keeps with it, or NULL */
} nicstride_process_t;

/** Those to which operations wait in queues. Transport lock. */
extern LIST_HEAD(nicstride_processes, nicstride_process) nicstride_queueing;

/** So many more operations are in queues to the process, or fewer. */
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
typedef struct nicstride_registered nicstride_registered_t;

/** What is sent to a peer and comes from it (completion.h). Transport lock. */
typedef struct nicstride_flow {
    nicstride_tx_t tx;
    nicstride_rx_t rx;
    uint64_t closed;  /**< messages sent there, in all, when an epoch was last closed */
    size_t frag_max;  /**< bytes; 0 until asked for */
    unsigned posting; /**< messages that the transport still keeps */
    struct nicstride_sent_batch
        *batch;                  /**< short messages that wait for others (send.h); NULL: none */
    nicstride_msg_type_t vector; /**< of the last of these, where that is one that may become
                                      longer (vector.h), else 0 */
    unsigned records;            /**< of that */
    nicstride_op_t *gets;        /**< of a vector of gets */
    LIST_ENTRY(nicstride_peer) waiting;       /**< of the peers with some */
    const nicstride_reply_line_t *reply_line; /**< where it answers me; NULL: by message only */
    uint64_t reply_line_seen;                 /**< its last answer there */
    nicstride_reply_line_t *reply_line_there; /**< where I answer it; NULL: by message only */
    bool reply_line_used;                     /**< not with the first answer */
} nicstride_flow_t;

/** Operations to a peer. Transport lock, but that `enqueued` and `clean` are read without. */
typedef struct nicstride_queue {
    STAILQ_HEAD(, nicstride_op) waiting;           /**< those with fragments still to send */
    uint32_t length;                               /**< of them */
    TAILQ_HEAD(nicstride_live, nicstride_op) live; /**< not yet locally complete, in order */
    uint64_t enqueued;                             /**< ever queued; the last one's number */
    uint64_t urgent; /**< a local flush waits for all up to this number: they are not held */
    uint64_t clean;  /**< all up to this number are known to be done at the target */
    bool flushing;   /**< a thread waits for all up to number `goal`: later ones wait too */
    uint64_t goal;
} nicstride_queue_t;

/** A message that is put off (target/dispatch.c). */
typedef struct nicstride_deferred {
    TAILQ_ENTRY(nicstride_deferred) of_line;
    struct nicstride_peer *p; /**< whose it is */
    nicstride_msg_t msg;
    char *bytes; /**< layout, then payload, behind it; NULL: none, it is one of the peer's */
    size_t len;  /**< of the payload */
    nicstride_cached_layout_t *list; /**< that it names, held */
} nicstride_deferred_t;

/** Messages of a peer that this process handles. Transport lock. */
typedef struct nicstride_served {
    uint64_t waited;  /**< pass over what was put off in which something of its had to wait */
    uint32_t moving;  /**< puts and accumulates of its that come through receive buffers, */
    uint32_t put_off; /**< and messages that wait: what takes its turn waits for all these */
    nicstride_deferred_t deferred[4]; /**< a request for my lock, its release; the same for the
                                         window's */
} nicstride_served_t;

/** What a notice is of. */
typedef enum nicstride_notice_of {
    NICSTRIDE_POST,
    NICSTRIDE_COMPLETE,
    NICSTRIDE_NOTICES
} nicstride_notice_of_t;

/** Notices of post and complete. Transport lock: those that came by message, from another node.
 * Module mutex: those of any peer that were used. */
typedef struct nicstride_notices {
    uint32_t come[NICSTRIDE_NOTICES];
    uint32_t used[NICSTRIDE_NOTICES];
    uint64_t count; /**< messages that it had sent, in all, with the last of complete */
} nicstride_notices_t;

/** What kind of peer it is, and whether it is there (wait.h). What is known once is read without a
 * lock when the word before it says so; the rest belongs to the transport lock. */
typedef struct nicstride_observation {
    bool looked_up;                  /**< the next two are known */
    onic_kind_t kind;                /**< its kind */
    const onic_presence_t *presence; /**< its signs of life, or NULL; known with `wakes`, too */
    int wakes;                       /**< its helper thread can be woken: 1, -1: not, 0: unknown */
    uint64_t looked;                 /**< ticks when its presence was last asked for; no lock */
    uint64_t
        answered; /**< the same at the end of the last flush: it was there after that; no lock */
    nicstride_patience_t patience; /**< of waits for requests */
    uint64_t awaited;              /**< the oldest operation when that was last looked at */
} nicstride_observation_t;

/** The lock of a target on another node (queue/ask_lock.h). Transport lock. */
typedef struct nicstride_peer_lock {
    nicstride_asked_t asked;
    struct nicstride_lock_request *request; /**< until it is answered; NULL: none */
} nicstride_peer_lock_t;

/** One rank of the window, as seen from here. Made when first needed. What is not in one of its
 * parts is set then, if not said otherwise. */
typedef struct nicstride_peer {
    struct nicstride_module *module;
    onic_peer_t *wire;
    nicstride_process_t *process;
    onic_account_t *account; /**< credit between the two processes */
    LIST_ENTRY(nicstride_peer)
    of_process;   /**< the same process in another window; transport lock */
    uint32_t win; /**< its name for the window */
    uint32_t me;  /**< my rank there */
    int rank;
    int local;                           /**< index on my node, or -1 */
    int known[NICSTRIDE_METHODS_MAX][2]; /**< what a method's row has found out, of gets and of all
                                            else: 1: it reaches it, -1: it does not, 0: unknown;
                                            atomic */
    nicstride_rkey_cache_t *keys;        /**< of its memory (keys.h), or NULL; transport lock */
    int unregistered;                    /**< 1: there will be none; read without the lock */
    bool failed; /**< it cannot be reached: nobody waits for it; transport lock */
    bool used;   /**< it is in its window's list; transport lock */
    struct nicstride_peer *next_used; /**< in that list; transport lock */
    nicstride_flow_t flow;
    nicstride_queue_t queue;
    nicstride_peer_lock_t lock;
    bool nocheck; /**< its lock is not taken (MPI_MODE_NOCHECK); module mutex */
    nicstride_served_t served;
    nicstride_notices_t notices;
    nicstride_observation_t observed;
    nicstride_sent_layouts_t *sent; /**< lists that it was sent; NULL: none yet; transport lock */
    nicstride_layout_cache_t *kept; /**< its lists that are kept here; likewise */
    nicstride_order_t order;        /**< what was written there; noted with the transport lock */
} nicstride_peer_t;

/** Where a method's row keeps whether it reaches a peer in the direction of such a transfer. */
static inline int *nicstride_known(nicstride_peer_t *p, nicstride_method_t method,
                                   nicstride_msg_type_t type)
{
    return &p->known[method][type == NICSTRIDE_MSG_GET];
}

/** Bytes from the begin of a control block to its parts, and of all of it. */
typedef struct nicstride_ctl_parts {
    size_t stripes, counts, notices, granted, reply_lines, lockq, board, bytes;
} nicstride_ctl_parts_t;

typedef struct nicstride_check nicstride_check_t;

typedef struct nicstride_module {
    ompi_osc_base_module_t super;
    nicstride_check_t *check; /**< NULL: its use is not checked (check/check.h) */
    ompi_win_t *win;
    ompi_communicator_t *comm;
    int rank;
    int size;
    int flavor;
    bool no_locks;
    uint32_t name; /**< of this window at home */

    void *base; /**< my memory; NULL for dynamic windows */
    void *own;  /**< to be freed, where memory is private and ours */
    struct nicstride_module *next_orphan;
    const nicstride_rank_info_t *row; /**< of every rank, in the segment; or of all, see below */
    size_t row_step;                  /**< 1; 0: all ranks have sent the same, `row` */
    nicstride_rank_info_t same;
    const uint64_t *names;   /**< of every rank its process, in the segment; NULL: they follow on */
    uint64_t first_name;     /**< that of rank 0 */
    nicstride_parts_t parts; /**< how they lie, where MPI has allocated them */
    char **mapped;           /**< for each process of the node its memory as mapped here, or NULL */
    bool shared;             /**< the processes of the node map each other's memory */

    onic_node_t node;
    onic_segment_t segment;    /**< control blocks and data of the node */
    nicstride_ctl_parts_t ctl; /**< how a control block is made up (control.h) */

    onic_peer_t **near;      /**< the processes of the node */
    bool refers;             /**< to these and those of the peers: the window is made */
    nicstride_peer_t **peer; /**< of every rank, NULL until needed; set under the transport lock */
    bool wants_server;
    nicstride_alone_t alone; /**< long transfers to private memory; until a call synchronises */

    /* transport lock */
    nicstride_peer_t *used; /**< peers in use */
    nicstride_peer_t **used_end;
    unsigned walks;
    LIST_ENTRY(nicstride_module) in_use;
    TAILQ_HEAD(, nicstride_deferred) deferred; /**< messages that are put off */
    unsigned deferred_for_lock;                /**< of these, those that take a lock */
    LIST_ENTRY(nicstride_module) of_lines;     /**< of the windows with such messages */
    LIST_HEAD(nicstride_accesses, nicstride_pending_access)
    accesses;                           /**< what others' messages still do with my memory */
    nicstride_regions_t regions;        /**< dynamic window: what is attached here */
    nicstride_registered_t *registered; /**< own memory that is registered (keys.h), or NULL */
    nicstride_asked_t window_asked;     /**< of rank 0, for the window's lock, by message */
    unsigned untold;   /**< queues of which not all was told: a set, see sync/change_queue.c */
    int applied_error; /**< the first error of one that came in active target, that no call has
                          returned */

    nicstride_fence_t fence; /**< one thread at a time */
    int *firsts;             /**< the first rank of each node, ascending */
    uint32_t fenced;         /**< the last fence that they must be done with before access */
    uint32_t *done;          /**< for each rank the last fence that it is known to be done with; one
                                  for all where the window is on several nodes, which have none */
    size_t done_step;        /**< 1, or 0 in that case */

    /* module mutex */
    opal_mutex_t lock;
    nicstride_epoch_t epoch;
    bool nocheck_all; /**< lock_all with MPI_MODE_NOCHECK: no locks are taken */
    uint32_t stays;   /**< uses of the window's lock by epochs (sync/window_lock.c) */
    bool stay_busy;   /**< a thread asks for it, or gives it back */
    uint8_t *epoch_target;
    int *start_ranks; /**< access group of MPI_Win_start */
    int start_n;
    int *post_ranks; /**< exposure group of MPI_Win_post */
    int post_n;
} nicstride_module_t;

/** A statement on what belongs to the mutex. */
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

/** What a rank has sent of its part. */
static inline const nicstride_rank_info_t *nicstride_info(const nicstride_module_t *m, int rank)
{
    return &m->row[(size_t)rank * m->row_step];
}

/** The process of a rank, its record made if need be; NULL where memory is exhausted. */
onic_peer_t *nicstride_wire_locked(const nicstride_module_t *m, int rank);

/** Makes the peer of a rank, which has none; NULL where memory is exhausted. */
nicstride_peer_t *nicstride_peer_make_locked(nicstride_module_t *m, int rank);

/** The peer of a rank, made if need be; NULL where memory is exhausted. */
static inline nicstride_peer_t *nicstride_peer_locked(nicstride_module_t *m, int rank)
{
    return m->peer[rank] != NULL ? m->peer[rank] : nicstride_peer_make_locked(m, rank);
}

/** The same; takes the transport lock if it must be made. */
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

/** Frees one to which nothing is under way any more. */
void nicstride_peer_free_locked(nicstride_peer_t *p);

/** True if nothing will come from the peer any more. For all loops that wait: connections break
 *  between processes that live, connected jobs end, processes die in a job that goes on. Transport
 *  lock. */
bool nicstride_peer_failed_locked(nicstride_peer_t *p);
/** The same of a rank that may not have been a peer yet. */
bool nicstride_rank_failed_locked(nicstride_module_t *m, int rank);
/** The error class of what waited for a lost peer. */
int nicstride_lost_class(const onic_peer_t *wire);
/** True if a process of the node has died, so that what needs all of them cannot end. No lock. */
bool nicstride_node_has_lost(const nicstride_module_t *m);

/** True if the target of an access is known to be done with the last fence. */
static inline bool nicstride_is_past_fence(const nicstride_module_t *m, int target)
{
    return __atomic_load_n(&m->done[(size_t)target * m->done_step], __ATOMIC_ACQUIRE) == m->fenced;
}

/** True if accesses are of active target now: then messages are counted when the epoch closes. A
 *  guess if other threads open epochs; both answers are right then. */
static inline bool nicstride_is_active(const nicstride_module_t *m)
{
    const nicstride_access_t access = __atomic_load_n(&m->epoch.access, __ATOMIC_RELAXED);

    return access == NICSTRIDE_ACCESS_FENCE || access == NICSTRIDE_ACCESS_PSCW;
}

/** onic_transport_forget_fn_t. */
bool nicstride_process_forget(onic_peer_t *wire, bool left);

/** Frees them, at the end of the process. */
void nicstride_processes_fini(void);

/** Says what was wrong with a call, if not too often, and returns `error`. MPI threads. */
int nicstride_error(const nicstride_module_t *m, const char *call, int error, const char *format,
                    ...) __attribute__((format(printf, 4, 5)));

/** The same of a call that the epoch does not allow. `target`: negative where not about one. */
int nicstride_sync_error(const nicstride_module_t *m, const char *call, const char *wrong,
                         int target);

/** Says why a window could not be made, and returns `rc`. */
int nicstride_select_error(int rc, const char *reason);

/* ---- peers in use -------------------------------------------------------------------------------
 *
 * The peers of a window with which there is something to be done: operations under way or not
 * yet flushed, an error to be returned. So what is done for all
 * peers costs what a program uses. A peer enters when it is first used; those that are done with
 * are taken out when nobody walks along the list. */

/** True if all that was started has been flushed, and no error is still to be returned. No lock.
 *  The common case on mapped windows, inlined. */
static inline bool nicstride_is_clean(const nicstride_peer_t *p)
{
    return __atomic_load_n(&p->queue.enqueued, __ATOMIC_RELAXED) ==
               __atomic_load_n(&p->queue.clean, __ATOMIC_ACQUIRE) &&
           !__atomic_load_n(&p->failed, __ATOMIC_RELAXED) &&
           __atomic_load_n(&p->flow.tx.error, __ATOMIC_RELAXED) == 0;
}

/** Puts the peer into its window's list, unless it is there. Transport lock. */
void nicstride_enlist_locked(nicstride_peer_t *p);

/** The same; to be called whenever it is used. Inlined is what happens mostly. */
static inline void nicstride_use_locked(nicstride_peer_t *p)
{
    if (!p->used)
        nicstride_enlist_locked(p);
}

/** Takes out those that there is nothing to be done with, if nobody walks, or all, of a window that
 *  will be freed. Transport lock. */
void nicstride_thin_used_locked(nicstride_module_t *m, bool all);

/** True if the list is not empty. No lock: a peer that this thread has used is not overlooked. */
static inline bool nicstride_any_used(const nicstride_module_t *m)
{
    return __atomic_load_n(&m->used, __ATOMIC_RELAXED) != NULL;
}

/** Walks along the list: the first of it, then the next ones, NULL at the end. What others use
 *  meanwhile may be among them. Each walk that is begun is ended. MPI threads, no lock held. */
nicstride_peer_t *nicstride_used_begin(nicstride_module_t *m);
/** Once more from the first, in the same walk. */
static inline nicstride_peer_t *nicstride_used_first(const nicstride_module_t *m)
{
    return __atomic_load_n(&m->used, __ATOMIC_ACQUIRE);
}
static inline nicstride_peer_t *nicstride_used_next(const nicstride_peer_t *p)
{
    return __atomic_load_n(&p->next_used, __ATOMIC_ACQUIRE);
}
void nicstride_used_end(nicstride_module_t *m);

/** Calls `f` with all peers in the lists of all windows. Transport lock. */
void nicstride_used_each_locked(void (*f)(nicstride_peer_t *p, void *arg), void *arg);

/* ---- transfers ----------------------------------------------------------------------------------
 *
 * A communication call: what moves from where to where, and by which paths it can. */

struct nicstride_request;

typedef struct nicstride_transfer {
    const char *call; /**< name of the MPI call, for texts */
    nicstride_module_t *m;
    nicstride_peer_t *peer;
    nicstride_msg_type_t type; /**< PUT, GET, ACC, GET_ACC or CAS */
    uint16_t op;               /**< accumulates: predefined operation and element type */
    uint16_t dtype;
    uint32_t granule; /**< bytes of an element that must not be torn; 1 for put and get */
    onic_layout_t origin;
    onic_layout_t target;
    onic_layout_t result; /**< GET, GET_ACC, CAS: where what comes back goes */
    char *origin_base;    /**< may be 0 (MPI_BOTTOM); CAS: the compare value */
    bool has_origin;      /**< data of the origin is sent, or comes there */
    const char *swap;     /**< CAS: the new value */
    char *result_base;
    struct nicstride_request *request; /**< of a request-based call, else NULL */
    int64_t disp;    /**< bytes from the window's base, or an address for dynamic windows */
    bool mapped;     /**< the target's memory is in my address space: */
    char *direct;    /**< disp there; may be 0 (MPI_BOTTOM), so only `mapped` says if it counts */
    uint64_t remote; /**< address of disp in the target's address space, where that is on my node */
    unsigned way;    /**< that it goes (protocol/order.h), */
    uint64_t from;   /**< and the bytes that it is about: from the window's base, or addresses */
    uint64_t to;
} nicstride_transfer_t;

/** True if it changes bytes of the target. */
static inline bool nicstride_writes(const nicstride_transfer_t *t)
{
    return t->type != NICSTRIDE_MSG_GET && t->has_origin;
}

/** True if something is under way to a target that a load or a store could overtake now. No lock.
 */
static inline bool nicstride_has_unlanded(const nicstride_module_t *m, int target)
{
    const nicstride_peer_t *p;

    if (!nicstride_any_used(m))
        return false;
    p = __atomic_load_n(&m->peer[target], __ATOMIC_ACQUIRE);
    return p != NULL && !nicstride_order_is_idle(&p->order);
}

/** True if the memory of a target is mapped here, and is to be loaded and stored. */
static inline bool nicstride_is_mapped(const nicstride_module_t *m, int target)
{
    const int local = onic_node_index(&m->node, target);

    return local >= 0 && m->mapped[local] != NULL && m->flavor != MPI_WIN_FLAVOR_DYNAMIC;
}
