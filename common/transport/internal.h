/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What the files of the transport share. Not installed, not for components. */
#pragma once

#include "opal_config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "opal/class/opal_hash_table.h"

#include "common/layout/pack.h"
#include "common/transport/shm/inbox.h"
#include "common/transport/shm/presence.h"
#include "common/transport/address.h"
#include "common/transport/credit.h"
#include "common/transport/ucx.h"
#include "common/transport/transport.h"

/** One more than the highest active-message identifier. */
#define ONIC_AM_COUNT (ONIC_AM_CREDIT + 1)
/** UCX's identifier of messages that tell their sender's address. */
#define ONIC_AM_ADDRESS ONIC_AM_COUNT

/** A queue of another process that this one puts messages into. */
typedef struct onic_queue_out onic_queue_out_t;

typedef enum onic_cma_state { ONIC_CMA_UNKNOWN, ONIC_CMA_YES, ONIC_CMA_NO } onic_cma_state_t;

struct onic_peer {
    uint64_t name;       /**< job and vpid, see onic_name */
    unsigned refs;       /**< given back by onic_peer_give; the record itself stays */
    bool self;           /**< own process: messages go by the loop queue, there is no endpoint */
    bool introduced;     /**< it knows, or has been told, this process's address */
    bool printed;        /**< that the connection is lost */
    ucs_status_t failed; /**< UCS_OK, or why the connection is lost */
    ucp_ep_h ep;         /**< NULL until first use */
    onic_segment_key_t queues;
    bool queue_tried;
    onic_queue_out_t *queue; /**< NULL: messages go by UCX, or nothing was sent yet */
    size_t frag_max;         /**< 0 until known */
    bool rdma;               /**< an adapter puts and gets; known when frag_max is */
    bool copies;            /**< its transport copies what it cannot send at once; known likewise */
    struct onic_send *held; /**< the last message, which UCX has taken but may still hold */
    bool follows;           /**< an empty one goes behind it */
    onic_account_t account; /**< credit, both ways */
    onic_cma_state_t cma;
    onic_cma_id_t cma_id;
    bool presence_tried;
    const onic_presence_t *presence; /**< its signs of life, or NULL */
    bool wake_tried, wakes;          /**< its server thread can be woken */
    bool watched;                    /**< its end can be seen; see loss.c */
    LIST_ENTRY(onic_peer) near;
    atomic_bool died;       /**< it has been; set with the lock held, read without it */
    bool gone;              /**< nothing comes from it nor gets there; see onic_peer_gone */
    onic_peer_t *next_left; /**< see forget.c */
    bool closed;            /**< its endpoint has been, or is being while there is a request */
    void *close;            /**< UCX's */
    void *slot[ONIC_AM_COUNT];
    size_t address_len;
    unsigned char address[]; /**< UCX worker address */
};

/** Headers up to this length are kept in the send record itself. */
#define ONIC_SEND_INLINE_HEADER 320

/** A send or a rendezvous receive in flight: what must outlive the call that started it. */
typedef struct onic_send {
    STAILQ_ENTRY(onic_send) next; /**< in the pool, or among those that are done or wait */
    TAILQ_ENTRY(onic_send) use;   /**< among those in use */
    onic_send_cb_t cb;
    void *arg;
    onic_peer_t *peer;  /**< the other side; NULL where that is not known, or does not matter */
    onic_peer_t *eager; /**< the receiver of a message that was not announced; else NULL */
    unsigned am_id;
    size_t header_len;
    const void *base;     /**< layout payload: base address */
    onic_cursor_t cursor; /**< layout payload: where the gathering stands */
    uint64_t start;       /**< layout payload: packed position of its first byte */
    size_t len;
    bool copied;   /**< UCX may hold it when it says that it is complete */
    bool starting; /**< the call that started it has not returned yet */
    bool done;     /**< completed */
    int status;
    void *header;     /**< header_inline, or header_big */
    void *header_big; /**< kept with the record for its next use */
    size_t header_big_cap;
    unsigned char header_inline[ONIC_SEND_INLINE_HEADER];
} onic_send_t;

