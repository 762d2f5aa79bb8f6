/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What is kept for another process: for all windows, and for its rank in one (a peer).
 *  Locking: see module.h. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "common/transport/message.h"
#include "common/transport/transport.h"
#include "osc_nicstride/protocol/asked_lock.h"
#include "osc_nicstride/protocol/completion.h"
#include "osc_nicstride/protocol/message.h"
#include "osc_nicstride/protocol/method.h"
#include "osc_nicstride/protocol/order.h"
#include "osc_nicstride/protocol/peer_layout_cache.h"
#include "osc_nicstride/protocol/reply_line.h"

/** A process, with its state for all windows. */
typedef struct nicstride_process {
    LIST_ENTRY(nicstride_process) next;
    void *of_row[NICSTRIDE_METHODS_MAX]; /**< what each method's row keeps for it, or NULL */
} nicstride_process_t;

typedef struct nicstride_module nicstride_module_t;
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
    uint32_t length;                     /**< the number of these; if not 0: */
    LIST_ENTRY(nicstride_peer) of_queueing;
    /** Operations that are not locally complete, in order. */
    TAILQ_HEAD(nicstride_live, nicstride_op) live;
    uint64_t enqueued; /**< operations ever queued, which is the number of the last one */
    uint64_t urgent; /**< a local flush waits for all operations up to this number, so they are not
                        held back */
    uint64_t clean;  /**< all operations up to this number are known to be done at the target */
    bool flushing;   /**< a thread waits for all operations up to number `goal`, and later ones are
                        held back */
    uint64_t goal;
} nicstride_queue_t;

/** The kinds of notices. */
typedef enum nicstride_notice_of {
    NICSTRIDE_POST,
    NICSTRIDE_COMPLETE,
    NICSTRIDE_NOTICES
} nicstride_notice_of_t;

/** What an origin tells a target, all zero at first. Between processes of a node it lies in the
 *  target's control block. */
typedef struct nicstride_pair {
    _Atomic uint64_t
        count; /**< messages that it had sent there in all when it last closed an epoch */
    _Atomic uint32_t notices[NICSTRIDE_NOTICES]; /**< of post and of complete, that it has given */
    _Atomic uint32_t granted; /**< it has got the target's lock, and does not know yet */
} nicstride_pair_t;

/** Notices of post and complete. */
typedef struct nicstride_notices {
    const nicstride_pair_t *from;     /**< what the peer tells this process */
    nicstride_pair_t come;            /**< that, by messages from another node */
    uint32_t used[NICSTRIDE_NOTICES]; /**< the thread that waits for these */
} nicstride_notices_t;

/** What kind of peer it is, and whether it responds (presence.h). The kind is read without a lock
 *  once it is known. The rest is guarded by the transport lock. */
typedef struct nicstride_observation {
    bool looked_up; /**< `kind` is valid, and the transport has looked for its signs of life */
    onic_kind_t kind;
    uint64_t looked;   /**< when its presence was last checked; no lock */
    uint64_t answered; /**< at the end of the last flush, after which it responded; no lock */
    uint64_t woken;    /**< in a wait for requests: when it was last woken; 0: not yet */
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
    nicstride_module_t *module;
    onic_peer_t *peer;
    nicstride_process_t *process;
    onic_account_t *account; /**< credit between the two processes */
    uint32_t win;            /**< the peer's name for the window */
    uint32_t me;             /**< this process's rank in the window */
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
    /** Data of its put or accumulate comes through receive buffers, and transfers behind it wait
     *  (methods/pipeline.c); transport lock. */
    bool moving;
    nicstride_notices_t notices;
    nicstride_observation_t observed;
    /** Lists that this process sent to it; NULL: none yet; transport lock. */
    nicstride_sent_layouts_t *sent;
    nicstride_layout_cache_t *kept; /**< its lists that are cached here; as above */
    nicstride_order_t order; /**< what was written to it; noted with the transport lock held */
} nicstride_peer_t;

/** The peers in whose queues operations wait. Transport lock. */
extern LIST_HEAD(nicstride_queueing, nicstride_peer) nicstride_queueing;

/** Where a method's row keeps whether it reaches the peer for such a transfer. */
static inline int *nicstride_known(nicstride_peer_t *p, nicstride_method_t method,
                                   nicstride_msg_type_t type)
{
    return &p->known[method][type == NICSTRIDE_MSG_GET];
}

/** Frees a peer to which nothing is under way. */
void nicstride_peer_free_locked(nicstride_peer_t *p);

/** True if nothing will come from the peer any more. Every loop that waits must ask this:
 *  connections between live processes break, connected jobs end, and processes die in a job that
 *  goes on. Transport lock. */
bool nicstride_peer_failed_locked(nicstride_peer_t *p);
/** The error class of operations that waited for a lost peer. */
int nicstride_lost_class(const onic_peer_t *peer);

/** True if everything started was flushed and no error is still to be returned. No lock. Inlined:
 *  the common case for mapped windows. */
static inline bool nicstride_is_clean(const nicstride_peer_t *p)
{
    return __atomic_load_n(&p->queue.enqueued, __ATOMIC_RELAXED) ==
               __atomic_load_n(&p->queue.clean, __ATOMIC_ACQUIRE) &&
           !__atomic_load_n(&p->failed, __ATOMIC_RELAXED) &&
           __atomic_load_n(&p->flow.tx.error, __ATOMIC_RELAXED) == 0;
}

/** The record of a process, made if needed; NULL if memory is exhausted. */
nicstride_process_t *nicstride_process_of_locked(onic_peer_t *peer);

/** Frees all processes, when MPI ends. */
void nicstride_processes_fini(void);
