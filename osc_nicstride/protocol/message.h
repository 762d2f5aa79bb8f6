/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The messages of osc_nicstride: one fixed header, behind it an encoded layout if the type
 *  has one, and the payload beside it.
 *
 *  Every fragment of an operation describes its own target bytes, so the target keeps no state
 *  between fragments. Regular layouts travel whole, with the position (`offset`) of the fragment in
 *  them, and so do short lists of blocks that repeat. Other lists travel as the slice that the
 *  fragment needs, or as the number of a list that the target has cached (peer_layout_cache.h). The
 *  target keeps a record only for a transfer through receive buffers.
 *
 *  Pure. Type and lengths are checked. Fields and flags that a type does not use are ignored. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/layout/layout.h"
#include "osc_nicstride/protocol/limits.h"

/** Must be changed whenever messages or keys change in a way that no size shows. */
#define NICSTRIDE_MSG_FORM 13

typedef enum nicstride_msg_type {
    NICSTRIDE_MSG_PUT = 1,  /**< layout, payload: write len bytes at packed position offset */
    NICSTRIDE_MSG_GET,      /**< layout: send back len bytes from packed position offset */
    NICSTRIDE_MSG_PUTV,     /**< several contiguous puts: payload, inline, is a vector (vector.h) */
    NICSTRIDE_MSG_GETV,     /**< several contiguous gets: the same; one REPLY answers all */
    NICSTRIDE_MSG_ACC,      /**< layout, payload, op, dtype */
    NICSTRIDE_MSG_GET_ACC,  /**< as ACC, and send the old values back; payload empty for NO_OP */
    NICSTRIDE_MSG_CAS,      /**< payload: compare value, then new value, each of dtype's size */
    NICSTRIDE_MSG_PIPE_PUT, /**< PUT, GET, ACC with data in receive buffers (common/pipeline); */
    NICSTRIDE_MSG_PIPE_GET, /**< a ticket of NICSTRIDE_TICKET_BYTES lies behind the layout */
    NICSTRIDE_MSG_PIPE_ACC, /**< and names the buffers */
    NICSTRIDE_MSG_REPLY,    /**< answers every operation that fetches: payload belongs at position
                               offset of operation `handle`; or status != 0 and no payload */
    NICSTRIDE_MSG_FLUSH,    /**< count: acknowledge once that many are applied */
    NICSTRIDE_MSG_ACK,      /**< count: messages applied so far; status: first error since the last
                               acknowledgement */
    NICSTRIDE_MSG_LOCK,     /**< op: lock type, perhaps with NICSTRIDE_LOCK_HOLDS; payload: as in a
                               batch, messages to be handled if the lock is free (asked_lock.h) */
    NICSTRIDE_MSG_GRANT,    /**< op: type of the lock, perhaps with NICSTRIDE_LOCK_DONE; count: the
                               rank whose lock you have, or no rank for the window's lock; or status:
                               you will not get it */
    NICSTRIDE_MSG_UNLOCK,   /**< the lock is given back */
    NICSTRIDE_MSG_LEAVE,    /**< to rank 0: the window's lock is given back; to others: give it back
                               (window_lock.h) */
    NICSTRIDE_MSG_POST,     /**< exposure epoch opened for you */
    NICSTRIDE_MSG_COMPLETE, /**< access epoch to you is complete; count: messages sent in all */
    NICSTRIDE_MSG_FENCE,  /**< between the first processes of nodes (fence.h): op is the step, count
                             the number, dtype 1 if it has a mark; status: a process was lost */
    NICSTRIDE_MSG_KEY,    /**< for row `count`, payload, inline, as the row has it; op 0: asks for a
                             key of the window; op 1: the answer, empty if there is none */
    NICSTRIDE_MSG_LAYOUT, /**< a slice of the list with number `count` (peer_layout_cache.h),
                             from `offset` on; op 1: the last one */
    NICSTRIDE_MSG_ROWS,   /**< types from this one to LAST belong to rows: payload, inline */
    NICSTRIDE_MSG_LAST = NICSTRIDE_MSG_ROWS + 4
} nicstride_msg_type_t;

