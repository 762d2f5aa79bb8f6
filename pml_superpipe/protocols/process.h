/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The state of pml_superpipe in this process: peers, communicators, requests.
 *
 * One lock protects all of it: the wire's, which is held anyway where a message is sent or comes.
 * Functions named ..._locked are called with it held, by any thread, handlers included; all others
 * without it, by MPI threads. Objects of Open MPI are touched by MPI threads only: what a handler
 * has completed is queued (done), and told to Open MPI by the next MPI thread that makes progress;
 * or at once, where this is the only one.
 */
#ifndef SUPERPIPE_PROCESS_H
#define SUPERPIPE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/ompi_compat.h"

#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/request/request.h"
#include ONIC_MUTEX_HEADER

#include "common/layout/flatten.h"
#include "common/model/link.h"
#include "common/mover/mover.h"
#include "common/support/handle.h"
#include "common/wire/wire.h"
#include "pml_superpipe/matching/backlog.h"
#include "pml_superpipe/matching/comms.h"
#include "pml_superpipe/matching/credit.h"
#include "pml_superpipe/matching/header.h"
#include "pml_superpipe/protocols/choice.h"
#include "pml_superpipe/protocols/reuse.h"
#include "pml_superpipe/protocols/transfer.h"

#define SUPERPIPE_HELP_FILE "help-pml-superpipe.txt"

typedef struct superpipe_request superpipe_request_t;
typedef struct superpipe_early superpipe_early_t;

/* Who completes a request and who waits for it are ordered by Open MPI, which ThreadSanitizer does
 * not see: it is told. */
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#define SUPERPIPE_HANDS_ON(r) __tsan_release(r)
#define SUPERPIPE_TAKES_UP(r) __tsan_acquire(r)
#else
#define SUPERPIPE_HANDS_ON(r) (void)(r)
#define SUPERPIPE_TAKES_UP(r) (void)(r)
#endif

/** What long messages of a process, or of all on other nodes, have taken; pick.c. */
typedef struct superpipe_learned {
    onic_learn_t learn;
    unsigned under_way; /**< of these messages */
    /** The one whose time is taken, NULL where there is none; and what is known of it. */
    superpipe_request_t *observed;
    onic_learn_cell_t *cell;
    superpipe_protocol_t protocol;
    uint64_t bytes;
    uint64_t begun; /**< nanoseconds */
} superpipe_learned_t;

/** A process that is sent to or received from. */
typedef struct superpipe_peer {
    struct superpipe_peer *next; /**< of all */
    onic_peer_t *wire;
    superpipe_credit_t credit;         /**< what may be sent to it */
    superpipe_backlog_t backlog;       /**< what may not */
    superpipe_sender_t sender;         /**< what it may send */
    uint64_t told;                     /**< the limit that it was told */
    superpipe_heard_t heard;           /**< of its backlog */
    struct superpipe_peer *next_heard; /**< of those that may have one */
    uint32_t number;                   /**< what it calls itself in FEW messages to this process */
    uint32_t me;                       /**< and this process in those to it; 0: not known yet */
    superpipe_request_t *open;         /**< transfers under way to and from it */
    superpipe_early_t *early;     /**< of messages from it whose first bytes are on their way */
    size_t fragment;              /**< most bytes of data in one message; 0: not known yet */
    superpipe_learned_t *learned; /**< from messages of it; NULL: nothing yet */
    bool self;
    bool has_heard; /**< it is among those that may have a backlog */
    bool left;      /**< it receives nothing more */
    bool lost;      /**< all that waited for it has been ended */
} superpipe_peer_t;

/** What Open MPI's communicators have here (c_pml_comm). */
typedef struct superpipe_channel {
    superpipe_comm_t match; /**< the first member */
    ompi_communicator_t *comm;
    superpipe_peer_t **peer; /**< by rank; NULL: it was not looked up yet */
    unsigned losses;         /**< of its processes; lock */
    bool foreign;            /**< processes of other jobs are in it */
} superpipe_channel_t;

