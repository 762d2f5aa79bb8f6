/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The state of one window, of its peers and of operations under way, and the functions of the
 * glue that call each other across files.
 *
 * Locking: what handlers of messages touch (peers' flow, queues of operations, handles, the table
 * of windows, attached regions) belongs to the wire lock; functions named ..._locked are called
 * with it held. What only MPI threads touch (epoch, groups, held locks) belongs to the module's
 * mutex, taken only under MPI_THREAD_MULTIPLE. The wire lock may be taken inside the mutex, never
 * the other way round. Nobody waits with the wire lock held.
 */
#ifndef NICSTRIDE_MODULE_H
#define NICSTRIDE_MODULE_H

#include <stdatomic.h>
#include <stddef.h>

#include "common/ompi_compat.h"
#include "mpi.h"
#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/group/group.h"
#include "ompi/mca/osc/base/base.h"
#include "ompi/mca/osc/osc.h"
#include "ompi/op/op.h"
#include "ompi/request/request.h"
#include "ompi/win/win.h"
#include "opal/class/opal_hash_table.h"
#include ONIC_MUTEX_HEADER

#include "common/beat.h"
#include "common/layout.h"
#include "common/node.h"
#include "common/pack.h"
#include "common/wire.h"
#include "osc_nicstride/apply.h"
#include "osc_nicstride/epoch.h"
#include "osc_nicstride/flow.h"
#include "osc_nicstride/handle.h"
#include "osc_nicstride/lockq.h"
#include "osc_nicstride/plan.h"
#include "osc_nicstride/proto.h"
#include "osc_nicstride/region.h"
#include "osc_nicstride/tune.h"

/* ---- component ------------------------------------------------------------------------------ */

/** Values of the MCA parameters (params.c documents them). */
typedef struct nicstride_params {
    int priority;
    int method;
    bool show_plan;
    bool node;
    bool cma;
    bool server;
    unsigned server_idle;
    unsigned window;
    char *tls;
    size_t tcp_segment;
    size_t sieve_piece;
} nicstride_params_t;

/** Below that of all components that come with Open MPI. */
#define NICSTRIDE_PRIORITY_INITIAL 5

typedef struct nicstride_component {
    ompi_osc_base_component_t super;
    nicstride_params_t params;
    bool wire_open;
    bool world_met; /**< all of MPI_COMM_WORLD took part in a window: a fence finds all of them */
    opal_hash_table_t windows;        /**< windows by their name at home; wire lock */
    nicstride_handles_t ops;          /**< operations that wait for replies; wire lock */
    uint32_t last_name;               /**< names are never used again; wire lock */
    struct nicstride_module *orphans; /**< windows that the user forgot; freed behind the wire */
} nicstride_component_t;

extern nicstride_component_t mca_osc_nicstride_component;

/** Counters, one process. Indexed by method. Updated without locks: statistics, not truth. */
typedef struct nicstride_counters {
    unsigned long long ops[NICSTRIDE_METHOD_LAST];
    unsigned long long bytes[NICSTRIDE_METHOD_LAST];
    unsigned long long accumulates;
    unsigned long long messages;      /**< fragments sent */
    unsigned long long deferred;      /**< messages put off because a lock was busy */
    unsigned long long refused;       /**< messages refused: malformed, or for a window gone */
    unsigned long long ops_live;      /**< operation objects not yet freed */
    unsigned long long requests_live; /**< request objects not yet freed */
} nicstride_counters_t;

extern nicstride_counters_t nicstride_counters;

/** Registers parameters; returns OMPI_SUCCESS or an error after a text. */
int nicstride_params_register(const mca_base_component_t *component);
/** Checks the values after all sources were read: range errors get a text and an error. */
int nicstride_params_check(void);
int nicstride_pvars_register(const mca_base_component_t *component);

/* ---- agreement on the component (agreement.c) ------------------------------------------------ */

/** Publishes what this process has; in the component's open function, once. OMPI_SUCCESS or an
 *  error. */
int nicstride_agreement_init(void);
void nicstride_agreement_fini(void);
/**
 * Do all members of `comm` have the same of this component? Not collective, but the members that
 * have it get the same answer. The first call for a process asks Open MPI's exchange about it. A
 * text names the host that differs, once on each host. Any MPI thread.
 */
bool nicstride_all_agree(ompi_communicator_t *comm);

/* ---- shared control block ------------------------------------------------------------------- */

