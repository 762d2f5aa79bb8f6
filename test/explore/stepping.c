/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Barriers that the kernel steps, as threads of control: packets come on one processor,
 *  while the process enters, sleeps, or takes the barrier back on another. The programs for the
 *  kernel, the process's side of them, and the engine's groups are the product's.
 *
 *  Whatever the order: a word that has come is known to whoever takes the steps, each message that
 *  became due has been sent, a snapshot is a state that there was, and nobody sleeps for ever. */
#define _GNU_SOURCE
#include "test/explore/explore.h"

/* Before those of the kernel, which agree with it then. */
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/support/clock.h"

/** Times do not pass. */
#define onic_now_nsec() UINT64_C(1)
/** With its result it is a full barrier, which is more than C11 makes of it. */
#define __sync_fetch_and_add(word, n) full_add(word, n)
static inline uint64_t full_add(uint64_t *word, uint64_t n)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    const uint64_t before = __atomic_fetch_add(word, n, __ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return before;
}

#include "coll_nicbarrier/epoch/nack.c"
#define send(...) schedule_send(__VA_ARGS__)
#include "coll_nicbarrier/schedule/schedule.c"
#undef send
#include "test/explore/kernel.h"

/* ---- the process ----------------------------------------------------------------------------- */

static ssize_t ring_bell(int fd);
static int wait_a_msec(const struct timespec *time);
#define nanosleep(time, left)       wait_a_msec(time)
#define send(fd, bytes, len, flags) ring_bell(fd)
#define close(fd)                   ((void)(fd))
#define munmap(at, len)             ((void)(at), 0)
#include "coll_nicbarrier/engines/datagram/bpf/client.c"
#undef send
#undef close
#undef munmap

#include "coll_nicbarrier/engines/datagram/group.c"
#include "coll_nicbarrier/engines/datagram/stepper_bpf.c"
#include "coll_nicbarrier/engines/datagram/stepper_host.c"
#include "coll_nicbarrier/engines/datagram/steps.c"

/* No processes stand behind these members, so there are no flags of a node to look at. */

uint64_t nicbarrier_shm_arrived(const nicbarrier_shm_t *s)
{
    (void)s;
    return 0;
}

uint64_t nicbarrier_shm_begun(const nicbarrier_shm_t *s)
{
    (void)s;
    return 0;
}

void nicbarrier_shm_release(nicbarrier_shm_t *s, uint64_t epoch)
{
    (void)s;
    (void)epoch;
}

#define MEMBERS 3
enum { LEADER, NETWORK, PROCESSORS };

nicbarrier_datagram_t nicbarrier_datagram;
nicbarrier_datagram_config_t nicbarrier_datagram_config;
nicbarrier_datagram_counters_t nicbarrier_datagram_counters;
const nicbarrier_stepper_t *const nicbarrier_steppers[] = {&nicbarrier_stepper_bpf, NULL};

static nicbarrier_step_t step[MEMBERS][NICBARRIER_STEPS_MAX];
static int nsteps;
static unsigned epochs;
static _Alignas(64) nicbarrier_bpf_page_t page;
static nicbarrier_net_t net;
static nicbarrier_partner_t partner[MEMBERS];

/** By the processor, the last epoch that was sent in each step. */
static uint64_t sent[PROCESSORS][NICBARRIER_RULE_STEPS];

static void note_sent(unsigned k, uint64_t word)
{
    uint64_t *s = &sent[explore_me()][k];
    const uint64_t epoch = word & ~NICBARRIER_WORD_FAILED;
    *s = epoch > *s ? epoch : *s;
}

/* ---- the kernel ------------------------------------------------------------------------------ */

static atomic_bool lock_held;
/** Odd while a program runs on that processor. */
static atomic_uint program[PROCESSORS];

static void kernel_lock(unsigned member)
{
    (void)member;
    while (atomic_exchange_explicit(&lock_held, true, memory_order_acquire))
        explore_pause();
}

static void kernel_unlock(unsigned member)
{
    (void)member;
    atomic_store_explicit(&lock_held, false, memory_order_release);
}

static void kernel_sends(unsigned member, const nicbarrier_packet_t *p)
{
    EXPLORE_ASSERT(member == 0);
    note_sent(p->from_at, p->epoch);
}

static void begin_program(void)
{
    (void)atomic_fetch_add(&program[explore_me()], 1);
}

static void end_program(void)
{
    (void)atomic_fetch_add(&program[explore_me()], 1);
}