/** What every message uses stands together: programs have many requests, and caches are short. */
struct superpipe_request {
    ompi_request_t super;
    /** Whoever has it: its user until he has freed it, and whoever completes it. */
    ONIC_COUNT32 refs;
    bool sends;
    bool internal;  /**< it has no user: the data of a send that is complete for him */
    bool open;      /**< it is among those of the peer */
    bool cancelled; /**< MPI_Cancel has taken it back */
    int error;      /**< OMPI_SUCCESS or MPI's class of an error */
    bool in_buffer; /**< `bounce` is in the buffer that MPI_Buffer_attach gave */
    void *bounce;   /**< internal: a copy of the data */

    /* the call */
    ompi_communicator_t *comm;
    ompi_datatype_t *datatype;
    void *buffer;
    size_t count;
    int rank, tag; /**< as given */
    mca_pml_base_send_mode_t mode;

    /* the transfer */
    superpipe_request_t *next, *prev; /**< of those with the peer, or of those that are done */
    superpipe_peer_t *peer;           /**< NULL: a receive that has no message yet */
    union {
        superpipe_receive_t receive;
        superpipe_kept_t kept; /**< a send: while there is no credit for it */
    };
    char *base;                     /**< what the layout counts from */
    superpipe_transfer_t state;     /**< by the rules */
    uint64_t handle;                /**< names it for the peer; 0: none */
    uint64_t theirs;                /**< the peer's handle */
    uint64_t address;               /**< receiver: where the data lies there, for single copy */
    onic_transfer_t *move;          /**< receiver: while the mover has it */
    superpipe_early_t *early;       /**< receiver: while its first bytes are on their way */
    superpipe_request_t *next_turn; /**< of those with fragments to send, or to be copied */
    superpipe_learned_t *learned;   /**< receiver: it counts among those under way there */
    bool placing;                   /**< the cursor stands where the last data ended */
    onic_layout_t layout;
    onic_cursor_t cursor; /**< where the next data belongs */
};

OBJ_CLASS_DECLARATION(superpipe_request_t);

typedef struct superpipe_params {
    int protocol;    /**< superpipe_protocol_t */
    size_t early;    /**< most bytes of a longer one that are sent before they are asked for */
    size_t eager;    /**< most bytes of a short message; less where a fragment holds less */
    size_t memory;   /**< bytes of the pool of credit */
    size_t buffered; /**< bytes that sends without credit may copy */
    size_t area;     /**< of the mover, */
    size_t slot;     /**< and of a slot of it; 0: derived */
    size_t queues;   /**< bytes of the queues from processes of the node */
    size_t tcp_segment;
    bool single_copy;
    bool network_slots;
    bool show_plan;
    char *tls; /**< or NULL */
} superpipe_params_t;

typedef struct superpipe_counters {
    unsigned long long messages[SUPERPIPE_PROTOCOLS]; /**< received */
    unsigned long long bytes[SUPERPIPE_PROTOCOLS];
    unsigned long long announced;        /**< sends that waited to be asked for */
    unsigned long long no_credit;        /**< of those: short ones */
    unsigned long long kept;             /**< sends whose header waited, too */
    unsigned long long unexpected;       /**< messages that came before their receive */
    unsigned long long unexpected_bytes; /**< the most that they took up */
    unsigned long long unpaid;           /**< headers that were called for without credit */
    unsigned long long fallbacks;        /**< transfers that were begun again in another way */
    unsigned long long reuse_hits;       /**< buffers of long messages that had come back */
    unsigned long long reuse_misses;     /**< and that had not */
} superpipe_counters_t;

extern superpipe_counters_t superpipe_counters;

