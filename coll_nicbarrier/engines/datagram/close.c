/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Engine datagram: how a process ends; see linger.h, which decides. */
#include "coll_nicbarrier/engines/datagram/datagram.h"

/** Nanoseconds that barriers get which the program has forgotten, before FIN is sent. Where all
 *  have entered them they are complete by then; where not, they never are. */
#define FORGOTTEN_NSEC UINT64_C(500000000)

static void send_fins(uint64_t now)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    const nicbarrier_peer_t *peer;
    while ((peer = nicbarrier_linger_expire(&d->linger, now)) != NULL) {
        unsigned char bytes[NICBARRIER_PACKET_SIZE];
        const nicbarrier_packet_t p = {
            .kind = NICBARRIER_PACKET_FIN, .cookie = peer->cookie, .back = d->cookie};
        nicbarrier_packet_encode(&p, bytes);
        nicbarrier_datagram_transmit(&peer->at, bytes, false);
    }
}

static bool has_groups(void)
{
    bool any = false;
    for (int i = 0; i < NICBARRIER_DATAGRAM_LISTS; i++) {
        any |= nicbarrier_datagram.list[i] != NULL;
    }
    return any;
}

/** Does what is due; until when there is nothing more to do, or NICBARRIER_NEVER at the end. */
static uint64_t go_on(uint64_t give_up)
{
    nicbarrier_linger_t *l = &nicbarrier_datagram.linger;
    (void)nicbarrier_datagram_receive(NULL);
    const uint64_t now = onic_now_nsec();
    if (!l->begun && (!has_groups() || now >= give_up)) {
        nicbarrier_linger_begin(l, now);
    }
    if (!l->begun) {
        return give_up;
    }
    send_fins(now);
    return nicbarrier_linger_deadline(l);
}

void nicbarrier_datagram_linger(void)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    const uint64_t give_up = onic_now_nsec() + FORGOTTEN_NSEC;
    uint64_t until;
    nicbarrier_datagram_lock();
    while ((until = go_on(give_up)) != NICBARRIER_NEVER) {
        const uint64_t deadline = atomic_load(&d->deadline);
        const bool quiet = nicbarrier_datagram_arm();
        nicbarrier_datagram_unlock();
        if (quiet) {
            nicbarrier_datagram_sleep(-1, deadline < until ? deadline : until);
        }
        nicbarrier_datagram_lock();
    }
    nicbarrier_datagram_unlock();
}
