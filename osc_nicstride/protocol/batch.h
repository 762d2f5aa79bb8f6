/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Several messages in one: each behind its length, which is two bytes and never 0. Sending
 *  costs many times what the bytes of a short message do. Pure. What is read is checked for its
 *  form only; the messages are for nicstride_msg_decode. */
#ifndef NICSTRIDE_BATCH_H
#define NICSTRIDE_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "osc_nicstride/protocol/limits.h"

/** What such a message has for a header: no other header is as short. */
#define NICSTRIDE_BATCH_MARK 0xb5u

_Static_assert(NICSTRIDE_BATCH_MAX <= UINT16_MAX, "lengths have two bytes");

/** So many batches share a window. */
#define NICSTRIDE_BATCH_SHARE 8

/** Zero-initialise the first two. */
typedef struct nicstride_batch {
    size_t len;
    unsigned messages;
    unsigned char bytes[NICSTRIDE_BATCH_MAX];
} nicstride_batch_t;

/** Adds a message, so that the batch has no more than `max` bytes (0 .. NICSTRIDE_BATCH_MAX).
 * False, and nothing is added, where it does not fit. */
static inline bool nicstride_batch_add(nicstride_batch_t *b, size_t max, const void *message,
                                       size_t len)
{
    const size_t room = max > b->len ? max - b->len : 0;
    const uint16_t length = (uint16_t)len;
    unsigned char *at = b->bytes + b->len;

    if (len == 0 || room < sizeof(length) || len > room - sizeof(length))
        return false;
    memcpy(at, &length, sizeof(length));
    memcpy(at + sizeof(length), message, len);
    b->len += sizeof(length) + len;
    b->messages++;
    return true;
}

/** Should it be sent, whatever room it has? Several batches share a window
 *  (credit.h), so that one is acknowledged while another is filled. */
static inline bool nicstride_batch_is_full(const nicstride_batch_t *b, uint32_t window)
{
    return b->messages >= window / NICSTRIDE_BATCH_SHARE;
}

/** Reads the message at `*at_p` (first 0) of a batch of `len` bytes and moves on. False at the end:
 *  `*at_p` is `len` then, or less where the rest is not a message. */
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

#endif