typedef struct superpipe_process {
    superpipe_params_t params;
    bool open; /**< wire and mover are */
    bool plan_shown;
    superpipe_comms_t comms;
    superpipe_peer_t *peers;
    superpipe_peer_t *heard;     /**< by `next_heard`: may have a backlog for this process */
    superpipe_peer_t **numbered; /**< peers by number - 1; NULL: nobody has that number any more */
    uint32_t npeers;             /**< numbers that were given out */
    uint32_t nfree;              /**< of these, those that nobody has any more */
    bool retired;                /**< one of them may come in a message: none is given out again */
    superpipe_pool_t pool;
    onic_handles_t handles;
    superpipe_request_t *done_head, **done_tail; /**< by `next`: to be completed */
    superpipe_request_t *copy_head,
        **copy_tail;             /**< by `next_turn`: to be fetched by single copy */
    superpipe_request_t *stream; /**< by `next_turn`: have fragments to send */
    uint32_t taken;              /**< messages that MPI_Recv has taken out of queues */
    uint64_t waiting_bytes;      /**< that unexpected messages take up */
    uint64_t buffered;           /**< bytes in copies of sends */
    uint32_t backlogs;           /**< of this process, that are not empty */
    uint32_t copies;             /**< sends without a user that are not over */
    bool helped;                 /**< there were some: the server thread was asked for */
    ONIC_COUNT32 active;         /**< requests that are not complete: somebody may wait */
    unsigned losses;             /**< that were looked at */
    superpipe_reuse_t reuse;
    superpipe_learned_t network; /**< from messages of all peers on other nodes */
    onic_links_t links;
    opal_free_list_t requests;
} superpipe_process_t;

extern superpipe_process_t superpipe;

/* ---- peer.c ---------------------------------------------------------------------------------- */

/** What this process has of a peer; made where there is nothing yet. NULL where memory is
 *  exhausted. */
superpipe_peer_t *superpipe_peer_locked(onic_peer_t *wire);

/** Looks up the peer of a rank of a communicator: of its remote group where it has one. An MPI
 *  thread, lock not held. NULL and an error code. */
superpipe_peer_t *superpipe_peer_find(ompi_communicator_t *comm, int rank, int *rc_p);

/** The same; it is known mostly. */
static inline superpipe_peer_t *superpipe_peer_of(ompi_communicator_t *comm, int rank, int *rc_p)
{
    superpipe_peer_t *p =
        __atomic_load_n(&((superpipe_channel_t *)comm->c_pml_comm)->peer[rank], __ATOMIC_ACQUIRE);

    return p != NULL ? p : superpipe_peer_find(comm, rank, rc_p);
}

/** Tells a peer what it may send, if that has grown. */
void superpipe_tell_limit_locked(superpipe_peer_t *p);

/** What the peer has sent by credit is gone. */
void superpipe_freed_locked(superpipe_peer_t *p, uint64_t bytes);

/** It lacks credit for a message of that cost. */
void superpipe_asked_locked(superpipe_peer_t *p, uint64_t bytes);

/** A receive was posted or a probe has found nothing: calls for what may be kept for this process
 *  elsewhere. `source`: a rank or SUPERPIPE_ANY_SOURCE. */
void superpipe_want_locked(superpipe_channel_t *c, int32_t source, int32_t tag, bool probe);

/** The peer has kept a message, or keeps none any more. */
void superpipe_on_kept_locked(superpipe_peer_t *p, const superpipe_incoming_t *in);
void superpipe_on_gone_locked(superpipe_peer_t *p, const superpipe_incoming_t *in);

/** The peer has sent what nobody sends, or memory is exhausted for what it has sent: nothing more
 *  is taken from it. */
void superpipe_break_locked(superpipe_peer_t *p, const char *why);

/** Sends a message without data. Where it cannot be sent the peer is given up. */
void superpipe_say_of_locked(superpipe_peer_t *p, superpipe_kind_t kind, uint32_t context,
                             uint64_t handle, uint64_t value);
static inline void superpipe_say_locked(superpipe_peer_t *p, superpipe_kind_t kind, uint64_t handle,
                                        uint64_t value)
{
    superpipe_say_of_locked(p, kind, 0, handle, value);
}

/** Connections were lost: ends what waits for them. An MPI thread, lock not held. */
void superpipe_end_lost(void);

