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
/** While the socket has been idle for long, only one poll in this many includes it, because that is
 *  a system call. */
#define POLLS_LONG   1024U
#define POLLS_SELDOM 32U

/* ---- packets of groups ---------------------------------------------------------------------- */

static void prove(nicbarrier_net_t *net, nicbarrier_partner_t *partner,
                  const nicbarrier_address_t *from)
{
    /* Words that a stepper has taken in by itself came earlier. */
    if (nicbarrier_net_view(net) != NULL)
        nicbarrier_datagram_catch_up(net, onic_now_nsec());
    if (nicbarrier_reach_heard(partner, from, true))
        nicbarrier_datagram_moved(net, partner);
}

/** True if the packet comes from the sender of my step that it names, or, if `upwards`, from the
 *  receiver of that step. */
static bool fits(const nicbarrier_net_t *net, const nicbarrier_packet_t *p, bool upwards)
{
    const nicbarrier_step_t *s = &net->step[p->at];
    if (p->at >= net->nsteps)
        return false;
    return upwards ? s->send_to == (int32_t)p->sender && s->send_at == p->from_at
                   : s->wait_for == (int32_t)p->sender && s->wait_at == p->from_at;
}

static void take_nack(nicbarrier_net_t *net, const nicbarrier_packet_t *p,
                      const nicbarrier_address_t *from)
{
    nicbarrier_partner_t *to = net->to[p->at];
    const nicbarrier_rule_t *r = nicbarrier_net_state(net);
    const nicbarrier_reply_t reply = nicbarrier_nacks_answer(r, p->at, p->epoch);
    if (reply == NICBARRIER_REPLY_NONE) {
        nicbarrier_count(&nicbarrier_datagram_counters.refused);
        return;
    }
    if (nicbarrier_reach_heard(to, from, false))
        nicbarrier_datagram_moved(net, to);
    if (reply == NICBARRIER_REPLY_AGAIN) {
        nicbarrier_count(&nicbarrier_datagram_counters.retransmits);
        nicbarrier_datagram_send(net, NICBARRIER_PACKET_REPEAT, p->at, from,
                                 nicbarrier_rule_word(r, p->at));
    } else {
        nicbarrier_datagram_send(net, NICBARRIER_PACKET_LATE, p->at, from, p->epoch);
    }
}

/** An EPOCH or REPEAT packet. A stepper that advances by itself may have taken in its word already.
 */
static int take_message(nicbarrier_net_t *net, const nicbarrier_packet_t *p,
                        const nicbarrier_address_t *from)
{
    nicbarrier_partner_t *partner = net->from[p->at];
    const nicbarrier_word_t verdict =
        nicbarrier_rule_judge(nicbarrier_net_state(net), p->at, p->epoch);
    if (verdict == NICBARRIER_WORD_WRONG) {
        nicbarrier_count(&nicbarrier_datagram_counters.refused);
        return 0;
    }
    prove(net, partner, from);
    if (verdict == NICBARRIER_WORD_NEW) {
        nicbarrier_offload_take(net, p->at, p->epoch);
        net->heard[p->at] = p->epoch & ~NICBARRIER_WORD_FAILED;
        nicbarrier_nacks_received(&net->nacks, p->at);
    }
    if (verdict == NICBARRIER_WORD_OLD && nicbarrier_net_view(net) == NULL)
        return 0;
    nicbarrier_datagram_follow(net, onic_now_nsec());
    return 1;
}

static int take_for_group(nicbarrier_net_t *net, const nicbarrier_packet_t *p,
                          const nicbarrier_address_t *from)
{
    if (!fits(net, p, p->kind == NICBARRIER_PACKET_NACK)) {
        nicbarrier_count(&nicbarrier_datagram_counters.refused);
        return 0;
    }
    /* A packet that comes before connect is dropped: it will be asked for again. */
    if (!net->connected)
        return 0;
    switch (p->kind) {
    case NICBARRIER_PACKET_NACK:
        take_nack(net, p, from);
        return 0;
    case NICBARRIER_PACKET_LATE:
        prove(net, net->from[p->at], from);
        return 0;
    default:
        return take_message(net, p, from);
    }
}

/* ---- other packets -------------------------------------------------------------------------- */

/** A NACK for a group that is unknown here is answered with the epoch that it asks for. The sender
 * has this process's endpoint of the group, so the group existed here, all epochs entered were
 * completed, and it was freed; a correct program has entered the same epochs everywhere. */
static void answer_for_freed(const nicbarrier_packet_t *p, const nicbarrier_address_t *from)
{
    const nicbarrier_packet_t reply = {.kind = NICBARRIER_PACKET_REPEAT,
                                       .at = p->from_at,
                                       .from_at = p->at,
                                       .sender = p->to,
                                       .cookie = p->back,
                                       .key = p->key,
                                       .epoch = p->epoch};
    nicbarrier_count(&nicbarrier_datagram_counters.retransmits);
    nicbarrier_datagram_post(from, reply);
}

