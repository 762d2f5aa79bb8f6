/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What processes say to each other: the headers of messages, and their one decoder.
 *
 * A short message comes as a whole (EAGER). Of a long one, or one for which there is no credit, its
 * sender tells the envelope (ANNOUNCE) and keeps the data. When it has found its receive the
 * receiver asks for the data by the protocol that it has chosen (ASK), or fetches it and says so
 * (DONE). What the sender can send while that is under way, it sends behind the envelope, by credit
 * (EARLY); of a message of middle length that is all of it. Without credit for a header a message
 * stays with its sender (backlog.h).
 *
 * Pure. Bytes from a peer are not trusted: what the decoder gives out is whole and within its
 * ranges; handles are looked up in tables that know them, and names of ranks and communicators are
 * checked by matching.
 */
#ifndef SUPERPIPE_HEADER_H
#define SUPERPIPE_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef enum superpipe_kind {
    SUPERPIPE_EAGER = 1, /**< envelope; the data follows */
    SUPERPIPE_ANNOUNCE,  /**< envelope and offer */
    SUPERPIPE_ASK,       /**< word: handle of the send, bytes wanted; answer */
    SUPERPIPE_DATA,      /**< word: handle of the receive, where the data that follows belongs */
    SUPERPIPE_DONE,      /**< word: handle of the send, which is complete */
    SUPERPIPE_FAILED,    /**< word: handle of the receive, whose data does not come as was asked */
    SUPERPIPE_LIMIT,     /**< word: what the receiver of this is called in FEW messages there, 0 if
                            nothing; bytes of payload that may be sent in all (credit.h) */
    SUPERPIPE_RECALL,    /**< word: 0, bytes of credit that are asked back */
    SUPERPIPE_GIVE,      /**< word: 0, bytes of credit that are given back */
    SUPERPIPE_EARLY,     /**< word: handle of the send, where the data that follows belongs */
    SUPERPIPE_KEPT,      /**< word: number in the sender's backlog; source and tag. Context */
    SUPERPIPE_CALL,   /**< word: 0; number of the message that is called for, or 0. Answers KEPT */
    SUPERPIPE_WANT,   /**< word: 1 for a probe, which is answered (GONE), else 0; source and tag,
                         or wildcards. Context */
    SUPERPIPE_GONE,   /**< word: 1 if this answers WANT, else 0; up to this number none is kept */
    SUPERPIPE_LEAVES, /**< word: 0, 0; this process receives nothing more */
    SUPERPIPE_KINDS
} superpipe_kind_t;

/** Flags of envelopes. */
enum {
    /** EAGER: the sender waits until its message has found a receive. Its handle is in the offer's
     *  place, 8 bytes. */
    SUPERPIPE_SYNCHRONOUS = 1,
    /** ANNOUNCE: it would have been EAGER, but for credit. */
    SUPERPIPE_NO_CREDIT = 2,
    /** ANNOUNCE: it is called for, and there was no credit for it. */
    SUPERPIPE_UNPAID = 4,
    SUPERPIPE_FLAGS = 7
};

/** How the data of an announced message is asked for. */
typedef enum superpipe_how {
    SUPERPIPE_BY_STREAM = 1, /**< in DATA messages */
    SUPERPIPE_BY_MOVER,      /**< through slots of the receiver (common/mover) */
    SUPERPIPE_BY_RENDEZVOUS, /**< in DATA messages that are received where they belong */
    SUPERPIPE_HOWS
} superpipe_how_t;

/** The beginning of all messages: 16 bytes. */
typedef struct superpipe_prefix {
    uint64_t sender; /**< its name (onic_wire_me) */
    uint8_t kind;
    uint8_t flags; /**< of envelopes */
    uint8_t how;   /**< ASK: superpipe_how_t. ANNOUNCE: the sender's part of what registering its
                      memory would cost, 255: all (protocols/reuse.h) */
    uint8_t zero;
    uint32_t context; /**< of the communicator: envelopes, and what names one */
} superpipe_prefix_t;

/** EAGER, ANNOUNCE: 32 bytes. */
typedef struct superpipe_envelope {
    superpipe_prefix_t prefix;
    int32_t source; /**< rank of the sender in the communicator */
    int32_t tag;
    uint32_t sequence; /**< see comm.h */
    uint32_t early;    /**< ANNOUNCE: bytes from the beginning that follow in EARLY messages */
} superpipe_envelope_t;