/** This process receives nothing more: tells those of other jobs, and waits until copies of sends
 *  to them are gone. In its own job all have come here, or else wait for nothing from it. An MPI
 *  thread, lock not held. */
void superpipe_drain(void);

/** The same, with the lock held. */
void superpipe_end_lost_locked(void);

/** Looks whether processes of this machine have died, if somebody has waited for long. The
 *  pml_progress of the module. */
int superpipe_look(void);

/* ---- forget.c -------------------------------------------------------------------------------- */

/** Is a process of another job in the group that a communicator sends to? */
bool superpipe_is_foreign(const ompi_communicator_t *comm);

/** onic_wire_forget_fn_t: gives back what is kept for a process of another job that has left. */
bool superpipe_forget(onic_peer_t *wire, bool left);

/* ---- request.c ------------------------------------------------------------------------------- */

/** A request of a call, retaining communicator and datatype; its user has it. NULL where memory is
 *  exhausted. */
superpipe_request_t *superpipe_request_new(ompi_communicator_t *comm, ompi_datatype_t *datatype,
                                           void *buffer, size_t count, int rank, int tag,
                                           bool sends);

/** A request of its own for a copy of a send's data, which has no user and takes over `bounce`,
 * where it is packed. It is described. NULL where memory is exhausted. */
superpipe_request_t *superpipe_request_copy(superpipe_request_t *r, void *bounce, bool in_buffer);

/** Describes the memory of a call. Returns OMPI_SUCCESS, an error of onic_flatten, or
 *  MPI_ERR_BUFFER, after a text, where it is known to be memory of a device; then there is nothing
 *  to be freed. */
int superpipe_describe_any(const void *buffer, size_t count, const ompi_datatype_t *datatype,
                           onic_layout_t *layout);

/** The same; most are plain, and no memory is of a device. */
static inline int superpipe_describe_buffer(const void *buffer, size_t count,
                                            const ompi_datatype_t *datatype, onic_layout_t *layout)
{
    size_t bytes;

    if (onic_devices_told() || !onic_type_is_plain(datatype, count, &bytes))
        return superpipe_describe_any(buffer, count, datatype, layout);
    onic_layout_set(layout, bytes);
    return OMPI_SUCCESS;
}

/** The same for a request: its layout and base. */
int superpipe_describe(superpipe_request_t *r);

/** Makes it active, when it is described and before its transfer is started. Now it is also had by
 *  whoever completes it. */
void superpipe_request_begin(superpipe_request_t *r);

/** All of that for a receive: made, described and begun. NULL and an error code. In one function,
 *  since it is called for each message: saves a tenth of a short MPI_Irecv. */
superpipe_request_t *superpipe_request_receive(ompi_communicator_t *comm, ompi_datatype_t *datatype,
                                               void *buffer, size_t count, int rank, int tag,
                                               int *rc_p);

/** Gives back one hold; the last one gives back the request. */
void superpipe_request_drop(superpipe_request_t *r);

/** Is nothing of it left or under way? Then it is taken out of everything that knows it, and the
 *  caller, an MPI thread, completes it when it has let go of the lock. */
bool superpipe_end_locked(superpipe_request_t *r);
void superpipe_complete(superpipe_request_t *r);

/** Finishes it where nothing of it is left or under way: takes it out of everything that knows it;
 *  an MPI thread will complete it. */
void superpipe_settle_locked(superpipe_request_t *r);

/** The same where it is over (state.done), and nothing knows it. */
void superpipe_over_locked(superpipe_request_t *r);

/** The same, with an error: as soon as nothing of it is under way. */
void superpipe_fail_locked(superpipe_request_t *r, int error);

/** An operation of the wire's on its memory has ended: onic_send_cb_t. Locked. */
void superpipe_operation_ended(void *request, int status);

/** The mover has packed or taken all, or given up: onic_mover_end_t.done. Locked. */
void superpipe_moved(void *request, int status);

