/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE
#include "common/wire/presence.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/wire/wire_internal.h"

/** Between two marks, of the processor's counter: a microsecond at most. Reading the kernel's clock
 *  may take longer than all else in a progress that finds nothing (kvm-clock: 27 of 50 ns). */
#define MARK_COUNTS 1024

/** Stands in where there is no memory for a page. */
static onic_presence_t nobody_looks;

/* Threads that make progress look at it while one opens the wire. */
static onic_presence_t *_Atomic mine = &nobody_looks;
static int mine_fd = -1;

int onic_presence_start(void)
{
    onic_ticks_start();
    mine_fd = memfd_create("ompi-nic", MFD_CLOEXEC);
    if (mine_fd < 0 || ftruncate(mine_fd, (off_t)sizeof(onic_presence_t)) != 0) {
        return -1;
    }
    onic_presence_t *page =
        mmap(NULL, sizeof(onic_presence_t), PROT_READ | PROT_WRITE, MAP_SHARED, mine_fd, 0);
    if (page == MAP_FAILED) {
        return -1;
    }
    page->clock = onic_ticks_clock();
    atomic_store_explicit(&mine, page, memory_order_release);
    return mine_fd;
}

void onic_presence_stop(void)
{
    onic_presence_t *page = atomic_exchange(&mine, &nobody_looks);
    if (page != &nobody_looks) {
        munmap(page, sizeof(*page));
    }
    if (mine_fd >= 0) {
        close(mine_fd);
        mine_fd = -1;
    }
}

static onic_presence_t *page_of_mine(void)
{
    return atomic_load_explicit(&mine, memory_order_acquire);
}

void onic_presence_mark(void)
{
    onic_mpi_tick();
#if defined(__x86_64__)
    /* The processor's counter tells when it is worth reading the clock again, whatever that is.
     * Another processor's may be behind: that is worth it, too. */
    static atomic_uint_fast64_t marked;
    const uint64_t count = __builtin_ia32_rdtsc();
    if (count - atomic_load_explicit(&marked, memory_order_relaxed) < MARK_COUNTS) {
        return;
    }
    atomic_store_explicit(&marked, count, memory_order_relaxed);
#endif
    atomic_store_explicit(&page_of_mine()->ticks, onic_ticks(), memory_order_relaxed);
}

uint64_t onic_presence_age(void)
{
    return onic_ticks() - atomic_load_explicit(&page_of_mine()->ticks, memory_order_relaxed);
}

void onic_presence_set_away(bool away)
{
    atomic_store_explicit(&page_of_mine()->away, away, memory_order_relaxed);
}

void onic_presence_set_parked(unsigned nap)
{
    atomic_store_explicit(&page_of_mine()->parked, nap, memory_order_release);
}

void onic_presence_set_helped(bool helped)
{
    atomic_store_explicit(&page_of_mine()->helped, helped, memory_order_release);
}

void onic_presence_offer(const onic_segment_key_t *key)
{
    onic_presence_t *page = page_of_mine();
    if (key != NULL) {
        page->offer = *key;
    }
    atomic_store_explicit(&page->offers, key != NULL, memory_order_release);
}

/** Maps the page of another process. */
static const onic_presence_t *map_page(const onic_file_key_t *key)
{
    int fd = onic_file_open(key, O_RDONLY);
    if (fd < 0) {
        return NULL;
    }
    onic_presence_t *page = MAP_FAILED;
    if (lseek(fd, 0, SEEK_END) >= (off_t)sizeof(onic_presence_t)) {
        page = mmap(NULL, sizeof(onic_presence_t), PROT_READ, MAP_SHARED, fd, 0);
    }
    close(fd);
    if (page != MAP_FAILED && page->clock != onic_ticks_clock()) {
        munmap(page, sizeof(*page));
        page = MAP_FAILED;
    }
    return page != MAP_FAILED ? page : NULL;
}

const onic_presence_t *onic_peer_presence(onic_peer_t *peer)
{
    if (!peer->presence_tried) {
        peer->presence_tried = true;
        peer->presence = !peer->self && onic_same_place(&peer->cma_id, &onic_wire.cma_id)
                             ? map_page(&peer->cma_id.presence)
                             : NULL;
    }
    return peer->presence;
}

bool onic_peer_has_door(onic_peer_t *peer)
{
    if (!peer->door_tried) {
        peer->door_tried = true;
        /* Kept for reading, too: a pipe without a reader would end the writer by a signal. */
        peer->door =
            onic_peer_presence(peer) != NULL ? onic_file_open(&peer->cma_id.door, O_RDWR) : -1;
    }
    return peer->door >= 0;
}

bool onic_peer_can_wake(onic_peer_t *peer)
{
    return onic_peer_has_door(peer) &&
           atomic_load_explicit(&peer->presence->helped, memory_order_acquire);
}

void onic_peer_wake(const onic_peer_t *peer)
{
    onic_door_knock(peer->door);
}

void onic_peer_presence_close(onic_peer_t *peer)
{
    if (peer->presence != NULL) {
        munmap((void *)(uintptr_t)peer->presence, sizeof(onic_presence_t));
        peer->presence = NULL;
    }
    if (peer->door_tried && peer->door >= 0) {
        close(peer->door);
        peer->door = -1;
    }
}
