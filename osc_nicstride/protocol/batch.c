/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Several messages in one; see batch.h. A length is two bytes and never 0. */
#include "osc_nicstride/protocol/batch.h"

#include <stdint.h>
#include <string.h>

typedef uint16_t length_t;

_Static_assert(NICSTRIDE_BATCH_MAX <= UINT16_MAX, "lengths have two bytes");

/** So many batches share a window. */
#define WINDOW_SHARE 8

bool nicstride_batch_add(nicstride_batch_t *b, size_t max, const void *message, size_t len)
{
    const size_t room = max > b->len ? max - b->len : 0;
    const length_t length = (length_t)len;
    unsigned char *at = b->bytes + b->len;

    if (len == 0 || room < sizeof(length) || len > room - sizeof(length))
        return false;
    memcpy(at, &length, sizeof(length));
    memcpy(at + sizeof(length), message, len);
    b->len += sizeof(length) + len;
    b->messages++;
    return true;
}

bool nicstride_batch_is_full(const nicstride_batch_t *b, uint32_t window)
{
    return b->messages >= window / WINDOW_SHARE;
}

bool nicstride_batch_next(const void *bytes, size_t len, size_t *at_p, const void **message_p,
                          size_t *message_len_p)
{
    const unsigned char *at = (const unsigned char *)bytes + *at_p;
    const size_t left = len - *at_p;
    length_t length;

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
