/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Ready-made packets; see frame.h. Offsets follow RFC 894, 791, 8200 and 768. */
#include "coll_nicbarrier/engines/datagram/bpf/frame.h"

#include <string.h>

#include "common/support/bytes.h"

enum { ETHERNET = 14, FOUR = 20, SIX = 40, UDP = 8, UDP_PROTOCOL = 17, HOPS = 64 };
#define UDP_SIZE (UDP + NICBARRIER_PACKET_SIZE)

_Static_assert(ETHERNET + FOUR + UDP_SIZE == NICBARRIER_BPF_PACKET_V4, "as the programs have it");
_Static_assert(ETHERNET + SIX + UDP_SIZE == NICBARRIER_BPF_PACKET_V6, "as the programs have it");

/** The sum of the bytes as 16-bit numbers in this machine's byte order; `n` is even. */
static uint32_t sum_of(const uint8_t *bytes, size_t n)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < n; i += 2) {
        uint16_t two;
        memcpy(&two, bytes + i, sizeof(two));
        sum += two;
    }
    return sum;
}

static uint16_t folded(uint32_t sum)
{
    while (sum >> 16 != 0)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

static void ip_header(uint8_t *h, bool six, const nicbarrier_bpf_end_t *from,
                      const nicbarrier_bpf_end_t *to)
{
    if (six) {
        h[0] = 0x60;
        onic_put16(h + 4, UDP_SIZE);
        h[6] = UDP_PROTOCOL;
        h[7] = HOPS;
        memcpy(h + 8, from->ip, 16);
        memcpy(h + 24, to->ip, 16);
        return;
    }
    h[0] = 0x45;
    onic_put16(h + 2, FOUR + UDP_SIZE);
    onic_put16(h + 6, 0x4000); /* do not fragment */
    h[8] = HOPS;
    h[9] = UDP_PROTOCOL;
    memcpy(h + 12, from->ip, 4);
    memcpy(h + 16, to->ip, 4);
    const uint16_t sum = folded(sum_of(h, FOUR));
    memcpy(h + 10, &sum, sizeof(sum));
}

void nicbarrier_bpf_frame(nicbarrier_bpf_packet_t *p, bool six, const nicbarrier_bpf_end_t *from,
                          const nicbarrier_bpf_end_t *to,
                          const unsigned char payload[NICBARRIER_PACKET_SIZE])
{
    const uint32_t addresses = six ? 32 : 8;
    uint8_t *const ip = p->bytes + ETHERNET;
    uint8_t *const udp = ip + (six ? SIX : FOUR);
    uint8_t pseudo[4];
    memset(p, 0, sizeof(*p));
    p->len = six ? NICBARRIER_BPF_PACKET_V6 : NICBARRIER_BPF_PACKET_V4;
    memcpy(p->bytes, to->mac, 6);
    memcpy(p->bytes + 6, from->mac, 6);
    onic_put16(p->bytes + 12, six ? 0x86dd : 0x0800);
    ip_header(ip, six, from, to);
    onic_put16(udp, from->port);
    onic_put16(udp + 2, to->port);
    onic_put16(udp + 4, UDP_SIZE);
    memcpy(udp + UDP, payload, NICBARRIER_PACKET_SIZE);
    onic_put64(udp + UDP + NICBARRIER_PACKET_EPOCH_AT, 0);
    /* The addresses stand before the UDP header; protocol and length are added to their sum. */
    onic_put16(pseudo, UDP_PROTOCOL);
    onic_put16(pseudo + 2, UDP_SIZE);
    p->sum = sum_of(udp - addresses, addresses + UDP_SIZE) + sum_of(pseudo, sizeof(pseudo));
}