/**
 * What the processes of a node share about one target of one window. Behind it in the segment lie
 * three arrays with one counter for each process of the node, and the lock queue.
 */
typedef struct nicstride_ctl {
    _Alignas(64) _Atomic uint32_t acc_lock;   /**< held while an accumulate is applied */
    _Alignas(64) _Atomic uint32_t queue_lock; /**< guards the lock queue */
    _Atomic uint64_t generation;              /**< of the table of attached regions */
} nicstride_ctl_t;

/* ---- window --------------------------------------------------------------------------------- */

/** What each rank tells the others about its part of the window. */
typedef struct nicstride_rank_info {
    uint64_t base; /**< address in its own address space; 0 for dynamic windows */
    uint64_t size; /**< bytes; 0 for dynamic windows */
    uint32_t disp_unit;
    uint32_t win;    /**< its name for the window */
    uint32_t window; /**< messages that it sends without acknowledgement (flow.h) */
    uint32_t pad;
} nicstride_rank_info_t;

#define NICSTRIDE_CACHED_REGIONS 4

typedef struct nicstride_op nicstride_op_t;

/** A transfer by message that is being measured; see observe.h. */
typedef struct nicstride_trial {
    nicstride_tune_cell_t *cell; /**< NULL: none */
    nicstride_method_t method;
    uint64_t bytes;
    uint64_t number;  /**< of the operation in the peer's queue */
    uint64_t begun;   /**< ticks when the call began */
    uint64_t started; /**< ticks when all was given to the wire or queued */
} nicstride_trial_t;

/** One rank of the window, as seen from here. Made when first needed. */
typedef struct nicstride_peer {
    onic_peer_t *wire;
    int rank;
    int local;               /**< index on my node, or -1 */
    int single_copy;         /**< 1: works, -1: does not, 0: not tried yet */
    bool looked_up;          /**< the next two are known */
    const onic_beat_t *beat; /**< its signs of life, or NULL */
    nicstride_tune_t *tune;  /**< what was learned of it; contents under the wire lock */

    /* wire lock */
    nicstride_trial_t trial;
    uint64_t answered; /**< ticks when a flush was last over; where there is a beat */
    nicstride_tx_t tx;
    nicstride_rx_t rx;
    nicstride_op_t *head; /**< operations with fragments still to send, in order */
    nicstride_op_t *tail;
    uint32_t queued;      /**< operations in that queue */
    nicstride_op_t *live; /**< all operations not yet locally complete, in order */
    nicstride_op_t *live_tail;
    uint64_t enqueued; /**< operations ever queued; the last one's number */
    uint64_t urgent;   /**< a local flush waits for all up to this number: they are not held */
    uint64_t clean;    /**< all up to this number are known to be done at the target */
    bool flushing;     /**< a thread waits for all up to number `goal`: later ones wait too */
    uint64_t goal;
    size_t frag_max; /**< 0 until asked for */
    uint32_t posts;  /**< post messages that came from a peer on another node */
    uint32_t completes;
    bool failed;  /**< the wire cannot reach it: nobody waits for it any more */
    bool granted; /**< a lock asked for by message is ours */
    bool refused; /**< it will not be */
    bool region_answered;
    nicstride_msg_t region_answer;

    /* module mutex */
    uint32_t posts_used;
    uint32_t completes_used;
    bool nocheck; /**< the epoch was opened with MPI_MODE_NOCHECK: there is no lock to hold */
    nicstride_region_t cached[NICSTRIDE_CACHED_REGIONS];
    unsigned ncached;
    unsigned next_cached;
    uint64_t cached_generation;
    bool asking_region; /**< a thread of ours waits for an answer about a region */
} nicstride_peer_t;

typedef struct nicstride_module {
    ompi_osc_base_module_t super;
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
    int *alone_ranks; /**< tables of a node of my own, kept ready in case it must be so */
    int *alone_index;
    nicstride_rank_info_t *info; /**< of every rank */
    uint64_t *sizes;             /**< bytes of every rank's part, while memory is being laid out */
    char **mapped; /**< for each process of the node its memory as mapped here, or NULL */

    onic_node_t node;
    onic_segment_t segment; /**< control blocks and data of the node */
    bool segment_shared;
    size_t ctl_size; /**< bytes of one control block with what is behind it */

    onic_peer_t **wire;
    nicstride_peer_t **peer; /**< of every rank, NULL until needed; set under the wire lock */
    bool wants_server;

    /* wire lock */
    nicstride_regions_t regions; /**< dynamic window: what is attached here */

    /* module mutex */
    opal_mutex_t lock;
    nicstride_epoch_t epoch;
    bool nocheck_all; /**< lock_all with MPI_MODE_NOCHECK: no locks are taken */
    uint8_t *epoch_target;
    int *start_ranks; /**< access group of MPI_Win_start */
    int start_n;
    int *post_ranks; /**< exposure group of MPI_Win_post */
    int post_n;
} nicstride_module_t;

