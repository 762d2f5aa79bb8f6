/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Several messages in one; see batch.h. A length is two bytes and never 0. */
#include "osc_nicstride/batch.h"

#include <stdint.h>
#include <string.h>

typedef uint16_t length_t;

_Static_assert(NICSTRIDE_BATCH_MAX <= UINT16_MAX, "lengths have two bytes");

bool nicstride_batch_add(nicstride_batch_t *b, size_t max, const void *header, size_t header_len,
                         const void *data, size_t len)
{
    const size_t room = max > b->len ? max - b->len : 0;
    unsigned char *at = b->bytes + b->len;

    if (room < sizeof(length_t) || header_len == 0 || header_len > room - sizeof(length_t) ||
        len > room - sizeof(length_t) - header_len)
        return false;
    const length_t length = (length_t)(header_len + len);
    memcpy(at, &length, sizeof(length));
    memcpy(at + sizeof(length), header, header_len);
    if (len > 0)
        memcpy(at + sizeof(length) + header_len, data, len);
    b->len += sizeof(length) + length;
    b->messages++;
    return true;
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
