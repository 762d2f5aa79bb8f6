/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Barriers in the kernel: the programs are loaded, and are run on packets that are lost, doubled,
 * reordered and forged, beside the rule as the host has it. What they send and what state they have
 * must be the same.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/support/clock.h"
#include "test/unit/bpf_group.h"

enum { RULE_MEMBERS = 20 };

static bpf_group_t group;

/** The rule of the same group as the host has it. */
static nicbarrier_rule_t host[BPF_MEMBERS_MAX];

static void begin(int32_t n, unit_random_t *random)
{
    const nicbarrier_schedule_kind_t schedule =
        (nicbarrier_schedule_kind_t)unit_below(random, NICBARRIER_GATHER_BROADCAST + 1);
    bpf_group_begin(&group, n, schedule);
    for (int32_t i = 0; i < n; i++) {
        host[i] = group.member[i].rule;
        bpf_group_install(&group, i);
    }
}

static int32_t member_of(uint32_t cookie)
{
    return (int32_t)cookie - 1000;
}

/** The programs have sent what the rule says, from the flight `first` on, and have its state. */
static void compare(int32_t i, int first, uint64_t out)
{
    const bpf_member_t *m = &group.member[i];
    const nicbarrier_rule_t *r = &m->page->rule, *h = &host[i];
    for (int f = first; f < group.flights; f++) {
        const nicbarrier_packet_t p = bpf_group_read(&group.flight[f]);
        const uint32_t k = p.from_at;
        UNIT_CHECK(p.kind == NICBARRIER_PACKET_EPOCH && p.sender == (uint32_t)i);
        UNIT_CHECK(out >> k & 1);
        UNIT_CHECK(member_of(p.cookie) == m->step[k].send_to && p.at == m->step[k].send_at);
        UNIT_CHECK(p.epoch == nicbarrier_rule_word(h, k));
        out &= ~(UINT64_C(1) << k);
    }
    UNIT_CHECK(out == 0);
    UNIT_CHECK(memcmp(r, h, sizeof(*r)) == 0);
    UNIT_CHECK(m->page->word == (h->completed | (h->failed ? NICBARRIER_WORD_FAILED : 0)));
    UNIT_CHECK(m->page->version % 2 == 0);
}

/** A member looks at its page, as it stands. */
static void wake(int32_t i)
{
    const int first = group.flights;
    bpf_group_wake(&group, i);
    compare(i, first, nicbarrier_rule_advance(&host[i]));
}

static void enter(int32_t i, uint64_t epoch)
{
    group.member[i].page->enter = epoch;
    nicbarrier_rule_enter(&host[i], epoch);
    wake(i);
}

/** A word comes to the process, by another way. */
static void hand_over(int32_t i, uint32_t k, uint64_t word)
{
    group.member[i].page->take[k] = word;
    (void)nicbarrier_rule_receive(&host[i], k, word);
    wake(i);
}

static void find_failure(int32_t i)
{
    hand_over(i, (uint32_t)__builtin_ctzll(host[i].waits), NICBARRIER_WORD_FAILED);
}

/** The packet comes, and is a word for its member. */
static void come(const bpf_flight_t *f)
{
    const nicbarrier_packet_t p = bpf_group_read(f);
    const int32_t i = member_of(p.cookie);
    const uint64_t before = group.member[i].page->word;
    const uint64_t wanted = group.member[i].page->wanted;
    const int first = group.flights;
    const bool up = bpf_group_come(&group, f);
    const bool fails = p.epoch >= NICBARRIER_WORD_FAILED && !host[i].failed;
    const nicbarrier_word_t verdict = nicbarrier_rule_receive(&host[i], p.at, p.epoch);
    compare(i, first, nicbarrier_rule_advance(&host[i]));
    const bool wakes = wanted != 0 && group.member[i].page->word != before;
    UNIT_CHECK(verdict != NICBARRIER_WORD_WRONG);
    UNIT_CHECK(up == (wakes || fails));
    UNIT_CHECK(group.member[i].page->wanted == (wakes ? 0 : wanted));
}

