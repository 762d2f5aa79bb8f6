/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The wire: one UCX context, one worker and one lock for the process, active messages to peers.
 *
 * Peers are keyed by full process name, so windows over spawned, merged and connected
 * communicators share one table. Endpoints are made on first use.
 *
 * Threads: the worker, the peers and everything that handlers touch are protected by ONE lock, the
 * wire lock. Active-message handlers and send callbacks run with it held, in whichever thread
 * progresses: an MPI thread, or the server thread that makes passive-target progress while the MPI
 * threads are away. Handlers must never wait, never take the lock, and never touch an Open MPI
 * object; what they send before there is an endpoint goes when they are over: below
 * MPI_THREAD_MULTIPLE these are not atomic and the server thread may be running.
 */
#ifndef ONIC_WIRE_H
#define ONIC_WIRE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/support/export.h"
#include "common/layout/layout.h"
#include "common/node/queue.h"
#include "common/support/say.h"

struct ompi_communicator_t;
struct onic_node;
struct onic_presence;

/** A process that can be sent to. Opaque but for what the functions below tell. */
typedef struct onic_peer onic_peer_t;

/** Active-message identifiers: one for each component, one for the mover that they share, and one
 *  for the shortest messages of a point-to-point layer. */
enum { ONIC_AM_OSC = 1, ONIC_AM_PML = 2, ONIC_AM_COLL = 3, ONIC_AM_MOVER = 4, ONIC_AM_FEW = 5 };

/** Do messages of this identifier name their sender? Their header begins with onic_wire_me() of the
 *  process that sends it, and their handler is told whose it is (onic_named_fn_t). Those of others
 *  need no name: who they are from follows from what they say. */
static inline bool onic_am_is_named(unsigned am_id)
{
    return am_id == ONIC_AM_PML;
}

/** What a component asks of the wire. Values come from the component's own MCA parameters. */
typedef struct onic_wire_config {
    bool server_thread; /**< start the server thread (passive progress) */
    unsigned
        server_idle_usec; /**< MPI threads must be away this long before it takes over; 1..1e6 */
    bool single_copy;     /**< peers shall be able to copy from and to this process; see cma.c */
    const char *tls;      /**< UCX transports as in UCX_TLS; NULL or "" for the environment */
    size_t tcp_seg_size;  /**< bytes of one TCP fragment, 4 KiB .. 1 MiB; 0 for UCX's default */
    size_t queues;        /**< bytes of memory through which processes of the node send messages to
                               this one, of all together; 0: by UCX. Who opens the wire first says
                               so, for all */
    uint64_t credit; /**< bytes that a point-to-point layer takes from each process without a word;
                          published with the address (onic_peer_credit) */
    bool publish;    /**< for onic_wire_get_peer: this process's address is published when the
                          wire is opened, which must be before the exchange of MPI_Init; who
                          wants that keeps the wire open to the end */
} onic_wire_config_t;

/**
 * Loads UCX, once and for good: without its hooks of memory where it has no use for them and the
 * user's environment says nothing of them (ucx.h). To be called while a component is opened, in
 * MPI_Init: the environment is changed for that time.
 *
 * @return OMPI_SUCCESS, or an error after a text that names the cause
 */
ONIC_EXPORT int onic_ucx_load(void);

/** Says before anybody opens the wire what a component may ask of it: transports and lengths of
 *  fragments cannot be changed any more when it is open. MPI threads. */
ONIC_EXPORT void onic_wire_require(const onic_wire_config_t *config);

/**
 * Starts the wire, or takes another reference to it. What the components ask for is put together
 * (requirements.h), whoever comes first: the server thread is started when the first one wants it.
 * Not collective. Called from an MPI thread. Returns OMPI_SUCCESS or an OMPI error after a text
 * that names the cause.
 */
ONIC_EXPORT int onic_wire_open(const onic_wire_config_t *config);

/** Starts the server thread of a wire that is open, unless it runs, as `server_thread` does: for
 * who finds out only later that it is needed. Where it cannot be had the text has been given. MPI
 *  thread, lock not held. */
ONIC_EXPORT void onic_wire_start_server(unsigned idle_usec);

/**
 * Gives back a reference; true where that was the last one. With the last one: joins the server
 * thread, closes the endpoints and destroys worker and context. Must be called in the framework's
 * finalize step, by all processes of the job after a fence of the caller's, so that no peer still
 * has messages for us.
 */
