/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Endpoint records of engine datagram; see endpoint.h. The head is the length of each part,
 * 2 bytes in network byte order. */
#include "coll_nicbarrier/engines/datagram/endpoint.h"

#include "common/support/bytes.h"

_Static_assert(NICBARRIER_ENDPOINT_HEAD == NICBARRIER_VIAS * sizeof(uint16_t), "a length for each");

uint32_t nicbarrier_endpoint_head(const uint32_t len[NICBARRIER_VIAS],
                                  unsigned char bytes[NICBARRIER_ENDPOINT_HEAD])
{
    uint32_t whole = NICBARRIER_ENDPOINT_HEAD;

    for (int i = 0; i < NICBARRIER_VIAS; i++) {
        onic_put16(bytes + (size_t)i * sizeof(uint16_t), (uint16_t)len[i]);
        whole += len[i];
    }
    return whole;
}

const char *nicbarrier_endpoint_split(const void *bytes, size_t len, nicbarrier_parts_t *parts)
{
    const unsigned char *at = bytes;
    size_t whole = NICBARRIER_ENDPOINT_HEAD;

    if (len < NICBARRIER_ENDPOINT_HEAD)
        return "shorter than its head";
    for (int i = 0; i < NICBARRIER_VIAS; i++) {
        parts->len[i] = onic_get16(at + (size_t)i * sizeof(uint16_t));
        parts->bytes[i] = at + whole;
        if (parts->len[i] > NICBARRIER_ENDPOINT_PART_MAX || parts->len[i] > len - whole)
            return "a part that is longer than the whole";
        whole += parts->len[i];
    }
    return whole == len ? NULL : "something behind its parts";
}
