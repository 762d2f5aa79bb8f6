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
 * that packet and in clones of it. Learns packets from messages that the process repeats.
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

/** A packet that is complete except for the word of its step. */
struct packet {
    uint32_t sum; /**< the UDP checksum without the word: a sum of 16-bit numbers in this machine's
                     byte order, not folded */
    uint32_t known;    /**< 0: none has been learned yet */
    uint8_t bytes[88]; /**< with checksum and word 0 */
};

struct group {
    struct bpf_spin_lock lock;
    uint64_t due; /**< bit k: the message of step k is to be sent */
    struct packet packet[NICBARRIER_RULE_STEPS];
};

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
    nicbarrier_bpf_id_t id; /**< of the receiver's group */
    uint64_t named;
    uint64_t word;
    uint32_t kind, at, from_at, back;
    uint32_t port; /**< of the sender, in network byte order */
};

/** True if all headers have the right kind and size. */
INLINE bool is_ours(void *data, void *end)
{
    const struct ethhdr *ethernet = data;
    const struct iphdr *ip = (const void *)(ethernet + 1);
    const struct udphdr *udp = (const void *)(ip + 1);
    const uint16_t udp_size = sizeof(*udp) + NICBARRIER_PACKET_SIZE;
    return data + NICBARRIER_BPF_PACKET == end && ethernet->h_proto == bpf_htons(ETH_P_IP) &&
           ip->protocol == IPPROTO_UDP && ip->version == 4 && ip->ihl == 5 &&
           ip->tot_len == bpf_htons(sizeof(*ip) + udp_size) &&
           (ip->frag_off & bpf_htons(0x3fff)) == 0 && udp->len == bpf_htons(udp_size);
}

/** Reads a packet in place, after making all of it directly accessible. False if it is not ours. */
INLINE bool read_message(struct __sk_buff *skb, struct message *m)
{
    if (skb->len != NICBARRIER_BPF_PACKET)
        return false;
    if ((void *)(long)skb->data + NICBARRIER_BPF_PACKET > (void *)(long)skb->data_end &&
        bpf_skb_pull_data(skb, NICBARRIER_BPF_PACKET) != 0)
        return false;
    void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
    const uint8_t *p = data + NICBARRIER_BPF_PACKET - NICBARRIER_PACKET_SIZE;
    const struct udphdr *udp = data + sizeof(struct ethhdr) + sizeof(struct iphdr);
    if (data + NICBARRIER_BPF_PACKET > end || !is_ours(data, end) ||
        *(const uint16_t *)p != bpf_htons(NICBARRIER_PACKET_MAGIC) ||
        p[NICBARRIER_PACKET_VERSION_AT] != NICBARRIER_PACKET_VERSION)
        return false;
    m->id.key = bpf_be64_to_cpu(*(const uint64_t *)(p + NICBARRIER_PACKET_KEY_AT));
    m->id.cookie = bpf_ntohl(*(const uint32_t *)(p + NICBARRIER_PACKET_COOKIE_AT));
    m->id.zero = 0;
    m->named = *(const uint64_t *)(p + NICBARRIER_PACKET_SENDER_AT);
    m->word = bpf_be64_to_cpu(*(const uint64_t *)(p + NICBARRIER_PACKET_EPOCH_AT));
    m->kind = p[NICBARRIER_PACKET_KIND_AT];
    m->at = p[NICBARRIER_PACKET_STEP_AT];
    m->from_at = p[NICBARRIER_PACKET_FROM_AT];
    m->port = udp->source;
    m->back = bpf_ntohl(*(const uint32_t *)(p + NICBARRIER_PACKET_BACK_AT));
    return true;
}

/** True if the group waits for a word from that sender. The rule judges the word itself. */
INLINE bool fits(const nicbarrier_bpf_page_t *page, const struct message *m)
{
    return m->at < NICBARRIER_RULE_STEPS && page->named[m->at] == m->named;
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
        page->taken++;
        g->due |= nicbarrier_rule_advance(r);
    }
    const bool wake = finish(page) && page->wanted != 0;
    if (wake)
        page->wanted = 0;
    return wake || r->failed != failed || verdict == NICBARRIER_WORD_WRONG;
}

/** Carries out the orders of the process, which sees the effect for itself. */
INLINE void obey(struct group *g, nicbarrier_bpf_page_t *page)
{
    nicbarrier_rule_t *r = &page->rule;
    mark(page);
    nicbarrier_rule_enter(r, page->enter);
    for (uint32_t k = 0; k < NICBARRIER_RULE_STEPS && k < r->nsteps; k++)
        (void)nicbarrier_rule_receive(r, k, page->take[k]);
    g->due |= nicbarrier_rule_advance(r);
    (void)finish(page);
}

/* ---- messages -------------------------------------------------------------------------------- */

#define BYTES sizeof(((struct packet *)0)->bytes)

/** Where things are in a packet. */
enum {
    IP_ADDRESSES_AT = sizeof(struct ethhdr) + 12,
    UDP_AT = sizeof(struct ethhdr) + sizeof(struct iphdr),
    CHECKSUM_AT = UDP_AT + 6,
    PAYLOAD_AT = UDP_AT + sizeof(struct udphdr),
    WORD_AT = PAYLOAD_AT + NICBARRIER_PACKET_EPOCH_AT
};