/** Completes what is done, fetches what is to be copied, ends what is lost: onic_wire_mpi_fn_t. */
int superpipe_complete_all(void);

/** Handles messages that have come, and completes what is done by them: for a wait of an MPI
 * thread, lock not held. */
void superpipe_poll(void);

/** Enters it among those of a peer. */
void superpipe_enter_locked(superpipe_request_t *r, superpipe_peer_t *p);

/* ---- pick.c ---------------------------------------------------------------------------------- */

/** What can be said here of a long message: as if the other side had its data as this one has it.
 * And by what numbers its cost is estimated. */
superpipe_case_t superpipe_case_locked(const superpipe_request_t *r);
const onic_link_t *superpipe_link_locked(const superpipe_case_t *c);

/** What part of its cost registering the memory of a long message has to bear here (reuse.h). */
double superpipe_pin_share_locked(const superpipe_request_t *r);

/** Chooses the protocol of a long message that has found its receive, and takes its time. */
superpipe_protocol_t superpipe_pick_locked(superpipe_request_t *r, const superpipe_case_t *c);

/** It comes by another one, in the end: that says nothing. */
void superpipe_picked_other_locked(superpipe_request_t *r);

/** It is over. */
void superpipe_picked_end_locked(superpipe_request_t *r);

/* ---- send.c ---------------------------------------------------------------------------------- */

/** Starts a send that was described and begun. What cannot be sent is finished with an error. */
void superpipe_send_start(superpipe_request_t *r, superpipe_peer_t *p);

/** Sends a short message of that layout without a request, if that can be done at once. */
onic_sent_t superpipe_send_now_locked(superpipe_channel_t *c, superpipe_peer_t *p, int rank,
                                      int tag, const void *base, const onic_layout_t *layout);

/** A request that was begun stands for a message that was sent so and is held. */
void superpipe_send_leaves(superpipe_request_t *r, superpipe_peer_t *p);

/** The receiver has asked for data (ASK), has got it or a synchronous message was matched (DONE).
 */
void superpipe_on_ask_locked(superpipe_peer_t *p, const superpipe_incoming_t *in);
void superpipe_on_done_locked(superpipe_peer_t *p, const superpipe_incoming_t *in);

/** The peer has told a limit, or calls for what is kept here. */
void superpipe_on_limit_locked(superpipe_peer_t *p, uint64_t limit);
void superpipe_on_call_locked(superpipe_peer_t *p, const superpipe_incoming_t *in);
void superpipe_on_want_locked(superpipe_peer_t *p, const superpipe_incoming_t *in);

/** Nothing of the backlog is sent any more. What was in it is among those of the peer. */
void superpipe_backlog_drop_locked(superpipe_peer_t *p);

/** Goes on with fragments: onic_wire_deferred_fn_t. */
int superpipe_stream_locked(void);

/* ---- receive.c ------------------------------------------------------------------------------- */

/** The request of a receive that was posted. */
static inline superpipe_request_t *superpipe_request_of(superpipe_receive_t *receive)
{
    return (superpipe_request_t *)((char *)receive - offsetof(superpipe_request_t, receive));
}

/** Puts data where it belongs: byte `at` of the packed message and those after it. */
void superpipe_place(superpipe_request_t *r, uint64_t at, const void *data, uint64_t bytes);

/** A message that waits. */
typedef struct superpipe_unexpected {
    superpipe_message_t message; /**< the first member */
    superpipe_peer_t *from;
    superpipe_offer_t offer;
    superpipe_early_t *early; /**< while its first bytes are on their way */
    bool announced;
    bool synchronous;     /**< announced: the sender waits though all of it comes early */
    uint8_t pins;         /**< as the announcement has it */
    uint32_t total;       /**< bytes that come early */
    uint64_t held;        /**< bytes of data that are here */
    uint64_t paid;        /**< what it has cost, but for what comes early */
    unsigned char data[]; /**< all of it, or what comes early */
} superpipe_unexpected_t;