/** Bits of `op` in a request for a lock and in its answer. */
enum {
    NICSTRIDE_LOCK_TYPE = 7,  /**< mask of the type */
    NICSTRIDE_LOCK_DONE = 8,  /**< GRANT: what came with the request was handled */
    NICSTRIDE_LOCK_HOLDS = 16 /**< LOCK: the process holds another lock of the window (lockq.h) */
};

/** Flags of a message. */
enum {
    NICSTRIDE_MSG_SLICE = 2, /**< the layout is only the slice that this message needs, which begins
                                at packed position `offset` of the operation; without this flag it
                                is the operation's whole layout */
    NICSTRIDE_MSG_RUNS = 32, /**< the layout is the operation's whole one, as a list of blocks */
    NICSTRIDE_MSG_INLINE = 4, /**< the payload lies behind header and layout, not beside them */
    NICSTRIDE_MSG_CACHED =
        16 /**< the number of a list (peer_layout_cache.h) stands before the layout: that is the
              inner part of the operation's whole layout, and the message has the outer part */
};

/** Bytes of such a number. */
#define NICSTRIDE_LIST_NUMBER_BYTES 8
/** Bytes of a ticket. */
#define NICSTRIDE_TICKET_BYTES 24

/** True if messages of this type have a ticket. */
static inline bool nicstride_msg_has_ticket(unsigned type)
{
    return type >= NICSTRIDE_MSG_PIPE_PUT && type <= NICSTRIDE_MSG_PIPE_ACC;
}

/** The header, as it travels: 64 bytes, host byte order (component/agreement.c ensures that all
 *  processes have the same). Unused fields are 0. */
typedef struct nicstride_msg {
    uint16_t type;
    uint16_t flags;
    uint32_t win;        /**< the receiver's name for the window */
    uint32_t origin;     /**< the sender's rank in the window */
    int32_t status;      /**< 0, or an MPI error class */
    uint16_t op;         /**< predefined operation (index), or lock type */
    uint16_t dtype;      /**< predefined element type (index) */
    uint32_t layout_len; /**< bytes of encoded layout behind the header; 0 if the data is
                            contiguous: then it begins `offset` bytes after disp */
    int64_t disp;    /**< byte displacement of the layout from the window's base, or an address */
    uint64_t offset; /**< packed position in the layout or the operation */
    uint64_t len;    /**< bytes of data */
    uint64_t handle; /**< the origin's handle of the operation */
    uint64_t count;  /**< see the types. In operations: if not 0, asks for an acknowledgement once
                        that many are applied. REPLY: if not 0, acknowledges that many */
} nicstride_msg_t;

/** Clears a message and sets type, win and origin. */
static inline void nicstride_msg_init(nicstride_msg_t *m, nicstride_msg_type_t type, uint32_t win,
                                      uint32_t origin)
{
    *m = (nicstride_msg_t){.type = (uint16_t)type, .win = win, .origin = origin};
}

/** The most bytes that the target may have to keep for a message until it counts as applied; 0 for
 *  messages that it handles as they come. */
static inline uint64_t nicstride_msg_kept(const nicstride_msg_t *m)
{
    const bool list = (m->flags & (NICSTRIDE_MSG_SLICE | NICSTRIDE_MSG_RUNS)) != 0;
    const uint64_t use =
        NICSTRIDE_KEPT_USE + (list ? (uint64_t)m->layout_len * NICSTRIDE_SLICE_GROWTH : 0);
    const uint64_t copy = NICSTRIDE_KEPT_RECORD + m->len;

    if (nicstride_msg_has_ticket(m->type))
        return use;
    switch (m->type) {
    case NICSTRIDE_MSG_CAS:
        return copy;
    case NICSTRIDE_MSG_GET_ACC:
        return m->len <= NICSTRIDE_INLINE_MIN ? copy : NICSTRIDE_KEPT_USE + m->len;
    case NICSTRIDE_MSG_GETV:
        return NICSTRIDE_KEPT_RECORD + NICSTRIDE_INLINE_MAX; /* for its reply */
    case NICSTRIDE_MSG_GET:
        if (m->len <= NICSTRIDE_INLINE_MIN)
            return copy;
        if (m->len > NICSTRIDE_INLINE_MAX)
            return use + NICSTRIDE_KEPT_ANSWER;
        return copy > use ? copy : use;
    default:
        return 0;
    }
}

/** Most bytes of an element of any type. */
#define NICSTRIDE_ELEMENT_MAX 64

