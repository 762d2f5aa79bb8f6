/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file A packet of engine datagram with its headers, as a host would make it: members have the
 *  addresses 10.0.0.1 and up, and ports from 2000 on. Offsets follow RFC 894, 791 and 768. */
#pragma once

#include <string.h>

#include "coll_nicbarrier/engines/datagram/bpf/state.h"
#include "coll_nicbarrier/engines/datagram/wire/packet.h"
#include "common/support/bytes.h"

enum {
    FRAME_IP = 14,
    FRAME_UDP = 34,
    FRAME_PAYLOAD = 42,
    FRAME_UDP_SIZE = 8 + NICBARRIER_PACKET_SIZE
};

/** The sum of 16-bit numbers, folded; 0xffff over what has a right checksum in it. */
static inline uint16_t frame_sum(uint32_t sum, const unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i += 2)
        sum += onic_get16(bytes + i);
    while (sum >> 16 != 0)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)sum;
}

/** What UDP's checksum is taken over: addresses, protocol and size, too. */
static inline uint16_t frame_udp_sum(const unsigned char *frame)
{
    return frame_sum(17 + FRAME_UDP_SIZE, frame + FRAME_IP + 12, 8 + FRAME_UDP_SIZE);
}

static inline void frame_make(unsigned char frame[NICBARRIER_BPF_PACKET], uint32_t from,
                              uint32_t to, const nicbarrier_packet_t *p)
{
    const uint32_t ends[] = {to, from};

    memset(frame, 0, NICBARRIER_BPF_PACKET);
    for (int i = 0; i < 2; i++) {
        frame[6 * i] = 2;
        onic_put32(frame + 6 * i + 2, ends[i]);
        onic_put32(frame + FRAME_IP + 16 - 4 * i, UINT32_C(0x0a000001) + ends[i]);
        onic_put16(frame + FRAME_UDP + 2 - 2 * i, (uint16_t)(2000 + ends[i]));
    }
    onic_put16(frame + 12, 0x0800);
    frame[FRAME_IP] = 0x45;
    onic_put16(frame + FRAME_IP + 2, 20 + FRAME_UDP_SIZE);
    onic_put16(frame + FRAME_IP + 6, 0x4000); /* do not fragment */
    frame[FRAME_IP + 8] = 64;
    frame[FRAME_IP + 9] = 17;
    onic_put16(frame + FRAME_IP + 10, (uint16_t)~frame_sum(0, frame + FRAME_IP, 20));
    onic_put16(frame + FRAME_UDP + 4, FRAME_UDP_SIZE);
    nicbarrier_packet_encode(p, frame + FRAME_PAYLOAD);
    onic_put16(frame + FRAME_UDP + 6, (uint16_t)~frame_udp_sum(frame));
}
