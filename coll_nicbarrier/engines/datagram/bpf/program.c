/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Barriers in the kernel: the programs. See state.h. Compiled for eBPF only.
 *
 *  - TC, ingress: takes in words that arrive. Messages that become due go out in the packet that
 * brought the word and in clones of it.
 *  - TC, egress: sees the process's WAKE and reads the page. Messages that become due go out in
 * that packet and in clones of it.
 *
 * XDP instead of TC ingress was not faster between hosts on one machine (either takes 4.9 us for a
 * barrier of two hosts); it has only one packet for all messages due, and it needs a driver that
 * does not lose what it sends.
 *
 * Other packets pass with TC_ACT_UNSPEC. TC_ACT_OK would end TC's list and so skip later filters of
 * the host, which may be there to keep packets out.
 *
 * A program can send only packets that it holds: no kernel lets a program make one. A packet that
 * is not ours passes after a few comparisons. A packet that does not fit the group's state here is
 * left to the process. The UDP checksum is not verified: Ethernet's CRC covers the path from the
 * last switch, and key and cookie, 96 random bits, cover the rest.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <linux/udp.h>
#include <stdbool.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "coll_nicbarrier/engines/datagram/bpf/state.h"
#include "coll_nicbarrier/engines/datagram/wire/packet.h"

#define INLINE static __attribute__((always_inline)) inline

const char terms[] SEC("license") = "Dual BSD/GPL";

/* ---- maps ------------------------------------------------------------------------------------ */

/** See state.h. */
struct group {
    struct bpf_spin_lock lock;
    NICBARRIER_BPF_GROUP_FIELDS
};

_Static_assert(sizeof(struct group) == sizeof(nicbarrier_bpf_group_t), "both see the same");

struct page {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(key_size, sizeof(uint32_t));
    __uint(value_size, sizeof(nicbarrier_bpf_page_t));
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, NICBARRIER_BPF_GROUPS);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, nicbarrier_bpf_id_t);
    __type(value, struct group);
} groups SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
    __uint(max_entries, NICBARRIER_BPF_GROUPS);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, nicbarrier_bpf_id_t);
    __array(values, struct page);
} pages SEC(".maps");

/* ---- incoming packets ----------------------------------------------------------------------- */

/** The fields read from one of our packets. */
struct message {
    nicbarrier_bpf_id_t id;
    nicbarrier_bpf_sender_t sender;
    uint32_t kind, at;
    uint64_t word;
};

/** The UDP header in a packet whose headers all have the right size; otherwise NULL. Notes the
 *  sender. */
INLINE void *find_udp(void *data, void *end, nicbarrier_bpf_sender_t *sender)
{
    const struct ethhdr *ethernet = data;
    const struct iphdr *four = data + sizeof(*ethernet);
    const struct ipv6hdr *six = data + sizeof(*ethernet);
    const uint16_t udp_size = sizeof(struct udphdr) + NICBARRIER_PACKET_SIZE;
    if (data + NICBARRIER_BPF_PACKET_V4 > end)
        return NULL;
    if (ethernet->h_proto == bpf_htons(ETH_P_IP)) {
        sender->ip[0] = four->saddr;
        sender->ip[1] = 0;
        return four->protocol == IPPROTO_UDP && four->version == 4 && four->ihl == 5 &&
                       four->tot_len == bpf_htons(sizeof(*four) + udp_size) &&
                       (four->frag_off & bpf_htons(0x3fff)) == 0 &&
                       data + NICBARRIER_BPF_PACKET_V4 == end
                   ? (void *)(four + 1)
                   : NULL;
    }
    if (data + NICBARRIER_BPF_PACKET_V6 > end || ethernet->h_proto != bpf_htons(ETH_P_IPV6))
        return NULL;
    __builtin_memcpy(sender->ip, &six->saddr, sizeof(sender->ip));
    return six->nexthdr == IPPROTO_UDP && six->payload_len == bpf_htons(udp_size) &&
                   data + NICBARRIER_BPF_PACKET_V6 == end
               ? (void *)(six + 1)
               : NULL;
}