/** All programs that run now have ended. */
static void wait_for_programs(void)
{
    for (unsigned p = 0; p < PROCESSORS; p++) {
        const unsigned n = atomic_fetch_add(&program[p], 0);
        while (n % 2 == 1 && atomic_load(&program[p]) == n)
            explore_pause();
    }
}

static ssize_t ring_bell(int fd)
{
    (void)fd;
    static kernel_skb_t skb[PROCESSORS];

    begin_program();
    kernel_out(&skb[explore_me()], 0);
    end_program();
    return 0;
}

/** What the process hears of: packets that the kernel does not keep. */
#define ROOM 8
static struct {
    atomic_uint come;
    unsigned taken;
    uint64_t word[ROOM];
    uint32_t k[ROOM];
    atomic_bool held;
} socket_in;

static void goes_up(uint32_t k, uint64_t word)
{
    while (atomic_exchange_explicit(&socket_in.held, true, memory_order_acquire))
        explore_pause();
    const unsigned at = atomic_load_explicit(&socket_in.come, memory_order_relaxed);
    EXPLORE_ASSERT(at < ROOM);
    socket_in.word[at] = word;
    socket_in.k[at] = k;
    atomic_store_explicit(&socket_in.come, at + 1, memory_order_release);
    atomic_store_explicit(&socket_in.held, false, memory_order_release);
}

/** A packet comes for step k. */
static void comes(unsigned k, uint64_t word)
{
    static kernel_skb_t skb[PROCESSORS];
    const nicbarrier_step_t *s = &step[0][k], theirs = {.send_to = 0, .send_at = (uint8_t)k};
    const nicbarrier_packet_t p =
        kernel_packet(&theirs, (unsigned)s->wait_for, s->wait_at, NICBARRIER_PACKET_EPOCH, word);
    begin_program();
    const bool up = kernel_in(&skb[explore_me()], 0, (unsigned)s->wait_for, &p);
    end_program();
    if (up)
        goes_up(k, word);
}

/* ---- the service, and what else there is ----------------------------------------------------- */

static int wait_a_msec(const struct timespec *time)
{
    (void)time;
    wait_for_programs();
    return 0;
}

int nicbarrier_bpf_ask(int service, const nicbarrier_bpf_id_t *id, nicbarrier_reason_t *why)
{
    (void)service, (void)id, (void)why;
    return -1;
}

uint32_t nicbarrier_udp_describe(void *bytes)
{
    memset(bytes, 0, sizeof(nicbarrier_udp_address_t));
    return 0;
}

int nicbarrier_bpf_local_connect(const char *interface)
{
    (void)interface;
    return -1;
}

void nicbarrier_datagram_send(nicbarrier_net_t *n, nicbarrier_packet_kind_t kind, uint32_t k,
                              uint64_t word)
{
    (void)n;
    EXPLORE_ASSERT(kind == NICBARRIER_PACKET_EPOCH);
    note_sent(k, word);
}

/* ---- the leader's process -------------------------------------------------------------------- */

/** As input.c. */
static void receive(void)
{
    while (atomic_load_explicit(&socket_in.come, memory_order_acquire) > socket_in.taken) {
        const unsigned at = socket_in.taken++;
        const uint32_t k = socket_in.k[at];
        if (nicbarrier_rule_judge(nicbarrier_net_state(&net), k, socket_in.word[at]) ==
            NICBARRIER_WORD_NEW)
            nicbarrier_steps_take(&net, k, socket_in.word[at]);
        nicbarrier_datagram_catch_up(&net, 1);
    }
}

static bool is_known(void)
{
    return atomic_load_explicit(&net.completed, memory_order_relaxed) == epochs ||
           atomic_load_explicit(&net.failed, memory_order_relaxed);
}

/** As a thread that waits in MPI_Barrier. */
static void wait_for_epochs(void)
{
    for (;;) {
        receive();
        (void)nicbarrier_datagram_look(&net);
        if (is_known())
            return;
        if (!nicbarrier_datagram_want(&net))
            continue;
        while (atomic_load_explicit(&socket_in.come, memory_order_acquire) == socket_in.taken)
            explore_pause();
    }
}

/* ---- the program ----------------------------------------------------------------------------- */

