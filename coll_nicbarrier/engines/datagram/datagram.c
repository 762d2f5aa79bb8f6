/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Engine datagram: the process's part, barriers, and the engine's row; see engine.h. */
#include "coll_nicbarrier/engines/datagram/state.h"

#include <string.h>
#include <sys/random.h>

/* ---- process -------------------------------------------------------------------------------- */

static int datagram_open(bool thread, nicbarrier_reason_t *why)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    memset(d, 0, sizeof(*d));
    if (!thread)
        return nicbarrier_reason(
            why, "datagrams need the helper thread: a process that is not in MPI must "
                 "repeat what others have missed");
    d->silence = (uint64_t)nicbarrier_datagram_config.nack_usec * 1000;
    atomic_store(&d->deadline, NICBARRIER_NEVER);
    if (getrandom(&d->cookie, sizeof(d->cookie), GRND_NONBLOCK) != (ssize_t)sizeof(d->cookie))
        d->cookie = (uint32_t)onic_now_nsec();
    d->random = d->cookie;
    return nicbarrier_udp_open(d->cookie, why);
}

static void datagram_close(void)
{
    nicbarrier_datagram_stop_thread();
    while (nicbarrier_datagram.first != NULL)
        nicbarrier_datagram_free(nicbarrier_datagram.first);
    nicbarrier_udp_close();
}

/* ---- barriers ------------------------------------------------------------------------------- */

/** Shows the helper thread that an MPI thread is active. Simultaneous increments may lose counts,
 *  but not all of them. */
static void tick(void)
{
    onic_count(&nicbarrier_datagram.ticks, 1);
}

static void datagram_enter(nicbarrier_net_t *net, uint64_t epoch)
{
    tick();
    nicbarrier_datagram_lock();
    (void)nicbarrier_datagram_enter(net, epoch);
    nicbarrier_datagram_unlock();
}

static uint64_t datagram_completed(const nicbarrier_net_t *net)
{
    const nicbarrier_bpf_page_t *page = nicbarrier_net_page(net);
    return page != NULL ? nicbarrier_bpf_completed(page)
                        : atomic_load_explicit(&net->completed, memory_order_acquire);
}

static int datagram_progress(nicbarrier_net_t *net)
{
    tick();
    if (!nicbarrier_datagram_trylock())
        return 0;
    const int events = (int)nicbarrier_datagram_look(net) + nicbarrier_datagram_receive(net);
    nicbarrier_datagram_unlock();
    return events;
}

static void datagram_wait(nicbarrier_net_t *net, unsigned usec)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    const uint64_t now = onic_now_nsec(), end = now + (uint64_t)usec * 1000;
    const uint64_t deadline = atomic_load_explicit(&d->deadline, memory_order_relaxed);
    if (deadline <= now || !nicbarrier_datagram_trylock())
        return;
    const bool quiet = nicbarrier_datagram_want(net);
    nicbarrier_datagram_unlock();
    if (quiet)
        nicbarrier_datagram_sleep(-1, deadline < end ? deadline : end);
}

/* ---- failure -------------------------------------------------------------------------------- */

static bool datagram_failed(const nicbarrier_net_t *net)
{
    const nicbarrier_bpf_page_t *page = nicbarrier_net_page(net);
    return atomic_load_explicit(&net->failed, memory_order_acquire) ||
           (page != NULL && nicbarrier_bpf_failed(page));
}

static void datagram_fail(nicbarrier_net_t *net)
{
    nicbarrier_datagram_lock();
    if (net->connected)
        nicbarrier_datagram_fail(net);
    nicbarrier_datagram_unlock();
}

/** Better than messages of Open MPI between nodes, and than any engine but an adapter's own remote
 *  writes. */
static int datagram_score(void)
{
    return 50;
}

const nicbarrier_engine_t nicbarrier_engine_datagram = {
    .name = "datagram",
    .params = nicbarrier_datagram_params,
    .counters = nicbarrier_datagram_counter_table,
    .ncounters = NICBARRIER_DATAGRAM_COUNTERS,
    .score = datagram_score,
    .open = datagram_open,
    .close = datagram_close,
    .prepare = nicbarrier_datagram_prepare,
    .connect = nicbarrier_datagram_connect,
    .enter = datagram_enter,
    .completed = datagram_completed,
    .progress = datagram_progress,
    .disconnect = nicbarrier_datagram_disconnect,
    .failed = datagram_failed,
    .fail = datagram_fail,
    .wait = datagram_wait,
};
