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
#include <string.h>

#include "coll_nicbarrier/epoch/epoch.h"
#include "coll_nicbarrier/engines/datagram/packet.h"
#include "coll_nicbarrier/schedule/schedule.h"
#include "test/fuzz/fuzz.h"

enum { HEAD = 4, SIZE = NICBARRIER_PACKET_SIZE, ENTER_EVERY = 3 };

static const nicbarrier_timing_t timing = {.first = 1000, .min = 500, .max = 4000, .cap = 16000};

static void check_messages(const nicbarrier_epochs_t *e, const nicbarrier_message_t *out, int n,
                           bool nacks)
{
    FUZZ_CHECK(n >= 0 && n <= e->nsteps);
    for (int i = 0; i < n; i++) {
        FUZZ_CHECK(out[i].from_at < e->nsteps);
        const nicbarrier_slot_t *s = &e->slot[out[i].from_at];
        FUZZ_CHECK(out[i].epoch > 0);
        if (nacks) {
            FUZZ_CHECK(out[i].to == s->step.wait_for && out[i].at == s->step.wait_at);
            FUZZ_CHECK(out[i].epoch == s->received + 1 && out[i].epoch <= e->entered);
        } else {
            FUZZ_CHECK(out[i].to == s->step.send_to && out[i].at == s->step.send_at);
            FUZZ_CHECK(out[i].epoch == s->sent && out[i].epoch <= e->entered);
        }
    }
}

static void check_state(const nicbarrier_epochs_t *e, const nicbarrier_epochs_t *before)
{
    FUZZ_CHECK(e->completed <= e->entered && e->completed >= before->completed);
    for (int k = 0; k < e->nsteps; k++) {
        FUZZ_CHECK(e->slot[k].received >= before->slot[k].received);
        FUZZ_CHECK(e->slot[k].sent >= before->slot[k].sent && e->slot[k].sent <= e->entered);
        if (e->slot[k].step.wait_for != NICBARRIER_NOBODY)
            FUZZ_CHECK(e->slot[k].received >= e->completed);
    }
}

/* Decoded packets encode to the same bytes: there is one form only. */
static void check_form(const unsigned char *bytes, const nicbarrier_packet_t *p)
{
    unsigned char again[SIZE];

    nicbarrier_packet_encode(p, again);
    FUZZ_CHECK(memcmp(bytes, again, SIZE) == 0);
}

static int take(nicbarrier_epochs_t *e, const unsigned char *bytes, size_t len, uint64_t now)
{
    unsigned char copy[SIZE];
    nicbarrier_packet_t p;
    nicbarrier_message_t out[NICBARRIER_STEPS_MAX];
    const nicbarrier_epochs_t before = *e;

    if (len == SIZE && bytes[0] >= 0x80) {
        static const unsigned char magic[] = {0x4e, 0x42, 1};
        memcpy(copy, bytes, SIZE);
        memcpy(copy, magic, sizeof(magic));
        memset(copy + 22, 0, 2);
        memset(copy + 32, 0, 8);
        bytes = copy;
    }
    if (nicbarrier_packet_decode(bytes, len, &p) != NULL)
        return -1;
    check_form(bytes, &p);
    if (p.kind == NICBARRIER_PACKET_NACK) {
        if (nicbarrier_epochs_answer(e, &p, out) == NICBARRIER_NEW)
            check_messages(e, out, 1, false);
    } else if (p.kind != NICBARRIER_PACKET_POKE) {
        if (nicbarrier_epochs_receive(e, &p, now) == NICBARRIER_NEW)
            check_messages(e, out, nicbarrier_epochs_advance(e, now, out), false);
    }
    check_state(e, &before);
    return 0;
}

static int begin(nicbarrier_epochs_t *e, const uint8_t head[HEAD])
{
    nicbarrier_step_t steps[NICBARRIER_STEPS_MAX];
    const int32_t n = 2 + head[2];
    const int nsteps =
        nicbarrier_schedule((nicbarrier_schedule_kind_t)head[0], head[1], head[3] % n, n, steps);

    if (nsteps < 0)
        return -1;
    nicbarrier_epochs_init(e, steps, nsteps, &timing);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    nicbarrier_epochs_t e;
    nicbarrier_message_t out[NICBARRIER_STEPS_MAX];
    uint64_t now = 1;
    int verdict = -1;

    if (len < HEAD || begin(&e, data) != 0)
        return -1;
    data += HEAD;
    len -= HEAD;
    for (unsigned i = 0; len > 0; i++) {
        const size_t part = len < SIZE ? len : SIZE;
        if (i % ENTER_EVERY == 0) {
            nicbarrier_epochs_enter(&e, i + 1);
            check_messages(&e, out, nicbarrier_epochs_advance(&e, now, out), false);
        }
        if (take(&e, data, part, now) == 0)
            verdict = 0;
        now += 300 * (1 + i % 9);
        check_messages(&e, out, nicbarrier_epochs_expire(&e, now, out), true);
        data += part;
        len -= part;
    }
    return verdict;
}

/* What partners would really send. */
size_t onic_fuzz_seed(unsigned i, uint8_t *buf, size_t cap)
{
    const uint8_t head[HEAD] = {(uint8_t)(i % 3), 4, (uint8_t)(i * 7), (uint8_t)i};
    nicbarrier_epochs_t e;
    size_t len = HEAD;

    if (i >= 30 || begin(&e, head) != 0)
        return 0;
    memcpy(buf, head, HEAD);
    for (unsigned j = 0; j < 20 && len + SIZE <= cap; j++) {
        const nicbarrier_step_t *s = &e.slot[j % (unsigned)e.nsteps].step;
        const bool nack = j % 4 == 3 ? s->send_to >= 0 : s->wait_for < 0;
        const nicbarrier_packet_t p = {.kind =
                                           nack ? NICBARRIER_PACKET_NACK : NICBARRIER_PACKET_EPOCH,
                                       .at = (uint8_t)(j % (unsigned)e.nsteps),
                                       .from_at = nack ? s->send_at : s->wait_at,
                                       .sender = (uint32_t)(nack ? s->send_to : s->wait_for),
                                       .key = 1 + i,
                                       .epoch = 1 + j / (unsigned)e.nsteps};
        nicbarrier_packet_encode(&p, buf + len);
        len += SIZE;
    }
    return len;
}
