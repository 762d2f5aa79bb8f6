/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The carrier between hosts, where an adapter can put into memory of a peer (A. Denis 2011,
 *  section 4). The receive pool is registered once, and each peer is sent its description once. A
 *  sender packs each chunk into a bounce buffer of its own, registered too, and puts it block by
 *  block (onic_schedule_block). A put asks for buffers by its ticket and packs its first chunk
 *  while the grant is under way; a get has reserved them.
 *
 *  Each block is announced by a message, a word, behind a flush of the connection, while others
 *  follow. (UCX's fence would wait for all that was started.) Words behind the data in the same put
 *  would save that, but adapters write in any order where routing is adaptive, or where they place
 *  data directly, of which UCX makes use without being asked. A sender is over when all that has
 *  left: its process may call nothing more.
 *
 *  Buffers that a peer has when the connection to it is lost stay its own: it may be alive and put
 *  into them later. Nothing of this process can prevent that. UCX says that a connection is lost
 *  before it destroys its queue pairs, and those to processes of the job only with the worker; a
 *  DC target serves all peers; and the key is one for the receive pool. So they are lost until the
 *  pipeline is closed, which takes the registration of the receive pool back. That is never more
 *  than the receive pool. When nothing else is left of it requests are refused, and those that ask
 *  send by message from then on.
 *
 *  All is done with the transport lock: UCX needs it for each chunk. From the bottom to the top:
 *  rma_records.c, rma_peer.c (receive pools, messages), carrier_rma.c (the row). */
#pragma once

#include "common/pipeline/core/pool.h"
#include "common/pipeline/core/rma_handshake.h"
#include "common/pipeline/core/grant_queue.h"
#include "common/pipeline/core/carrier.h"
#include "common/pipeline/core/schedules.h"
#include "common/support/handle.h"
#include "common/transport/put.h"

/** What is known of a peer; the transport lock. */
typedef struct onic_rma_peer {
    struct onic_rma_peer *next;
    onic_peer_t *peer;
    onic_remote_t *remote; /**< its receive pool; NULL: not known yet */
    uint32_t buffer_bytes;
    unsigned nbuffers;
    unsigned requests;  /**< of mine */
    bool asked;         /**< for its receive pool */
    bool refuses;       /**< has no buffers that it could grant, nor will it have */
    onic_asker_t asker; /**< for buffers of mine; lost: that has been seen to */
} onic_rma_peer_t;

typedef enum onic_rma_type {
    ONIC_RMA_RX_POOL = 1, /**< where my receive pool is; its description follows */
    ONIC_RMA_GRANT,       /**< value: buffers for your transfer; 0: there will be none */
    ONIC_RMA_WORD,        /**< value: of a buffer of yours */
    ONIC_RMA_ACK          /**< value: rounds of a buffer that have been consumed */
} onic_rma_type_t;

/** A flag of RX_POOL: send yours. */
#define ONIC_RMA_REPLY 1

/** A message. */
typedef struct onic_rma_message {
    uint8_t type;
    uint8_t flags;
    uint16_t buffer; /**< RX_POOL: how many */
    uint32_t size;   /**< RX_POOL: bytes of a buffer */
    uint64_t to;     /**< a transfer of the process that it goes to */
    uint64_t from;   /**< of the process that it comes from */
    uint64_t value;
} onic_rma_message_t;

/** One side of a transfer. It may outlive that: puts are under way, or the grant has not come. */
typedef struct onic_rma {
    onic_grant_request_t request; /**< while it waits for buffers of mine; must be first */
    onic_rma_peer_t *peer;
    onic_transfer_t *transfer; /**< until that is over */
    uint64_t name;             /**< a handle */
    uint64_t other;            /**< its name at the other side, 0: not known */
    onic_rma_handshake_t handshake;
    unsigned refs;    /**< puts, flushes and messages that have not left */
    uint64_t early;   /**< sender: the last word before it had a lease; 0: none */
    uint64_t bounces; /**< bounce buffers that it has, */
    uint64_t packs;   /**< and that of the chunk that is being packed; 0: none */
} onic_rma_t;

typedef struct onic_rma_state {
    bool open;
    bool all; /**< all peers are put to, for tests: not only those that an adapter reaches */
    /* The receive pool, which others put into, and what this process puts from. */
    onic_pool_t pool;
    char *buffers, *bounce;
    uint32_t buffer_bytes;
    uint64_t me;                     /**< as an owner of buffers */
    onic_schedule_choice_t schedule; /**< of what this process sends */
    onic_region_t *rx_region, *bounce_region;
    onic_grant_queue_t grant_queue; /**< requests for buffers of mine */
    onic_pool_wait_t wait;          /**< all processes of other hosts count as one that waits */
    onic_rma_peer_t *peers;
    unsigned losses; /**< of the transport's, those that have been seen to */
    size_t description_len;
    unsigned char description[8192]; /**< the more adapters there are the longer */
    uint64_t bounce_free;
    /** Something is to be done when the lock is free; read without it. */
    atomic_bool pending;
} onic_rma_state_t;

extern ONIC_EXPORT onic_rma_state_t onic_rma_state;
/** The records, by name. They keep their names' generations when the pipeline is opened again: late
 *  messages are for nobody. Under the transport lock. */
extern ONIC_EXPORT onic_handles_t onic_rma_records;
extern const onic_carrier_t onic_carrier_rma;

/** Registers as many bounce buffers, and the receive pool, all of which has memory: its pool,
 *  buffers and their size, and this process as an owner. Prints nothing: without it nobody is
 *  reached. The transport lock is not held. */
void onic_rma_open(const onic_pool_t *pool, char *buffers, uint32_t buffer_bytes, uint64_t me,
                   const onic_schedule_choice_t *schedule, bool all);
/** When all transfers have been stopped, and the transport calls nothing any more. The transport
 *  lock is not held. */
void onic_rma_close(void);
/** True if nothing waits for onic_rma_progress. */
static inline bool onic_rma_idle(void)
{
    return !atomic_load_explicit(&onic_rma_state.pending, memory_order_relaxed);
}
/** The transport's functions for the pipeline's messages, and behind a progress, and when a
 *  connection is lost. */
void onic_rma_on_message(onic_peer_t *from, const void *header, size_t len, const void *data,
                         size_t data_len, onic_rndv_t *rndv);
int onic_rma_deferred(void);
/** Does what waits for the transport lock; a load where there is nothing. Without it; any thread.
 */
int onic_rma_progress(void);
/** True if there is a record of this peer. With the transport lock. */
bool onic_rma_knows(const onic_peer_t *peer);

/** A buffer of the receive pool. */
static inline char *onic_rma_rx_buffer(unsigned buffer)
{
    return onic_rma_state.buffers + (size_t)buffer * onic_rma_state.buffer_bytes;
}

/* ---- rma_records.c; with the transport lock
 * ------------------------------------------------------- */

/** A new record with a name. NULL: no memory. */
onic_rma_t *onic_rma_new(onic_rma_peer_t *peer, bool sends);
/** Its transfer is over. */
void onic_rma_end(onic_rma_t *r);
/** Frees a record if nothing needs it any more. */
void onic_rma_drop(onic_rma_t *r);
/** Where the sender packs its present chunk; NULL: nowhere now. */
char *onic_rma_bounce(onic_rma_t *r);
/** Sends a message about the transfer; where that cannot be its peer fails. Drops the record if
 *  nothing needs it any more. */
void onic_rma_send(onic_rma_t *r, onic_rma_message_t m);
/** A word of the sender's machine, 0: none yet. Puts what it counts and then sends it. */
void onic_rma_put_word(onic_rma_t *r, unsigned buffer, uint64_t word);
/** Sender that has published all: has that left? Never to a peer that has failed: the transfer
 *  ends when that is lost. */
bool onic_rma_left(const onic_rma_t *r);
/** Up to so many buffers of mine for a record at once; 0 where there are none, or others wait: a
 *  request then has its turn. */
uint64_t onic_rma_reserve(onic_rma_t *r, unsigned buffers);
/** A record is to be granted buffers in its turn. */
void onic_rma_request(onic_rma_t *r, unsigned buffers);
/** Sees to peers that were lost, then grants what can be granted, or refuses where that will never
 *  be. Returns how many. */
int onic_rma_serve(void);
/** A transfer releases buffers of mine that the peer had. */
void onic_rma_released(onic_rma_peer_t *p, uint64_t buffers);

/* ---- rma_peer.c; with the transport lock
 * ---------------------------------------------------------- */

/** A peer's record, or NULL where it is not reached (yet): at first it is asked for its receive
 *  pool. */
onic_rma_peer_t *onic_rma_reach(onic_peer_t *peer);
