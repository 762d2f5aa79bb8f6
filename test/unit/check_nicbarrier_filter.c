/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The filter of engine datagram's socket: executed by an interpreter on datagrams of both families,
 * beside what it is to do; and the budget for what gets through it. That the kernel takes it is
 * checked by check_nicbarrier_datagram.
 */
#include "coll_nicbarrier/engines/datagram/filter.h"

#include <arpa/inet.h>
#include <string.h>

#include "coll_nicbarrier/engines/datagram/budget.h"
#include "coll_nicbarrier/engines/datagram/packet.h"
#include "common/support/bytes.h"
#include "test/unit/unit.h"

enum { SIZE = 8 + NICBARRIER_PACKET_SIZE };

/* A datagram as the filter sees it. */
typedef struct datagram {
    unsigned char ip[40];   /* the network header */
    unsigned char udp[100]; /* from the header of UDP on */
    uint32_t len;           /* of that */
} datagram_t;

/* Loads of what is not there drop the packet, as in the kernel. */
static bool load(const datagram_t *d, uint32_t k, uint32_t size, uint32_t *a)
{
    const bool net = k >= (uint32_t)SKF_NET_OFF;
    const unsigned char *from = net ? d->ip + (k - (uint32_t)SKF_NET_OFF) : d->udp + k;
    const uint32_t room = net ? sizeof(d->ip) - (k - (uint32_t)SKF_NET_OFF) : d->len - k;

    if ((!net && k > d->len) || size > room)
        return false;
    *a = size == 4 ? onic_get32(from) : size == 2 ? onic_get16(from) : *from;
    return true;
}

/* Does the program let it pass? */
static bool passes(const struct sock_filter *program, unsigned n, const datagram_t *d)
{
    uint32_t a = 0;

    for (unsigned i = 0; i < n; i++) {
        const struct sock_filter *f = &program[i];
        switch (f->code) {
        case BPF_LD | BPF_W | BPF_LEN:
            a = d->len;
            break;
        case BPF_LD | BPF_W | BPF_ABS:
        case BPF_LD | BPF_H | BPF_ABS:
        case BPF_LD | BPF_B | BPF_ABS:
            if (!load(d, f->k,
                      BPF_SIZE(f->code) == BPF_W   ? 4
                      : BPF_SIZE(f->code) == BPF_H ? 2
                                                   : 1,
                      &a))
                return false;
            break;
        case BPF_ALU | BPF_RSH | BPF_K:
            a >>= f->k;
            break;
        case BPF_ALU | BPF_AND | BPF_K:
            a &= f->k;
            break;
        case BPF_JMP | BPF_JEQ | BPF_K:
            i += a == f->k ? f->jt : f->jf;
            break;
        case BPF_JMP | BPF_JA:
            i += f->k;
            break;
        case BPF_RET | BPF_K:
            return f->k != 0;
        default:
            ck_abort_msg("instruction %u: code %x", i, f->code);
        }
    }
    ck_abort_msg("the program does not end");
    return false;
}

static nicbarrier_ip_t ip_of(const char *text)
{
    nicbarrier_ip_t p = {.prefix = 8};

    p.family = inet_pton(AF_INET, text, p.bytes) == 1 ? 4 : 6;
    if (p.family == 6)
        ck_assert_int_eq(inet_pton(AF_INET6, text, p.bytes), 1);
    return p;
}

/* A good packet to this address. */
static datagram_t to(const char *text, uint32_t cookie)
{
    const nicbarrier_ip_t ip = ip_of(text);
    const nicbarrier_packet_t p = {.kind = NICBARRIER_PACKET_POKE, .cookie = cookie, .key = 1};
    datagram_t d = {.len = SIZE};

    d.ip[0] = ip.family == 4 ? 0x45 : 0x60;
    memcpy(d.ip + (ip.family == 4 ? 16 : 24), ip.bytes, ip.family == 4 ? 4 : 16);
    nicbarrier_packet_encode(&p, d.udp + 8);
    return d;
}

