/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The headers of messages between processes, and their one decoder. A short message is sent
 * whole (EAGER). For a long message, or one without credit, the envelope is sent first (RTS). When
 * it has found its receive, the receiver requests the data by the protocol that it has chosen
 * (CTS), or fetches it and acknowledges that (ACK). Meanwhile the first bytes may follow the RTS,
 * by credit (EARLY).
 *
 *  Pure. Decoded messages are complete, and lengths within bounds; handles are looked up in tables,
 * and matching checks ranks and communicators. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/** Kinds of messages. For those with a control header the comment gives its handle and value. */
typedef enum superpipe_kind {
    SUPERPIPE_KIND_EAGER = 1, /**< envelope; the data follows */
    SUPERPIPE_KIND_RTS,       /**< envelope and offer */
    SUPERPIPE_KIND_CTS,       /**< handle: the send; value: bytes wanted; then superpipe_cts_t */
    SUPERPIPE_KIND_DATA,      /**< handle: the receive; value: offset of the data that follows */
    SUPERPIPE_KIND_ACK,       /**< handle: the send, which is complete */
    SUPERPIPE_KIND_NACK,      /**< handle: the receive, whose CTS cannot be met; 1: never can be */
    SUPERPIPE_KIND_NUMBER,    /**< handle: the receiver's number in SHORT messages; value 0 */
    SUPERPIPE_KIND_EARLY,     /**< handle: the send; value: offset of the data that follows */
    SUPERPIPE_KIND_CLOSE,     /**< 0, 0; the sender of this receives nothing any more */
    SUPERPIPE_KINDS
} superpipe_kind_t;

/** Flags of envelopes. */
enum {
    /** The sender waits for a receive. EAGER: its handle, 8 bytes, takes the place of the offer. */
    SUPERPIPE_SYNCHRONOUS = 1
};

/** Credit that a message costs besides its payload, in bytes: its record at a receiver that does
 *  not expect it yet, with a share of the tables there. The same on both sides. */
#define SUPERPIPE_RECORD 320

/** The protocol that moves the data. The numbers are sent in CTS. */
typedef enum superpipe_protocol {
    SUPERPIPE_AUTO,  /**< value of the parameter: the cheapest */
    SUPERPIPE_EAGER, /**< data with its envelope; chosen by the sender, by length */
    SUPERPIPE_STREAM,
    SUPERPIPE_PIPELINE,
    SUPERPIPE_COPY,
    SUPERPIPE_RENDEZVOUS,
    SUPERPIPE_PROTOCOLS
} superpipe_protocol_t;

/** The beginning of all messages except SHORT: 16 bytes. */
typedef struct superpipe_prefix {
    uint64_t sender; /**< identifies the sender (onic_transport_me) */
    uint8_t kind;
    uint8_t flags;    /**< for envelopes */
    uint8_t protocol; /**< CTS: superpipe_protocol_t */
    uint8_t pins;     /**< RTS: the sender's share of the cost of registering its memory, in 1/255
                         (protocols/cost.h) */
    uint32_t context; /**< envelopes: of the communicator */
} superpipe_prefix_t;

/** For EAGER and RTS: 32 bytes. */
typedef struct superpipe_envelope {
    superpipe_prefix_t prefix;
    int32_t source; /**< rank of the sender in the communicator */
    int32_t tag;
    uint32_t sequence; /**< see comm.h */
    uint32_t early;    /**< RTS: this many first bytes follow in EARLY messages */
} superpipe_envelope_t;

/** The whole header of a SHORT message, which is an EAGER one without flags. 20 bytes: with 8 bytes
 *  of data and the transport's own header it fits in one cache line. */
typedef struct superpipe_short {
    uint32_t sender; /**< the number that the receiver has assigned to it (NUMBER) */
    uint32_t context;
    int32_t source;
    int32_t tag;
    uint32_t sequence;
} superpipe_short_t;

/** For all other kinds: 32 bytes. */
typedef struct superpipe_control {
    superpipe_prefix_t prefix;
    uint64_t handle;
    uint64_t value;
} superpipe_control_t;

/** Follows the envelope of RTS. */
typedef struct superpipe_offer {
    uint64_t handle;  /**< of the send */
    uint64_t length;  /**< bytes of data */
    uint64_t address; /**< of the data in the sender's memory; 0: not contiguous */
    uint64_t block;   /**< mean bytes of a contiguous piece, at least 1 */
} superpipe_offer_t;

/** Most early bytes of one message. */
#define SUPERPIPE_EARLY_MAX (UINT32_C(1) << 20)

/** Bytes of a pipeline ticket. */
#define SUPERPIPE_TICKET_BYTES 24

/** Follows the control header of CTS. */
typedef struct superpipe_cts {
    uint64_t receive; /**< handle */
    uint8_t ticket[SUPERPIPE_TICKET_BYTES];
} superpipe_cts_t;

/** The longest header, without data. */
#define SUPERPIPE_HEADER_MAX (sizeof(superpipe_envelope_t) + sizeof(superpipe_offer_t))

/** A decoded message. */
typedef struct superpipe_incoming {
    superpipe_prefix_t prefix;
    int32_t source, tag;     /**< envelopes */
    uint32_t sequence;       /**< envelopes */
    uint32_t early;          /**< RTS */
    superpipe_offer_t offer; /**< RTS; for EAGER the handle, or 0, and the length */
    uint64_t handle, value;  /**< other kinds */
    superpipe_cts_t cts;     /**< CTS */
    const void *data;        /**< EAGER, DATA and EARLY; NULL if it comes by rendezvous */
    uint64_t bytes;          /**< of data */
} superpipe_incoming_t;

/** Decodes a message; false if it is malformed. The data is what follows the header, or `data` of
 *  `len` bytes. `meets`: the data is still to be received by rendezvous; allowed for DATA only. */
bool superpipe_decode(superpipe_incoming_t *in, const void *header, size_t header_len,
                      const void *data, size_t len, bool meets);

/** Decodes a SHORT message, as EAGER; in->prefix.sender stays the number in the header. */
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
    /* Sets only what envelopes need, since this runs for each message. */
    in->early = 0;
    in->offer.handle = in->offer.address = 0;
    in->offer.block = 0;
    in->data = behind > 0 ? (const char *)header + sizeof(h) : data;
    in->bytes = behind > 0 ? behind : len;
    in->offer.length = in->bytes;
    return true;
}
