/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The carrier between hosts, for peers into whose memory an adapter can put (A. Denis 2011,
 *  section 4). The receive pool is registered once, and each peer is sent its description once. A
 *  sender packs each chunk into a bounce buffer of its own, registered too, and puts it block by
 *  block (onic_schedule_block). A put requests buffers by its ticket and packs its first chunk
 *  while it waits for the grant; a get has reserved buffers.
 *
 *  Each block is announced by a message, a word, after a flush of the connection, while later
 * blocks follow. (UCX's fence would wait for everything started.) A word after the data in the same
 *  put would save the message, but adapters write in any order if routing is adaptive or if they
 *  place data directly, which UCX uses without being asked. A sender is over when all of that has
 *  left, since its process may make no more calls.
 *
 *  A peer keeps its buffers when the connection to it is lost: it may be alive and put into them
 *  later, and this process cannot prevent that. UCX reports the loss before it destroys the
 * connection's queue pairs (those to processes of the job only with the worker); a DC target serves
 *  all peers; and there is one key for the whole receive pool. So the buffers are lost until the
 *  pipeline is closed, which deregisters the receive pool. When no other buffers are left, requests
 *  are refused, and the requesters send by message from then on.
 *
 *  Everything is done with the transport lock held, since UCX needs it for each chunk. Files from
 *  bottom to top: rma_records.c, rma_peer.c (receive pools, messages), carrier_rma.c (the row). */
#pragma once

#include "common/pipeline/core/pool.h"
#include "common/pipeline/core/rma_handshake.h"
#include "common/pipeline/core/grant_queue.h"
#include "common/pipeline/core/carrier.h"
#include "common/pipeline/core/schedules.h"
#include "common/support/handle.h"
#include "common/transport/put.h"

/** The state of a peer; protected by the transport lock. */
typedef struct onic_rma_peer {
    struct onic_rma_peer *next;
    onic_peer_t *peer;
    onic_remote_t *remote; /**< its receive pool; NULL: not known yet */
    uint32_t buffer_bytes;
    unsigned nbuffers;
    unsigned requests;  /**< my waiting requests */
    bool asked;         /**< it was asked for its receive pool */
    bool refuses;       /**< it has no buffers to grant, and never will */
    onic_asker_t asker; /**< as a process that asks for my buffers; lost: this has been handled */
} onic_rma_peer_t;

typedef enum onic_rma_type {
    ONIC_RMA_RX_POOL = 1, /**< my receive pool; its description follows */
    ONIC_RMA_GRANT,       /**< value: buffers granted to your transfer; 0: there will be none */
    ONIC_RMA_WORD,        /**< value: the word of a buffer of yours */
    ONIC_RMA_ACK          /**< value: rounds of a buffer that were consumed */
} onic_rma_type_t;

/** Flag of RX_POOL: send yours in reply. */
#define ONIC_RMA_REPLY 1

/** A message. */
typedef struct onic_rma_message {
    uint8_t type;
    uint8_t flags;
    uint16_t buffer; /**< RX_POOL: number of buffers */
    uint32_t size;   /**< RX_POOL: bytes of a buffer */
    uint64_t to;     /**< name of the receiver's transfer */
    uint64_t from;   /**< name of the sender's transfer */
    uint64_t value;
} onic_rma_message_t;

/** One side of a transfer. It may outlive the transfer, while puts are in flight or the grant has
 *  not come. */
typedef struct onic_rma {
    onic_grant_request_t request; /**< while it waits for my buffers; must be first */
    onic_rma_peer_t *peer;
    onic_transfer_t *transfer; /**< the transfer, until it is over */
    uint64_t name;             /**< a handle */
    uint64_t other;            /**< its name at the other side; 0: not known */
    onic_rma_handshake_t handshake;
    unsigned refs;    /**< puts, flushes and messages that have not left */
    uint64_t early;   /**< sender: the last word made before it had a lease; 0: none */
    uint64_t bounces; /**< mask of its bounce buffers */
    uint64_t packs;   /**< mask of the bounce buffer being packed; 0: none */
} onic_rma_t;

typedef struct onic_rma_state {
    bool open;
    bool all; /**< for tests: puts are used for all peers, not only those that an adapter reaches */
    /* The receive pool, into which others put, and the bounce buffers. */
    onic_pool_t pool;
    char *buffers, *bounce;
    uint32_t buffer_bytes;
    onic_schedule_choice_t schedule; /**< of what this process sends */
    onic_region_t *rx_region, *bounce_region;
    onic_grant_queue_t grant_queue; /**< requests for my buffers */
    onic_rma_peer_t *peers;
    unsigned losses; /**< the transport's lost connections that were handled */
    size_t description_len;
    unsigned char description[8192]; /**< its length grows with the number of adapters */
    uint64_t bounce_free;
} onic_rma_state_t;

extern ONIC_EXPORT onic_rma_state_t onic_rma_state;
/** The records, by name. When the pipeline is reopened, the generations of names continue, so that
 *  late messages find no record. Protected by the transport lock. */
extern ONIC_EXPORT onic_handles_t onic_rma_records;
extern const onic_carrier_t onic_carrier_rma;

/** Registers the receive pool, all of which must have memory, and as many bounce buffers: gets the
 *  pool, its buffers and their size. Prints nothing; if it fails no peer is reached. Called without
 *  the transport lock. */
void onic_rma_open(const onic_pool_t *pool, char *buffers, uint32_t buffer_bytes,
                   const onic_schedule_choice_t *schedule, bool all);
/** Called after all transfers have been stopped, when the transport makes no more callbacks. Called
 *  without the transport lock. */
void onic_rma_close(void);
/** Called by the transport, for the pipeline's messages. */
void onic_rma_on_message(onic_peer_t *from, const void *header, size_t len, const void *data,
                         size_t data_len, onic_rndv_t *rndv);

/** The address of a buffer of the receive pool. */
static inline char *onic_rma_rx_buffer(unsigned buffer)
{
    return onic_rma_state.buffers + (size_t)buffer * onic_rma_state.buffer_bytes;
}

/* ---- rma_records.c; with the transport lock
 * ------------------------------------------------------- */

/** Makes a record with a name for a transfer. NULL if memory is exhausted. */
onic_rma_t *onic_rma_new(onic_rma_peer_t *peer, onic_transfer_t *t);
/** The record's transfer is over. */
void onic_rma_end(onic_rma_t *r);
/** Frees the record if nothing needs it any more. */
void onic_rma_drop(onic_rma_t *r);
/** Where the sender packs its present chunk; NULL: no bounce buffer is free now. */
char *onic_rma_bounce(onic_rma_t *r);
/** Sends a message about the transfer; if that fails the peer has failed. Drops the record if
 *  nothing needs it any more. */
void onic_rma_send(onic_rma_t *r, onic_rma_message_t m);
/** Handles a word of the sender's machine (0: none yet): puts the bytes that it counts, and then
 *  sends it. */
void onic_rma_put_word(onic_rma_t *r, unsigned buffer, uint64_t word);
/** For a sender that has published everything: true if it is over. It is not before the grant, nor
 *  while puts, flushes or messages are under way, because the receiver would then wait for the
 *  sender's next progress; nor if the peer has failed: the transfer ends when the peer is lost. */
bool onic_rma_left(const onic_rma_t *r);
/** Takes up to this many of my buffers for a record at once; 0 if there are none, or others wait:
 *  then make a request. */
uint64_t onic_rma_reserve(onic_rma_t *r, unsigned buffers);
/** Queues a request of the record for buffers. */
void onic_rma_request(onic_rma_t *r, unsigned buffers);
/** Handles peers that were lost, then grants what can be granted, or refuses requests that never
 *  can be. Returns how many; others may be left in the queue. */
int onic_rma_serve(void);
/** A transfer releases buffers of mine that the peer had. */
void onic_rma_released(onic_rma_peer_t *p, uint64_t buffers);

/* ---- rma_peer.c; with the transport lock
 * ---------------------------------------------------------- */

/** A peer's record, or NULL if it is not reached (yet). At first the peer is asked for its receive
 *  pool. */
void *onic_rma_reach(onic_peer_t *peer);