/** Reads a packet. False if it is not ours. */
INLINE bool read_message(void *data, void *end, struct message *m)
{
    const struct udphdr *udp = find_udp(data, end, &m->sender);
    const uint8_t *p = (const uint8_t *)(udp + 1);
    if (udp == NULL || p + NICBARRIER_PACKET_SIZE > (uint8_t *)end ||
        udp->len != bpf_htons(sizeof(*udp) + NICBARRIER_PACKET_SIZE) ||
        *(const uint16_t *)p != bpf_htons(NICBARRIER_PACKET_MAGIC) ||
        p[NICBARRIER_PACKET_VERSION_AT] != NICBARRIER_PACKET_VERSION)
        return false;
    m->id.key = bpf_be64_to_cpu(*(const uint64_t *)(p + NICBARRIER_PACKET_KEY_AT));
    m->id.cookie = bpf_ntohl(*(const uint32_t *)(p + NICBARRIER_PACKET_COOKIE_AT));
    m->id.zero = 0;
    m->kind = p[NICBARRIER_PACKET_KIND_AT];
    m->at = p[NICBARRIER_PACKET_STEP_AT];
    m->sender.named = *(const uint64_t *)(p + NICBARRIER_PACKET_SENDER_AT);
    m->sender.port[0] = udp->source;
    m->sender.port[1] = udp->dest;
    m->word = bpf_be64_to_cpu(*(const uint64_t *)(p + NICBARRIER_PACKET_EPOCH_AT));
    return true;
}

/** True if the group waits for a word from that sender. The rule judges the word itself. */
INLINE bool fits(const struct group *g, const struct message *m)
{
    const uint32_t k = m->at;
    if (k >= NICBARRIER_RULE_STEPS)
        return false;
    const nicbarrier_bpf_sender_t *s = &g->sender[k];
    return (m->kind == NICBARRIER_PACKET_EPOCH || m->kind == NICBARRIER_PACKET_REPEAT) &&
           s->named == m->sender.named && s->ip[0] == m->sender.ip[0] &&
           s->ip[1] == m->sender.ip[1] && s->port[0] == m->sender.port[0] &&
           s->port[1] == m->sender.port[1];
}

INLINE nicbarrier_bpf_page_t *page_of(const nicbarrier_bpf_id_t *id)
{
    const uint32_t zero = 0;
    void *inner = bpf_map_lookup_elem(&pages, id);
    nicbarrier_bpf_page_t *page = inner == NULL ? NULL : bpf_map_lookup_elem(inner, &zero);
    return page != NULL && page->key == id->key ? page : NULL;
}

/* ---- the rule; the group's lock is held ------------------------------------------------------ */

/** Marks the state as about to change, or as changed. Only an atomic operation whose result is used
 *  is a full barrier on all processors. */
INLINE void mark(nicbarrier_bpf_page_t *page)
{
    const uint64_t before = __sync_fetch_and_add(&page->version, 1);
    __asm__ volatile("" : : "r"(before));
}

/** Publishes the new state. @return true if the word has changed */
INLINE bool finish(nicbarrier_bpf_page_t *page)
{
    const nicbarrier_rule_t *r = &page->rule;
    const uint64_t word = r->completed | (r->failed ? NICBARRIER_WORD_FAILED : 0);
    const bool more = page->word != word;
    page->entered = r->entered;
    page->word = word;
    mark(page);
    return more;
}

/** Takes in the word. True if the process gets the packet, because it ends its sleep, or brings a
 *  failure or something that the rule does not understand. */
