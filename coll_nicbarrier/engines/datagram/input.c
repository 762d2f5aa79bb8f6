/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Engine datagram: incoming packets, and packets that are due; see state.h. The lock is held
 *  except while sleeping. */
#include <poll.h>
#include <time.h>

#include "coll_nicbarrier/engines/datagram/state.h"

/** Packets received by one call. The rest waits for the next call, so that timers are served. */
#define PACKETS_AT_ONCE 64

/* ---- packets of groups ---------------------------------------------------------------------- */

/** True if the packet comes from the sender of my step that it names, or, if `upwards`, from the
 *  receiver of that step. */
static bool fits(const nicbarrier_net_t *net, const nicbarrier_packet_t *p, bool upwards)
{
    const nicbarrier_step_t *s = &net->group.step[p->at];
    if (p->at >= net->rule.nsteps)
        return false;
    return upwards ? s->send_to == (int32_t)p->sender && s->send_at == p->from_at
                   : s->wait_for == (int32_t)p->sender && s->wait_at == p->from_at;
}

static void take_nack(nicbarrier_net_t *net, const nicbarrier_packet_t *p)
{
    if (!nicbarrier_nacks_answer(nicbarrier_net_state(net), p->at, p->epoch))
        return;
    net->to[p->at]->refused = 0;
    onic_count(&nicbarrier_datagram_counters.retransmits, 1);
    nicbarrier_datagram_send(net, NICBARRIER_PACKET_REPEAT, p->at,
                             nicbarrier_rule_word(nicbarrier_net_state(net), p->at));
}

/** An EPOCH or REPEAT packet. The kernel may have taken in its word already. */
static int take_message(nicbarrier_net_t *net, const nicbarrier_packet_t *p)
{
    const nicbarrier_word_t verdict =
        nicbarrier_rule_judge(nicbarrier_net_state(net), p->at, p->epoch);
    if (verdict == NICBARRIER_WORD_WRONG) {
        onic_count(&nicbarrier_datagram_counters.refused, 1);
        return 0;
    }
    net->from[p->at]->refused = 0;
    if (verdict == NICBARRIER_WORD_NEW) {
        nicbarrier_steps_take(net, p->at, p->epoch);
        nicbarrier_nacks_received(&net->nacks, p->at);
    }
    if (verdict == NICBARRIER_WORD_OLD && nicbarrier_net_page(net) == NULL)
        return 0;
    nicbarrier_datagram_follow(net, onic_now_nsec());
    return 1;
}

static int take_for_group(nicbarrier_net_t *net, const nicbarrier_packet_t *p)
{
    const bool nack = p->kind == NICBARRIER_PACKET_NACK;
    if (!fits(net, p, nack)) {
        onic_count(&nicbarrier_datagram_counters.refused, 1);
        return 0;
    }
    /* A packet that comes before connect is dropped: it will be asked for again. */
    if (!net->connected)
        return 0;
    if (!nack)
        return take_message(net, p);
    take_nack(net, p);
    return 0;
}

/* ---- other packets -------------------------------------------------------------------------- */

/** A NACK for a group that is unknown here is answered with the epoch that it asks for. The sender
 *  has this process's endpoint of the group, so the group existed here, all epochs entered were
 *  completed, and it was freed; a correct program has entered the same epochs everywhere. */
static void answer_for_freed(const nicbarrier_packet_t *p, nicbarrier_address_t from)
{
    const nicbarrier_packet_t reply = {.kind = NICBARRIER_PACKET_REPEAT,
                                       .at = p->from_at,
                                       .from_at = p->at,
                                       .sender = p->to,
                                       .cookie = p->back,
                                       .key = p->key,
                                       .epoch = p->epoch};
    onic_count(&nicbarrier_datagram_counters.retransmits, 1);
    nicbarrier_datagram_post(from, reply);
}