/** The message comes as a repetition, which is the process's, and by it to the programs. */
static void come_again(const bpf_flight_t *f)
{
    const nicbarrier_packet_t p = bpf_group_read(f);
    const int32_t i = member_of(p.cookie);
    const int first = group.flights;
    bpf_flight_t again;
    bpf_group_frame(&group, (int32_t)p.sender, p.from_at, NICBARRIER_PACKET_REPEAT, p.epoch,
                    &again);
    UNIT_CHECK(bpf_group_come(&group, &again));
    compare(i, first, 0);
    hand_over(i, p.at, p.epoch);
}

/** One of those under way comes, comes twice or is lost. */
static void deliver(unit_random_t *random)
{
    bpf_flight_t *at = &group.flight[unit_below(random, (uint64_t)group.flights)];
    bpf_flight_t f = *at;
    if (!unit_once_in(random, 6))
        *at = group.flight[--group.flights];
    if (unit_once_in(random, 6))
        return;
    if (unit_once_in(random, 6))
        come_again(&f);
    else
        come(&f);
}

/* ---- forged packets -------------------------------------------------------------------------- */

/** A packet that looks like a word for a member, changed in one place that matters: never in one
 *  byte of its word, which may make another that is possible, nor in what a network may change or
 *  an address translator (addresses, ports, hops, checksums). */
static bool forge(unit_random_t *random, bpf_flight_t *f)
{
    const uint32_t payload = sizeof(f->bytes) - NICBARRIER_PACKET_SIZE;
    const uint32_t at = 12 + (uint32_t)unit_below(random, sizeof(f->bytes) - 12);
    const bool free_ip = at == 15 || (at >= 18 && at < 21) || at == 22 || (at >= 24 && at < 34);
    const bool free_udp = (at >= 34 && at < 38) || (at >= 40 && at < 42);
    if (free_ip || free_udp || at >= payload + NICBARRIER_PACKET_EPOCH_AT)
        return false;
    f->bytes[at] ^= (unsigned char)(1U << unit_below(random, 8));
    return true;
}

/** Leaves all states as they are, sends nothing, and goes on to the process as it is. */
static void come_forged(unit_random_t *random)
{
    const int32_t i = (int32_t)unit_below(random, (uint64_t)group.n);
    bpf_flight_t f;
    const nicbarrier_rule_t *r = &host[i];
    const uint32_t k = r->nsteps == 0 ? 0 : (uint32_t)unit_below(random, r->nsteps);
    if (!(r->sends >> k & 1))
        return;
    const int32_t to = group.member[i].step[k].send_to;
    const uint64_t count = group.member[to].page->taken;
    bpf_group_frame(&group, i, k, NICBARRIER_PACKET_EPOCH, 1000000, &f);
    if (forge(random, &f)) {
        const int first = group.flights;
        UNIT_CHECK(bpf_group_come(&group, &f));
        UNIT_CHECK(group.member[to].page->taken == count);
        for (int32_t m = 0; m < group.n; m++)
            compare(m, first, 0);
    }
}

/** An epoch that nobody can have entered is left to the process. */
static void come_impossible(unit_random_t *random)
{
    const int32_t i = (int32_t)unit_below(random, (uint64_t)group.n);
    bpf_flight_t f;
    if (host[i].sends & 1) {
        const int32_t to = group.member[i].step[0].send_to;
        bpf_group_frame(&group, i, 0, NICBARRIER_PACKET_EPOCH,
                        host[to].entered + NICBARRIER_OUTSTANDING_MAX + 1, &f);
        const int first = group.flights;
        UNIT_CHECK(bpf_group_come(&group, &f));
        compare(to, first, 0);
    }
}

/* ---- the tests ------------------------------------------------------------------------------- */