INLINE bool take(struct group *g, nicbarrier_bpf_page_t *page, const struct message *m)
{
    nicbarrier_rule_t *r = &page->rule;
    const uint8_t failed = r->failed;
    mark(page);
    const nicbarrier_word_t verdict = nicbarrier_rule_receive(r, m->at, m->word);
    if (verdict == NICBARRIER_WORD_NEW) {
        page->taken = ++g->count[NICBARRIER_BPF_WORDS];
        g->due |= nicbarrier_rule_advance(r);
    }
    const bool wake = finish(page) && page->wanted != 0;
    if (wake)
        page->wanted = 0;
    return wake || r->failed != failed || verdict == NICBARRIER_WORD_WRONG;
}

/** Carries out the orders of processes, which see the effect for themselves. */
INLINE void obey(struct group *g, nicbarrier_bpf_page_t *page)
{
    nicbarrier_rule_t *r = &page->rule;
    g->count[NICBARRIER_BPF_WAKES]++;
    mark(page);
    nicbarrier_rule_enter(r, page->enter);
    if (page->fail != 0)
        nicbarrier_rule_fail(r);
    if (page->takes != 0)
        for (uint32_t k = 0; k < NICBARRIER_RULE_STEPS; k++)
            (void)nicbarrier_rule_receive(r, k, page->take[k]);
    g->due |= nicbarrier_rule_advance(r);
    (void)finish(page);
}

/* ---- messages -------------------------------------------------------------------------------- */

#define BYTES sizeof(((nicbarrier_bpf_packet_t *)0)->bytes)

/** A packet to be sent. */
struct outgoing {
    uint32_t len;
    _Alignas(8) uint8_t bytes[BYTES];
};

INLINE uint16_t folded(uint64_t sum)
{
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = ~((sum & 0xffff) + (sum >> 16)) & 0xffff;
    return sum == 0 ? 0xffff : (uint16_t)sum;
}

/** Makes the message of step k with its current word. False if there is none. */
INLINE bool prepare(const struct group *g, const nicbarrier_bpf_page_t *page, uint32_t k,
                    struct outgoing *out)
{
    if (k >= NICBARRIER_RULE_STEPS || (g->drop != 0 && bpf_get_prandom_u32() % 1000 < g->drop))
        return false;
    const nicbarrier_bpf_packet_t *p = &g->packet[k];
    const uint64_t word = bpf_cpu_to_be64(nicbarrier_rule_word(&page->rule, k));
    const uint16_t sum = folded((uint64_t)p->sum + (word & 0xffff) + (word >> 16 & 0xffff) +
                                (word >> 32 & 0xffff) + (word >> 48));
    const uint32_t udp_in[] = {sizeof(struct ethhdr) + sizeof(struct iphdr),
                               sizeof(struct ethhdr) + sizeof(struct ipv6hdr)};
    out->len = p->len;
    __builtin_memcpy(out->bytes, p->bytes, BYTES);
    if (p->len == NICBARRIER_BPF_PACKET_V4) {
        *(uint16_t *)(out->bytes + udp_in[0] + 6) = sum;
        __builtin_memcpy(out->bytes + udp_in[0] + 8 + NICBARRIER_PACKET_EPOCH_AT, &word, 8);
    } else {
        *(uint16_t *)(out->bytes + udp_in[1] + 6) = sum;
        __builtin_memcpy(out->bytes + udp_in[1] + 8 + NICBARRIER_PACKET_EPOCH_AT, &word, 8);
    }
    return true;
}

/* ---- TC -------------------------------------------------------------------------------------- */

/** Writes a message over the packet, which has the same size. */
INLINE bool write(struct __sk_buff *skb, const struct outgoing *out)
{
    return skb->len == out->len &&
           (out->len == NICBARRIER_BPF_PACKET_V4
                ? bpf_skb_store_bytes(skb, 0, out->bytes, NICBARRIER_BPF_PACKET_V4, 0) == 0
                : bpf_skb_store_bytes(skb, 0, out->bytes, NICBARRIER_BPF_PACKET_V6, 0) == 0);
}

