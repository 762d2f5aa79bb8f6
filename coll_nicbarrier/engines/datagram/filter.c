/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file A filter for a UDP socket; see filter.h. Its data begin with the header of UDP. */
#include "coll_nicbarrier/engines/datagram/filter.h"

#include "coll_nicbarrier/engines/datagram/packet.h"
#include "common/support/bytes.h"

enum { UDP_HEAD = 8, IP4_TO = 16, IP6_TO = 24, WORDS = 4 };

typedef struct program {
    struct sock_filter *at;
    unsigned n;
} program_t;

static const unsigned char loopback6[16] = {[15] = 1};

static unsigned emit(program_t *p, unsigned code, uint32_t k)
{
    p->at[p->n] = (struct sock_filter){.code = (uint16_t)code, .k = k};
    return p->n++;
}

/* A test whose jumps are still to be set. */
static unsigned test(program_t *p, uint32_t value)
{
    return emit(p, BPF_JMP | BPF_JEQ | BPF_K, value);
}

static void jump(program_t *p, unsigned from, unsigned if_true, unsigned if_false)
{
    p->at[from].jt = (uint8_t)(if_true - from - 1);
    p->at[from].jf = (uint8_t)(if_false - from - 1);
}

/* Goes to `accept`, or on behind it. */
static void match6(program_t *p, const unsigned char address[16], unsigned accept)
{
    const unsigned next = p->n + 2 * WORDS;

    for (unsigned i = 0; i < WORDS; i++) {
        (void)emit(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)SKF_NET_OFF + IP6_TO + 4 * i);
        const unsigned at = test(p, onic_get32(address + (size_t)4 * i));
        jump(p, at, i == WORDS - 1 ? accept : p->n, next);
    }
}

static void match4(program_t *p, uint32_t address, unsigned accept)
{
    const unsigned at = test(p, address);

    jump(p, at, accept, p->n);
}

/* The whole of it, with its two ends at known places. @return its length */
static unsigned build(const nicbarrier_udp_address_t *mine, struct sock_filter *program,
                      unsigned four, unsigned accept)
{
    program_t p = {program, 0};
    const unsigned drop = accept + 1;
    unsigned at;

    (void)emit(&p, BPF_LD | BPF_W | BPF_LEN, 0);
    at = test(&p, UDP_HEAD + NICBARRIER_PACKET_SIZE);
    jump(&p, at, p.n, drop);
    (void)emit(&p, BPF_LD | BPF_H | BPF_ABS, UDP_HEAD);
    at = test(&p, NICBARRIER_PACKET_MAGIC);
    jump(&p, at, p.n, drop);
    (void)emit(&p, BPF_LD | BPF_W | BPF_ABS, UDP_HEAD + NICBARRIER_PACKET_COOKIE_AT);
    at = test(&p, mine->cookie);
    jump(&p, at, p.n, drop);
    (void)emit(&p, BPF_LD | BPF_B | BPF_ABS, (uint32_t)SKF_NET_OFF);
    (void)emit(&p, BPF_ALU | BPF_RSH | BPF_K, 4);
    at = test(&p, 4);
    jump(&p, at, four, p.n);
    for (int i = 0; i < mine->n; i++)
        if (mine->ip[i].family == 6)
            match6(&p, mine->ip[i].bytes, accept);
    match6(&p, loopback6, accept);
    (void)emit(&p, BPF_JMP | BPF_JA, drop - p.n - 1);
    /* `four` is here. */
    (void)emit(&p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)SKF_NET_OFF + IP4_TO);
    for (int i = 0; i < mine->n; i++)
        if (mine->ip[i].family == 4)
            match4(&p, onic_get32(mine->ip[i].bytes), accept);
    (void)emit(&p, BPF_ALU | BPF_AND | BPF_K, 0xff000000);
    at = test(&p, UINT32_C(127) << 24);
    jump(&p, at, accept, drop);
    (void)emit(&p, BPF_RET | BPF_K, UINT32_MAX);
    (void)emit(&p, BPF_RET | BPF_K, 0);
    return p.n;
}

unsigned short nicbarrier_filter_build(const nicbarrier_udp_address_t *mine,
                                       struct sock_filter program[NICBARRIER_FILTER_MAX])
{
    unsigned sixes = 1, fours = 0;

    for (int i = 0; i < mine->n; i++) {
        sixes += mine->ip[i].family == 6;
        fours += mine->ip[i].family == 4;
    }
    const unsigned four = 9 + 2 * WORDS * sixes + 1;
    const unsigned accept = four + 1 + fours + 2;

    return (unsigned short)build(mine, program, four, accept);
}