static void setup(void)
{
    uint64_t sends, waits;
    for (int i = 0; i < MEMBERS; i++)
        nsteps = nicbarrier_schedule(NICBARRIER_DISSEMINATION, i, MEMBERS, step[i]);
    for (unsigned i = 0; i < MEMBERS; i++)
        kernel_plan(i, step[i], nsteps);
    epochs = 1;
    page.key = KERNEL_KEY;
    memcpy(page.named, kernel_named[0], sizeof(page.named));
    nicbarrier_schedule_bits(step[0], nsteps, &sends, &waits);
    nicbarrier_rule_init(&page.rule, (uint32_t)nsteps, sends, waits);
    net.rule = page.rule;
    kernel_page[0] = &page;
    explore_words(&page, sizeof(page));
    nicbarrier_datagram.deadline = NICBARRIER_NEVER;
    net.stepper = &nicbarrier_stepper_bpf;
    net.kernel = (nicbarrier_bpf_client_t){.page = &page, .service = 1, .bell = 1};
    net.page = &page;
    net.connected = true;
    memcpy(net.group.step, step[0], sizeof(net.group.step));
    for (int k = 0; k < nsteps; k++) {
        net.to[k] = &partner[step[0][k].send_to];
        net.from[k] = &partner[step[0][k].wait_for];
    }
}

/** All words of all epochs come. */
static void network(void)
{
    for (unsigned epoch = 1; epoch <= epochs; epoch++)
        for (unsigned k = 0; k < (unsigned)nsteps; k++)
            comes(k, epoch);
}

/* The leader enters, and waits. */

static void waits(unsigned me)
{
    if (me == NETWORK) {
        network();
        return;
    }
    (void)nicbarrier_datagram_enter(&net, epochs);
    wait_for_epochs();
}

/* The leader takes the barrier back while words come, and goes on by itself. */

static void stops(unsigned me)
{
    if (me == NETWORK) {
        network();
        return;
    }
    const bool entered = explore_choose(2) == 0;
    if (entered)
        (void)nicbarrier_datagram_enter(&net, epochs);
    fall_back(&net);
    advance(&net);
    nicbarrier_datagram_catch_up(&net, 1);
    if (!entered)
        (void)nicbarrier_datagram_enter(&net, epochs);
    wait_for_epochs();
}

/* The leader finds that the group has failed, while words come. */

static void fails(unsigned me)
{
    if (me == LEADER) {
        nicbarrier_datagram_fail(&net);
        wait_for_epochs();
    } else {
        waits(me);
    }
}

/* What is read of the state while it changes is one that there was. */

static void reads(unsigned me)
{
    if (me == NETWORK) {
        network();
        return;
    }
    nicbarrier_rule_t r;
    nicbarrier_bpf_client_snapshot(&net.kernel, &r);
    /* Steps follow each other. */
    EXPLORE_ASSERT(r.completed <= r.entered);
    for (int k = 0; k < nsteps; k++)
        EXPLORE_ASSERT(r.completed <= r.received[k] && r.sent[k] <= r.entered);
    EXPLORE_ASSERT(r.sent[1] <= r.received[0]);
    /* A message that is not awaited leads on at once. */
    EXPLORE_ASSERT(r.entered == 0 || r.sent[0] == r.entered);
    EXPLORE_ASSERT(r.entered == 0 || r.received[0] == 0 || r.sent[1] == 1);
    EXPLORE_ASSERT(r.entered == 0 || r.received[0] == 0 || r.received[1] == 0 || r.completed == 1);
}

static void reads_setup(void)
{
    setup();
    page.rule.entered = 1;
    page.rule.sent[0] = 1;
    page.rule.blocked = 1;
}

static void end(void)
{
    const nicbarrier_rule_t *r = nicbarrier_net_state(&net);
    EXPLORE_ASSERT(r->completed == epochs && r->entered == epochs);
    for (int k = 0; k < nsteps; k++) {
        uint64_t most = 0;
        for (unsigned p = 0; p < PROCESSORS; p++)
            most = sent[p][k] > most ? sent[p][k] : most;
        EXPLORE_ASSERT(r->received[k] == epochs && r->sent[k] == epochs && most == epochs);
    }
}

static void end_failed(void)
{
    const nicbarrier_rule_t *r = nicbarrier_net_state(&net);
    EXPLORE_ASSERT(r->failed && r->notified && atomic_load(&net.failed));
}

static const explore_target_t targets[] = {
    {"stepping-waits", 2, setup, waits, end, 2, 0},
    {"stepping-stops", 2, setup, stops, end, 2, 0},
    {"stepping-fails", 2, setup, fails, end_failed, 1, 0},
    {"stepping-reads", 2, reads_setup, reads, NULL, 2, 0},
};

int main(int argc, char **argv)
{
    return explore_main(argc, argv, targets, sizeof(targets) / sizeof(targets[0]));
}
