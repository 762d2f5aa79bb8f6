/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The headers of messages between processes, and their one decoder. A short message is sent
 *  whole (SHORT). For a long one, one that needs an acknowledgement, or one without credit, the
 *  envelope is sent first (RTS), with as much of the data as there is credit for, which may go on
 *  in the messages right behind it (EARLY). When it has found its receive, the receiver requests
 *  the rest by the protocol that it has chosen (CTS), or fetches it and acknowledges that (ACK).
 *
 *  Messages of one process arrive in the order in which they were sent.
 *
 *  Pure. Decoded messages are complete, and lengths within bounds; handles are looked up in tables.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/** Kinds of messages. For those with a control header the comment gives its handle and value. */
typedef enum superpipe_kind {
    SUPERPIPE_KIND_SHORT, /**< has a header and an identifier (ONIC_AM_SHORT) of its own */
    SUPERPIPE_KIND_RTS,   /**< envelope and offer; the first data follows */
    SUPERPIPE_KIND_EARLY, /**< 0; value: offset of the data that follows, of the last RTS */
    SUPERPIPE_KIND_CTS,   /**< handle: the send; value: bytes wanted; then superpipe_cts_t */
    SUPERPIPE_KIND_DATA,  /**< handle: the receive; value: offset of the data that follows */
    SUPERPIPE_KIND_ACK,   /**< handle: the send, which is complete; value 0 */
    SUPERPIPE_KINDS
} superpipe_kind_t;

/** Credit that a message with data, or a short one, costs besides its payload, in bytes: its record
 *  at a receiver that does not expect it yet. The same on both sides. */
#define SUPERPIPE_RECORD 128

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
    uint8_t protocol; /**< CTS: superpipe_protocol_t */
    uint8_t unused[2];
    uint32_t context; /**< RTS: of the communicator */
} superpipe_prefix_t;

/** The whole header of a SHORT message. With 8 bytes of data and the transport's own header it fits
 *  in one cache line. */
typedef struct superpipe_short {
    uint64_t sender; /**< as in superpipe_prefix_t */
    uint32_t context;
    int32_t source; /**< rank of the sender in the communicator */
    int32_t tag;
} __attribute__((packed)) superpipe_short_t;

/** For all kinds but SHORT and RTS: 32 bytes. */
typedef struct superpipe_control {
    superpipe_prefix_t prefix;
    uint64_t handle;
    uint64_t value;
} superpipe_control_t;

/** What RTS says of a message, besides the fields used in matching. */
typedef struct superpipe_offer {
    uint64_t handle;  /**< of the send */
    uint64_t length;  /**< bytes of data */
    uint64_t address; /**< of the data in the sender's memory; 0: not contiguous */
    uint32_t block;   /**< mean bytes of a contiguous piece, at least 1 */
    uint32_t early;   /**< this many first bytes come without a CTS, here and in EARLY messages */
    uint8_t pins;     /**< the sender's share of the cost of registering its memory, in 1/255
                         (protocols/cost.h) */
    uint8_t
        synchronous; /**< the sender waits for an acknowledgement even if all bytes come early */
    uint8_t unused[6];
} superpipe_offer_t;

/** RTS: 64 bytes. */
typedef struct superpipe_rts {
    superpipe_prefix_t prefix;
    int32_t source; /**< as in SHORT */
    int32_t tag;
    superpipe_offer_t offer;
} superpipe_rts_t;

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
#define SUPERPIPE_HEADER_MAX (sizeof(superpipe_rts_t))

/** A decoded message. */
typedef struct superpipe_incoming {
    superpipe_prefix_t prefix;
    int32_t source, tag;     /**< SHORT and RTS */
    superpipe_offer_t offer; /**< RTS; SHORT: all 0 but the length */
    uint64_t handle, value;  /**< other kinds */
    superpipe_cts_t cts;     /**< CTS */
    const void *data;        /**< of all kinds that carry some; NULL if it comes by rendezvous */
    uint64_t bytes;          /**< of data */
} superpipe_incoming_t;

/** Decodes a message; false if it is malformed. The data is what follows the header, or `data` of
 *  `len` bytes. `meets`: the data is still to be received by rendezvous; allowed for DATA only. */
bool superpipe_decode(superpipe_incoming_t *in, const void *header, size_t header_len,
                      const void *data, size_t len, bool meets);

/** Decodes a SHORT message. */
static inline bool superpipe_decode_short(superpipe_incoming_t *in, const void *header,
                                          size_t header_len, const void *data, size_t len)
{
    superpipe_short_t h;
    const size_t behind = header_len - sizeof(h);

    if (header_len < sizeof(h) || (behind > 0 && len > 0))
        return false;
    memcpy(&h, header, sizeof(h));
    in->prefix = (superpipe_prefix_t){
        .sender = h.sender, .kind = SUPERPIPE_KIND_SHORT, .context = h.context};
    in->source = h.source;
    in->tag = h.tag;
    in->data = behind > 0 ? (const char *)header + sizeof(h) : data;
    in->bytes = behind > 0 ? behind : len;
    /* Sets only what envelopes need, since this runs for each message. */
    in->offer = (superpipe_offer_t){.length = in->bytes};
    return true;
}
