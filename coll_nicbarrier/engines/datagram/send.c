/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Engine datagram: state, and outgoing packets; see state.h. */
#include <sched.h>

#include "coll_nicbarrier/engines/datagram/state.h"

nicbarrier_datagram_t nicbarrier_datagram;

void nicbarrier_datagram_lock(void)
{
    while (!nicbarrier_datagram_trylock())
        sched_yield();
}

/** True if the packet is to be dropped, by the parameter drop. */
static bool is_dropped(void)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    if (nicbarrier_datagram_config.drop == 0)
        return false;
    d->random = d->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (d->random >> 33) % 1000 < (unsigned)nicbarrier_datagram_config.drop;
}

void nicbarrier_datagram_post(nicbarrier_address_t to, nicbarrier_packet_t packet)
{
    unsigned char bytes[NICBARRIER_PACKET_SIZE];
    packet.back = nicbarrier_datagram.cookie;
    nicbarrier_packet_encode(&packet, bytes);
    if (!is_dropped())
        nicbarrier_udp_send(to, bytes);
}

void nicbarrier_datagram_send(nicbarrier_net_t *net, nicbarrier_packet_kind_t kind, uint32_t k,
                              uint64_t word)
{
    const bool upwards = kind == NICBARRIER_PACKET_NACK;
    const nicbarrier_step_t *s = &net->group.step[k];
    const nicbarrier_partner_t *to = upwards ? net->from[k] : net->to[k];
    const nicbarrier_packet_t p = {.kind = (uint8_t)kind,
                                   .at = upwards ? s->wait_at : s->send_at,
                                   .from_at = (uint8_t)k,
                                   .sender = (uint32_t)net->group.me,
                                   .cookie = to->cookie,
                                   .key = net->group.key,
                                   .epoch = word,
                                   .to = (uint32_t)to->member};
    nicbarrier_datagram_post(to->at, p);
}
