/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The wire format; see packet.h. */
#include "coll_nicbarrier/engines/datagram/wire/packet.h"

#include <string.h>

#include "coll_nicbarrier/schedule/schedule.h"
#include "common/support/bytes.h"

void nicbarrier_packet_encode(const nicbarrier_packet_t *p,
                              unsigned char bytes[NICBARRIER_PACKET_SIZE])
{
    memset(bytes, 0, NICBARRIER_PACKET_SIZE);
    onic_put16(bytes, NICBARRIER_PACKET_MAGIC);
    bytes[NICBARRIER_PACKET_VERSION_AT] = NICBARRIER_PACKET_VERSION;
    bytes[NICBARRIER_PACKET_KIND_AT] = p->kind;
    onic_put32(bytes + NICBARRIER_PACKET_COOKIE_AT, p->cookie);
    onic_put64(bytes + NICBARRIER_PACKET_KEY_AT, p->key);
    onic_put32(bytes + NICBARRIER_PACKET_SENDER_AT, p->sender);
    bytes[NICBARRIER_PACKET_STEP_AT] = p->at;
    bytes[NICBARRIER_PACKET_FROM_AT] = p->from_at;
    onic_put64(bytes + NICBARRIER_PACKET_EPOCH_AT, p->epoch);
    onic_put32(bytes + NICBARRIER_PACKET_TO_AT, p->to);
    onic_put32(bytes + NICBARRIER_PACKET_BACK_AT, p->back);
}

bool nicbarrier_packet_decode(const void *bytes, size_t len, nicbarrier_packet_t *p)
{
    const unsigned char *b = bytes;

    if (len != NICBARRIER_PACKET_SIZE || onic_get16(b) != NICBARRIER_PACKET_MAGIC ||
        b[NICBARRIER_PACKET_VERSION_AT] != NICBARRIER_PACKET_VERSION ||
        onic_get16(b + NICBARRIER_PACKET_ZERO_AT) != 0)
        return false;
    *p = (nicbarrier_packet_t){.kind = b[NICBARRIER_PACKET_KIND_AT],
                               .at = b[NICBARRIER_PACKET_STEP_AT],
                               .from_at = b[NICBARRIER_PACKET_FROM_AT],
                               .sender = onic_get32(b + NICBARRIER_PACKET_SENDER_AT),
                               .cookie = onic_get32(b + NICBARRIER_PACKET_COOKIE_AT),
                               .key = onic_get64(b + NICBARRIER_PACKET_KEY_AT),
                               .epoch = onic_get64(b + NICBARRIER_PACKET_EPOCH_AT),
                               .to = onic_get32(b + NICBARRIER_PACKET_TO_AT),
                               .back = onic_get32(b + NICBARRIER_PACKET_BACK_AT)};
    return p->kind != 0 && p->kind < NICBARRIER_PACKET_KINDS && p->sender <= INT32_MAX &&
           p->to <= INT32_MAX && p->at < NICBARRIER_STEPS_MAX && p->from_at < NICBARRIER_STEPS_MAX;
}