ONIC_EXPORT bool onic_wire_close(void);

/**
 * Waits (a few seconds at most) until everything that this process has sent has left it. To be
 * called before the fence that precedes onic_wire_close, so that nobody closes a connection on
 * which bytes are still to come. MPI thread, lock not held.
 */
ONIC_EXPORT void onic_wire_flush(void);

/**
 * For a component that closes the wire when no point-to-point layer is there to send a barrier
 * with, in all processes of the job: flushes, then waits, progressing all the while, until the
 * others have come here too, in a fence of the launcher's. Not for those that have died, nor longer
 * than `usec`. Before onic_wire_close; MPI thread, lock not held.
 *
 * @return whether all have come: nobody sends anything any more
 */
ONIC_EXPORT bool onic_wire_leave(unsigned usec);

/**
 * The wire lock. Only one thread can be here while the program has less than MPI_THREAD_MULTIPLE
 * and the server thread does not run. Then the lock is taken without an atomic exchange, which
 * takes longer than the rest of a short message's way through the wire. The word says in either
 * case whether the lock is held, so it may be held when that changes: by the only thread, which
 * starts the other one.
 */
typedef struct onic_wire_guard {
    _Alignas(64) atomic_uint held; /**< 1 while it is */
    atomic_bool helped;            /**< the server thread runs */
    const bool *threads;           /**< may several threads of the program be in MPI? */
} onic_wire_guard_t;

ONIC_EXPORT extern onic_wire_guard_t onic_wire_guard;

/** Takes the lock if it is free. Not recursive. */
static inline bool onic_wire_trylock(void)
{
    onic_wire_guard_t *g = &onic_wire_guard;

    if (atomic_load_explicit(&g->held, memory_order_relaxed) != 0)
        return false;
    if (*g->threads || atomic_load_explicit(&g->helped, memory_order_relaxed))
        return atomic_exchange_explicit(&g->held, 1, memory_order_acquire) == 0;
    atomic_store_explicit(&g->held, 1, memory_order_relaxed);
    return true;
}

/** Is this the only thread of the program that may be in MPI? */
static inline bool onic_wire_is_alone(void)
{
    const onic_wire_guard_t *g = &onic_wire_guard;

    return !*g->threads &&
           (!atomic_load_explicit(&g->helped, memory_order_relaxed) || !onic_says_later());
}

/** Waits for it, where somebody has it. */
ONIC_EXPORT void onic_wire_lock_wait(void);

/* Taking the lock is no sign of life for the server thread: who only sends, or only looks something
 * up, again and again, does not progress what comes from others. */
static inline void onic_wire_lock(void)
{
    if (!onic_wire_trylock())
        onic_wire_lock_wait();
}

static inline void onic_wire_unlock(void)
{
    atomic_store_explicit(&onic_wire_guard.held, 0, memory_order_release);
}

/**
 * Progresses the worker once; takes the lock if it is free, else returns 0 at once. Registered
 * with opal_progress by onic_wire_open; calling it directly is allowed without the lock held.
 */
ONIC_EXPORT int onic_wire_progress(void);

/** As above, with the lock already held. */
ONIC_EXPORT int onic_wire_progress_locked(void);

/** May a message have come that onic_wire_poll_locked would handle? Any thread; no lock. */
ONIC_EXPORT bool onic_wire_has_messages(void);

/**
 * Handles messages that have come, and does nothing else that progress has to do: for a caller that
 * waits for a message and calls onic_wire_progress now and then between. Returns what it has found.
 */
ONIC_EXPORT int onic_wire_poll_locked(void);

/**
 * Tells the server thread whether passive progress may be needed now (a window whose memory is
 * reached by messages exists) for processes that cannot knock at it (onic_peer_wake in presence.h).
 * Counted: each true must be matched by a false. While the count is 0 the thread sleeps without a
 * timer, but answers knocks, and looks after what this process has started and left.
 */
ONIC_EXPORT void onic_wire_want_server(bool want);

/**
 * A function that is run on MPI threads only, from opal_progress and without the wire lock, each
 * time that onic_wire_kick_mpi was called since the last run. Here components complete requests.
 * One for each component (`am_id`).
 */
typedef int (*onic_wire_mpi_fn_t)(void);
ONIC_EXPORT void onic_wire_set_mpi_fn(unsigned am_id, onic_wire_mpi_fn_t fn);
ONIC_EXPORT void onic_wire_kick_mpi(unsigned am_id);

