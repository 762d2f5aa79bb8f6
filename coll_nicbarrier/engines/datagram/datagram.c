/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Engine datagram: the functions of an engine; see engine.h and datagram.h. */
#include "coll_nicbarrier/engines/datagram/datagram.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

/* ---- process ----------------------------------------------------------------------------------
 */

/** To the next question to who is known to be late, nanoseconds. */
#define LATE_NSEC UINT64_C(1000000000)

/** All follow from the one that the user may set. */
static void set_timing(int usec)
{
    const uint64_t first = (uint64_t)usec * 1000;
    const uint64_t cap = 16 * first;
    nicbarrier_datagram.timing = (nicbarrier_timing_t){.first = first,
                                                       .min = first / 2,
                                                       .max = 4 * first,
                                                       .cap = cap,
                                                       .late = cap > LATE_NSEC ? cap : LATE_NSEC};
}

static void close_transports(void)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    for (int i = 0; i < NICBARRIER_VIAS; i++) {
        if (d->transport[i] != NULL) {
            d->transport[i]->close();
        }
        d->transport[i] = NULL;
    }
}

/** UDP is needed for pokes, too. Without verbs it goes on, unless it must be verbs. */
static int open_transports(nicbarrier_reason_t *why)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    if (nicbarrier_udp.open(&nicbarrier_datagram_config, d->cookie, why) != 0) {
        return -1;
    }
    d->transport[NICBARRIER_VIA_UDP] = &nicbarrier_udp;
    if (nicbarrier_datagram_config.verbs == NICBARRIER_VERBS_NEVER) {
        return 0;
    }
    if (nicbarrier_verbs.open(&nicbarrier_datagram_config, d->cookie, why) == 0) {
        d->transport[NICBARRIER_VIA_VERBS] = &nicbarrier_verbs;
    } else if (nicbarrier_datagram_config.verbs == NICBARRIER_VERBS_ALWAYS) {
        close_transports();
        return -1;
    }
    return 0;
}

static int start(nicbarrier_reason_t *why)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    if (getrandom(&d->cookie, sizeof(d->cookie), GRND_NONBLOCK) != sizeof(d->cookie)) {
        d->cookie = (uint32_t)(onic_now_nsec() * UINT64_C(0x9e3779b97f4a7c15) >> 32);
    }
    d->random = d->cookie;
    d->tombstones = calloc(1, sizeof(*d->tombstones));
    d->farewell = calloc(1, sizeof(*d->farewell));
    if (d->tombstones == NULL || d->farewell == NULL) {
        nicbarrier_reason(why, "memory is exhausted");
        return -1;
    }
    return open_transports(why);
}

static void forget(void)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    free(d->tombstones);
    free(d->farewell);
    d->tombstones = NULL;
    d->farewell = NULL;
}

static int datagram_open(const nicbarrier_engine_settings_t *settings, nicbarrier_reason_t *why)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    d->schedule = settings->schedule;
    d->open = false;
    d->pid = getpid();
    d->nunreachable = 0;
    d->budget = (nicbarrier_budget_t){0};
    if (!settings->thread) {
        nicbarrier_reason(why,
                          "datagrams need the helper thread: who has left MPI must still repeat "
                          "what others have missed");
        return -1;
    }
    set_timing(nicbarrier_datagram_config.nack_usec);
    atomic_store(&d->locked, false);
    atomic_store(&d->pending, false);
    atomic_store(&d->deadline, NICBARRIER_NEVER);
    atomic_store(&d->looked, 0);
    atomic_store(&d->away, false);
    d->open = start(why) == 0;
    if (!d->open) {
        forget();
    }
    return d->open ? 0 : -1;
}

static void datagram_close(void)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    if (!d->open) {
        return;
    }
    nicbarrier_datagram_stop_thread();
    /* A child of fork has said nothing, and has nothing to take back. */
    if (d->pid == getpid()) {
        nicbarrier_datagram_leave();
    }
    for (int i = 0; i < NICBARRIER_DATAGRAM_LISTS; i++) {
        while (d->list[i] != NULL) {
            nicbarrier_datagram_bury(d->list[i]);
        }
    }
    close_transports();
    forget();
    d->open = false;
}

/* ---- barriers ---------------------------------------------------------------------------------
 */

/** Tells the helper thread that an MPI thread is there. Threads that count at once may lose a
 *  count, but not all. */
static void tick(void)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    nicbarrier_count(&d->ticks);
    if (atomic_load_explicit(&d->away, memory_order_relaxed)) {
        atomic_store_explicit(&d->away, false, memory_order_relaxed);
    }
}

static void post_entry(nicbarrier_net_t *net, uint64_t epoch)
{
    uint64_t before = atomic_load(&net->wanted);
    while (before < epoch && !atomic_compare_exchange_weak(&net->wanted, &before, epoch)) {
    }
    atomic_store(&nicbarrier_datagram.pending, true);
}

static void datagram_enter(nicbarrier_net_t *net, uint64_t epoch)
{
    tick();
    if (nicbarrier_datagram_trylock()) {
        nicbarrier_datagram_enter(net, epoch);
        nicbarrier_datagram_unlock();
    } else {
        post_entry(net, epoch);
        if (nicbarrier_datagram_trylock()) {
            nicbarrier_datagram_unlock();
        }
    }
}