static inline nicstride_module_t *nicstride_module(const ompi_win_t *win)
{
    return (nicstride_module_t *)win->w_osc_module;
}

int nicstride_win_select(ompi_win_t *win, void **base, size_t size, int disp_unit,
                         ompi_communicator_t *comm, opal_info_t *info, int flavor, int *model);
int nicstride_win_free(ompi_win_t *win);
/** Frees the windows that the user forgot. The wire is closed. */
void nicstride_free_orphans(void);
int nicstride_shared_query(ompi_win_t *win, int rank, size_t *size, int *disp_unit, void *baseptr);
int nicstride_attach(ompi_win_t *win, void *base, size_t size);
int nicstride_detach(ompi_win_t *win, const void *base);

/** The peer of a rank; NULL where memory is exhausted. Takes the wire lock if it must be made. */
nicstride_peer_t *nicstride_peer(nicstride_module_t *m, int rank);
nicstride_peer_t *nicstride_peer_locked(nicstride_module_t *m, int rank);

/** Control block of a process of my node, and the parts behind it. */
nicstride_ctl_t *nicstride_ctl(const nicstride_module_t *m, int local);
_Atomic uint32_t *nicstride_ctl_posts(const nicstride_module_t *m, int local);
_Atomic uint32_t *nicstride_ctl_completes(const nicstride_module_t *m, int local);
_Atomic uint32_t *nicstride_ctl_granted(const nicstride_module_t *m, int local);
nicstride_lockq_t *nicstride_ctl_lockq(const nicstride_module_t *m, int local);
size_t nicstride_ctl_bytes(int nlocal, int nranks);

/** Spin locks of the control block. `try` never waits: for handlers. */
bool nicstride_spin_try(_Atomic uint32_t *lock);
void nicstride_spin_lock(_Atomic uint32_t *lock);
void nicstride_spin_unlock(_Atomic uint32_t *lock);

/** Progresses everything once; for waiting loops of MPI threads, no lock held. */
void nicstride_progress(void);

/** Waits until `done(arg)` holds, which is called with the wire lock held and may send. Progresses
 *  the wire closely and everything else now and then. MPI threads, no lock held. */
void nicstride_wait_until(bool (*done)(void *arg), void *arg);

/* ---- errors --------------------------------------------------------------------------------- */

/** Says what was wrong with a call on this window and returns `error`. The first errors of a
 * process get a text, later ones only the code. MPI threads only. */
int nicstride_error(const nicstride_module_t *m, const char *call, int error, const char *format,
                    ...) __attribute__((format(printf, 4, 5)));

/** Name of this host, for texts. MPI threads only. */
const char *nicstride_hostname(void);

/* ---- targets of communication calls (target.c) ---------------------------------------------- */

/** One communication call, resolved: what moves from where to where. */
typedef struct nicstride_target {
    const char *call; /**< name of the MPI call, for texts */
    nicstride_peer_t *peer;
    onic_layout_t origin;
    onic_layout_t target;
    char *origin_base;
    int64_t disp;    /**< bytes from the window's base, or an address for dynamic windows */
    bool mapped;     /**< the target's memory is in my address space: */
    char *direct;    /**< disp there; may be 0 (MPI_BOTTOM), so only `mapped` says if it counts */
    bool cma;        /**< single copy can be used: address below is good */
    uint64_t remote; /**< address of disp in the target's address space */
} nicstride_target_t;

/**
 * Checks a communication call and resolves it: epoch (and the lock that lock_all puts off),
 * layouts, equal sizes, bounds. `origin_dt` NULL: there is no origin buffer (MPI_NO_OP).
 * On success call nicstride_target_fini later.
 */
int nicstride_target_init(nicstride_target_t *a, nicstride_module_t *m, const char *call,
                          const void *origin, size_t origin_count, ompi_datatype_t *origin_dt,
                          int target, ptrdiff_t target_disp, size_t target_count,
                          ompi_datatype_t *target_dt);