/**
 * A function that is run after the next progress of the worker, with the lock held, on any thread,
 * when it was asked for (onic_wire_defer), set, or when a connection was lost: for work that a
 * handler had to put off (a busy accumulate lock). Returns events done, or a negative value where
 * work is left that it could not do: then it is run again, and the server thread comes back to it
 * by itself, though no event may announce that it can be done.
 */
typedef int (*onic_wire_deferred_fn_t)(void);
ONIC_EXPORT void onic_wire_set_deferred_fn(unsigned am_id, onic_wire_deferred_fn_t fn);
/** Has the deferred function run after the next progress, which is the server thread's if no MPI
 *  thread makes one. That function itself may ask, too. The lock must be held. */
ONIC_EXPORT void onic_wire_defer(unsigned am_id);

/**
 * A function that every progress of the wire is followed by, without the wire lock: on MPI threads
 * from onic_wire_progress, and on the server thread after each of its slices. For work that takes
 * long and needs no lock, such as moving data; several threads may be inside at once. Returns how
 * much it has done; 0: there is nothing; negative: there is something that cannot be done yet, for
 * which the server thread then comes back, though no event may announce that it can be done. One
 * for the process; NULL for none. It must be cheap where there is nothing.
 */
typedef int (*onic_wire_unlocked_fn_t)(void);
ONIC_EXPORT void onic_wire_set_unlocked_fn(onic_wire_unlocked_fn_t fn);

/**
 * Collective over `comm`: makes sure that this process knows the wire address of every member;
 * addresses travel only if some member lacks one. `peers` gets one peer for each rank (the caller's
 * array; a reference each, returned by onic_wire_put_peers). Own rank included. MPI thread, lock
 * not held. Returns the same code on all ranks.
 */
ONIC_EXPORT int onic_wire_get_peers(struct ompi_communicator_t *comm, onic_peer_t **peers);
ONIC_EXPORT void onic_wire_put_peers(onic_peer_t **peers, int n);

/** Does this process know the addresses of all members, without asking anybody? MPI thread, lock
 * not held. */
ONIC_EXPORT bool onic_wire_knows(struct ompi_communicator_t *comm);

/** What others must know to send to this process, its address: how many bytes that takes; and
 *  writes it, which returns its length, 0 where `cap` bytes are not enough. */
ONIC_EXPORT size_t onic_address_record_size(void);
ONIC_EXPORT size_t onic_address_record(void *bytes, size_t cap);

/**
 * By all members of `comm`, of which `node` are those of this node, when all have told all their
 * addresses: that of rank i stands i * `stride` bytes behind `records`, and its length as far
 * behind `lens`. They are kept in shared memory, once for each node, and may be used when all
 * members have returned. Waits for those of the node. Returns OMPI_SUCCESS, or an error, which may
 * differ between ranks. MPI thread, lock not held.
 */
ONIC_EXPORT int onic_wire_keep(struct ompi_communicator_t *comm, struct onic_node *node,
                               const void *records, const int32_t *lens, size_t stride);

/**
 * What a component does when a process of another job is to be forgotten, which nobody refers to.
 * `left` false: true where none of its communicators or windows names the process. `left` true: the
 * same, and it gives back what it keeps for the peer, which has ended and of which nothing comes
 * any more; false where something is still under way. The lock is held, by an MPI thread. One for
 * each component; NULL for none.
 */
typedef bool (*onic_wire_forget_fn_t)(onic_peer_t *peer, bool left);
ONIC_EXPORT void onic_wire_set_forget_fn(unsigned am_id, onic_wire_forget_fn_t fn);

/** Forgets processes of other jobs that have left and that nobody names. To be called where a
 *  communicator with other jobs is made or freed. MPI thread, lock not held. */
ONIC_EXPORT void onic_wire_forget_left(void);

/** The name of a process: its job, and its number there, as in Open MPI's opal_process_name_t. */
static inline uint64_t onic_name(uint32_t job, uint32_t number)
{
    return (uint64_t)job << 32 | number;
}

/**
 * The peer of that name, of this job or of one that it is connected with. Not collective: where it
 * is not known yet, what it has published is fetched (onic_wire_config_t's publish). The same
 * record as onic_wire_get_peers gives; a reference, returned by onic_wire_put_peers. MPI thread,
 * lock not held; never in a handler. NULL and an OMPI error: OMPI_ERR_NOT_FOUND where that process
 * has published nothing that this version understands.
 */