/** The whole header of a message of few bytes, which is EAGER and has no flags; the data follows.
 * 20 bytes: with 8 bytes of data it shares one cache line with what UCX puts before it. Such
 * messages have an identifier of their own, and do not begin with a prefix. */
typedef struct superpipe_few {
    uint32_t sender; /**< as the receiver calls it: it has told the sender (LIMIT) */
    uint32_t context;
    int32_t source;
    int32_t tag;
    uint32_t sequence;
} superpipe_few_t;

/** All others: 32 bytes. */
typedef struct superpipe_word {
    superpipe_prefix_t prefix;
    uint64_t handle;
    uint64_t value;
} superpipe_word_t;

/** Source and tag as the value of a word. */
static inline uint64_t superpipe_named(int32_t source, int32_t tag)
{
    return (uint64_t)(uint32_t)source << 32 | (uint32_t)tag;
}

/** Behind the envelope of ANNOUNCE. */
typedef struct superpipe_offer {
    uint64_t handle;  /**< of the send */
    uint64_t length;  /**< bytes of data */
    uint64_t address; /**< where the data lies in the sender's memory; 0: not in one piece */
    uint64_t block;   /**< bytes of one of its pieces, on average, at least 1 */
} superpipe_offer_t;

/** Most bytes that are sent before they are asked for, of one message. */
#define SUPERPIPE_EARLY_MAX (UINT32_C(1) << 20)

/** Bytes of a ticket of the mover's. */
#define SUPERPIPE_TICKET_BYTES 24

/** Behind the word of ASK. */
typedef struct superpipe_ask {
    uint64_t receive; /**< handle */
    uint8_t ticket[SUPERPIPE_TICKET_BYTES];
} superpipe_ask_t;

/** The longest header without data. */
#define SUPERPIPE_HEADER_MAX (sizeof(superpipe_envelope_t) + sizeof(superpipe_offer_t))

/** A message as it was decoded. */
typedef struct superpipe_incoming {
    superpipe_prefix_t prefix;
    int32_t source, tag;     /**< envelopes; KEPT and WANT */
    uint32_t sequence;       /**< envelopes */
    uint32_t early;          /**< ANNOUNCE */
    superpipe_offer_t offer; /**< ANNOUNCE; of EAGER the handle, or 0, and the length */
    uint64_t handle, value;  /**< the others */
    superpipe_ask_t ask;     /**< ASK */
    const void *data;        /**< EAGER, DATA and EARLY; NULL where it comes by rendezvous */
    uint64_t bytes;          /**< of data */
} superpipe_incoming_t;

/**
 * Decodes a message. The data of EAGER, DATA and EARLY is what follows their header there, or
 * `data` of `len` bytes, not both; others have none. `meets`: the data is still to be received,
 * which only that of DATA may be.
 *
 * @return false where it is no message of this form
 */
bool superpipe_decode(superpipe_incoming_t *in, const void *header, size_t header_len,
                      const void *data, size_t len, bool meets);

/** Decodes a message of few bytes, as EAGER; its data as above. in->prefix.sender is as the header
 *  has it; what no envelope has is not set. */
static inline bool superpipe_decode_few(superpipe_incoming_t *in, const void *header,
                                        size_t header_len, const void *data, size_t len)
{
    superpipe_few_t few;
    const size_t behind = header_len - sizeof(few);

    if (header_len < sizeof(few) || (behind > 0 && len > 0))
        return false;
    memcpy(&few, header, sizeof(few));
    in->prefix =
        (superpipe_prefix_t){.sender = few.sender, .kind = SUPERPIPE_EAGER, .context = few.context};
    in->source = few.source;
    in->tag = few.tag;
    in->sequence = few.sequence;
    /* What an envelope has, and no more: it is decoded for each message. */
    in->early = 0;
    in->offer.handle = in->offer.address = 0;
    in->offer.block = 0;
    in->data = behind > 0 ? (const char *)header + sizeof(few) : data;
    in->bytes = behind > 0 ? behind : len;
    in->offer.length = in->bytes;
    return true;
}

#endif