static int take(const unsigned char *bytes, size_t len, const nicbarrier_address_t *from)
{
    nicbarrier_packet_t p;
    if (nicbarrier_packet_decode(bytes, len, &p) != NULL ||
        p.cookie != nicbarrier_datagram.cookie) {
        nicbarrier_count(&nicbarrier_datagram_counters.refused);
        return 0;
    }
    /* A WAKE only has to end the helper thread's sleep, and has done so. */
    if (p.kind == NICBARRIER_PACKET_WAKE)
        return 0;
    nicbarrier_net_t *net = nicbarrier_datagram_find(p.key);
    if (net != NULL)
        return take_for_group(net, &p, from);
    if (p.kind == NICBARRIER_PACKET_NACK)
        answer_for_freed(&p, from);
    return 0;
}

/* ---- what is due ----------------------------------------------------------------------------- */

/** True if the partner has been silent for longer than parameter `silence` allows. */
static bool is_silent(const nicbarrier_partner_t *p, uint64_t now)
{
    const uint64_t limit = (uint64_t)nicbarrier_datagram_config.silence * UINT64_C(1000000000);
    return limit != 0 && p->unanswered > NICBARRIER_REACH_TRIES && now - p->silent_since > limit;
}

static void send_nack(nicbarrier_net_t *net, uint32_t k, uint64_t epoch, uint64_t now)
{
    nicbarrier_partner_t *from = net->from[k];
    nicbarrier_count(&nicbarrier_datagram_counters.nacks);
    nicbarrier_reach_nack(from, net->expected, now);
    if (!from->proven)
        nicbarrier_datagram_moved(net, from);
    nicbarrier_datagram_send(net, NICBARRIER_PACKET_NACK, k, &from->at, epoch);
    if (is_silent(from, now))
        nicbarrier_datagram_set_failed(net);
}

static void expire(nicbarrier_net_t *net, uint64_t now)
{
    if (!net->connected)
        return;
    if (nicbarrier_net_view(net) != NULL)
        nicbarrier_datagram_catch_up(net, now);
    const nicbarrier_rule_t *r = nicbarrier_net_state(net);
    const uint64_t nacks = nicbarrier_nacks_expire(&net->nacks, r, now);
    for (uint32_t k = 0; nacks >> k != 0; k++)
        if (nacks >> k & 1)
            send_nack(net, k, r->received[k] + 1, now);
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

/* ---- refused packets
 * -------------------------------------------------------------------------------- */

/** The packet that was refused: the cookie it carried, and the address it was sent to. */
typedef struct refusal {
    uint32_t cookie;
    nicbarrier_address_t to;
} refusal_t;

/** Fails the group if the refusing process is a member that this one waits for. */
static void refuse(nicbarrier_net_t *net, uint64_t what)
{
    const refusal_t *r = (const refusal_t *)(uintptr_t)what;
    for (int i = 0; i < net->npartners && net->connected; i++) {
        nicbarrier_partner_t *p = &net->partner[i];
        if (p->cookie == r->cookie && nicbarrier_reach_refused(p, &r->to)) {
            nicbarrier_datagram_fail(net);
            return;
        }
    }
}

/** Takes in the refusals reported by hosts. */
static void take_refusals(void)
{
    unsigned char bytes[NICBARRIER_PACKET_SIZE];
    nicbarrier_packet_t p;
    refusal_t r;
    while (nicbarrier_udp_refused(bytes, &r.to)) {
        if (nicbarrier_packet_decode(bytes, sizeof(bytes), &p) == NULL) {
            r.cookie = p.cookie;
            nicbarrier_datagram_each(refuse, (uintptr_t)&r);
        }
    }
}

/* ---- from the socket ------------------------------------------------------------------------- */

/** True if it is time to poll the socket for a group, or for all groups (NULL). Rare where a
 *  stepper takes in the words. */
static bool is_due(const nicbarrier_net_t *net)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    const unsigned polls = ++d->polls;
    const bool seldom = net != NULL && nicbarrier_net_view(net) != NULL;
    return !seldom || polls < POLLS_LONG || polls % POLLS_SELDOM == 0 ||
           atomic_load_explicit(&d->due, memory_order_relaxed);
}

int nicbarrier_datagram_receive(nicbarrier_net_t *net)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    const uint64_t completed =
        net != NULL ? atomic_load_explicit(&net->completed, memory_order_relaxed) : 0;
    const bool due = is_due(net);
    nicbarrier_address_t from;
    /* One byte more than a packet, so that longer ones are recognised as wrong. */
    unsigned char bytes[NICBARRIER_PACKET_SIZE + 1];
    int events = 0;
    for (int i = 0; due && i < PACKETS_AT_ONCE; i++) {
        const int len = nicbarrier_udp_receive(bytes, sizeof(bytes), &from);
        if (len < 0) {
            atomic_store_explicit(&d->due, false, memory_order_relaxed);
            break;
        }
        d->polls = 0;
        events += take(bytes, (size_t)len, &from);
        if (net != NULL && atomic_load_explicit(&net->completed, memory_order_relaxed) != completed)
            return events;
    }
    if (due)
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
    if (ppoll(fds, 2, &left, NULL) > 0 && fds[0].revents != 0)
        atomic_store_explicit(&nicbarrier_datagram.due, true, memory_order_relaxed);
}
