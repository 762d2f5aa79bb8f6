/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The headers of messages between processes, and their one decoder. A short message comes as
 *  a whole (EAGER). Of a long one, or one without credit, the envelope is sent (RTS). When that has
 *  found its receive, the receiver asks for the data by the protocol that it has chosen (CTS), or
 *  fetches it and acknowledges that (ACK). What can be sent in the meantime follows the RTS by
 *  credit (EARLY).
 *
 *  Pure. What the decoder gives out of a peer's bytes is whole and within its bounds; handles are
 *  looked up in tables, and ranks and communicators are checked by matching. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/** Of those with a control header its handle and its value are named. */
typedef enum superpipe_kind {
    SUPERPIPE_KIND_EAGER = 1, /**< envelope; the data follows */
    SUPERPIPE_KIND_RTS,       /**< envelope and offer */
    SUPERPIPE_KIND_CTS,       /**< the send, bytes wanted; superpipe_cts_t */
    SUPERPIPE_KIND_DATA,      /**< the receive, where the data that follows goes */
    SUPERPIPE_KIND_ACK,       /**< the send, which is complete */
    SUPERPIPE_KIND_NACK,      /**< the receive, whose CTS cannot be met; 1: such never can */
    SUPERPIPE_KIND_NUMBER,    /**< number of its receiver in SHORT messages, 0 */
    SUPERPIPE_KIND_EARLY,     /**< the send, where the data that follows goes */
    SUPERPIPE_KIND_CLOSE,     /**< 0, 0; the sender of this receives nothing more */
    SUPERPIPE_KINDS
} superpipe_kind_t;

/** Flags of envelopes. */
enum {
    /** The sender waits for a receive. EAGER: its handle is in the offer's place, 8 bytes. */
    SUPERPIPE_SYNCHRONOUS = 1,
    /** RTS: it would have been EAGER, but for credit. */
    SUPERPIPE_NO_CREDIT = 2
};

/** Bytes that a message costs beside its payload, in credit: its record at a receiver that does not
 *  want it yet, with its part of the tables there. Both sides must have the same. */
#define SUPERPIPE_RECORD 320

/** By which protocol data moves. The numbers travel in CTS. */
typedef enum superpipe_protocol {
    SUPERPIPE_AUTO,  /**< as a parameter: the cheapest */
    SUPERPIPE_EAGER, /**< with its envelope; the sender's choice, by length */
    SUPERPIPE_STREAM,
    SUPERPIPE_PIPELINE,
    SUPERPIPE_COPY,
    SUPERPIPE_RENDEZVOUS,
    SUPERPIPE_PROTOCOLS
} superpipe_protocol_t;

/** The beginning of all messages but SHORT ones: 16 bytes. */
typedef struct superpipe_prefix {
    uint64_t sender; /**< its name (onic_transport_me) */
    uint8_t kind;
    uint8_t flags;    /**< of envelopes */
    uint8_t protocol; /**< CTS: superpipe_protocol_t */
    uint8_t pins;     /**< RTS: the sender's part of what registering its memory would cost, 255:
                         all (protocols/cost.h) */
    uint32_t context; /**< of the communicator: envelopes */
} superpipe_prefix_t;

/** EAGER, RTS: 32 bytes. */
typedef struct superpipe_envelope {
    superpipe_prefix_t prefix;
    int32_t source; /**< rank of the sender in the communicator */
    int32_t tag;
    uint32_t sequence; /**< see comm.h */
    uint32_t early;    /**< RTS: bytes from the beginning that follow in EARLY messages */
} superpipe_envelope_t;

/** The whole header of a SHORT message, which is EAGER without flags. 20 bytes: with 8 bytes of
 *  data it shares one cache line with what the transport puts before it. */
typedef struct superpipe_short {
    uint32_t sender; /**< the number that the receiver has given it (NUMBER) */
    uint32_t context;
    int32_t source;
    int32_t tag;
    uint32_t sequence;
} superpipe_short_t;

/** All others: 32 bytes. */
typedef struct superpipe_control {
    superpipe_prefix_t prefix;
    uint64_t handle;
    uint64_t value;
} superpipe_control_t;

/** Behind the envelope of RTS. */
typedef struct superpipe_offer {
    uint64_t handle;  /**< of the send */
    uint64_t length;  /**< bytes of data */
    uint64_t address; /**< where the data lies in the sender's memory; 0: not in one piece */
    uint64_t block;   /**< bytes of one of its pieces, on average, at least 1 */
} superpipe_offer_t;

/** Most early bytes of one message. */
#define SUPERPIPE_EARLY_MAX (UINT32_C(1) << 20)

/** Bytes of a ticket of the pipeline's. */
#define SUPERPIPE_TICKET_BYTES 24

/** Behind the control header of CTS. */
typedef struct superpipe_cts {
    uint64_t receive; /**< handle */
    uint8_t ticket[SUPERPIPE_TICKET_BYTES];
} superpipe_cts_t;

/** The longest header without data. */
#define SUPERPIPE_HEADER_MAX (sizeof(superpipe_envelope_t) + sizeof(superpipe_offer_t))

/** A message as it was decoded. */
typedef struct superpipe_incoming {
    superpipe_prefix_t prefix;
    int32_t source, tag;     /**< envelopes */
    uint32_t sequence;       /**< envelopes */
    uint32_t early;          /**< RTS */
    superpipe_offer_t offer; /**< RTS; of EAGER the handle, or 0, and the length */
    uint64_t handle, value;  /**< the others */
    superpipe_cts_t cts;     /**< CTS */
    const void *data;        /**< EAGER, DATA and EARLY; NULL where it comes by rendezvous */
    uint64_t bytes;          /**< of data */
} superpipe_incoming_t;

/** Decodes a message; false where it is none of this form. The data is what follows the header, or
 *  `data` of `len` bytes. `meets`: it is still to be received, as only that of DATA may be. */
bool superpipe_decode(superpipe_incoming_t *in, const void *header, size_t header_len,
                      const void *data, size_t len, bool meets);

/** Decodes a SHORT message, as EAGER; in->prefix.sender is as the header has it. */
static inline bool superpipe_decode_short(superpipe_incoming_t *in, const void *header,
                                          size_t header_len, const void *data, size_t len)
{
    superpipe_short_t h;
    const size_t behind = header_len - sizeof(h);

    if (header_len < sizeof(h) || (behind > 0 && len > 0))
        return false;
    memcpy(&h, header, sizeof(h));
    in->prefix = (superpipe_prefix_t){
        .sender = h.sender, .kind = SUPERPIPE_KIND_EAGER, .context = h.context};
    in->source = h.source;
    in->tag = h.tag;
    in->sequence = h.sequence;
    /* What an envelope has, and no more: it is decoded for each message. */
    in->early = 0;
    in->offer.handle = in->offer.address = 0;
    in->offer.block = 0;
    in->data = behind > 0 ? (const char *)header + sizeof(h) : data;
    in->bytes = behind > 0 ? behind : len;
    in->offer.length = in->bytes;
    return true;
}