/** Saves the packet as it is. */
INLINE void save(struct __sk_buff *skb, struct outgoing *out)
{
    out->len = skb->len;
    if (out->len == NICBARRIER_BPF_PACKET_V4)
        (void)bpf_skb_load_bytes(skb, 0, out->bytes, NICBARRIER_BPF_PACKET_V4);
    else
        (void)bpf_skb_load_bytes(skb, 0, out->bytes, NICBARRIER_BPF_PACKET_V6);
}

/** Writes the messages that are due over the packet, one after the other, and sends a clone for
 *  each but the last, which stays in the packet.
 *  @return true if there is one */
INLINE bool send_all(struct __sk_buff *skb, const struct group *g,
                     const nicbarrier_bpf_page_t *page, uint64_t due)
{
    struct outgoing out;
    bool pending = false;
    for (uint32_t k = 0; k < NICBARRIER_RULE_STEPS && due >> k != 0; k++) {
        if ((due >> k & 1) == 0 || !prepare(g, page, k, &out))
            continue;
        if (pending)
            (void)bpf_clone_redirect(skb, skb->ifindex, 0);
        pending = write(skb, &out);
    }
    return pending;
}

/** The number of bits set. */
INLINE uint64_t bits(uint64_t set)
{
    uint64_t n = 0;
    for (uint32_t k = 0; k < NICBARRIER_RULE_STEPS; k++)
        n += set >> k & 1;
    return n;
}

/** Reads the packet in place, after making all of it directly accessible. */
INLINE bool read_skb(struct __sk_buff *skb, struct message *m)
{
    if (skb->len != NICBARRIER_BPF_PACKET_V4 && skb->len != NICBARRIER_BPF_PACKET_V6)
        return false;
    if ((void *)(long)skb->data + skb->len > (void *)(long)skb->data_end &&
        bpf_skb_pull_data(skb, skb->len) != 0)
        return false;
    return read_message((void *)(long)skb->data, (void *)(long)skb->data_end, m);
}

SEC("tc")
int nicbarrier_in(struct __sk_buff *skb)
{
    struct message m;
    struct outgoing saved;
    if (!read_skb(skb, &m))
        return TC_ACT_UNSPEC;
    struct group *g = bpf_map_lookup_elem(&groups, &m.id);
    nicbarrier_bpf_page_t *page = g == NULL ? NULL : page_of(&m.id);
    if (g == NULL || page == NULL || !fits(g, &m))
        return TC_ACT_UNSPEC;
    bpf_spin_lock(&g->lock);
    const bool up = take(g, page, &m);
    const uint64_t due = g->due;
    g->due = 0;
    g->count[NICBARRIER_BPF_SENT] += bits(due);
    g->count[NICBARRIER_BPF_UP] += up;
    bpf_spin_unlock(&g->lock);
    if (due == 0)
        return up ? TC_ACT_UNSPEC : TC_ACT_SHOT;
    save(skb, &saved);
    const bool pending = send_all(skb, g, page, due);
    if (!up)
        return pending ? bpf_redirect(skb->ifindex, 0) : TC_ACT_SHOT;
    if (pending)
        (void)bpf_clone_redirect(skb, skb->ifindex, 0);
    (void)write(skb, &saved);
    return TC_ACT_UNSPEC;
}

SEC("tc")
int nicbarrier_out(struct __sk_buff *skb)
{
    struct message m;
    if (!read_skb(skb, &m) || m.kind != NICBARRIER_PACKET_WAKE)
        return TC_ACT_UNSPEC;
    struct group *g = bpf_map_lookup_elem(&groups, &m.id);
    nicbarrier_bpf_page_t *page = g == NULL ? NULL : page_of(&m.id);
    if (g == NULL || page == NULL)
        return TC_ACT_UNSPEC;
    bpf_spin_lock(&g->lock);
    obey(g, page);
    const uint64_t due = g->due;
    g->due = 0;
    g->count[NICBARRIER_BPF_SENT] += bits(due);
    bpf_spin_unlock(&g->lock);
    return send_all(skb, g, page, due) ? TC_ACT_UNSPEC : TC_ACT_STOLEN;
}
