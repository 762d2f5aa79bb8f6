/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The programs that step barriers in the kernel, compiled for a process, and a group of
 * members that each have one. Packets are the real ones, over IPv4. Linked without PIE: a program's
 * pointers into a packet have 32 bits. */
#pragma once

#include <stdatomic.h>
#include <string.h>

#include "coll_nicbarrier/engines/datagram/bpf/frame.c"

/* Names that other files here have, too. */
#define folded(...) kernel_folded(__VA_ARGS__)
#define take(...)   kernel_take(__VA_ARGS__)
#define write(...)  kernel_write(__VA_ARGS__)
#include "coll_nicbarrier/engines/datagram/bpf/program.c"
#undef folded
#undef take
#undef write

#include "coll_nicbarrier/engines/datagram/wire/packet.c"
#include "coll_nicbarrier/schedule/schedule.h"

#define KERNEL_MEMBERS 4
#define KERNEL_KEY     UINT64_C(0x1122334455667788)
#define KERNEL_COOKIE  1000U

static struct group kernel_group[KERNEL_MEMBERS];
/** NULL: the group is not in that kernel (any more). */
static nicbarrier_bpf_page_t *_Atomic kernel_page[KERNEL_MEMBERS];

/** A member's kernel sends a packet: the program that includes this defines it. */
static void kernel_sends(unsigned member, const nicbarrier_packet_t *p);
/** The lock of a member's group, likewise. */
static void kernel_lock(unsigned member);
static void kernel_unlock(unsigned member);

/** A packet that a program has before it. `ifindex` is the member whose kernel it is. */
typedef struct kernel_skb {
    struct __sk_buff skb;
    uint8_t bytes[NICBARRIER_BPF_PACKET_V4];
} kernel_skb_t;

/* ---- helpers
 * ------------------------------------------------------------------------------------- */

static unsigned member_of(const nicbarrier_bpf_id_t *id)
{
    const unsigned i = id->cookie - KERNEL_COOKIE;
    return id->key == KERNEL_KEY && i < KERNEL_MEMBERS && kernel_page[i] != NULL ? i
                                                                                 : KERNEL_MEMBERS;
}

static void *bpf_map_lookup_elem(void *map, const void *key)
{
    if (map != &groups && map != &pages)
        return map;
    const unsigned i = member_of(key);
    if (i == KERNEL_MEMBERS)
        return NULL;
    return map == &groups ? (void *)&kernel_group[i] : (void *)kernel_page[i];
}

static void bpf_spin_lock(struct bpf_spin_lock *lock)
{
    kernel_lock((unsigned)((struct group *)(void *)lock - kernel_group));
}

static void bpf_spin_unlock(struct bpf_spin_lock *lock)
{
    kernel_unlock((unsigned)((struct group *)(void *)lock - kernel_group));
}

static uint32_t bpf_get_prandom_u32(void)
{
    return 0;
}

static uint8_t *bytes_of(const struct __sk_buff *skb)
{
    return (uint8_t *)(uintptr_t)skb->data;
}

static long bpf_skb_store_bytes(struct __sk_buff *skb, uint32_t at, const void *from, uint32_t len,
                                uint64_t flags)
{
    (void)flags;
    memcpy(bytes_of(skb) + at, from, len);
    return 0;
}

static long bpf_skb_load_bytes(const struct __sk_buff *skb, uint32_t at, void *to, uint32_t len)
{
    memcpy(to, bytes_of(skb) + at, len);
    return 0;
}

static long bpf_skb_pull_data(struct __sk_buff *skb, uint32_t len)
{
    (void)skb, (void)len;
    return 0;
}

static void leave(const struct __sk_buff *skb)
{
    nicbarrier_packet_t p;
    const uint8_t *payload = bytes_of(skb) + NICBARRIER_BPF_PACKET_V4 - NICBARRIER_PACKET_SIZE;
    if (nicbarrier_packet_decode(payload, NICBARRIER_PACKET_SIZE, &p) == NULL &&
        p.kind != NICBARRIER_PACKET_WAKE)
        kernel_sends(skb->ifindex, &p);
}

static long bpf_clone_redirect(struct __sk_buff *skb, uint32_t interface, uint64_t flags)
{
    (void)interface, (void)flags;
    leave(skb);
    return 0;
}

static long bpf_redirect(uint32_t interface, uint64_t flags)
{
    (void)interface, (void)flags;
    return TC_ACT_REDIRECT;
}

/* ---- a group
 * ------------------------------------------------------------------------------------- */