ONIC_EXPORT onic_peer_t *onic_wire_get_peer(uint64_t name, int *rc_p);

/** The name of a communicator's member. MPI threads. */
ONIC_EXPORT uint64_t onic_rank_name(struct ompi_communicator_t *comm, int rank);

/** The peer of that name if it is known, else NULL; no reference is taken. Its record is made when
 *  it is first asked for. The lock must be held; handlers may ask. */
ONIC_EXPORT onic_peer_t *onic_peer_named(uint64_t name);

/** The same with a reference, and how that is given back. */
ONIC_EXPORT onic_peer_t *onic_peer_take(uint64_t name);
ONIC_EXPORT void onic_peer_give(onic_peer_t *peer);

ONIC_EXPORT uint64_t onic_peer_name(const onic_peer_t *peer);

/** The name of this process, while the wire is open. Any thread. */
ONIC_EXPORT uint64_t onic_wire_me(void);

/** The bytes that its point-to-point layer takes from each process without a word; 0: none. */
ONIC_EXPORT uint64_t onic_peer_credit(const onic_peer_t *peer);

/** Is it this process? What it sends to itself takes no connection: each message is handled in a
 *  later progress, and a rendezvous is one copy. */
ONIC_EXPORT bool onic_peer_is_self(const onic_peer_t *peer);

/** A pointer that a component (`am_id`) may keep with a peer; NULL at first, and again when the
 * wire is closed. What it points to is the component's. The lock must be held. */
ONIC_EXPORT void **onic_peer_slot(onic_peer_t *peer, unsigned am_id);

/** Makes the connection to the peer by which messages of that identifier go, before it is needed,
 *  if there is none. The lock must be held; not in a handler. */
ONIC_EXPORT void onic_peer_connect(onic_peer_t *peer, unsigned am_id);

/** Most bytes of header + payload that one active message to this peer should carry, so that it
 *  travels as a single fragment: in order and without reassembly. The lock must be held; makes the
 *  endpoint if there is none. In a handler that is made later, and the answer is 0 until then. */
ONIC_EXPORT size_t onic_peer_frag_max(onic_peer_t *peer);

/** The same for messages of that identifier, which may go another way than by UCX: by that one
 *  always at least the next number. */
ONIC_EXPORT size_t onic_peer_message_max(onic_peer_t *peer, unsigned am_id);
#define ONIC_MESSAGE_LEAST 4608

/** Do messages of a point-to-point layer go to this peer through a queue, or may they, where none
 *  has been sent yet? The lock must be held. */
ONIC_EXPORT bool onic_peer_has_queue(const onic_peer_t *peer);

/** The queue through which messages of a point-to-point layer come from this peer; NULL where there
 *  is none, or nothing has come yet. It stays until the wire is closed. The lock must be held; it
 *  need not be for onic_queue_has_message. */
ONIC_EXPORT onic_queue_receiver_t *onic_peer_incoming(onic_peer_t *peer);

/** The next message in that queue, if there is one: for who knows that it can be handled now. It is
 *  either taken out by onic_queue_take, under the same hold of the lock, or stays for progress. */
ONIC_EXPORT bool onic_peer_next_message(onic_peer_t *peer, onic_queue_message_t *m);

/** Most bytes that should go to or come from this peer by one rendezvous, since both sides may lock
 *  only so much memory; 0 for none, UINT64_MAX without limit. The lock need not be held. */
ONIC_EXPORT uint64_t onic_peer_rndv_max(const onic_peer_t *peer);

/** Is the connection to the peer lost, or none to be had? Prints that, the first time. The lock
 * must be held. */
ONIC_EXPORT bool onic_peer_lost(onic_peer_t *peer);
/** Likewise, and prints nothing: for peers that may have left in good order. */
ONIC_EXPORT bool onic_peer_is_lost(const onic_peer_t *peer);

/**
 * A message to the peer could not be sent, and neither side can go on without it: the connection
 * counts as lost from now on, so that all that waits for the peer ends, and nothing more is sent to
 * it. The wire itself does so where a message that it had taken does not get out, but for a
 * rendezvous, of which the callback's owner can tell the peer. The lock must be held.
 */