static uint64_t datagram_completed(const nicbarrier_net_t *net)
{
    return atomic_load_explicit(&net->completed, memory_order_acquire);
}

static int datagram_progress(nicbarrier_net_t *net)
{
    tick();
    if (!nicbarrier_datagram_trylock()) {
        return 0;
    }
    const int events = nicbarrier_datagram_receive(net);
    atomic_store_explicit(&nicbarrier_datagram.looked, nicbarrier_datagram.now,
                          memory_order_relaxed);
    nicbarrier_datagram_unlock();
    return events;
}

static void datagram_leave(nicbarrier_net_t *net)
{
    /* In a single step there is nothing to do but to receive, which can wait for the threads;
     * unless there are processes behind this one. */
    if (net->nsteps > 1 || net->events.complete != NULL) {
        nicbarrier_datagram_hand_over();
    }
}

static void datagram_wait(nicbarrier_net_t *net, unsigned usec)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    const uint64_t now = onic_now_nsec(), end = now + (uint64_t)usec * 1000;
    uint64_t until = atomic_load_explicit(&d->deadline, memory_order_relaxed);
    struct pollfd fds[NICBARRIER_VIAS] = {{0}};
    (void)net;
    until = until < end ? until : end;
    if (until <= now || !nicbarrier_datagram_trylock()) {
        return;
    }
    const bool quiet = nicbarrier_datagram_arm();
    atomic_store_explicit(&d->looked, NICBARRIER_NEVER, memory_order_relaxed);
    nicbarrier_datagram_unlock();
    if (quiet) {
        const nfds_t n = nicbarrier_datagram_descriptors(fds);
        const struct timespec left = onic_timespec(until - now);
        if (ppoll(fds, n, &left, NULL) > 0 && fds[NICBARRIER_VIA_UDP].revents != 0) {
            atomic_store_explicit(&d->udp_due, true, memory_order_relaxed);
        }
    }
}

/* ---- pokes ------------------------------------------------------------------------------------
 */

typedef struct poke {
    nicbarrier_address_t to;
    uint32_t cookie;
    uint64_t key;
} poke_t;

_Static_assert(sizeof(poke_t) <= NICBARRIER_POKE_MAX, "a poke record has a limited size");

static uint32_t datagram_poke_record(nicbarrier_net_t *net, void *bytes)
{
    const nicbarrier_datagram_t *d = &nicbarrier_datagram;
    poke_t p;
    memset(&p, 0, sizeof(p));
    p.cookie = d->cookie;
    p.key = net->group.key;
    if (!nicbarrier_udp_local(&p.to)) {
        return 0;
    }
    memcpy(bytes, &p, sizeof(p));
    return sizeof(p);
}

static void datagram_poke(const void *bytes, uint32_t len)
{
    poke_t p;
    unsigned char packet[NICBARRIER_PACKET_SIZE];
    if (len != sizeof(p)) {
        return;
    }
    memcpy(&p, bytes, sizeof(p));
    const nicbarrier_packet_t poke = {
        .kind = NICBARRIER_PACKET_POKE, .cookie = p.cookie, .key = p.key};
    nicbarrier_packet_encode(&poke, packet);
    nicbarrier_udp_throw(&p.to, packet);
}

/* ---- failure ----------------------------------------------------------------------------------
 */

static nicbarrier_failure_t datagram_failure(const nicbarrier_net_t *net)
{
    return (nicbarrier_failure_t)atomic_load_explicit(&net->failure, memory_order_acquire);
}

static void datagram_fail(nicbarrier_net_t *net, nicbarrier_failure_t failure)
{
    nicbarrier_datagram_lock();
    if (net->connected && failure != NICBARRIER_SOUND) {
        nicbarrier_datagram_note_failure(net, failure);
        nicbarrier_datagram_follow(net, onic_now_nsec());
    }
    nicbarrier_datagram_unlock();
}

/** Beats messages of Open MPI between nodes, and all there is but an adapter's own remote writes.
 */
static int datagram_score(void)
{
    return 50;
}

static const nicbarrier_engine_extras_t extras = {
    .expect = nicbarrier_datagram_expect,
    .hopeless = nicbarrier_datagram_hopeless,
    .failure = datagram_failure,
    .fail = datagram_fail,
    .leave = datagram_leave,
    .wait = datagram_wait,
    .poke_record = datagram_poke_record,
    .poke = datagram_poke,
};

const nicbarrier_engine_t nicbarrier_engine_datagram = {
    .name = "datagram",
    .what = "UDP or verbs, with retransmission on request of the receiver",
    .network = "datagrams",
    .needs = NICBARRIER_NEEDS_ONE_JOB,
    .params = nicbarrier_datagram_params,
    .counters = nicbarrier_datagram_counter_table,
    .score = datagram_score,
    .open = datagram_open,
    .close = datagram_close,
    .prepare = nicbarrier_datagram_prepare,
    .connect = nicbarrier_datagram_connect,
    .enter = datagram_enter,
    .completed = datagram_completed,
    .progress = datagram_progress,
    .disconnect = nicbarrier_datagram_disconnect,
    .extras = &extras,
};