static nicbarrier_bpf_end_t kernel_end(unsigned i)
{
    return (nicbarrier_bpf_end_t){.port = (uint16_t)(2000 + i), .ip = {10, 0, 0, (uint8_t)(i + 1)}};
}

static void kernel_payload(const nicbarrier_step_t *s, unsigned from, unsigned k,
                           unsigned char bytes[NICBARRIER_PACKET_SIZE])
{
    const nicbarrier_packet_t p = {.kind = NICBARRIER_PACKET_EPOCH,
                                   .at = s->send_at,
                                   .from_at = (uint8_t)k,
                                   .sender = from,
                                   .cookie = KERNEL_COOKIE + (unsigned)s->send_to,
                                   .key = KERNEL_KEY};
    nicbarrier_packet_encode(&p, bytes);
}

/** Gives member `i` its packets, and its partners, whose packets must be there first, with
 * `partners`. */
static void kernel_plan(unsigned i, const nicbarrier_step_t *step, int nsteps, bool partners)
{
    struct group *g = &kernel_group[i];
    unsigned char bytes[NICBARRIER_PACKET_SIZE];
    for (int k = 0; k < nsteps; k++) {
        const nicbarrier_step_t *s = &step[k];
        const nicbarrier_bpf_end_t me = kernel_end(i);
        if (!partners && s->send_to != NICBARRIER_NOBODY) {
            const nicbarrier_bpf_end_t to = kernel_end((unsigned)s->send_to);
            kernel_payload(s, i, (unsigned)k, bytes);
            nicbarrier_bpf_frame(&g->packet[k], false, &me, &to, bytes);
        }
        if (partners && s->wait_for != NICBARRIER_NOBODY) {
            const uint8_t *theirs = kernel_group[s->wait_for].packet[s->wait_at].bytes;
            nicbarrier_bpf_sender_t *sender = &g->sender[k];
            memcpy(sender->ip, theirs + sizeof(struct ethhdr) + 12, 4);
            memcpy(&sender->named,
                   theirs + NICBARRIER_BPF_PACKET_V4 - NICBARRIER_PACKET_SIZE +
                       NICBARRIER_PACKET_SENDER_AT,
                   8);
            sender->port[0] = bpf_htons(kernel_end((unsigned)s->wait_for).port);
            sender->port[1] = bpf_htons(me.port);
        }
    }
}

/* ---- packets
 * ------------------------------------------------------------------------------------- */

static void fill_skb(kernel_skb_t *b, unsigned member)
{
    b->skb = (struct __sk_buff){.len = sizeof(b->bytes), .ifindex = member};
    b->skb.data = (uint32_t)(uintptr_t)b->bytes;
    b->skb.data_end = b->skb.data + (uint32_t)sizeof(b->bytes);
}

/** A word of step `k` of member `from` comes to the kernel of `to`. True where it goes on to the
 * process. */
static bool kernel_in(kernel_skb_t *b, unsigned to, unsigned from, unsigned k,
                      nicbarrier_packet_kind_t kind, uint64_t word)
{
    uint8_t *payload = b->bytes + sizeof(b->bytes) - NICBARRIER_PACKET_SIZE;
    fill_skb(b, to);
    memcpy(b->bytes, kernel_group[from].packet[k].bytes, sizeof(b->bytes));
    payload[NICBARRIER_PACKET_KIND_AT] = (uint8_t)kind;
    onic_put64(payload + NICBARRIER_PACKET_EPOCH_AT, word);
    const int verdict = nicbarrier_in(&b->skb);
    if (verdict == TC_ACT_REDIRECT)
        leave(&b->skb);
    return verdict == TC_ACT_UNSPEC;
}

/** A process of member `i` rings. */
static void kernel_out(kernel_skb_t *b, unsigned i)
{
    const nicbarrier_packet_t p = {
        .kind = NICBARRIER_PACKET_WAKE, .cookie = KERNEL_COOKIE + i, .key = KERNEL_KEY};
    const nicbarrier_bpf_end_t me = kernel_end(i);
    nicbarrier_bpf_packet_t packet;
    unsigned char bytes[NICBARRIER_PACKET_SIZE];
    nicbarrier_packet_encode(&p, bytes);
    nicbarrier_bpf_frame(&packet, false, &me, &me, bytes);
    fill_skb(b, i);
    memcpy(b->bytes, packet.bytes, sizeof(b->bytes));
    if (nicbarrier_out(&b->skb) == TC_ACT_UNSPEC)
        leave(&b->skb);
}
