/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The state of pml_superpipe in this process: peers, communicators, requests, counters.
 *
 *  One lock protects all of it: the transport's, which is held anyway where a message is sent or
 *  arrives. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/ompi_compat.h"

#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/request/request.h"
#include ONIC_MUTEX_HEADER

#include "common/pipeline/pipeline.h"
#include "common/support/handle.h"
#include "common/transport/account.h"
#include "pml_superpipe/matching/comm.h"
#include "pml_superpipe/matching/header.h"
#include "pml_superpipe/protocols/row.h"
#include "pml_superpipe/protocols/cost.h"
#include "pml_superpipe/protocols/transfer.h"

#define SUPERPIPE_HELP_FILE "help-pml-superpipe.txt"

typedef struct superpipe_request superpipe_request_t;
typedef struct superpipe_early superpipe_early_t;

/* Open MPI orders the completion of a request and the wait; ThreadSanitizer does not see it. */
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#define SUPERPIPE_HANDS_ON(r) __tsan_release(r)
#define SUPERPIPE_TAKES_UP(r) __tsan_acquire(r)
#else
#define SUPERPIPE_HANDS_ON(r) (void)(r)
#define SUPERPIPE_TAKES_UP(r) (void)(r)
#endif

/** A process that is sent to or received from. */
typedef struct superpipe_peer {
    LIST_ENTRY(superpipe_peer) of_all;
    onic_peer_t *wire;
    onic_account_t *account; /**< credit, both ways */
    uint32_t number;         /**< its number in short messages to this process */
    uint32_t my_number;      /**< and this process's in those to it; 0: not known yet */
    LIST_HEAD(, superpipe_request) requests; /**< transfers under way to and from it */
    TAILQ_HEAD(, superpipe_early) early;     /**< of messages from it, whose early bytes come */
    size_t fragment;     /**< most bytes of data in one message; 0: not known yet */
    uint64_t short_most; /**< most bytes of a short message; 0: not known yet */
    unsigned refused;    /**< superpipe_case_t's, for what it sends */
    int kind;            /**< 1 + onic_kind_t; 0: not known yet */
    unsigned under_way;  /**< long messages from it that have found their receives */
    bool self;
    bool closed; /**< it receives nothing more */
    bool lost;   /**< all that waited for it has been ended */
} superpipe_peer_t;

/** What Open MPI's communicators have here (c_pml_comm). */
typedef struct superpipe_channel {
    superpipe_comm_t match; /**< the first member */
    ompi_communicator_t *comm;
    superpipe_peer_t **peer; /**< by rank; NULL: it was not looked up yet */
    unsigned losses;         /**< of its processes; atomic */
    bool foreign;            /**< processes of other jobs are in it */
} superpipe_channel_t;

/** What every message uses stands together: programs have many requests, and caches are short. */
struct superpipe_request {
    ompi_request_t super;
    /** References: one of its user until that frees it, one until it is complete. */
    ONIC_COUNT32 refs;
    bool sends;
    bool internal;  /**< it has no user: the copied data of a send that is complete */
    bool attached;  /**< it is among the requests of the peer */
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
    LIST_ENTRY(superpipe_request) of_peer;
    superpipe_request_t *next_done; /**< of those to be completed */
    superpipe_peer_t *peer;         /**< NULL: a receive that has no message yet */
    superpipe_receive_t receive;
    char *base;                    /**< what the layout counts from */
    superpipe_transfer_t state;    /**< by the rules */
    const superpipe_row_t *row;    /**< its protocol, once it has one, */
    superpipe_protocol_t protocol; /**< and the number of that */
    uint64_t handle;               /**< names it for the peer; 0: none */
    uint64_t theirs;               /**< the peer's handle */
    uint64_t address;              /**< receiver: where the data lies there, for single copy */
    onic_transfer_t *move;         /**< receiver: while the pipeline has it */
    superpipe_early_t *early;      /**< receiver: while its early bytes are under way */
    superpipe_request_t *next;     /**< in a queue of its protocol */
    bool counted;                  /**< receiver: it is one of those under way from there */
    bool placing;                  /**< the cursor stands where the last data ended */
    onic_layout_t layout;
    onic_cursor_t cursor; /**< where the next data belongs */
};