typedef STAILQ_HEAD(onic_sends, onic_send) onic_sends_t;

/** A message of this process to itself, which is handled later. */
typedef struct onic_loop_message {
    STAILQ_ENTRY(onic_loop_message) next;
    unsigned am_id;
    size_t header_len;
    size_t len;
    const void *rndv_base; /**< the bytes of a rendezvous, else NULL */
    onic_send_cb_t cb;     /**< of that only */
    void *arg;
    unsigned char *data; /**< in bytes[], behind the header */
    _Alignas(16) unsigned char bytes[];
} onic_loop_message_t;

/** Such in the order in which they came. */
typedef STAILQ_HEAD(onic_loop, onic_loop_message) onic_loop_t;

/** A rendezvous as a handler gets it. */
struct onic_rndv {
    onic_peer_t *from; /**< NULL where that is not known */
    void *desc;        /**< UCX's descriptor; NULL for a message from this process */
    const void *base;  /**< of that one the bytes */
    size_t len;
};

/** Addresses in memory that the node shares; see addresses.c. */
typedef struct onic_table onic_table_t;

struct onic_queue_out {
    onic_outbox_t box;
    onic_peer_t *to;
    onic_sends_t waiting; /**< messages for which there was no room, in order */
    onic_queue_out_t *next;
};

/** How the server thread sleeps, or will next time. */
enum {
    ONIC_SERVER_LOOKS,  /**< by a timer, or not at all */
    ONIC_SERVER_ASLEEP, /**< without a timer: a thread that leaves work must wake it */
    ONIC_SERVER_PARKED  /**< in charge: an MPI thread that comes back must wake it, too */
};

typedef struct onic_server {
    atomic_bool running;
    pthread_t thread;
    atomic_bool stop;
    atomic_int want;
    atomic_int sleep;
    int wake_pipe; /**< a byte in it ends the thread's sleep */
    int worker_fd;
    unsigned naps; /**< how often it has slept while it stood in */
    atomic_uint idle_usec;
} onic_server_t;

typedef struct onic_transport {
    int refs;
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_address_t *address;
    size_t address_len;
    size_t header_max;
    size_t tcp_seg_size;
    size_t shm_seg_size;
    ucp_datatype_t gather_dt;
    atomic_uint neps; /**< endpoints that were made; set with the lock held, read without it */
    bool closing;
    void (*start_server)(void); /**< onic_transport_start_server, for progress */
    atomic_bool no_help;        /**< that has failed, and has been said */
    bool published;             /**< this process's address, under a key of its own */
    bool closes;                /**< endpoints to other jobs can be closed at any time */
    bool puts;                  /**< the context was made for puts, too */
    bool shares_memory;         /**< a list of transports does not leave that out */
    opal_hash_table_t peers;    /**< by onic_name; onic_peer_t */
    unsigned foreign;           /**< of these, those of other jobs */
    onic_peer_t *self;
    atomic_uint losses; /**< connections lost so far, in this wire and before; set with the lock
                           held, read without it */
    atomic_bool job_is_broken;   /**< a process of this job and machine has died */
    LIST_HEAD(, onic_peer) near; /**< those whose end can be seen */
    onic_peer_t *look_next;      /**< the one to be looked at next; NULL: the first */
    onic_cma_id_t cma_id;
    uint64_t nonce;
    uint32_t job; /**< this process's */
    onic_table_t *tables;
    onic_transport_fns_t fns[ONIC_AM_COUNT];
    onic_loop_t loop;     /**< to this process */
    atomic_uint deferred; /**< a bit for each component whose function is to run */
    bool deferred_left;   /**< one of them still has work that it could not do */
    _Atomic(onic_transport_mpi_fn_t) mpi_fn[ONIC_AM_COUNT]; /**< of `fns`, read without the lock */
    atomic_uint mpi_kicks; /**< a bit for each component whose function is to run */
    _Atomic(onic_transport_unlocked_fn_t) unlocked_fn[ONIC_AM_COUNT]; /**< likewise */
    atomic_bool unlocked_left; /**< one of those has left something undone */
    onic_sends_t send_pool;
    TAILQ_HEAD(, onic_send) sends_used;
    unsigned drain;        /**< most progresses until nothing comes of processes that are gone */
    atomic_uint sends_out; /**< records in use; set with the lock held, read without it */
    onic_sends_t done;     /**< complete, the callers not told yet */
    void *flush;           /**< UCX's, of all transports; NULL: none is under way */
    onic_server_t server;
    /** Grows with every sign of life of an MPI thread; alone in its cache line. */
    _Alignas(64) atomic_uint_fast64_t mpi_ticks;
    char pad[64];
} onic_transport_t;