static int take(const unsigned char *bytes, size_t len, nicbarrier_address_t from)
{
    nicbarrier_packet_t p;
    if (!nicbarrier_packet_decode(bytes, len, &p) || p.cookie != nicbarrier_datagram.cookie) {
        onic_count(&nicbarrier_datagram_counters.refused, 1);
        return 0;
    }
    /* This is for the program in the kernel (bpf/state.h), which is not there. */
    if (p.kind == NICBARRIER_PACKET_WAKE)
        return 0;
    nicbarrier_net_t *net = nicbarrier_datagram_find(p.key);
    if (net != NULL)
        return take_for_group(net, &p);
    if (p.kind == NICBARRIER_PACKET_NACK)
        answer_for_freed(&p, from);
    return 0;
}

/* ---- what is due ----------------------------------------------------------------------------- */

static void expire(nicbarrier_net_t *net, uint64_t now)
{
    if (!net->connected)
        return;
    /* What the kernel has taken in by itself came earlier. */
    nicbarrier_datagram_catch_up(net, now);
    const uint64_t nacks = nicbarrier_nacks_expire(&net->nacks, &net->rule, now);
    for (uint32_t k = 0; nacks >> k != 0; k++) {
        if (nacks >> k & 1) {
            onic_count(&nicbarrier_datagram_counters.nacks, 1);
            nicbarrier_datagram_send(net, NICBARRIER_PACKET_NACK, k, net->rule.received[k] + 1);
        }
    }
    nicbarrier_datagram_follow(net, now);
}

/** Sends all NACKs that are due. */
static void expire_all(void)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    const uint64_t now = onic_now_nsec();
    if (now >= atomic_load_explicit(&d->deadline, memory_order_relaxed)) {
        atomic_store_explicit(&d->deadline, NICBARRIER_NEVER, memory_order_relaxed);
        nicbarrier_datagram_each(expire, now);
    }
}

/* ---- refused NACKs --------------------------------------------------------------------------- */

/** Fails the group if the process of this cookie is a member that this one waits for. */
static void refuse(nicbarrier_net_t *net, uint64_t cookie)
{
    for (int i = 0; i < net->npartners && net->connected; i++) {
        nicbarrier_partner_t *p = &net->partner[i];
        if (p->cookie == cookie && ++p->refused == NICBARRIER_REFUSALS) {
            nicbarrier_datagram_fail(net);
            return;
        }
    }
}

/** Takes in the refusals reported by hosts. Whoever is asked in vain is dead. What else is refused
 *  may have come after it left in good order. */
static void take_refusals(void)
{
    unsigned char bytes[NICBARRIER_PACKET_SIZE];
    nicbarrier_packet_t p;
    while (nicbarrier_udp_refused(bytes))
        if (nicbarrier_packet_decode(bytes, sizeof(bytes), &p) && p.kind == NICBARRIER_PACKET_NACK)
            nicbarrier_datagram_each(refuse, p.cookie);
}

/* ---- from the socket ------------------------------------------------------------------------- */

int nicbarrier_datagram_receive(nicbarrier_net_t *net)
{
    const uint64_t completed =
        net != NULL ? atomic_load_explicit(&net->completed, memory_order_relaxed) : 0;
    nicbarrier_address_t from;
    /* One byte more than a packet, so that longer ones are recognised as wrong. */
    unsigned char bytes[NICBARRIER_PACKET_SIZE + 1];
    int events = 0;
    for (int i = 0; i < PACKETS_AT_ONCE; i++) {
        const int len = nicbarrier_udp_receive(bytes, sizeof(bytes), &from);
        if (len < 0)
            break;
        events += take(bytes, (size_t)len, from);
        if (net != NULL && atomic_load_explicit(&net->completed, memory_order_relaxed) != completed)
            return events;
    }
    take_refusals();
    expire_all();
    return events;
}

/* ---- sleep ---------------------------------------------------------------------------------- */

void nicbarrier_datagram_sleep(int more, uint64_t until)
{
    struct pollfd fds[] = {{.fd = nicbarrier_udp_descriptor(), .events = POLLIN},
                           {.fd = more, .events = POLLIN}};
    const uint64_t now = onic_now_nsec();
    const struct timespec left = onic_timespec(until > now ? until - now : 0);
    (void)ppoll(fds, 2, &left, NULL);
}
