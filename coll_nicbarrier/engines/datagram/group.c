/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Engine datagram: connected groups; see state.h. */
#include "coll_nicbarrier/engines/datagram/state.h"

#include <stdlib.h>

#include "coll_nicbarrier/engines/shm/shm.h"

/* ---- all groups ------------------------------------------------------------------------------ */

void nicbarrier_datagram_add(nicbarrier_net_t *net)
{
    net->next = nicbarrier_datagram.first;
    nicbarrier_datagram.first = net;
}

nicbarrier_net_t *nicbarrier_datagram_find(uint64_t key)
{
    nicbarrier_net_t *net = nicbarrier_datagram.first;
    while (net != NULL && net->group.key != key)
        net = net->next;
    return net;
}

void nicbarrier_datagram_each(void (*function)(nicbarrier_net_t *, uint64_t), uint64_t what)
{
    nicbarrier_net_t *next;
    for (nicbarrier_net_t *net = nicbarrier_datagram.first; net != NULL; net = next) {
        next = net->next;
        function(net, what);
    }
}

/* ---- the end --------------------------------------------------------------------------------- */

void nicbarrier_datagram_free(nicbarrier_net_t *net)
{
    nicbarrier_net_t **at = &nicbarrier_datagram.first;
    while (*at != net)
        at = &(*at)->next;
    *at = net->next;
    if (net->kernel.page != NULL)
        net->stepper->remove(net);
    free(net);
}

/** True if the group has nothing more to send except answers. */
static bool is_over(nicbarrier_net_t *net)
{
    const nicbarrier_rule_t *r = nicbarrier_net_state(net);
    return r->failed || r->completed == r->entered;
}

void nicbarrier_datagram_leave(nicbarrier_net_t *net)
{
    const bool failed = atomic_load_explicit(&net->failed, memory_order_relaxed);
    const bool used = atomic_load_explicit(&net->completed, memory_order_relaxed) != 0;
    /* Everything entered has to become complete, because others need the messages for that; but a
     * group in which no barrier ever did was not in use. */
    net->gone = failed || (used && !is_over(net));
    if (!net->gone)
        nicbarrier_datagram_free(net);
}

/* ---- moving on ------------------------------------------------------------------------------- */

static void complete(nicbarrier_net_t *net, uint64_t completed)
{
    const nicbarrier_bpf_page_t *page = nicbarrier_net_page(net);
    onic_count(&nicbarrier_datagram_counters.completed, 1);
    if (page != NULL) {
        const uint64_t taken = __atomic_load_n(&page->taken, __ATOMIC_RELAXED);
        onic_count(&nicbarrier_datagram_counters.stepper_taken, taken - net->taken);
        net->taken = taken;
    }
    if (nicbarrier_datagram.helping)
        onic_count(&nicbarrier_datagram_counters.thread_completed, 1);
    atomic_store_explicit(&net->completed, completed, memory_order_release);
    if (!net->gone && net->node != NULL)
        nicbarrier_shm_release(net->node, completed);
}

void nicbarrier_datagram_catch_up(nicbarrier_net_t *net, uint64_t now)
{
    nicbarrier_datagram_t *d = &nicbarrier_datagram;
    const nicbarrier_rule_t *r = nicbarrier_net_state(net);
    nicbarrier_nacks_follow(&net->nacks, r, now);
    if (net->nacks.deadline < atomic_load_explicit(&d->deadline, memory_order_relaxed))
        atomic_store_explicit(&d->deadline, net->nacks.deadline, memory_order_relaxed);
    if (r->completed > atomic_load_explicit(&net->completed, memory_order_relaxed))
        complete(net, r->completed);
    if (r->failed)
        atomic_store_explicit(&net->failed, true, memory_order_release);
}

void nicbarrier_datagram_follow(nicbarrier_net_t *net, uint64_t now)
{
    nicbarrier_datagram_catch_up(net, now);
    if (net->gone)
        nicbarrier_datagram_leave(net);
}

bool nicbarrier_datagram_look(nicbarrier_net_t *net)
{
    const nicbarrier_bpf_page_t *page = nicbarrier_net_page(net);
    if (page == NULL)
        return false;
    const bool moved =
        nicbarrier_bpf_completed(page) >
            atomic_load_explicit(&net->completed, memory_order_relaxed) ||
        nicbarrier_bpf_failed(page) > atomic_load_explicit(&net->failed, memory_order_relaxed);
    if (moved)
        nicbarrier_datagram_catch_up(net, onic_now_nsec());
    return moved;
}

bool nicbarrier_datagram_want(nicbarrier_net_t *net)
{
    nicbarrier_bpf_page_t *page = nicbarrier_net_page(net);
    if (page == NULL)
        return true;
    __atomic_store_n(&page->wanted, 1, __ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return !nicbarrier_datagram_look(net);
}

void nicbarrier_datagram_fail(nicbarrier_net_t *net)
{
    const nicbarrier_rule_t *r = nicbarrier_net_state(net);
    atomic_store_explicit(&net->failed, true, memory_order_release);
    if (!r->failed) {
        /* Every member waits in some step, so this exists. */
        const uint32_t k = (uint32_t)__builtin_ctzll(r->waits);
        nicbarrier_steps_take(net, k, r->received[k] | NICBARRIER_WORD_FAILED);
    }
    nicbarrier_datagram_follow(net, onic_now_nsec());
}

/* ---- entering -------------------------------------------------------------------------------- */

bool nicbarrier_datagram_enter(nicbarrier_net_t *net, uint64_t epoch)
{
    if (!net->connected || epoch <= nicbarrier_net_state(net)->entered)
        return false;
    nicbarrier_steps_enter(net, epoch);
    nicbarrier_datagram_follow(net, onic_now_nsec());
    return true;
}

static void see_to(nicbarrier_net_t *net, uint64_t now)
{
    if (!net->connected)
        return;
    if (!net->gone && net->node != NULL) {
        (void)nicbarrier_datagram_enter(net, nicbarrier_shm_arrived(net->node));
        nicbarrier_datagram.awaiting |=
            nicbarrier_shm_begun(net->node) > nicbarrier_net_state(net)->entered;
    }
    if (nicbarrier_net_page(net) != NULL)
        nicbarrier_datagram_follow(net, now);
}

void nicbarrier_datagram_see_to_all(void)
{
    nicbarrier_datagram.awaiting = false;
    nicbarrier_datagram_each(see_to, onic_now_nsec());
}
