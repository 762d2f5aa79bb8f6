/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file A row of the transport: one way by which messages reach a process. A peer gets its row at
 *  its first contact. Nothing above the rows knows which they are, but that UCX has what they have
 *  not: rendezvous, puts and gets (ucx/ucx.h). All functions are called with the transport
 *  lock held, if not said otherwise. Not for components. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "common/transport/row/address.h"
#include "common/transport/row/credit.h"
#include "common/transport/row/message_types.h"
#include "common/transport/row/request.h"
#include "common/transport/row/requirements.h"

struct onic_inbox_head;

/** A way by which messages go. */
typedef struct onic_row onic_row_t;

typedef enum onic_cma_state { ONIC_CMA_UNKNOWN, ONIC_CMA_YES, ONIC_CMA_NO } onic_cma_state_t;

/** A process that can be sent to. */
struct onic_peer {
    uint64_t name; /**< job and vpid, see onic_name */
    bool self;     /**< own process */
    bool foreign;  /**< of another job */
    int failed;    /**< OMPI_SUCCESS, or why the connection is lost */
    const char *why;
    const onic_row_t *messages; /**< NULL before the first contact */
    /* What each row keeps for it; NULL: nothing. */
    struct onic_ring_out *ring;
    struct onic_ucx_peer *ucx;
    /* The same node: single copy, presence, waking (shm/neighbour.c). */
    onic_cma_state_t cma;
    bool looked_at; /**< what follows is known */
    bool wakes;     /**< its server thread can be woken */
    struct onic_inbox_head *inbox;
    /* The transport's own. */
    bool introduced;        /**< it knows this process's address, or has been told it */
    bool printed;           /**< a text has said that the connection is lost */
    bool watched;           /**< its death can be seen; see loss.c */
    bool gone;              /**< nothing comes from it nor gets there; see onic_peer_gone */
    atomic_bool died;       /**< it was seen dead; set with the lock held, read without it */
    onic_account_t account; /**< credit, both ways */
    TAILQ_ENTRY(onic_peer) near;
    void *slot[ONIC_AM_COUNT];
    onic_cma_id_t cma_id;
    onic_segment_key_t queues;
    unsigned char address[]; /**< UCX worker address */
};

/** A rendezvous as a handler gets it. */
struct onic_rndv {
    onic_peer_t *from; /**< NULL where that is not known */
    void *desc;        /**< UCX's */
    size_t len;
};

struct onic_row {
    bool joins; /**< what send_now has sent arrives as a header alone */

    /* ---- life ---- */

    /** OMPI_SUCCESS, or an error after a text. MPI thread. */
    int (*start)(const onic_transport_config_t *config);
    /** Frees everything but what peers' records point to. Nothing calls back any more. */
    void (*stop)(void);

    /* ---- peers ---- */

    /** Adds to `mine` what others need to reach this process by this row; valid while the row runs.
     */
    void (*describe)(onic_address_t *mine);

    /** True if messages reach the peer by this row. Asked once; may make what it needs for that. */
    bool (*reaches)(onic_peer_t *peer);
    /** Connects the peer, unless it is connected. OMPI_SUCCESS, or an error with peer->why set;
     *  prints nothing. */
    int (*connect)(onic_peer_t *peer);
    /** Frees what the row keeps in a record that is about to be freed, after `stop`. */
    void (*free_peer)(onic_peer_t *peer);

    /* ---- messages; to a peer that is connected ---- */

    /** Most bytes of header and payload of one message; never becomes less. `wanted`: the caller
     *  would like to send so many. */
    size_t (*message_max)(onic_peer_t *peer, size_t wanted);
    /** As onic_peer_send_now. */
    bool (*send_now)(onic_peer_t *peer, unsigned am_id, const void *header, size_t header_len,
                     const onic_payload_t *payload);
    /** Sends the message that the request describes. 1 where it is complete, 0 where
     *  onic_request_done follows, or an error. */
    int (*send)(onic_request_t *r, const onic_payload_t *payload, unsigned flags);

    /* ---- progress ---- */

    /** Handles messages that have come, and goes on with what was begun; how many events. */
    int (*progress)(void);
    /** Handles messages that have come, and nothing else. */
    int (*poll)(void);
    /** True if a message may have come: a guess. Any thread, no lock. */
    bool (*may_have)(void);
    /** True if something is left to do that no event will announce. */
    bool (*leaves_work)(void);
    /** The server thread is about to sleep, for the `nap`-th time; it makes progress once more
     *  before. 0: it does not sleep any more. False if it must not sleep yet. */
    bool (*arm)(unsigned nap);
    /** The descriptor that becomes readable when something comes, once armed; -1 where it cannot be
     *  had. NULL: there is none. */
    int (*event_fd)(void);
};

/** What rows tell the transport. */
typedef struct onic_row_calls {
    /** A message has come: calls its handler. Without a header all of `data` is the header. `rndv`:
     *  a rendezvous, which the row drops unless the handler takes it. `sender`: where the row keeps
     *  the only process that sends this way, NULL until that has named itself; or NULL, if several
     *  do. */
    void (*arrived)(unsigned am_id, const void *header, size_t header_len, const void *data,
                    size_t len, onic_rndv_t *rndv, onic_peer_t **sender);
    /** The connection is lost. `gone`: nothing comes from there nor gets there any more; else a
     *  message could not be sent, and neither side can go on without it. */
    void (*lost)(onic_peer_t *peer, int rc, const char *why, bool gone);
    /** The process of that name has written what is no message: nothing more is read from it. */
    void (*broken)(uint64_t name);
    /** Something was begun that may have to be continued: the server thread does so if no MPI
     *  thread does. `must_run`: starts the thread if there is none. */
    void (*left)(bool must_run);
} onic_row_calls_t;

/** Set before the first row is started. */
extern onic_row_calls_t onic_row_calls;
