/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The programs that step barriers in the kernel, compiled for a process, and a group of
 * members that each have one. Packets are the real ones, over IPv4. Linked without PIE: a program's
 *  pointers into a packet have 32 bits. */
#pragma once

#include <stdatomic.h>
#include <string.h>

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
#include "test/unit/bpf_frame.h"

#define KERNEL_MEMBERS 4
#define KERNEL_KEY     UINT64_C(0x1122334455667788)
#define KERNEL_COOKIE  1000U

static struct group kernel_group[KERNEL_MEMBERS];
/** Who sends to the member, for its page. */
static uint64_t kernel_named[KERNEL_MEMBERS][NICBARRIER_RULE_STEPS];
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
    uint8_t bytes[NICBARRIER_BPF_PACKET];
} kernel_skb_t;

/* ---- helpers
 * ------------------------------------------------------------------------------------- */

static unsigned member_of(const nicbarrier_bpf_id_t *id)
{
    const unsigned i = id->cookie - KERNEL_COOKIE;
    return id->key == KERNEL_KEY && i < KERNEL_MEMBERS && kernel_page[i] != NULL ? i
                                                                                 : KERNEL_MEMBERS;
}

/** Not inlined: gcc would drop keys that nothing here reads, and warn of that. */
static __attribute__((noipa)) void *bpf_map_lookup_elem(void *map, const void *key)
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
    if (nicbarrier_packet_decode(bytes_of(skb) + FRAME_PAYLOAD, NICBARRIER_PACKET_SIZE, &p) &&
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

/** The packet of step `k` of member `from`. */
static nicbarrier_packet_t kernel_packet(const nicbarrier_step_t *s, unsigned from, unsigned k,
                                         nicbarrier_packet_kind_t kind, uint64_t word)
{
    return (nicbarrier_packet_t){.kind = (uint8_t)kind,
                                 .at = s->send_at,
                                 .from_at = (uint8_t)k,
                                 .sender = from,
                                 .cookie = KERNEL_COOKIE + (unsigned)s->send_to,
                                 .key = KERNEL_KEY,
                                 .epoch = word,
                                 .back = KERNEL_COOKIE + from};
}

static void fill_skb(kernel_skb_t *b, unsigned member);

/** Notes who sends to member `i`, and shows its kernel the member's packets. */
static void kernel_plan(unsigned i, const nicbarrier_step_t *step, int nsteps)
{
    static kernel_skb_t b;
    static nicbarrier_bpf_page_t page;
    page.key = KERNEL_KEY;
    kernel_page[i] = &page;
    memset(kernel_named[i], 0, sizeof(kernel_named[i]));
    for (int k = 0; k < nsteps; k++) {
        const nicbarrier_step_t *s = &step[k];
        if (s->send_to != NICBARRIER_NOBODY) {
            const nicbarrier_packet_t p =
                kernel_packet(s, i, (unsigned)k, NICBARRIER_PACKET_REPEAT, 1);
            fill_skb(&b, i);
            frame_make(b.bytes, i, (uint32_t)s->send_to, &p);
            page.port = *(const uint16_t *)(b.bytes + FRAME_UDP);
            (void)nicbarrier_out(&b.skb);
        }
        if (s->wait_for != NICBARRIER_NOBODY) {
            const nicbarrier_step_t theirs = {.send_to = (int32_t)i, .send_at = (uint8_t)k};
            const nicbarrier_packet_t p = kernel_packet(&theirs, (unsigned)s->wait_for, s->wait_at,
                                                        NICBARRIER_PACKET_EPOCH, 0);
            frame_make(b.bytes, (uint32_t)s->wait_for, i, &p);
            memcpy(&kernel_named[i][k], b.bytes + FRAME_PAYLOAD + NICBARRIER_PACKET_SENDER_AT, 8);
        }
    }
    kernel_page[i] = NULL;
}

/* ---- packets
 * ------------------------------------------------------------------------------------- */

static void fill_skb(kernel_skb_t *b, unsigned member)
{
    b->skb = (struct __sk_buff){.len = sizeof(b->bytes), .ifindex = member};
    b->skb.data = (uint32_t)(uintptr_t)b->bytes;
    b->skb.data_end = b->skb.data + (uint32_t)sizeof(b->bytes);
}

/** The message of a step of member `from` comes to the kernel of `to`. True where it goes on to the
 *  process. */
static bool kernel_in(kernel_skb_t *b, unsigned to, unsigned from, const nicbarrier_packet_t *p)
{
    fill_skb(b, to);
    frame_make(b->bytes, from, to, p);
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
    fill_skb(b, i);
    frame_make(b->bytes, i, i, &p);
    if (nicbarrier_out(&b->skb) == TC_ACT_UNSPEC)
        leave(&b->skb);
}