ONIC_EXPORT void onic_peer_give_up(onic_peer_t *peer);

/** How many connections have been lost, and how often something was to be sent by one that was: who
 *  remembers the number sees that there is more to be ended. Any thread; the lock need not be held.
 */
ONIC_EXPORT unsigned onic_wire_losses(void);

/* ---- processes of this machine that die (dead.c) ----------------------------------------------
 *
 * UCX tells nobody when a process ends that is reached by shared memory. So who waits for others
 * looks by himself whether they are alive. The connection to a process that is found to have died
 * counts as lost from then on, with all that follows from that. A process that is stopped is alive;
 * so is one of which it cannot be known (another machine, another pid namespace).
 */

/** Looks whether one of the processes of this machine that are known has ended, at each call the
 *  next. Some 10 microseconds: for those who have waited for milliseconds. MPI thread, lock not
 *  held. Returns how many have been found, in all, since the wire was opened. */
ONIC_EXPORT unsigned onic_wire_look_for_dead(void);

/** Has it been found that a process of this job on this machine has died? Those of other jobs, such
 *  as children, may have ended in good order. Any thread. */
ONIC_EXPORT bool onic_wire_job_is_broken(void);

/** The same for this one process. True where it has ended. */
ONIC_EXPORT bool onic_peer_look(onic_peer_t *peer);

/** Is what had come from processes that are lost still being handled? Before that is over nobody
 * who waits for them is told that it will not come; then onic_wire_losses grows once more. The lock
 *  must be held. */
ONIC_EXPORT bool onic_wire_drains(void);

/** Has the process been found to have ended? Any thread; no lock. */
ONIC_EXPORT bool onic_peer_has_died(const onic_peer_t *peer);

/** Largest header of an active message, of any peer. */
ONIC_EXPORT size_t onic_wire_header_max(void);

/** What has gone through queues on the node, in this process, since it began. */
typedef struct onic_queue_counters {
    unsigned long long received; /**< messages that came through one */
    unsigned long long waited;   /**< messages that waited for room in another process's */
} onic_queue_counters_t;

ONIC_EXPORT extern onic_queue_counters_t onic_queue_counters;

/** Called with the lock held when a send is locally complete, never before the call that started
 *  it has returned. All of it is on its way then: no call of this process is needed for it to
 *  arrive. `status` is OMPI_SUCCESS or an error. */
typedef void (*onic_send_cb_t)(void *arg, int status);

/** A payload that is gathered while it is sent: packed bytes [cursor, cursor + len) of a layout. */
typedef struct onic_payload {
    const void *base;     /**< base address of the layout, or of the contiguous bytes */
    onic_cursor_t cursor; /**< where to begin; cursor.layout NULL means contiguous from base */
    size_t len;           /**< bytes to send */
} onic_payload_t;

/** Flags of onic_peer_send. */
enum {
    ONIC_SEND_RNDV = 1 /**< contiguous payload by rendezvous, without copies where UCX can */
};

/** The longest message that onic_peer_send_now takes; through a queue any that one message may be.
 */
#define ONIC_SEND_NOW_MAX 128

typedef enum onic_sent {
    ONIC_SENT_NOT,   /**< nothing was sent; onic_peer_send will do it, or knows why not */
    ONIC_SENT_HELD,  /**< sent, but some of it may still be here; see onic_peer_leaves */
    ONIC_SENT_WHOLLY /**< complete */
} onic_sent_t;

/**
 * Sends an active message, if that can be done at once. The lock must be held. Header and payload
 * as for onic_peer_send; the header has 1 .. ONIC_SEND_NOW_MAX bytes and no more than
 * onic_wire_header_max. Who gets it by UCX may find all of it in the header.
 */
ONIC_EXPORT onic_sent_t onic_peer_send_now(onic_peer_t *peer, unsigned am_id, const void *header,
                                           size_t header_len, const onic_payload_t *payload);

/** Is what onic_peer_send_now has sent complete? Returns as onic_peer_send. The lock must be held.
 */
ONIC_EXPORT int onic_peer_leaves(onic_peer_t *peer, onic_send_cb_t cb, void *arg);

/**
 * Sends an active message. The lock must be held. The header, of at least one byte, is copied
 * before return. `payload` may be NULL; the struct is copied, the memory it names must stay until
 * local completion. Handlers may send. A message to this process itself is handled in a later
 * progress, not in this call.
 * A rendezvous needs a contiguous payload; one of no bytes is sent as an ordinary message.
 *
 * @return 1 where the send is already locally complete (cb is not called), 0 where cb will be
 *         called, or an OMPI error (cb is not called).
 */