void nicstride_target_fini(nicstride_target_t *a);
/**
 * The quick way for the smallest calls: where `bytes` contiguous bytes at the target are mapped
 * here and everything is plainly allowed, their address; else NULL, which says nothing: take the
 * long way, which finds out and explains.
 */
void *nicstride_mapped_bytes(nicstride_module_t *m, int target, ptrdiff_t disp, size_t bytes);
/** Is the memory of a target mapped here, and to be used so? */
static inline bool nicstride_is_mapped(const nicstride_module_t *m, int target)
{
    const int local = m->node.index[target];

    return local >= 0 && m->mapped[local] != NULL && m->flavor != MPI_WIN_FLAVOR_DYNAMIC;
}
/** The epoch allows access to a target as it stands, with nothing to be noted or taken first. */
bool nicstride_plainly_allowed(nicstride_module_t *m, int target);
/** Copies contiguous bytes without tearing aligned words of up to 8. */
void nicstride_copy_bytes(void *to, const void *from, size_t bytes);
/** Bytes of `count` elements of a datatype without any gap, else 0. */
static inline size_t nicstride_plain_bytes(const ompi_datatype_t *dt, size_t count)
{
    const uint16_t plain = OPAL_DATATYPE_FLAG_CONTIGUOUS | OPAL_DATATYPE_FLAG_NO_GAPS;
    size_t bytes;

    if ((dt->super.flags & plain) != plain || dt->super.true_lb != 0 ||
        dt->super.size != (size_t)(dt->super.ub - dt->super.lb) ||
        __builtin_mul_overflow(dt->super.size, count, &bytes))
        return 0;
    return bytes;
}

/** Request-based calls are for passive-target epochs. */
int nicstride_check_passive(nicstride_module_t *m, const char *call, int target);

/** Dynamic windows: is [addr, addr + size) attached at the peer, by our cache of its table? Asks
 *  the target where the cache is empty or of an old generation. */
bool nicstride_region_known(nicstride_module_t *m, nicstride_peer_t *p, uint64_t addr,
                            uint64_t size);

/* ---- requests ------------------------------------------------------------------------------- */

typedef struct nicstride_request {
    ompi_request_t super;
    struct nicstride_request *next_done;
    bool freed; /**< the user freed it before it completed; wire lock */
    bool done;  /**< handed to MPI as complete; wire lock */
} nicstride_request_t;

OBJ_CLASS_DECLARATION(nicstride_request_t);

nicstride_request_t *nicstride_request_new(ompi_win_t *win);
/** The operation is over: MPI completes the request from an MPI thread. */
void nicstride_request_done_locked(nicstride_request_t *r, int error);
/** Ends a request-based call: hands the request to the user, complete if `done`; on an error
 *  frees it and returns the error. `r` may be NULL (memory exhausted, `rc` says so). */
int nicstride_request_finish(nicstride_request_t *r, int rc, bool done, ompi_request_t **request_p);
/** The wire's function for MPI threads: completes what is done. */
int nicstride_requests_complete(void);

/* ---- operations that go by message (stream.c, flush.c)
 * ------------------------------------------------ */

struct nicstride_op {
    nicstride_op_t *next;
    nicstride_op_t *live_next;
    nicstride_op_t *live_prev;
    nicstride_module_t *module;
    nicstride_peer_t *peer;
    nicstride_msg_type_t type; /**< PUT, GET, ACC, GET_ACC or CAS */
    bool rndv;
    bool sends_data; /**< fragments carry data of the origin buffer */
    uint16_t op;
    uint16_t dtype;
    uint32_t granule; /**< bytes of an element that fragments must not tear; 1 for data */
    int64_t disp;
    uint64_t size;
    uint64_t sent;      /**< bytes of the operation given to the wire */
    uint64_t received;  /**< bytes of replies */
    uint32_t in_flight; /**< sends not locally complete, and replies being received */
    bool queued;        /**< in the peer's queue */
    uint64_t number;    /**< of this operation in the peer's queue, from 1 */
    int error;
    uint64_t handle;      /**< for replies; 0 where there are none */
    bool plain;           /**< GET, GET_ACC, CAS: result_base is contiguous, result is not set */
    onic_layout_t origin; /**< PUT, ACC: source; owned */
    char *origin_base;
    onic_layout_t result; /**< GET, GET_ACC: destination; owned */
    char *result_base;
    onic_layout_t target; /**< owned */
    onic_cursor_t slice;  /**< list-form target: where the next slice begins */
    size_t encoded_len;   /**< stride-form target: its encoding */
    unsigned char encoded[ONIC_LAYOUT_ENCODED_MAX];
    unsigned char cas[128]; /**< CAS: compare, then new value */
    nicstride_request_t *request;
};