extern onic_transport_t onic_transport;

/* state.c */
/** An error of UCX as one of Open MPI. */
int onic_ucs_error(ucs_status_t status);
/** From now on no other thread is inside UCX when one forks. False where that cannot be. */
bool onic_transport_guard_fork(void);
/** Ends the server thread's sleep, unless it will look by itself. Any thread. */
void onic_server_wake(void);

/* loss.c; the lock is held */
/** A connection is lost, or a lost one is to be used: counts it, and all deferred functions run. */
void onic_transport_count_loss(void);
/** A peer is out of reach for good: what is under way ends when what has come is handled. */
void onic_peer_gone(onic_peer_t *peer);
/** Prints that a connection is lost, once for each. */
void onic_peer_print_lost(onic_peer_t *peer, const char *what, const char *why);

/* receive.c; the lock is held */
int onic_am_start(void);
/** A message came: calls its handler. `desc` is UCX's
 * descriptor of a rendezvous, else NULL. */
void onic_am_arrived(unsigned am_id, const void *header, size_t header_len, const void *data,
                     size_t len, void *desc);
/** As onic_peer_send, to this process. */
int onic_loop_send(unsigned am_id, const void *header, size_t header_len,
                   const onic_payload_t *payload, unsigned flags, onic_send_cb_t cb, void *arg);
/** Handles what this process has sent to itself. */
int onic_loop_progress(void);
/** Frees what has not been handled; UCX is still there. */
void onic_loop_stop(void);

/* record.c; the lock is held */
int onic_sends_start(void);
void onic_sends_stop(void);
/** The queues of processes that are gone are empty: what is under way with them ends. */
void onic_sends_abandon(void);
/** Does a send or a receive that is under way name the peer? */
bool onic_sends_name(const onic_peer_t *peer);
/** A record with memory for a header of that length; NULL where memory is exhausted. */
onic_send_t *onic_send_get(onic_send_cb_t cb, void *arg, size_t header_len);
/** Gives it back. */
void onic_send_put(onic_send_t *s);
/** What UCX's answer to a start means: 1 where it is complete, 0 where the callback comes later, or
 * an error. The record is the caller's where it is not 0. */
int onic_send_started(onic_send_t *s, ucs_status_ptr_t answer);
/** The same, which gives the record back where it is not needed. */
int onic_send_begun(onic_send_t *s, ucs_status_ptr_t answer);
/** UCX's callback of what was started with a record. */
void onic_send_sent(void *request, ucs_status_t status, void *record);
/** UCX says that a send or a receive is complete. */
void onic_send_finish(onic_send_t *s, ucs_status_t status);
/** Calls back for a send that is over, and gives the record back. */
void onic_send_end(onic_send_t *s, int rc);
/** UCX has taken a message. False where it may still hold it: the callback comes later. */
bool onic_send_has_left(onic_send_t *s);
/** UCX holds nothing of what it has taken. */
bool onic_transport_is_flushed(void);
/** Calls back for what is complete. */
int onic_done_progress(void);

