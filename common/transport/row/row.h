/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file A row of the transport: one way to reach a process, with messages, with data, or with
 *  both. A peer has its row for messages from its first contact, and one for data; nothing above
 *  the rows knows which. All functions are called with the transport lock held, if not said
 *  otherwise. Not for components. */
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

struct onic_presence;

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
    bool presence_tried;
    bool wake_tried, wakes; /**< its server thread can be woken */
    const struct onic_presence *presence;
    /* The transport's own. */
    bool introduced;  /**< it knows, or has been told, this process's address */
    bool printed;     /**< that the connection is lost */
    bool watched;     /**< its end can be seen; see loss.c */
    bool gone;        /**< nothing comes from it nor gets there; see onic_peer_gone */
    atomic_bool died; /**< it has been seen to have; set with the lock held, read without it */
    unsigned refs;    /**< given back by onic_peer_give; the record itself stays */
    onic_account_t account; /**< credit, both ways */
    LIST_ENTRY(onic_peer) near;
    onic_peer_t *next_left; /**< see forget.c */
    void *slot[ONIC_AM_COUNT];
    onic_cma_id_t cma_id;
    onic_segment_key_t queues;
    size_t address_len;
    unsigned char address[]; /**< UCX worker address */
};

/** A rendezvous as a handler gets it. */
struct onic_rndv {
    onic_peer_t *from; /**< NULL where that is not known */
    const onic_row_t *row;
    void *desc; /**< the row's */
    size_t len;
};

/** Registered memory of this process, as far as all rows have it: a row's own type begins with it.
 */
typedef struct onic_region {
    const onic_row_t *row;
    void *base;
    size_t size;
    bool left; /**< peers may still put into it: it is freed with the transport */
} onic_region_t;

/** That of a peer, likewise. */
typedef struct onic_remote {
    const onic_row_t *row;
    onic_peer_t *peer;
    uint64_t base;
    uint64_t size;
} onic_remote_t;

struct onic_row {
    const char *name;
    bool rendezvous; /**< it takes messages with ONIC_SEND_RNDV */
    bool joins;      /**< what send_now has sent arrives as one header */

    /* ---- life ---- */

    /** Loads, for good, what the row needs of libraries. `opening`: see onic_transport_load.
     *  OMPI_SUCCESS, or an error after a text. Lock not held. NULL: it needs nothing. */
    int (*load)(bool opening);

    /** OMPI_SUCCESS, or an error after a text. MPI thread. */
    int (*start)(const onic_transport_config_t *config);
    /** Frees all but what peers' records point to: nothing calls back any more. */
    void (*stop)(void);

    /* ---- peers ---- */

    /** Adds what others need to reach this process this way, while the row runs: not copied. NULL:
     *  nothing. */
    void (*describe)(onic_address_t *mine);

    /** Do messages reach the peer this way? Asked once; makes what it needs for that, or tries when
     *  it is connected. */
    bool (*reaches)(onic_peer_t *peer);
    /** Makes the connection if there is none. OMPI_SUCCESS, or an error with peer->why set; prints
     *  nothing. */
    int (*connect)(onic_peer_t *peer);
    /** The connection is not needed any more. True where it is closed: asked again until then. */
    bool (*disconnect)(onic_peer_t *peer);
    /** The record is about to be freed, after that or after `stop`. */
    void (*free_peer)(onic_peer_t *peer);

    /* ---- messages; to a peer that is connected ---- */

    /** Most bytes of header and payload of one message; never becomes less. `wanted`: a message of
     *  so many bytes is to be sent, if that can be. */
    size_t (*message_max)(onic_peer_t *peer, size_t wanted);
    /** As onic_peer_send_now. */
    onic_sent_t (*send_now)(onic_peer_t *peer, unsigned am_id, const void *header,
                            size_t header_len, const onic_payload_t *payload);
    /** Sends the message that the request describes. 1 where it is complete, 0 where
     *  onic_request_done follows, or an error. */
    int (*send)(onic_request_t *r, const onic_payload_t *payload, unsigned flags);
    /** Has a message left this process that was sent or has been completed? False: the row keeps
     *  the request, and completes it. NULL: always. */
    bool (*has_left)(onic_request_t *r);
    /** Receives a rendezvous; as `send`. */
    int (*receive)(onic_request_t *r, const onic_rndv_t *rndv, void *buffer);

    /* ---- progress ---- */

    /** Handles messages that have come, and goes on with what was begun; how many events. */
    int (*progress)(void);
    /** Handles messages that have come, and nothing else. NULL: none come this way. */
    int (*poll)(void);
    /** May a message have come? A guess; any thread, no lock. */
    bool (*may_have)(void);
    /** Is something left that no event will announce? NULL: never. */
    bool (*leaves_work)(void);
    /** The server thread sleeps from now on, for the `nap`-th time; 0: no longer. False where it
     *  must not yet. After that it looks once more. NULL: nothing that comes this way wakes it. */
    bool (*arm)(unsigned nap);
    /** What becomes readable when something comes, once armed; -1 where nothing does; NULL
     * likewise.
     */
    int (*event_fd)(void);
    /** Some call has waited for milliseconds: says what would have it wait for ever. NULL. */
    void (*look)(void);

    /* ---- data; NULL where the row has none ---- */

    /** Largest header of a message of any row. */
    size_t (*header_max)(void);
    /** Registers memory; where `base` is NULL allocates it, zeroed. NULL where it cannot. */
    onic_region_t *(*map)(void *base, size_t bytes);
    /** Also after `stop`. */
    void (*unmap)(onic_region_t *region);
    /** What a peer needs to reach the region: bytes written; 0: `cap` is too small. */
    size_t (*pack)(const onic_region_t *region, void *bytes, size_t cap);
    /** Opens the region of a peer that is connected by that; NULL and an error. */
    onic_remote_t *(*open)(onic_peer_t *peer, const void *key, size_t len, int *rc_p);
    /** Also after `stop`. */
    void (*close)(onic_remote_t *remote);
    /** Start a transfer of `len` bytes from or to the address `there` of the peer. As `send`. */
    int (*put)(onic_request_t *r, onic_remote_t *remote, uint64_t there, const void *data,
               size_t len, const onic_region_t *from);
    int (*get)(onic_request_t *r, onic_remote_t *remote, uint64_t there, void *data, size_t len);
    /** Complete when all that was sent and put to the peer is there. As `send`. */
    int (*flush)(onic_request_t *r);
    /** Does an adapter move the data, so that the peer's processor takes no part? False where it is
     *  not connected. */
    bool (*by_rdma)(onic_peer_t *peer);
};

/** What rows tell the transport. */
typedef struct onic_row_calls {
    /** A message came: its handler is called. Where there is no header it is all of `data`. `rndv`:
     *  a rendezvous, which the row drops unless it has been taken. */
    void (*arrived)(unsigned am_id, const void *header, size_t header_len, const void *data,
                    size_t len, onic_rndv_t *rndv);
    /** The connection is lost. `gone`: nothing more comes or gets there; else a message could not
     * be sent, and neither side can go on without it. */
    void (*lost)(onic_peer_t *peer, int rc, const char *why, bool gone);
    /** What the process of that name has written makes no sense: nothing more is read from it. */
    void (*broken)(uint64_t name);
    /** Something was begun that may have to be gone on with: the server thread looks after it, if
     *  no MPI thread does. `must_run`: it is started where there is none. */
    void (*left)(bool must_run);
} onic_row_calls_t;

/** Set before the first row is started. */
extern onic_row_calls_t onic_row_calls;