ONIC_EXPORT int onic_peer_send(onic_peer_t *peer, unsigned am_id, const void *header,
                               size_t header_len, const onic_payload_t *payload, unsigned flags,
                               onic_send_cb_t cb, void *arg);

/** A rendezvous payload that has been announced but not yet received. */
typedef struct onic_rndv onic_rndv_t;

/**
 * Handler of an active message. Header and data live only until it returns. `rndv` is NULL for
 * data that has arrived (`data`, `len`); otherwise `data` is NULL and the handler must call
 * onic_rndv_recv or onic_rndv_drop before it returns.
 */
typedef void (*onic_am_fn_t)(const void *header, size_t header_len, const void *data, size_t len,
                             onic_rndv_t *rndv);
ONIC_EXPORT int onic_wire_set_am_fn(unsigned am_id, onic_am_fn_t fn);

/**
 * Likewise of a message that names its sender, which the handler may answer though this process has
 * never looked it up: its address came before its first message. `from` stays until the component
 * lets go of it (onic_wire_forget_fn_t); no reference is taken. The header is as it was sent, the
 * name included. What is sent to a process while it has no handler for it is dropped.
 */
typedef void (*onic_named_fn_t)(onic_peer_t *from, const void *header, size_t header_len,
                                const void *data, size_t len, onic_rndv_t *rndv);
ONIC_EXPORT int onic_wire_set_named_fn(unsigned am_id, onic_named_fn_t fn);

/** Receives the payload into `buffer`, of `len` bytes, at least the announced length (otherwise the
 *  payload is refused and OMPI_ERR_VALUE_OUT_OF_BOUNDS returned); same returns as send. */
ONIC_EXPORT int onic_rndv_recv(onic_rndv_t *rndv, void *buffer, size_t len, onic_send_cb_t cb,
                               void *arg);
/** Refuses the payload; the sender's send completes with success. */
ONIC_EXPORT void onic_rndv_drop(onic_rndv_t *rndv);

/** Sends and rendezvous receives of this process that are not complete yet. The lock must be held.
 */
ONIC_EXPORT unsigned onic_wire_outstanding(void);

/* ---- single copy between processes of one node (cma.c) --------------------------------------- */

/** Single copy (process_vm_readv and _writev) can reach this peer: same node, allowed by the
 *  kernel, proved once by reading a nonce. The answer is cached; one system call the first time.
 *  The lock must be held. */
ONIC_EXPORT bool onic_peer_can_cma(onic_peer_t *peer);

/** Can single copy still read the peer, where onic_peer_can_cma was true before? False once its
 *  process has ended, even where its id serves another one. A system call. The lock need not be
 *  held. */
ONIC_EXPORT bool onic_peer_readable(const onic_peer_t *peer);

/** The peer's process id in our pid namespace, or -1. Meaningful where onic_peer_can_cma is true.
 */
ONIC_EXPORT pid_t onic_peer_pid(onic_peer_t *peer);

/* ---- is a process of this node in MPI? (common/node/presence.h) --------------------------------
 */

/**
 * The page of a peer, or NULL where it cannot be had: on another node, where single copy is not
 * allowed, or where the peer counts ticks of another clock. Mapped once, and until the wire is
 * closed. The lock must be held.
 */
ONIC_EXPORT const struct onic_presence *onic_peer_presence(onic_peer_t *peer);

/** Does the peer have a server thread that this process can wake, and see whether there is need to?
 * Once there is one it stays until the wire is closed. Opens a file, the first time. The lock must
 * be held. */
ONIC_EXPORT bool onic_peer_can_wake(onic_peer_t *peer);

/** Has the peer's server thread do what there is for the peer to do. A system call; no lock. Only
 *  where onic_peer_can_wake was true. */
ONIC_EXPORT void onic_peer_wake(const onic_peer_t *peer);

/** An MPI thread is in MPI now: marks this process's page, and keeps its server thread from taking
 *  over. Called by every progress of the wire, which is where all waits of MPI come by, and by
 *  waits that do not, on entering, now and then, and on leaving. */
ONIC_EXPORT void onic_wire_mark(void);

#endif