/** Starts a receive that was described and begun. */
void superpipe_receive_start(superpipe_request_t *r);

/** A receive that waits in its call. */
typedef struct superpipe_waiting {
    superpipe_taker_t taker;
    void *buffer;
    ompi_status_public_t *status; /**< or MPI_STATUS_IGNORE */
} superpipe_waiting_t;

/** May it take its message out of the queue, without a request? */
bool superpipe_may_take_locked(const superpipe_channel_t *c, const superpipe_peer_t *from);

/** Does so, where that is the next one in the queue: a short message for this receive. False where
 *  it is not, and nothing has changed. */
bool superpipe_take_locked(superpipe_channel_t *c, superpipe_peer_t *from,
                           const superpipe_waiting_t *w);

/** Starts one whose message was taken by MPI_Mprobe. */
void superpipe_receive_message(superpipe_request_t *r, superpipe_unexpected_t *m);

/** A message came that is to be matched. */
void superpipe_on_envelope_locked(superpipe_peer_t *from, const superpipe_incoming_t *in);

/** The handler of messages of few bytes: onic_am_fn_t. From the decoder to the receive all is in
 *  one function here. */
void superpipe_few_arrived(const void *header, size_t header_len, const void *data, size_t len,
                           onic_rndv_t *rndv);

/** Messages that came before their communicator. */
void superpipe_unpark_locked(superpipe_channel_t *c);

/** Keeps data of a message that waits: bytes [at, at + bytes) of it. */
void superpipe_hold_locked(superpipe_unexpected_t *m, uint64_t at, const void *data,
                           uint64_t bytes);

/** Throws a message away. */
void superpipe_discard_locked(superpipe_unexpected_t *m);

/* ---- fetch.c --------------------------------------------------------------------------------- */

/** What an announcement says, but for its envelope. */
typedef struct superpipe_announced {
    const superpipe_offer_t *offer;
    uint8_t pins;
    bool synchronous;
} superpipe_announced_t;

/** An announced message has found its receive: gets what does not come early of its data. */
void superpipe_fetch_locked(superpipe_request_t *r, superpipe_peer_t *from,
                            const superpipe_announced_t *a);

/** Data came (DATA), or does not come as was asked (FAILED). */
void superpipe_on_data_locked(superpipe_peer_t *p, const superpipe_incoming_t *in,
                              onic_rndv_t *rndv);
void superpipe_on_failed_locked(superpipe_peer_t *p, const superpipe_incoming_t *in);

/** Fetches what is queued for single copy. An MPI thread, lock not held. Returns how many. */
int superpipe_copy_all(void);

/* ---- early.c --------------------------------------------------------------------------------- */

/** The first bytes of an announced message, from its announcement until all of them are there. They
 *  belong to a receive, to a message that waits, or to nobody any more. */
struct superpipe_early {
    superpipe_early_t *next; /**< of the peer */
    uint64_t handle;         /**< of the send */
    uint64_t total, came;
    superpipe_request_t *receive;
    superpipe_unexpected_t *message;
};

/** Such bytes will come, for a receive or a message. False where memory is exhausted. */
bool superpipe_early_begin_locked(superpipe_peer_t *from, uint64_t handle, uint64_t total,
                                  superpipe_request_t *r, superpipe_unexpected_t *m);

/** EARLY came. */
void superpipe_on_early_locked(superpipe_peer_t *p, const superpipe_incoming_t *in);

/** A message has found its receive, which gets what is there and what will come. */
void superpipe_early_deliver_locked(superpipe_request_t *r, superpipe_unexpected_t *m);

/** Nothing more comes of what a peer has begun. */
void superpipe_early_drop_locked(superpipe_peer_t *p);

/* ---- dispatch.c ------------------------------------------------------------------------------ */

/** The handler of messages with a name: onic_named_fn_t. */
void superpipe_arrived(onic_peer_t *from, const void *header, size_t header_len, const void *data,
                       size_t len, onic_rndv_t *rndv);

#endif
