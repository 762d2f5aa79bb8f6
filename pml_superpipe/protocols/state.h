/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The state of pml_superpipe in this process: peers, communicators, requests, counters.
 *
 *  The transport's lock protects all of it; it is held anyway when a message is sent or arrives. */
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
#include "pml_superpipe/matching/header.h"
#include "pml_superpipe/matching/match.h"
#include "pml_superpipe/protocols/row.h"
#include "pml_superpipe/protocols/cost.h"
#include "pml_superpipe/protocols/transfer.h"

#define SUPERPIPE_HELP_FILE "help-pml-superpipe.txt"

typedef struct superpipe_request superpipe_request_t;
typedef struct superpipe_unexpected superpipe_unexpected_t;

/* Open MPI orders the completion of a request before the end of the wait; ThreadSanitizer does not
 * see that. */
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#define SUPERPIPE_HANDS_ON(r) __tsan_release(r)
#define SUPERPIPE_TAKES_UP(r) __tsan_acquire(r)
#else
#define SUPERPIPE_HANDS_ON(r) (void)(r)
#define SUPERPIPE_TAKES_UP(r) (void)(r)
#endif

/** The first bytes of the last message that a peer has announced, as long as some have not come:
 *  they follow the RTS, and nothing else comes in between that announces a message. They are for a
 *  receive, for an unexpected message, or, later, for neither. */
typedef struct superpipe_early {
    uint64_t at, left; /**< bytes that have come, and that have not */
    superpipe_request_t *receive;
    superpipe_unexpected_t *message;
} superpipe_early_t;

/** A process to or from which messages are sent. */
typedef struct superpipe_peer {
    LIST_ENTRY(superpipe_peer) of_all;
    onic_peer_t *peer;
    onic_account_t *account;                 /**< credit, both ways */
    LIST_HEAD(, superpipe_request) requests; /**< transfers in flight with the peer */
    superpipe_early_t early;
    size_t fragment;     /**< most bytes of data in one message; 0: not known yet */
    uint64_t short_most; /**< most bytes of a short message; 0: not known yet */
    unsigned refused;    /**< as in superpipe_case_t, for messages from the peer */
    int kind;            /**< 1 + onic_kind_t; 0: not known yet */
    unsigned under_way;  /**< its long messages that have found their receives */
    bool self;
    bool lost; /**< the peer is lost, and all that waited for it has been ended */
} superpipe_peer_t;

/** State of a communicator of Open MPI (c_pml_comm). */
typedef struct superpipe_channel {
    LIST_ENTRY(superpipe_channel) of_all;
    ompi_communicator_t *comm;
    superpipe_peer_t **peer; /**< by rank; NULL: not looked up yet */
    unsigned losses;         /**< of lost processes; atomic */
} superpipe_channel_t;

/** A request. Fields that every message uses are adjacent: programs have many requests, and caches
 *  are small. */
struct superpipe_request {
    ompi_request_t super;
    /** References: one of the user until it frees the request, one until the request is complete.
     */
    ONIC_COUNT32 refs;
    bool sends;
    bool internal;  /**< it has no user, and the data at `base` is a copy: a complete send */
    bool in_buffer; /**< internal requests: the data is in the buffer from MPI_Buffer_attach */
    bool attached;  /**< it is in the peer's list of requests */
    int error;      /**< OMPI_SUCCESS or an MPI error class */

    /* The call. */
    ompi_communicator_t *comm;
    ompi_datatype_t *datatype;
    char *base; /**< the user's memory, from which the layout's offsets count */
    size_t count;
    int rank, tag; /**< as passed to the call */
    mca_pml_base_send_mode_t mode;