/** Fragments of data are multiples of this if possible, so that the next one is as well aligned. */
#define NICSTRIDE_FRAGMENT_UNIT 64

/** How many bytes of data, from packed position `at` of the target's layout on, go into a message
 *  with `room` >= NICSTRIDE_FRAGMENT_UNIT bytes: all that are left, or as many as tear no element.
 *  Elements have `granule` bytes, and `at` is a multiple of that. If `granule` is 1, aligned
 *  elements of up to 8 bytes stay whole in memory that begins at `base`. */
static inline uint64_t nicstride_fragment(const onic_layout_t *l, uint64_t base, uint64_t at,
                                          uint64_t room, uint32_t granule)
{
    if (l->size - at <= room)
        return l->size - at;
    if (granule > 1)
        return room - room % granule;
    return onic_layout_whole(l, base, at, room - room % NICSTRIDE_FRAGMENT_UNIT);
}

/** Checks and copies a received header. `*layout_p` points to the encoded layout inside `buf`;
 *  behind it lies the payload, if NICSTRIDE_MSG_INLINE is set, or a ticket. `payload_len` is the
 *  length of what came beside it. False if a length is wrong, or there is no such type. */
bool nicstride_msg_decode(const void *buf, size_t len, uint64_t payload_len, nicstride_msg_t *m,
                          const void **layout_p);

/* ---- several messages in one --------------------------------------------------------------------
 *
 * In a batch, each message follows its length, which has two bytes and is never 0. Sending a
 * message costs many times as much as the bytes of a short one. Only the form of a batch is
 * checked here; the messages are checked by nicstride_msg_decode. */

/** The header of a batch. No other header is as short. */
#define NICSTRIDE_BATCH_MARK 0xb5u

_Static_assert(NICSTRIDE_BATCH_MAX <= UINT16_MAX, "lengths have two bytes");

/** Zero-initialise `len`. */
typedef struct nicstride_batch {
    size_t len;
    size_t last; /**< where the last message begins, including its length */
    unsigned char bytes[NICSTRIDE_BATCH_MAX];
} nicstride_batch_t;

/** Adds a message of `len` bytes if the batch then has at most `max` (0 .. NICSTRIDE_BATCH_MAX)
 *  bytes. Returns where it is to be written; NULL, and nothing is added, if it does not fit. */
static inline unsigned char *nicstride_batch_room(nicstride_batch_t *b, size_t max, size_t len)
{
    const size_t room = max > b->len ? max - b->len : 0;
    const uint16_t length = (uint16_t)len;
    unsigned char *at = b->bytes + b->len;

    if (len == 0 || room < sizeof(length) || len > room - sizeof(length))
        return NULL;
    memcpy(at, &length, sizeof(length));
    b->last = b->len;
    b->len += sizeof(length) + len;
    return at + sizeof(length);
}

/** Extends the last message, which is a vector (vector.h), by `len` bytes. Returns as above. */
static inline unsigned char *nicstride_batch_extend(nicstride_batch_t *b, size_t max, size_t len)
{
    unsigned char *at = b->bytes + b->len, *message = b->bytes + b->last + sizeof(uint16_t);
    const size_t length = (size_t)(at - message) + len;
    const uint16_t told = (uint16_t)length;
    const uint64_t payload = length - sizeof(nicstride_msg_t);

    if (b->len > max || len > max - b->len)
        return NULL;
    memcpy(message - sizeof(told), &told, sizeof(told));
    memcpy(message + offsetof(nicstride_msg_t, len), &payload, sizeof(payload));
    b->len += len;
    return at;
}

/** Reads the message at `*at_p` (initially 0) of a batch of `len` bytes, and advances. False at the
 *  end: `*at_p` is then `len`, or less if the rest is not a message. */
static inline bool nicstride_batch_next(const void *bytes, size_t len, size_t *at_p,
                                        const void **message_p, size_t *message_len_p)
{
    const unsigned char *at = (const unsigned char *)bytes + *at_p;
    const size_t left = len - *at_p;
    uint16_t length;

    if (left < sizeof(length))
        return false;
    memcpy(&length, at, sizeof(length));
    if (length == 0 || length > left - sizeof(length))
        return false;
    *message_p = at + sizeof(length);
    *message_len_p = length;
    *at_p += sizeof(length) + length;
    return true;
}