/* queues.c; the lock is held */
/** Handles what has come through queues. */
int onic_queues_receive(void);
/** May there be a queue to that peer? */
bool onic_queue_can_open(const onic_peer_t *to);
/** Opens it, or finds that messages go by UCX. Some system calls. */
void onic_queue_open(onic_peer_t *to);
/** Sends a message if there is room for it, and nothing waits. */
static inline bool onic_queue_put(onic_queue_out_t *out, unsigned am_id, const void *header,
                                  size_t header_len, const onic_payload_t *payload)
{
    return STAILQ_EMPTY(&out->waiting) &&
           onic_outbox_put(&out->box, (uint8_t)am_id, header, header_len, payload,
                           am_id == ONIC_AM_OSC);
}
/** Has a message wait for room: the record describes it. */
void onic_queue_wait(onic_queue_out_t *out, onic_send_t *s);
/** Sends what has waited for room. */
int onic_queues_send(void);
bool onic_queues_have_waiting(void);
/** Is work of this process left that no event will announce? */
static inline bool onic_transport_leaves_work(void)
{
    return onic_transport.deferred_left || onic_queues_have_waiting();
}
void onic_queues_out_stop(void);

/* progress.c; the lock is not held */
/** Runs what follows a progress without the lock. As onic_transport_unlocked_fn_t. */
int onic_transport_run_unlocked(void);

/* endpoints.c; the lock is held */
/** The endpoint of a peer, made if need be; NULL (and *rc_p) where it cannot be had. */
ucp_ep_h onic_peer_ep(onic_peer_t *peer, int *rc_p);
/** Makes it, and prints nothing. */
ucs_status_t onic_make_ep(onic_peer_t *peer);

/* peers.c; the lock is held */
int onic_peers_start(void);
/** The peer of such a record, added if need be. NULL where it is malformed. */
onic_peer_t *onic_learn_peer(const void *bytes, size_t len);
/** Is there a record of that name, or an address of which one can be made? */
bool onic_peer_is_known(uint64_t name);
/** Takes out a process of another job; the record is the caller's. */
void onic_peer_remove(onic_peer_t *peer);
/** Addresses are found in that table now; the segment is the transport's. False: no memory. No
 * lock. */
bool onic_table_add(const onic_segment_t *segment);
/** Frees the records and tables. UCX must be gone: it calls back with records as argument. */
void onic_peers_stop(void);

/* addresses.c */
/** Publishes this process's address, unless it has been. MPI thread, the lock is held. */
void onic_address_publish(void);

/* put.c */
/** UCX's keys are given back. The worker is still there, and nothing is under way any more. */
void onic_remotes_stop(void);
/** Registered memory is given back. The worker is gone, the context is not. */
void onic_regions_stop(void);

/* server.c */
/** Starts the thread, unless it runs; it takes over after that time. Prints why it cannot. */
void onic_server_start(unsigned idle_usec);
void onic_server_stop(void);

/** This process has started something that it may have to go on with: its server thread, which may
 *  sleep without a timer, is to look after it if no MPI thread does. */
static inline void onic_server_look_after(void)
{
    /* Either it sees what is left, or this thread sees it asleep. */
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load(&onic_transport.server.sleep) != ONIC_SERVER_LOOKS)
        onic_server_wake();
}

/* config.c */
/** Reads UCX's configuration from the environment and applies ours where the user says nothing. */
ucs_status_t onic_transport_read_config(const onic_transport_config_t *config,
                                        ucp_config_t **ucp_config_p);
/** The configured transports as in UCX_TLS: the parameter's or the environment's; NULL for all. */
const char *onic_transport_tls(const onic_transport_config_t *config);

/** Has the user set a variable of this form, such as "UCX_MEM_*"? */
bool onic_user_says(const char *form);
/** Most bytes of one fragment over a UCX transport; "" where it is not known. */
size_t onic_transport_frag_max(const char *transport);

/* forget.c */
/** The worker is gone: frees what is left. */
void onic_forget_stop(void);

/* neighbour.c */
/** Fills in our own identity. */
void onic_cma_start(onic_cma_id_t *id, uint64_t *nonce);
/** Lets the processes of this node copy from and to our memory. */
void onic_cma_allow(void);
/** Are they on one node, where process ids mean the same to both? */
bool onic_same_place(const onic_cma_id_t *a, const onic_cma_id_t *b);

/** Finds the peer's pipe, if this process may: then it can wake the peer's server thread, where
 *  there is one, and see whether there is need to. The lock is held, as for the next. */
bool onic_peer_has_pipe(onic_peer_t *peer);
/** Gives back what onic_peer_presence has mapped. */
void onic_peer_close_files(onic_peer_t *peer);
