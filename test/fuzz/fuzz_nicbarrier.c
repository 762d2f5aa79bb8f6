/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Fuzzes what a member of a group does with the bytes of datagrams: decode them, take them in, and
 * answer. Whatever comes, nothing that is known is forgotten, nothing is complete that was not
 * entered, and all that is sent goes to partners of the schedule.
 *
 * Input: 4 bytes that choose schedule, rank and number of ranks; then packets, one after another,
 * of which the last may be too short. A packet with a byte of 0x80 or more in place of its magic is
 * made right by force, so that mutants reach what lies behind the decoder.
 */
#include <stdbool.h>
#include <string.h>

#include "coll_nicbarrier/engines/datagram/wire/packet.h"
#include "coll_nicbarrier/epoch/nack.h"
#include "coll_nicbarrier/epoch/rule.h"
#include "coll_nicbarrier/schedule/schedule.h"
#include "test/fuzz/fuzz.h"

enum { HEAD = 3, SIZE = NICBARRIER_PACKET_SIZE, ENTER_EVERY = 3 };

typedef struct member {
    nicbarrier_rule_t rule;
    nicbarrier_nacks_t nacks;
    nicbarrier_step_t step[NICBARRIER_STEPS_MAX];
} member_t;

static void check_state(const member_t *m, const nicbarrier_rule_t *before)
{
    const nicbarrier_rule_t *r = &m->rule;

    FUZZ_CHECK(r->completed <= r->entered && r->completed >= before->completed);
    FUZZ_CHECK(r->failed >= before->failed);
    for (uint32_t k = 0; k < r->nsteps; k++) {
        FUZZ_CHECK(r->received[k] >= before->received[k]);
        FUZZ_CHECK(r->received[k] <= r->entered + NICBARRIER_OUTSTANDING_MAX);
        FUZZ_CHECK(r->sent[k] >= before->sent[k] && r->sent[k] <= r->entered);
        if (r->waits >> k & 1)
            FUZZ_CHECK(r->received[k] >= r->completed);
    }
    FUZZ_CHECK((m->nacks.waits & ~r->waits) == 0);
    FUZZ_CHECK(m->nacks.waits == 0 || m->nacks.deadline != NICBARRIER_NEVER);
}

static void go_on(member_t *m, uint64_t now)
{
    const uint64_t out = nicbarrier_rule_advance(&m->rule);

    FUZZ_CHECK((out & ~m->rule.sends) == 0);
    nicbarrier_nacks_follow(&m->nacks, &m->rule, now);
}

static void expire(member_t *m, uint64_t now)
{
    const uint64_t asks = nicbarrier_nacks_expire(&m->nacks, &m->rule, now);

    FUZZ_CHECK((asks & ~m->rule.blocked) == 0);
}

/* Decoded packets encode to the same bytes: there is one form only. */
static void check_form(const unsigned char *bytes, const nicbarrier_packet_t *p)
{
    unsigned char again[SIZE];

    nicbarrier_packet_encode(p, again);
    FUZZ_CHECK(memcmp(bytes, again, SIZE) == 0);
}

/* For the member's step, from who is told there, or heard. */
static bool fits(const member_t *m, const nicbarrier_packet_t *p, bool upwards)
{
    const nicbarrier_step_t *s = &m->step[p->at];

    if (p->at >= m->rule.nsteps)
        return false;
    return upwards ? s->send_to == (int32_t)p->sender && s->send_at == p->from_at
                   : s->wait_for == (int32_t)p->sender && s->wait_at == p->from_at;
}

static void handle(member_t *m, const nicbarrier_packet_t *p, uint64_t now)
{
    const bool upwards = p->kind == NICBARRIER_PACKET_NACK;

    if (p->kind >= NICBARRIER_PACKET_WAKE || !fits(m, p, upwards))
        return;
    if (upwards) {
        if (nicbarrier_nacks_answer(&m->rule, p->at, p->epoch))
            FUZZ_CHECK(nicbarrier_rule_word(&m->rule, p->at) >= p->epoch);
    } else if (nicbarrier_rule_receive(&m->rule, p->at, p->epoch) == NICBARRIER_WORD_NEW) {
        nicbarrier_nacks_received(&m->nacks, p->at);
        go_on(m, now);
    }
}

static int take(member_t *m, const unsigned char *bytes, size_t len, uint64_t now)
{
    unsigned char copy[SIZE];
    nicbarrier_packet_t p;
    const nicbarrier_rule_t before = m->rule;

    if (len == SIZE && bytes[0] >= 0x80) {
        static const unsigned char magic[] = {0x4e, 0x42, NICBARRIER_PACKET_VERSION};
        memcpy(copy, bytes, SIZE);
        memcpy(copy, magic, sizeof(magic));
        memset(copy + 22, 0, 2);
        memset(copy + 32, 0, 8);
        bytes = copy;
    }
    if (!nicbarrier_packet_decode(bytes, len, &p))
        return -1;
    check_form(bytes, &p);
    handle(m, &p, now);
    check_state(m, &before);
    return 0;
}

static int begin(member_t *m, const uint8_t head[HEAD])
{
    const int32_t n = 2 + head[1];
    const int nsteps =
        nicbarrier_schedule((nicbarrier_schedule_kind_t)head[0], head[2] % n, n, m->step);
    uint64_t sends, waits;

    if (nsteps < 0)
        return -1;
    nicbarrier_schedule_bits(m->step, nsteps, &sends, &waits);
    nicbarrier_rule_init(&m->rule, (uint32_t)nsteps, sends, waits);
    nicbarrier_nacks_init(&m->nacks, 1000);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    member_t m;
    uint64_t now = 1;
    int verdict = -1;

    if (len < HEAD || begin(&m, data) != 0)
        return -1;
    data += HEAD;
    len -= HEAD;
    for (unsigned i = 0; len > 0; i++) {
        const size_t part = len < SIZE ? len : SIZE;
        if (i % ENTER_EVERY == 0) {
            nicbarrier_rule_enter(&m.rule, i + 1);
            go_on(&m, now);
        }
        if (take(&m, data, part, now) == 0)
            verdict = 0;
        now += 300 * (1 + i % 9);
        expire(&m, now);
        data += part;
        len -= part;
    }
    return verdict;
}

/* What partners would really send. */
size_t onic_fuzz_seed(unsigned i, uint8_t *buf, size_t cap)
{
    const uint8_t head[HEAD] = {(uint8_t)(i % 3), (uint8_t)(i * 7), (uint8_t)i};
    member_t e;
    size_t len = HEAD;

    if (i >= 30 || begin(&e, head) != 0)
        return 0;
    memcpy(buf, head, HEAD);
    for (unsigned j = 0; j < 20 && len + SIZE <= cap; j++) {
        const nicbarrier_step_t *s = &e.step[j % e.rule.nsteps];
        const bool nack = j % 4 == 3 ? s->send_to >= 0 : s->wait_for < 0;
        const nicbarrier_packet_t p = {.kind =
                                           nack ? NICBARRIER_PACKET_NACK : NICBARRIER_PACKET_EPOCH,
                                       .at = (uint8_t)(j % e.rule.nsteps),
                                       .from_at = nack ? s->send_at : s->wait_at,
                                       .sender = (uint32_t)(nack ? s->send_to : s->wait_for),
                                       .key = 1 + i,
                                       .epoch = 1 + j / e.rule.nsteps};
        nicbarrier_packet_encode(&p, buf + len);
        len += SIZE;
    }
    return len;
}
