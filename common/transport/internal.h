/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What the files of the transport above its rows share. Not installed, not for components.
 */
#pragma once

#include "opal_config.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "opal/class/opal_hash_table.h"

#include "common/transport/row/row.h"
#include "common/transport/transport.h"

/** Addresses in memory that the node shares; see addresses.c. */
typedef struct onic_table onic_table_t;

/** How the server thread sleeps, or will sleep next. */
enum {
    ONIC_SERVER_LOOKS,  /**< for a time, or not at all */
    ONIC_SERVER_ASLEEP, /**< until a thread that leaves work wakes it */
    ONIC_SERVER_PARKED  /**< in charge: an MPI thread that comes back must wake it, too */
};

/** Most descriptors that it polls. */
#define ONIC_SERVER_FDS 4

typedef struct onic_server {
    atomic_bool running;
    pthread_t thread;
    atomic_bool stop;
    atomic_int want;
    atomic_int sleep;
    unsigned naps; /**< sleeps while it stood in for the MPI threads, ever */
    bool left;     /**< when it was armed something was left that no event will announce */
    bool worked;   /**< in its last slice something came or went on */
    struct pollfd fds[ONIC_SERVER_FDS]; /**< the pipe, and the descriptors of rows */
    nfds_t nfds;
    atomic_uint idle_usec;
    bool failed; /**< it could not be started, and a text has said so; lock held */
} onic_server_t;

/** The rows that there are. */
#define ONIC_ROWS 2

typedef struct onic_transport {
    int refs;
    bool published;          /**< this process's address has been published */
    bool puts;               /**< the rows were started for puts, too */
    uint64_t window;         /**< credit of each process of the job (row/credit.h) */
    bool shares_memory;      /**< the list of transports allows shared memory */
    opal_hash_table_t peers; /**< by onic_name; onic_peer_t */
    atomic_uint losses; /**< connections lost so far, in this transport and before; set with the
                           lock held, read without it */
    atomic_bool job_is_broken;    /**< a process of this job and machine has died */
    TAILQ_HEAD(, onic_peer) near; /**< peers whose death can be seen; the first is looked at next */
    onic_table_t *tables;
    onic_am_fn_t am[ONIC_AM_COUNT];
    _Atomic(onic_work_fn_t) work[ONIC_PLACES][ONIC_AM_COUNT]; /**< no lock to read */
    atomic_uint asked[ONIC_PLACES]; /**< a bit for each component whose function is to be run */
    bool locked_left;               /**< one of ONIC_LOCKED has left something undone */
    unsigned drain; /**< calls of progress left in which messages of lost processes may still come
                     */
    onic_server_t server;
    /** Grows with every sign of life of an MPI thread; alone in its cache line. */
    _Alignas(64) atomic_uint_fast64_t mpi_ticks;
    char pad[64];
} onic_transport_t;

extern onic_transport_t onic_transport;

/* rows.c */
/** All rows, in the order in which they are preferred for messages; NULL ends them. */
extern const onic_row_t *const onic_rows[ONIC_ROWS + 1];

/* state.c */
/** From now on no other thread is inside UCX while a thread forks. False where that cannot be had.
 */
bool onic_transport_guard_fork(void);
/** Ends the server thread's sleep, unless it will look by itself. Any thread. */
void onic_server_wake(void);

/* loss.c; the lock is held */
/** Counts a connection that is lost, or a lost one that was to be used, and has all functions of
 *  ONIC_LOCKED run. */
void onic_transport_count_loss(void);
/** The peer is out of reach for good: requests to it end when the messages that have come are
 *  handled. */
void onic_peer_gone(onic_peer_t *peer);
/** Prints that a connection is lost, once for each. */
void onic_peer_print_lost(onic_peer_t *peer, const char *what, const char *why);
/** As onic_row_calls_t's. */
void onic_peer_on_lost(onic_peer_t *peer, int rc, const char *why, bool gone);
void onic_peer_on_broken(uint64_t name);

/* receive.c; the lock is held */
/** As onic_row_calls_t's. */
void onic_am_arrived(unsigned am_id, const void *header, size_t header_len, const void *data,
                     size_t len, onic_rndv_t *rndv, onic_peer_t **sender);

/* send.c; the lock is held */
/** Connects the peer by that row. OMPI_SUCCESS, or an error: then a text was printed and the loss
 *  counted. */
int onic_peer_reach(onic_peer_t *peer, const onic_row_t *row);
/** As onic_row_calls_t's. */
void onic_send_left(bool must_run);

/* progress.c */
/** True if rows (and, in the second, components) have work left that no event will announce. The
 *  lock is held. */
bool onic_rows_leave_work(void);
bool onic_transport_leaves_work(void);

/* peers.c; the lock is held */
int onic_peers_start(void);
/** The peer of such a record, added if need be. NULL where it is malformed. */
onic_peer_t *onic_learn_peer(const void *bytes, size_t len);
/** True if there is a record of that name, or an address to make one from. */
bool onic_peer_is_known(uint64_t name);
/** From now on addresses are looked up in that table, too: rows of so many bytes, sorted by name.
 *  Takes over the segment. False without memory. Lock not held. */
bool onic_table_add(const onic_segment_t *segment, size_t stride);
/** Frees the records and tables. The rows must be gone: they call back with records as argument. */
void onic_peers_stop(void);

/* addresses.c */
/** Publishes this process's address, unless it has been. MPI thread, the lock is held. */
void onic_address_publish(void);

/* server.c */
/** Starts the thread unless it runs; it takes over after that time. Prints why it cannot be
 *  started. The lock is held. */
void onic_server_start(unsigned idle_usec);
void onic_server_stop(void);

/** This process has left work: its server thread, which may sleep without a timer, is to do it if
 *  no MPI thread does. */
static inline void onic_server_look_after(void)
{
    /* Either it sees what is left, or this thread sees it asleep. */
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load(&onic_transport.server.sleep) != ONIC_SERVER_LOOKS)
        onic_server_wake();
}