static void act(unit_random_t *random, uint64_t most)
{
    const int32_t i = (int32_t)unit_below(random, (uint64_t)group.n);
    const uint32_t k = (uint32_t)unit_below(random, NICBARRIER_RULE_STEPS);
    if (unit_once_in(random, 12)) {
        come_forged(random);
    } else if (unit_once_in(random, 40)) {
        come_impossible(random);
    } else if (unit_once_in(random, 8)) {
        group.member[i].page->wanted = 1;
    } else if (unit_once_in(random, 30)) {
        hand_over(i, k, unit_below(random, most));
    } else if (unit_once_in(random, 600)) {
        find_failure(i);
    } else if (unit_once_in(random, 3) || group.flights == 0) {
        if (host[i].entered < most)
            enter(i, most);
    } else if (group.flights > 0) {
        deliver(random);
    }
}

START_TEST(as_the_rule)
{
    unit_random_t random = {unit_seed() + (uint64_t)_i};
    begin(2 + (int32_t)unit_below(&random, RULE_MEMBERS - 1), &random);
    for (int i = 0; i < 3000; i++)
        act(&random, 1 + (uint64_t)i / 100);
    bpf_group_end(&group);
}
END_TEST

/** Delivers all that is under way, in any order. */
static void settle(unit_random_t *random)
{
    while (group.flights > 0) {
        bpf_flight_t *at = &group.flight[unit_below(random, (uint64_t)group.flights)];
        const bpf_flight_t f = *at;
        *at = group.flight[--group.flights];
        come(&f);
    }
}

/* A thousand members: each has one queue of O(log N), and a message of each step for a barrier. */
START_TEST(many_members)
{
    unit_random_t random = {unit_seed()};
    bpf_group_begin(&group, BPF_MEMBERS_MAX, NICBARRIER_DISSEMINATION);
    for (int32_t i = 0; i < group.n; i++) {
        host[i] = group.member[i].rule;
        UNIT_CHECK(host[i].nsteps == 10);
        bpf_group_install(&group, i);
    }
    for (uint64_t epoch = 1; epoch <= 3; epoch++) {
        for (int32_t i = 0; i < group.n; i++) {
            UNIT_CHECK(host[i].completed == epoch - 1);
            enter(i, epoch);
            /* Not all at once: there is not so much room for flights. */
            if (i % 64 == 63)
                settle(&random);
        }
        settle(&random);
    }
    for (int32_t i = 0; i < group.n; i++) {
        const nicbarrier_bpf_page_t *page = group.member[i].page;
        UNIT_CHECK(host[i].completed == 3);
        UNIT_CHECK(page->word == 3 && page->taken == 30);
    }
    bpf_group_end(&group);
}
END_TEST

/* ---- several processors ---------------------------------------------------------------------- */

enum { RUNNERS = 4, TOGETHER_LAST = 400 };

/** Words and orders for member 0, as from one of several processors: each runs through all epochs
 *  in all steps by itself. Notes in which steps the last word went out. */
static void run_through(uint64_t seed, _Atomic uint64_t *last_sent)
{
    unit_random_t random = {seed};
    bpf_member_t *m = &group.member[0];
    for (uint64_t epoch = 1; epoch <= TOGETHER_LAST; epoch++) {
        for (uint32_t k = 0; k < m->rule.nsteps; k++) {
            const nicbarrier_step_t *s = &m->step[k];
            bpf_flight_t f;
            bpf_group_frame(&group, s->wait_for, s->wait_at, NICBARRIER_PACKET_EPOCH, epoch, &f);
            (void)bpf_group_come(&group, &f);
            if (unit_once_in(&random, 3)) {
                m->page->enter = epoch > m->page->enter ? epoch : m->page->enter;
                bpf_group_wake(&group, 0);
            }
        }
        if (epoch == TOGETHER_LAST) {
            m->page->enter = TOGETHER_LAST;
            bpf_group_wake(&group, 0);
        }
        for (int i = 0; i < group.flights; i++) {
            const nicbarrier_packet_t p = bpf_group_read(&group.flight[i]);
            atomic_fetch_or(last_sent, (uint64_t)(p.epoch == TOGETHER_LAST) << p.from_at);
        }
        group.flights = 0;
    }
}