/** The most bytes that travel behind a header, copied, instead of beside it. */
#define NICSTRIDE_SMALL_MAX 128

/** A message that carries few bytes. */
typedef struct nicstride_small_msg {
    nicstride_msg_t msg;
    unsigned char data[NICSTRIDE_SMALL_MAX];
} nicstride_small_msg_t;

/** An operation on few contiguous bytes. */
typedef struct nicstride_small {
    nicstride_msg_type_t type; /**< PUT, GET, GET_ACC or CAS */
    uint16_t op;
    uint16_t dtype;
    uint64_t len;      /**< bytes at the target */
    const void *data;  /**< what the target is sent; NULL: nothing */
    const void *data2; /**< CAS: the second value; else NULL */
    void *result;      /**< where replies go; NULL for PUT */
} nicstride_small_t;

/**
 * The quick way for small operations by message: sends it at once where the window is not dynamic,
 * everything is plainly allowed and nothing is queued before it. False where that is not so, and
 * says nothing: take the long way, which finds out and explains. Takes the wire lock.
 */
bool nicstride_small_start(nicstride_module_t *m, int target, ptrdiff_t disp,
                           const nicstride_small_t *s);

/** Sends a message with `len` bytes behind its header. Otherwise as nicstride_send_locked. */
void nicstride_send_small_locked(nicstride_peer_t *p, nicstride_small_msg_t *small,
                                 const void *data, uint64_t len);

/** A new operation towards the target of `a`; takes over a->target. NULL: memory exhausted.
 *  Otherwise the wire lock is held when it returns: fill in the rest and start it. */
nicstride_op_t *nicstride_op_new(nicstride_module_t *m, nicstride_target_t *a,
                                 nicstride_msg_type_t type, uint64_t size);
/** Gives the operation to its peer and sends what may be sent; releases the wire lock. Waits
 *  (progressing) only where very many operations are queued already. On an error the operation is
 *  freed. */
int nicstride_op_start(nicstride_op_t *op);
/** Frees the operations that a peer will never end, the wire being closed. */
void nicstride_ops_drop(nicstride_peer_t *p);
/** Frees the operation objects kept for reuse, at the end of the process. */
void nicstride_ops_fini(void);
/** Bytes of header and payload that go in one fragment to the peer. */
size_t nicstride_frag_max_locked(nicstride_peer_t *p);
/** Sends what the peer's flow control allows. */
void nicstride_pump_locked(nicstride_module_t *m, nicstride_peer_t *p);
/** A reply's bytes were put in place (or failed): accounts for them. */
void nicstride_op_received_locked(nicstride_op_t *op, uint64_t bytes, int error);

/** Sends a message without layout and payload. A failure is printed by the wire and marks the peer
 *  as failed, which ends all waiting for it with an error. */
void nicstride_send_locked(nicstride_module_t *m, nicstride_peer_t *p, nicstride_msg_t *msg);

/** Waits until all operations to the peer are locally complete (`remote` false) or done at the
 *  target. Returns the first error that came back. */
int nicstride_flush_peer(nicstride_module_t *m, nicstride_peer_t *p, bool remote);
/** The same for all peers: every target is asked before any is waited for. */
int nicstride_flush_all_peers(nicstride_module_t *m, bool remote);

/* ---- handlers of messages (handlers.c) --------------------------------------------------------
 */

void nicstride_am(const void *header, size_t header_len, const void *data, size_t len,
                  onic_rndv_t *rndv);
/** Tries what had to be put off; the wire's deferred function. */
int nicstride_run_deferred(void);
/** Drops what was put off for a window that goes away. */
void nicstride_drop_deferred_locked(uint32_t win);
/** An operation of the peer has had its effect: counts it, acknowledges where due. */
void nicstride_applied_locked(nicstride_module_t *m, nicstride_peer_t *p, int error);

/* ---- accumulates ------------------------------------------------------------------------------
 */

/** Index of a predefined operation, or of the element type of a datatype, as it travels. -1 where
 *  it has none. */
