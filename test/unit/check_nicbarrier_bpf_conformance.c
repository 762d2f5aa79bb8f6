/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What every engine must do (nicbarrier_conformance.h), for barriers in the kernel: once with
 * programs that are run by hand, where the host's part, which asks for what was lost and grants
 * what is asked of a group that is gone, is made up here; and once by the engine itself over
 * interfaces of hosts.
 */
#include <string.h>

#include "test/unit/bpf_group.h"
#include "test/unit/bpf_hosts.h"
#include "test/unit/nicbarrier_members.h"

static bpf_group_t group;
static unit_random_t random_state;
static bool gone[CONFORMANCE_MEMBERS_MAX];

static void bpf_begin(int n, nicbarrier_schedule_kind_t schedule, uint64_t seed)
{
    random_state.state = seed;
    memset(gone, 0, sizeof(gone));
    bpf_group_begin(&group, n, schedule);
}

static nicbarrier_bpf_page_t *page_of(int i)
{
    return group.member[i].page;
}

static void bpf_connect(int i)
{
    bpf_group_install(&group, i);
}

static void bpf_enter(int i, uint64_t epoch)
{
    if (epoch > page_of(i)->enter)
        page_of(i)->enter = epoch;
    bpf_group_wake(&group, i);
}

static uint64_t bpf_completed(int i)
{
    return page_of(i)->word & ~NICBARRIER_WORD_FAILED;
}

static bool bpf_failed(int i)
{
    return page_of(i)->word >= NICBARRIER_WORD_FAILED;
}

static void bpf_fail(int i)
{
    page_of(i)->fail = 1;
    bpf_group_wake(&group, i);
}

/* ---- time ------------------------------------------------------------------------------------ */

/** One in ten is lost, and one in ten comes again later. */
static void deliver(void)
{
    if (group.flights == 0)
        return;
    bpf_flight_t *at = &group.flight[unit_below(&random_state, (uint64_t)group.flights)];
    const bpf_flight_t f = *at;
    if (group.flights > BPF_FLIGHTS_MAX / 2 || !unit_once_in(&random_state, 10))
        *at = group.flight[--group.flights];
    if (!unit_once_in(&random_state, 10))
        (void)bpf_group_come(&group, &f);
}

static void bpf_progress(int i)
{
    (void)i;
    deliver();
}

/** What the sender of step k of a member says when it is asked; 0: nothing yet. */
static uint64_t answer(int i, uint32_t k)
{
    const nicbarrier_step_t *s = &group.member[i].step[k];
    const int from = s->wait_for;
    const uint64_t asked = page_of(i)->rule.received[k] + 1;
    if (gone[from])
        return asked;
    if (page_of(from) == NULL)
        return 0;
    const nicbarrier_rule_t *r = &page_of(from)->rule;
    return r->sent[s->wait_at] >= asked || r->failed ? nicbarrier_rule_word(r, s->wait_at) : 0;
}

/** The host asks for what does not come, and repeats that the group has failed. */
static void ask(int i)
{
    for (uint32_t k = 0; k < page_of(i)->rule.nsteps; k++) {
        const nicbarrier_step_t *s = &group.member[i].step[k];
        const uint64_t word = (page_of(i)->rule.waits >> k & 1) ? answer(i, k) : 0;
        bpf_flight_t f;
        if (word != 0 && ((page_of(i)->rule.blocked >> k & 1) || word >= NICBARRIER_WORD_FAILED)) {
            bpf_group_frame(&group, s->wait_for, s->wait_at, NICBARRIER_PACKET_EPOCH, word, &f);
            (void)bpf_group_come(&group, &f);
        }
    }
}

static void bpf_pass(void)
{
    deliver();
    if (unit_once_in(&random_state, 8)) {
        for (int i = 0; i < group.n; i++)
            if (page_of(i) != NULL && !gone[i])
                ask(i);
    }
}

static void bpf_disconnect(int i)
{
    gone[i] = true;
    bpf_group_remove(&group, i);
}

static void bpf_end(void)
{
    bpf_group_end(&group);
}

static const conformance_row_t by_hand = {
    .name = "programs in the kernel",
    .every = 12,
    .steps = 1500,
    .quiet = 60,
    .patience = 3000,
    .begin = bpf_begin,
    .connect = bpf_connect,
    .enter = bpf_enter,
    .completed = bpf_completed,
    .failed = bpf_failed,
    .progress = bpf_progress,
    .pass = bpf_pass,
    .disconnect = bpf_disconnect,
    .end = bpf_end,
    .fail = bpf_fail,
    .cannot = {[CONFORMANCE_CUT] = "it has no connections",
               [CONFORMANCE_ABANDON] = "a group that was freed grants what is asked",
               [CONFORMANCE_TOGETHER] = "packets are carried by one thread"},
};

/* ---- over interfaces ------------------------------------------------------------------------- */

static void hosts_begin(int n, nicbarrier_schedule_kind_t schedule, uint64_t seed)
{
    (void)seed;
    members_begin_on_hosts(n, schedule, bpf_hosts_go);
}

static const conformance_row_t over_interfaces = {.name = "datagram, stepped in the kernel",
                                                  .every = 8,
                                                  .steps = 1500,
                                                  .begin = hosts_begin,
                                                  MEMBERS_ROW};

int main(void)
{
    const conformance_row_t *const rows[] = {&by_hand, &over_interfaces};
    const bpf_hosts_t hosts = {.n = CONFORMANCE_MEMBERS_MAX, .load = "generic"};
    Suite *suite = suite_create("nicbarrier_bpf_conformance");
    const char *obstacle = bpf_hosts_obstacle();
    if (obstacle == NULL && !bpf_hosts_keep(&hosts))
        return EXIT_FAILURE;
    obstacle = obstacle != NULL ? obstacle : bpf_group_obstacle();
    if (obstacle != NULL) {
        unit_skip(obstacle);
        return EXIT_SUCCESS;
    }
    conformance_add(suite, rows, 2);
    const int status = unit_run_suite(suite);
    return bpf_hosts_release() ? status : EXIT_FAILURE;
}