/* Whatever the order, all is there at the end, and nothing that was due has been forgotten. */
START_TEST(together)
{
    _Atomic uint64_t *last_sent =
        mmap(NULL, sizeof(*last_sent), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t runner[RUNNERS];
    bpf_group_begin(&group, 16, NICBARRIER_DISSEMINATION);
    bpf_group_install(&group, 0);
    for (int i = 0; i < RUNNERS; i++) {
        runner[i] = fork();
        if (runner[i] == 0) {
            run_through(unit_seed() + (uint64_t)i, last_sent);
            _exit(0);
        }
    }
    for (int i = 0; i < RUNNERS; i++) {
        int status = 0;
        ck_assert_int_eq(waitpid(runner[i], &status, 0), runner[i]);
        ck_assert_int_eq(status, 0);
    }
    const nicbarrier_bpf_page_t *page = group.member[0].page;
    UNIT_CHECK(page->word == TOGETHER_LAST && page->rule.entered == TOGETHER_LAST);
    UNIT_CHECK(page->rule.blocked == 0 && page->version % 2 == 0);
    UNIT_CHECK(atomic_load(last_sent) == (1U << group.member[0].rule.nsteps) - 1);
    bpf_group_end(&group);
    munmap(last_sent, sizeof(*last_sent));
}
END_TEST

/* A group is there once; one that was removed leaves its packets to the process. */
START_TEST(install_and_remove)
{
    bpf_flight_t f;
    bpf_group_begin(&group, 2, NICBARRIER_DISSEMINATION);
    bpf_group_install(&group, 0);
    UNIT_CHECK(nicbarrier_bpf_install(&group.member[0].id) == -1);
    bpf_group_frame(&group, 1, 0, NICBARRIER_PACKET_EPOCH, 1, &f);
    UNIT_CHECK(!bpf_group_come(&group, &f));
    UNIT_CHECK(group.member[0].page->rule.received[0] == 1);
    bpf_group_remove(&group, 0);
    UNIT_CHECK(bpf_group_come(&group, &f));
    for (int i = 0; i < 3; i++) {
        bpf_group_install(&group, 0);
        UNIT_CHECK(group.member[0].page->rule.received[0] == 0);
        bpf_group_remove(&group, 0);
    }
    bpf_group_end(&group);
}
END_TEST

/* A message that the process repeats to another address is where the programs send from then on. */
START_TEST(moved)
{
    bpf_flight_t f;
    bpf_group_begin(&group, 2, NICBARRIER_DISSEMINATION);
    bpf_group_install(&group, 0);
    for (uint64_t epoch = 1; epoch <= 2; epoch++) {
        group.member[0].page->enter = epoch;
        bpf_group_wake(&group, 0);
        UNIT_CHECK(group.flights == 1 && group.flight[0].bytes[33] == (epoch == 1 ? 2 : 9));
        UNIT_CHECK(bpf_group_read(&group.flight[0]).epoch == epoch);
        group.flights = 0;
        bpf_group_frame(&group, 0, 0, NICBARRIER_PACKET_REPEAT, 1, &f);
        /* From 10.0.0.2 to 10.0.0.9, and the checksums with it. */
        f.bytes[33] += 7;
        f.bytes[25] -= 7;
        bpf_group_leave(&f);
        /* That of another process, from its own port, is not learned. */
        f.bytes[33]++;
        f.bytes[35]++;
        bpf_group_leave(&f);
    }
    bpf_group_end(&group);
}
END_TEST

int main(void)
{
    const char *obstacle = bpf_group_obstacle();
    if (obstacle != NULL) {
        unit_skip(obstacle);
        return EXIT_SUCCESS;
    }
    return UNIT_RUN("nicbarrier_bpf", UNIT_LOOP(as_the_rule, 0, 6), UNIT_ONCE(install_and_remove),
                    UNIT_ONCE(moved), UNIT_ONCE(together), UNIT_ONCE(many_members));
}