    /* The transfer. */
    LIST_ENTRY(superpipe_request) of_peer;
    superpipe_request_t *next; /**< in a queue of its protocol, or of finished requests */
    superpipe_peer_t *peer;    /**< NULL: a receive without a message so far */
    superpipe_receive_t receive;
    superpipe_transfer_t state;    /**< see transfer.h */
    superpipe_protocol_t protocol; /**< SUPERPIPE_AUTO: not chosen yet */
    uint64_t handle;               /**< identifies it to the peer; 0: none */
    uint64_t theirs;               /**< the peer's handle */
    uint64_t address;      /**< receiver: the data's address at the sender, for single copy */
    onic_transfer_t *move; /**< receiver: the pipeline's transfer, while it is running */
    bool counted;          /**< receiver: counted in the peer's under_way */
    onic_layout_t layout;
    onic_cursor_t cursor; /**< where the last data ended; without a layout at first */
};

OBJ_CLASS_DECLARATION(superpipe_request_t);

/** An unexpected message: it has no receive yet. */
struct superpipe_unexpected {
    superpipe_message_t message; /**< the first member */
    superpipe_peer_t *from;
    superpipe_offer_t offer;
    uint64_t held;        /**< bytes of data kept here */
    unsigned char data[]; /**< all of a short message, else the early bytes */
};

typedef struct superpipe_params {
    int protocol;    /**< superpipe_protocol_t */
    int schedule;    /**< onic_schedule_kind_t */
    size_t early;    /**< most early bytes of one message */
    size_t eager;    /**< most bytes of a short message; less if a fragment holds less */
    size_t memory;   /**< bytes of memory for messages that others send by credit */
    size_t buffered; /**< most bytes of copies of sends without credit */
    size_t area;     /**< bytes of the pipeline's memory */
    size_t slot;     /**< bytes of one receive buffer; 0: derived */
    size_t queues;   /**< bytes of the queues from processes of the node */
    bool single_copy;
    bool network_slots;
    bool show_plan;
    size_t verbose;
} superpipe_params_t;

typedef struct superpipe_counters {
    unsigned long long messages[SUPERPIPE_ROWS]; /**< received, by protocol */
    unsigned long long bytes[SUPERPIPE_ROWS];
    unsigned long long announced;        /**< sends whose data waited for a CTS */
    unsigned long long no_credit;        /**< of these, short messages */
    unsigned long long unexpected;       /**< messages that came before their receive */
    unsigned long long unexpected_bytes; /**< most bytes that they have taken up */
    unsigned long long fallbacks; /**< transfers that were started again by another protocol */
} superpipe_counters_t;

extern superpipe_counters_t superpipe_counters;

/** Requests that any thread appends, linked by `next`, and an MPI thread takes. */
typedef struct superpipe_queue {
    superpipe_request_t *first, *last;
} superpipe_queue_t;

typedef struct superpipe_process {
    superpipe_params_t params;
    bool open; /**< transport and pipeline are open */
    bool plan_shown;
    superpipe_match_t match;
    LIST_HEAD(, superpipe_channel) channels;
    LIST_HEAD(, superpipe_peer) peers;
    onic_handles_t handles;
    superpipe_queue_t finished;   /**< to be completed */
    superpipe_queue_t copied;     /**< receives of protocol copy that are to copy */
    superpipe_request_t *streams; /**< sends of protocol stream that nothing else continues */
    uint64_t waiting_bytes;       /**< bytes taken up by unexpected messages */
    uint64_t buffered;            /**< bytes in copies of sends */
    uint32_t copies;              /**< sends without a user that are incomplete */
    unsigned losses;              /**< lost connections handled so far */
    superpipe_reuse_t reuse;
    superpipe_table_t table;
    char links_from[ONIC_LINKS_FROM]; /**< the source of the model's numbers */
    opal_free_list_t requests;
} superpipe_process_t;

extern superpipe_process_t superpipe;

/** The request of a posted receive. */
static inline superpipe_request_t *superpipe_request_of(superpipe_receive_t *receive)
{
    return (superpipe_request_t *)((char *)receive - offsetof(superpipe_request_t, receive));
}