int nicstride_op_index(const ompi_op_t *op);
int nicstride_dtype_index(ompi_datatype_t *dt);
/** Sizes of an element type; false where the index is none. */
bool nicstride_dtype_size(unsigned dtype, size_t *size_p, size_t *extent_p);

/** An operation on an element type, ready to apply. `elem` is its layout. */
typedef struct nicstride_accop {
    nicstride_apply_t apply;
    ompi_op_t *op;
    ompi_datatype_t *dt;
} nicstride_accop_t;

/** Makes the layouts of element types that have gaps; frees them. */
int nicstride_elements_init(void);
void nicstride_elements_fini(void);

/** False where the operation is not defined for the type. */
bool nicstride_accop_init(nicstride_accop_t *a, unsigned op, unsigned dtype);

/* ---- entry points of the module ----------------------------------------------------------------
 */

int nicstride_put(const void *origin, int origin_count, ompi_datatype_t *origin_dt, int target,
                  ptrdiff_t disp, int target_count, ompi_datatype_t *target_dt, ompi_win_t *win);
int nicstride_get(void *origin, int origin_count, ompi_datatype_t *origin_dt, int target,
                  ptrdiff_t disp, int target_count, ompi_datatype_t *target_dt, ompi_win_t *win);
int nicstride_rput(const void *origin, int origin_count, ompi_datatype_t *origin_dt, int target,
                   ptrdiff_t disp, int target_count, ompi_datatype_t *target_dt, ompi_win_t *win,
                   ompi_request_t **request);
int nicstride_rget(void *origin, int origin_count, ompi_datatype_t *origin_dt, int target,
                   ptrdiff_t disp, int target_count, ompi_datatype_t *target_dt, ompi_win_t *win,
                   ompi_request_t **request);
int nicstride_accumulate(const void *origin, int origin_count, ompi_datatype_t *origin_dt,
                         int target, ptrdiff_t disp, int target_count, ompi_datatype_t *target_dt,
                         ompi_op_t *op, ompi_win_t *win);
int nicstride_raccumulate(const void *origin, int origin_count, ompi_datatype_t *origin_dt,
                          int target, ptrdiff_t disp, int target_count, ompi_datatype_t *target_dt,
                          ompi_op_t *op, ompi_win_t *win, ompi_request_t **request);
int nicstride_get_accumulate(const void *origin, int origin_count, ompi_datatype_t *origin_dt,
                             void *result, int result_count, ompi_datatype_t *result_dt, int target,
                             ptrdiff_t disp, int target_count, ompi_datatype_t *target_dt,
                             ompi_op_t *op, ompi_win_t *win);
int nicstride_rget_accumulate(const void *origin, int origin_count, ompi_datatype_t *origin_dt,
                              void *result, int result_count, ompi_datatype_t *result_dt,
                              int target, ptrdiff_t disp, int target_count,
                              ompi_datatype_t *target_dt, ompi_op_t *op, ompi_win_t *win,
                              ompi_request_t **request);
int nicstride_fetch_and_op(const void *origin, void *result, ompi_datatype_t *dt, int target,
                           ptrdiff_t disp, ompi_op_t *op, ompi_win_t *win);
int nicstride_compare_and_swap(const void *origin, const void *compare, void *result,
                               ompi_datatype_t *dt, int target, ptrdiff_t disp, ompi_win_t *win);
int nicstride_fence(int assert, ompi_win_t *win);
int nicstride_start(ompi_group_t *group, int assert, ompi_win_t *win);
int nicstride_complete(ompi_win_t *win);
int nicstride_post(ompi_group_t *group, int assert, ompi_win_t *win);
int nicstride_wait(ompi_win_t *win);
int nicstride_test(ompi_win_t *win, int *flag);
int nicstride_lock(int type, int target, int assert, ompi_win_t *win);
int nicstride_unlock(int target, ompi_win_t *win);
int nicstride_lock_all(int assert, ompi_win_t *win);
int nicstride_unlock_all(ompi_win_t *win);
int nicstride_sync(ompi_win_t *win);
int nicstride_flush(int target, ompi_win_t *win);
int nicstride_flush_all(ompi_win_t *win);
int nicstride_flush_local(int target, ompi_win_t *win);
int nicstride_flush_local_all(ompi_win_t *win);

/** A lock request or release that came by message. False where the queue is busy: try later. */
bool nicstride_lock_message_locked(nicstride_module_t *m, nicstride_peer_t *p,
                                   const nicstride_msg_t *msg);

#endif
