/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Engine datagram: the farewell; see farewell.h, which decides. */
#include "coll_nicbarrier/engines/datagram/datagram.h"

/** Nanoseconds that barriers get which the program has forgotten, before LEFT is said. Where all
 *  have entered them they are complete by then; where not, they never are. */
#define FORGOTTEN_NSEC UINT64_C(500000000)

static void say(const nicbarrier_packet_t *p, const nicbarrier_address_t *to)
{
    unsigned char bytes[NICBARRIER_PACKET_SIZE];
    nicbarrier_packet_encode(p, bytes);
    nicbarrier_count(&nicbarrier_datagram_counters.farewells);
    nicbarrier_datagram_throw(to, bytes, false);
}

void nicbarrier_datagram_hear(const nicbarrier_packet_t *p, const nicbarrier_address_t *from)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    nicbarrier_packet_t reply;
    if (nicbarrier_farewell_hear(d->farewell, p, onic_now_nsec(), &reply)) {
        reply.back = d->cookie;
        say(&reply, from);
    }
}

static void say_left(uint64_t now)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    const nicbarrier_peer_t *peer;
    uint8_t flags;
    while ((peer = nicbarrier_farewell_expire(d->farewell, now, &flags)) != NULL) {
        const nicbarrier_packet_t p = {.kind = NICBARRIER_PACKET_LEFT,
                                       .flags = flags,
                                       .cookie = peer->cookie,
                                       .back = d->cookie};
        say(&p, &peer->at);
    }
}

static bool has_groups(void)
{
    for (int i = 0; i < NICBARRIER_DATAGRAM_LISTS; i++) {
        if (nicbarrier_datagram.list[i] != NULL) {
            return true;
        }
    }
    return false;
}

static void part(nicbarrier_net_t *net, uint64_t now)
{
    (void)now;
    for (int i = 0; i < net->npartners; i++) {
        nicbarrier_farewell_parted(nicbarrier_datagram.farewell, net->partner[i].cookie,
                                   &net->partner[i].at);
    }
}

/** Does what is due; until when there is nothing more to do, or NICBARRIER_NEVER at the end. */
static uint64_t go_on(uint64_t give_up)
{
    nicbarrier_farewell_t *f = nicbarrier_datagram.farewell;
    (void)nicbarrier_datagram_receive(NULL);
    const uint64_t now = onic_now_nsec();
    if (!f->leaving && (!has_groups() || now >= give_up)) {
        nicbarrier_datagram_each(part, now);
        nicbarrier_farewell_begin(f, now);
    }
    if (!f->leaving) {
        return give_up;
    }
    say_left(now);
    return nicbarrier_farewell_deadline(f);
}

void nicbarrier_datagram_leave(void)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    const uint64_t give_up = onic_now_nsec() + FORGOTTEN_NSEC;
    struct pollfd fds[NICBARRIER_VIAS] = {{0}};
    uint64_t until;
    nicbarrier_datagram_lock();
    while ((until = go_on(give_up)) != NICBARRIER_NEVER) {
        const uint64_t nack = atomic_load(&d->deadline), now = onic_now_nsec();
        const bool quiet = nicbarrier_datagram_arm();
        until = nack < until ? nack : until;
        nicbarrier_datagram_unlock();
        if (quiet && until > now) {
            const struct timespec time = onic_timespec(until - now);
            (void)ppoll(fds, nicbarrier_datagram_descriptors(fds), &time, NULL);
        }
        nicbarrier_datagram_lock();
    }
    nicbarrier_datagram_unlock();
}