START_TEST(only_what_is_for_me)
{
    static const char *const addresses[] = {"10.1.2.3",   "fd00::7", "192.168.0.1", "fd00:0:1::7",
                                            "172.16.9.9", "fe00::1", "10.1.2.4",    "fd00::8"};
    static const char *const others[] = {"10.1.2.5",  "fd00::9", "11.1.2.3",
                                         "126.0.0.1", "::",      "fd00:0:2::7"};
    const uint32_t cookie = 0x01020304;
    struct sock_filter program[NICBARRIER_FILTER_MAX];

    for (uint8_t n = 1; n <= NICBARRIER_IPS_MAX; n++) {
        nicbarrier_udp_address_t mine = {.cookie = cookie, .n = n};
        for (uint8_t i = 0; i < n; i++)
            mine.ip[i] = ip_of(addresses[i]);
        const unsigned len = nicbarrier_filter_build(&mine, program);
        ck_assert_uint_le(len, NICBARRIER_FILTER_MAX);
        for (uint8_t i = 0; i < NICBARRIER_IPS_MAX; i++) {
            const datagram_t d = to(addresses[i], cookie);
            ck_assert(passes(program, len, &d) == (i < n));
        }
        for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
            const datagram_t d = to(others[i], cookie);
            ck_assert(!passes(program, len, &d));
        }
        const datagram_t four = to("127.0.0.1", cookie), six = to("::1", cookie);
        ck_assert(passes(program, len, &four) && passes(program, len, &six));
    }
}
END_TEST

START_TEST(only_packets_with_my_cookie)
{
    const nicbarrier_udp_address_t mine = {
        .cookie = 0x01020304, .n = 1, .ip = {{.family = 4, .bytes = {10, 0, 0, 1}}}};
    struct sock_filter program[NICBARRIER_FILTER_MAX];
    const unsigned len = nicbarrier_filter_build(&mine, program);
    datagram_t d = to("10.0.0.1", mine.cookie);

    ck_assert(passes(program, len, &d));
    for (uint32_t size = 0; size <= sizeof(d.udp); size++) {
        d.len = size;
        ck_assert(passes(program, len, &d) == (size == SIZE));
    }
    d.len = SIZE;
    for (int bit = 0; bit < 8 * 8; bit++) {
        const int byte = 8 + bit / 8;
        d.udp[byte] ^= (unsigned char)(1 << bit % 8);
        /* Version and kind are for the process to check. */
        ck_assert(passes(program, len, &d) == (byte == 10 || byte == 11));
        d.udp[byte] ^= (unsigned char)(1 << bit % 8);
    }
}
END_TEST

/* ---- the budget -------------------------------------------------------------------------------
 */

/* However much comes, no more is taken in than what is earned; and what is little is never held up.
 */
START_TEST(budget)
{
    nicbarrier_budget_t b = {0};
    const uint64_t second = UINT64_C(1000000000);
    uint64_t now = second, taken = 0;

    for (uint64_t begun = now; now < begun + 10 * second;) {
        const uint64_t pause = nicbarrier_budget_pause(&b, now);
        if (pause > 0) {
            ck_assert_uint_ge(pause, NICBARRIER_BUDGET_PAUSE);
            ck_assert_uint_lt(pause, second);
            now += pause;
            continue;
        }
        nicbarrier_budget_spend(&b, now);
        taken++;
        now += 1000;
    }
    const uint64_t earned = (NICBARRIER_BUDGET_BURST + 10 * second) / NICBARRIER_BUDGET_COST;
    ck_assert_uint_le(taken, earned + 1);
    ck_assert_uint_ge(taken, earned * 9 / 10);
    now += second;
    for (int i = 0; i < 10000; i++, now += 2 * NICBARRIER_BUDGET_COST) {
        nicbarrier_budget_spend(&b, now);
        ck_assert_uint_eq(nicbarrier_budget_pause(&b, now), 0);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {only_what_is_for_me, only_packets_with_my_cookie, budget};

    return unit_run("nicbarrier_filter", tests, sizeof(tests) / sizeof(tests[0]));
}
