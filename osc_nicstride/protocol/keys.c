/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What is told of memory; see keys.h. */
#include "osc_nicstride/protocol/keys.h"

#include <string.h>

_Static_assert(sizeof(nicstride_span_t) == NICSTRIDE_KEYS_HEAD, "a span is the head");

/** What stands before the bytes of a blob. */
typedef struct blob_head {
    uint8_t row;
    uint8_t part;
    uint16_t len;
} blob_head_t;

_Static_assert(sizeof(blob_head_t) == NICSTRIDE_BLOB_HEAD, "no gaps");

void nicstride_keys_begin(nicstride_keys_t *k, const nicstride_span_t *span)
{
    const nicstride_span_t none = {0};

    memcpy(k->bytes, span != NULL ? span : &none, sizeof(*span));
    k->len = sizeof(*span);
}

void *nicstride_keys_room(nicstride_keys_t *k, size_t *cap_p)
{
    const size_t left = sizeof(k->bytes) - k->len;

    *cap_p = left > sizeof(blob_head_t) ? left - sizeof(blob_head_t) : 0;
    return *cap_p > 0 ? k->bytes + k->len + sizeof(blob_head_t) : NULL;
}

void nicstride_keys_add(nicstride_keys_t *k, unsigned row, nicstride_part_of_t part, size_t len)
{
    const blob_head_t head = {(uint8_t)row, (uint8_t)part, (uint16_t)len};

    if (len == 0)
        return;
    memcpy(k->bytes + k->len, &head, sizeof(head));
    k->len += sizeof(head) + len;
}

bool nicstride_keys_next(const void *bytes, size_t len, size_t *at_p, nicstride_blob_t *blob)
{
    const unsigned char *at = (const unsigned char *)bytes + *at_p;
    blob_head_t head;

    if (len - *at_p < sizeof(head))
        return false;
    memcpy(&head, at, sizeof(head));
    if (head.len == 0 || head.len > len - *at_p - sizeof(head))
        return false;
    *blob =
        (nicstride_blob_t){head.row, (nicstride_part_of_t)head.part, at + sizeof(head), head.len};
    *at_p += sizeof(head) + head.len;
    return true;
}

const char *nicstride_keys_check(const void *bytes, size_t len, nicstride_span_t *span)
{
    size_t at = NICSTRIDE_KEYS_HEAD;
    nicstride_blob_t blob;
    int before = -1;

    if (len < sizeof(*span) || len > NICSTRIDE_KEYS_MAX)
        return "not of the length of keys";
    memcpy(span, bytes, sizeof(*span));
    if (span->size > UINT64_MAX - span->at)
        return "a region that wraps around";
    while (nicstride_keys_next(bytes, len, &at, &blob)) {
        const int order = (int)(NICSTRIDE_PARTS * blob.row + blob.part);

        if (blob.part >= NICSTRIDE_PARTS)
            return "a blob for nothing that is known";
        if (order <= before)
            return "blobs out of order";
        before = order;
    }
    return at == len ? NULL : "a blob that does not end with the message";
}

nicstride_span_t nicstride_piece_of(const nicstride_span_t *region, uint64_t at, uint64_t piece)
{
    const uint64_t from = (at - region->at) / piece * piece, left = region->size - from;

    return (nicstride_span_t){region->at + from, left < piece ? left : piece, region->generation};
}