/** A packet to be sent, or to be kept. */
struct outgoing {
    _Alignas(8) uint8_t bytes[BYTES];
};

INLINE uint16_t folded(uint64_t sum)
{
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = ~((sum & 0xffff) + (sum >> 16)) & 0xffff;
    return sum == 0 ? 0xffff : (uint16_t)sum;
}

/** Makes the message of step k with its current word. False if there is none. The packet may be
 *  learned meanwhile, and lost by that. */
INLINE bool prepare(const struct group *g, const nicbarrier_bpf_page_t *page, uint32_t k,
                    struct outgoing *out)
{
    if (k >= NICBARRIER_RULE_STEPS || g->packet[k].known == 0 ||
        (page->drop != 0 && bpf_get_prandom_u32() % 1000 < page->drop))
        return false;
    const struct packet *p = &g->packet[k];
    const uint64_t word = bpf_cpu_to_be64(nicbarrier_rule_word(&page->rule, k));
    __builtin_memcpy(out->bytes, p->bytes, BYTES);
    *(uint16_t *)(out->bytes + CHECKSUM_AT) =
        folded((uint64_t)p->sum + (word & 0xffff) + (word >> 16 & 0xffff) + (word >> 32 & 0xffff) +
               (word >> 48));
    __builtin_memcpy(out->bytes + WORD_AT, &word, sizeof(word));
    return true;
}

/** Writes a message over the packet, which has the same size. */
INLINE bool write(struct __sk_buff *skb, const struct outgoing *out)
{
    return bpf_skb_store_bytes(skb, 0, out->bytes, NICBARRIER_BPF_PACKET, 0) == 0;
}

/** Saves the packet as it is. */
INLINE bool save(struct __sk_buff *skb, struct outgoing *out)
{
    return bpf_skb_load_bytes(skb, 0, out->bytes, NICBARRIER_BPF_PACKET) == 0;
}

/** Keeps a packet that repeats the message of step k as the packet of that step. */
INLINE void learn(struct __sk_buff *skb, struct group *g, uint32_t k)
{
    struct outgoing out = {.bytes = {0}};
    uint32_t sum = bpf_htons(IPPROTO_UDP) + bpf_htons(NICBARRIER_BPF_PACKET - UDP_AT);
    if (k >= NICBARRIER_RULE_STEPS || !save(skb, &out))
        return;
    out.bytes[PAYLOAD_AT + NICBARRIER_PACKET_KIND_AT] = NICBARRIER_PACKET_EPOCH;
    __builtin_memset(out.bytes + WORD_AT, 0, 8);
    __builtin_memset(out.bytes + CHECKSUM_AT, 0, 2);
    for (uint32_t i = IP_ADDRESSES_AT; i < NICBARRIER_BPF_PACKET; i += 2)
        sum += *(const uint16_t *)(out.bytes + i);
    bpf_spin_lock(&g->lock);
    __builtin_memcpy(g->packet[k].bytes, out.bytes, BYTES);
    g->packet[k].sum = sum;
    g->packet[k].known = 1;
    bpf_spin_unlock(&g->lock);
}

/* ---- TC -------------------------------------------------------------------------------------- */

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

SEC("tc")
int nicbarrier_in(struct __sk_buff *skb)
{
    struct message m;
    struct outgoing saved = {.bytes = {0}};
    if (!read_message(skb, &m) || m.kind != NICBARRIER_PACKET_EPOCH)
        return TC_ACT_UNSPEC;
    struct group *g = bpf_map_lookup_elem(&groups, &m.id);
    nicbarrier_bpf_page_t *page = g == NULL ? NULL : page_of(&m.id);
    if (g == NULL || page == NULL || !fits(page, &m))
        return TC_ACT_UNSPEC;
    bpf_spin_lock(&g->lock);
    const bool up = take(g, page, &m);
    const uint64_t due = g->due;
    g->due = 0;
    bpf_spin_unlock(&g->lock);
    if (due == 0)
        return up ? TC_ACT_UNSPEC : TC_ACT_SHOT;
    (void)save(skb, &saved);
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
    if (!read_message(skb, &m) ||
        (m.kind != NICBARRIER_PACKET_WAKE && m.kind != NICBARRIER_PACKET_REPEAT))
        return TC_ACT_UNSPEC;
    if (m.kind == NICBARRIER_PACKET_REPEAT)
        m.id.cookie = m.back;
    struct group *g = bpf_map_lookup_elem(&groups, &m.id);
    nicbarrier_bpf_page_t *page = g == NULL ? NULL : page_of(&m.id);
    if (g == NULL || page == NULL)
        return TC_ACT_UNSPEC;
    if (m.kind == NICBARRIER_PACKET_REPEAT) {
        /* Others may send from this host, too. */
        if (m.port == page->port)
            learn(skb, g, m.from_at);
        return TC_ACT_UNSPEC;
    }
    bpf_spin_lock(&g->lock);
    obey(g, page);
    const uint64_t due = g->due;
    g->due = 0;
    bpf_spin_unlock(&g->lock);
    return send_all(skb, g, page, due) ? TC_ACT_UNSPEC : TC_ACT_STOLEN;
}
