/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Dynamic windows: attaching, detaching, and what origins may know of another's table.
 *
 * The target's table is the truth: all that comes by message is checked against it there. Only
 * single copy goes past the target, so before it the origin must know that the memory is attached:
 * from a few regions that it remembers together with the generation of the table, which lies in
 * shared memory and changes with every attach and detach. What is not known is asked for, and until
 * the answer is there all goes by message, which needs no knowledge: nobody waits for an answer.
 */
#include <stddef.h>
#include <inttypes.h>

#include "osc_nicstride/origin/origin.h"
#include "osc_nicstride/window/calls.h"
#include "osc_nicstride/window/control.h"
#include "osc_nicstride/window/errors.h"
#include "osc_nicstride/window/module.h"
#include "osc_nicstride/channel/send.h"
#include "osc_nicstride/channel/wait.h"
#include "osc_nicstride/target/target.h"
#include "common/support/device.h"

static int region_error(const nicstride_module_t *m, const char *call, nicstride_region_status_t s,
                        const void *base, size_t size)
{
    switch (s) {
    case NICSTRIDE_REGION_OK:
        return OMPI_SUCCESS;
    case NICSTRIDE_REGION_OVERLAP:
        return nicstride_error(m, call, OMPI_ERR_RMA_ATTACH,
                               "the %zu bytes at %p overlap memory that is attached already", size,
                               base);
    case NICSTRIDE_REGION_NONE:
        return nicstride_error(m, call, OMPI_ERR_RMA_ATTACH, "no region is attached at %p", base);
    case NICSTRIDE_REGION_BAD:
        return nicstride_error(m, call, MPI_ERR_SIZE,
                               "%zu bytes at %p go beyond the end of the address space", size,
                               base);
    default:
        return nicstride_error(m, call, OMPI_ERR_RMA_ATTACH, "memory is exhausted");
    }
}

/** The table has changed: what others remember of it is worthless now. */
static void publish_generation(nicstride_module_t *m)
{
    atomic_store_explicit(&nicstride_ctl(m, m->node.me)->generation, m->regions.generation,
                          memory_order_release);
}

int nicstride_attach(ompi_win_t *win, void *base, size_t size)
{
    nicstride_module_t *m = nicstride_module(win);
    nicstride_region_status_t s;

    if (m->flavor != MPI_WIN_FLAVOR_DYNAMIC)
        return nicstride_error(m, "MPI_Win_attach", OMPI_ERR_RMA_FLAVOR,
                               "the window was not made by MPI_Win_create_dynamic");
    if (size > 0 && onic_on_device(base))
        return nicstride_error(m, "MPI_Win_attach", OMPI_ERR_RMA_ATTACH,
                               "the %zu bytes at %p are memory of a device, and only host memory "
                               "is supported",
                               size, base);
    onic_wire_lock();
    s = nicstride_regions_attach(&m->regions, (uint64_t)(uintptr_t)base, size);
    publish_generation(m);
    onic_wire_unlock();
    return region_error(m, "MPI_Win_attach", s, base, size);
}

/** Does nobody use what is not attached any more? A program must not detach memory before the
 *  accesses to it are over. One that does gets no wrong memory changed behind its back. */
static bool is_unused(void *arg)
{
    return nicstride_end_uses_locked(arg, false);
}

int nicstride_detach(ompi_win_t *win, const void *base)
{
    nicstride_module_t *m = nicstride_module(win);
    nicstride_region_status_t s;

    if (m->flavor != MPI_WIN_FLAVOR_DYNAMIC)
        return nicstride_error(m, "MPI_Win_detach", OMPI_ERR_RMA_FLAVOR,
                               "the window was not made by MPI_Win_create_dynamic");
    onic_wire_lock();
    s = nicstride_regions_detach(&m->regions, (uint64_t)(uintptr_t)base);
    publish_generation(m);
    onic_wire_unlock();
    nicstride_wait_polling(is_unused, m);
    return region_error(m, "MPI_Win_detach", s, base, 0);
}

static bool holds(const nicstride_region_t *r, uint64_t addr, uint64_t size)
{
    return addr >= r->base && addr - r->base <= r->size && size <= r->size - (addr - r->base);
}

static bool remembered(const nicstride_peer_t *p, uint64_t generation, uint64_t addr, uint64_t size)
{
    if (p->cached_generation != generation)
        return false;
    for (unsigned i = 0; i < p->ncached; i++) {
        if (holds(&p->cached[i], addr, size))
            return true;
    }
    return false;
}

static void remember(nicstride_peer_t *p, const nicstride_msg_t *answer)
{
    if (p->cached_generation != answer->count) {
        p->cached_generation = answer->count;
        p->ncached = p->next_cached = 0;
    }
    p->cached[p->next_cached].base = (uint64_t)answer->disp;
    p->cached[p->next_cached].size = answer->len;
    p->next_cached = (p->next_cached + 1) % NICSTRIDE_CACHED_REGIONS;
    if (p->ncached < NICSTRIDE_CACHED_REGIONS)
        p->ncached++;
}

/** Asks the target, and waits for nothing. One question to a peer at a time. */
static void ask(nicstride_module_t *m, nicstride_peer_t *p)
{
    nicstride_msg_t msg;

    nicstride_msg_init(&msg, NICSTRIDE_MSG_REGION, m->info[p->rank].win, (uint32_t)m->rank);
    msg.disp = (int64_t)p->asked_region.base;
    msg.len = p->asked_region.size;
    onic_wire_lock();
    p->region_answered = false;
    nicstride_tell_locked(p, &msg);
    onic_wire_unlock();
}

/** Takes the answer, if it is there. */
static void take_answer(nicstride_peer_t *p)
{
    nicstride_msg_t answer;
    bool answered;

    onic_wire_lock();
    answered = p->region_answered;
    if (answered)
        answer = p->region_answer;
    onic_wire_unlock();
    if (!answered)
        return;
    p->asking_region = false;
    p->asked_generation = answer.count;
    if (answer.status == 0)
        remember(p, &answer);
}

/** Has the answer, of this generation, been that there is no such memory? */
static bool is_refused(const nicstride_peer_t *p, uint64_t generation, uint64_t addr, uint64_t size)
{
    return p->asked_generation == generation && p->asked_region.base == addr &&
           p->asked_region.size == size;
}

bool nicstride_region_known(nicstride_module_t *m, nicstride_peer_t *p, uint64_t addr,
                            uint64_t size)
{
    const uint64_t generation =
        atomic_load_explicit(&nicstride_ctl(m, p->local)->generation, memory_order_acquire);
    bool known, asks;

    OPAL_THREAD_LOCK(&m->lock);
    if (p->asking_region)
        take_answer(p);
    known = remembered(p, generation, addr, size);
    asks = !known && !p->asking_region && !is_refused(p, generation, addr, size);
    if (asks) {
        p->asking_region = true;
        p->asked_region = (nicstride_region_t){.base = addr, .size = size};
        ask(m, p);
    }
    OPAL_THREAD_UNLOCK(&m->lock);
    return known;
}