OBJ_CLASS_DECLARATION(superpipe_request_t);

/** What an envelope says of a message, beside what matching needs. */
typedef struct superpipe_announced {
    superpipe_offer_t offer;
    uint32_t early;   /**< bytes that come without a CTS */
    uint8_t pins;     /**< the sender's part of what registering its memory would cost */
    bool rts;         /**< the data is not with it */
    bool synchronous; /**< the sender waits for an acknowledgement though all comes early */
} superpipe_announced_t;

/** An unexpected message: it has no receive yet, came out of order, or has no communicator. */
typedef struct superpipe_unexpected {
    superpipe_message_t message; /**< the first member */
    superpipe_peer_t *from;
    superpipe_announced_t a;
    superpipe_early_t *early; /**< while its early bytes are under way */
    uint64_t held;            /**< bytes of data that are here */
    unsigned char data[];     /**< all of it, or what comes early */
} superpipe_unexpected_t;

/** The early bytes of a message, from its RTS until all of them are there. They belong to a
 *  receive, to an unexpected message, or to none any more. */
struct superpipe_early {
    TAILQ_ENTRY(superpipe_early) of_peer;
    uint64_t handle; /**< of the send */
    uint64_t total, came;
    superpipe_request_t *receive;
    superpipe_unexpected_t *message;
};

typedef struct superpipe_params {
    int protocol;    /**< superpipe_protocol_t */
    int schedule;    /**< onic_schedule_kind_t */
    size_t early;    /**< most early bytes of a message */
    size_t eager;    /**< most bytes of a short message; less where a fragment holds less */
    size_t memory;   /**< bytes of this process for what others send by credit */
    size_t buffered; /**< bytes that sends without credit may copy */
    size_t area;     /**< of the pipeline, */
    size_t slot;     /**< and of a buffer of it; 0: derived */
    size_t queues;   /**< bytes of the queues from processes of the node */
    size_t tcp_segment;
    bool single_copy;
    bool network_slots;
    bool show_plan;
    size_t verbose;
    const char *tls; /**< or NULL */
} superpipe_params_t;

typedef struct superpipe_counters {
    unsigned long long messages[SUPERPIPE_ROWS]; /**< received, by protocol */
    unsigned long long bytes[SUPERPIPE_ROWS];
    unsigned long long announced;        /**< sends whose data waited for a CTS */
    unsigned long long no_credit;        /**< of those: short ones */
    unsigned long long unexpected;       /**< messages that came before their receive */
    unsigned long long unexpected_bytes; /**< the most that they took up */
    unsigned long long fallbacks;        /**< transfers that were begun again in another way */
    unsigned long long reuse_hits;       /**< buffers of long messages that had come back */
    unsigned long long reuse_misses;     /**< and that had not */
} superpipe_counters_t;

extern superpipe_counters_t superpipe_counters;

typedef struct superpipe_process {
    superpipe_params_t params;
    bool open; /**< wire and pipeline are */
    bool plan_shown;
    superpipe_comms_t comms;
    LIST_HEAD(, superpipe_peer) peers;
    superpipe_peer_t **numbered; /**< peers by number - 1; NULL: it is forgotten */
    uint32_t npeers;             /**< numbers that were given out */
    onic_handles_t handles;
    superpipe_request_t *done_head, **done_tail; /**< by `next_done` */
    uint64_t waiting_bytes;                      /**< that unexpected messages take up */
    uint64_t buffered;                           /**< bytes in copies of sends */
    uint32_t copies;                             /**< sends without a user that are not complete */
    ONIC_COUNT32 active;                         /**< requests that are not complete */
    unsigned losses;                             /**< that were looked at */
    superpipe_reuse_t reuse;
    superpipe_table_t table;
    char links_from[ONIC_LINKS_FROM]; /**< where its numbers come from */
    opal_free_list_t requests;
} superpipe_process_t;

extern superpipe_process_t superpipe;

/** The request of a receive that was posted. */
static inline superpipe_request_t *superpipe_request_of(superpipe_receive_t *receive)
{
    return (superpipe_request_t *)((char *)receive - offsetof(superpipe_request_t, receive));
}
