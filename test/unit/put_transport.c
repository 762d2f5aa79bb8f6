/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The transport of tests of puts; see put_transport.h. */
#include "test/unit/put_transport.h"

#include <string.h>

struct put_transport wire;

static const bool one_thread;

onic_guard_t onic_transport_guard = {.threads = &one_thread};

void onic_transport_lock_wait(void)
{
    UNIT_CHECK(!"the lock is not taken twice");
}

static bool is_locked(void)
{
    return atomic_load(&onic_transport_guard.held) != 0;
}

int onic_transport_open(const onic_transport_config_t *config)
{
    (void)config;
    wire.references++;
    return 0;
}

static void free_region(onic_region_t *region)
{
    UNIT_CHECK(!is_locked() && !region->freed);
    region->freed = true;
    free(region->base);
}

bool onic_transport_close(void)
{
    onic_transport_lock();
    for (int i = 0; wire.ends && i < wire.puts; i++)
        if (wire.put[i].word != NULL)
            wire.put[i].cb(wire.put[i].arg, -12);
    onic_transport_unlock();
    for (int i = 0; i < wire.regions; i++)
        if (wire.region[i]->left)
            free_region(wire.region[i]);
    return --wire.references == 0;
}

void onic_transport_flush(void)
{
}

void onic_transport_set_fns(unsigned am_id, const onic_transport_fns_t *fns)
{
    ck_assert_uint_eq(am_id, ONIC_AM_COLL);
    wire.deferred = fns->work[ONIC_LOCKED];
}

void onic_transport_ask(unsigned am_id, onic_place_t place)
{
    UNIT_CHECK(am_id == ONIC_AM_COLL && place == ONIC_LOCKED);
    wire.defer = true;
}

void onic_transport_want_server(bool want)
{
    wire.wants_server += want ? 1 : -1;
}

unsigned onic_transport_losses(void)
{
    UNIT_CHECK(is_locked());
    return wire.losses;
}

onic_region_t *onic_region_new(size_t bytes)
{
    onic_region_t *region = calloc(1, sizeof(*region));
    UNIT_CHECK(!is_locked() && region != NULL);
    region->base = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    UNIT_CHECK(region->base != NULL);
    memset(region->base, 0, bytes);
    region->size = bytes;
    UNIT_CHECK(wire.regions < REGIONS_MAX);
    wire.region[wire.regions++] = region;
    return region;
}

void onic_region_free(onic_region_t *region)
{
    UNIT_CHECK(!region->left);
    free_region(region);
}

void onic_region_leave(onic_region_t *region)
{
    UNIT_CHECK(!is_locked() && !region->left);
    region->left = true;
}

void *onic_region_base(const onic_region_t *region)
{
    return region->base;
}

size_t onic_region_describe(const onic_region_t *region, void *bytes, size_t cap)
{
    UNIT_CHECK(cap >= sizeof(region));
    memcpy(bytes, &region, sizeof(region));
    return sizeof(region);
}

onic_remote_t *onic_remote_open(onic_peer_t *peer, const void *bytes, size_t len, int *rc_p)
{
    onic_remote_t *remote = calloc(1, sizeof(*remote));
    UNIT_CHECK(is_locked() && peer == NULL && remote != NULL && len == sizeof(remote->region));
    memcpy(&remote->region, bytes, sizeof(remote->region));
    UNIT_CHECK(wire.remotes < REMOTES_MAX);
    wire.remote[wire.remotes++] = remote;
    wire.open_remotes++;
    *rc_p = 0;
    return remote;
}

/** Kept until the end of the test, which may still look at it. */
void onic_remote_close(onic_remote_t *remote)
{
    UNIT_CHECK(is_locked() && remote->region != NULL);
    for (int i = 0; i < wire.puts; i++)
        UNIT_CHECK(wire.put[i].word == NULL || wire.put[i].remote != remote);
    remote->region = NULL;
    wire.open_remotes--;
}

/** A peer is as its region here. */
onic_peer_t *onic_remote_peer(const onic_remote_t *remote)
{
    return (onic_peer_t *)(uintptr_t)remote;
}

bool onic_peer_lost(onic_peer_t *peer)
{
    const onic_remote_t *remote = (const onic_remote_t *)peer;

    UNIT_CHECK(is_locked());
    wire.told += remote->cut;
    return remote->cut;
}

int onic_remote_put(onic_remote_t *remote, size_t offset, const void *data, size_t len,
                    const onic_region_t *from, onic_send_cb_t cb, void *arg)
{
    const uint64_t *word = data;

    UNIT_CHECK(is_locked() && from == NULL && len == sizeof(*word) &&
               offset + len <= remote->region->size);
    if (remote->cut) {
        remote->failures++;
        return -12;
    }
    const bool done = wire.at_once || unit_once_in(&wire.random, 4);
    UNIT_CHECK(wire.puts < PUTS_MAX);
    wire.put[wire.puts++] = (put_t){.remote = remote,
                                    .region = remote->region,
                                    .offset = offset,
                                    .word = done ? NULL : word,
                                    .value = *word,
                                    .cb = cb,
                                    .arg = arg};
    return done ? 1 : 0;
}

static void forget(int i)
{
    memmove(&wire.put[i], &wire.put[i + 1], (size_t)(--wire.puts - i) * sizeof(put_t));
}

/** Is there an older one into the same flag? */
static bool overtakes(int i)
{
    bool older = false;
    for (int k = 0; k < i; k++)
        older |=
            wire.put[k].region == wire.put[i].region && wire.put[k].offset == wire.put[i].offset;
    return older;
}

/** UCX is done with the word. */
static void end_local(int i)
{
    put_t *p = &wire.put[i];
    const bool cut = p->remote->cut;
    if (cut && wire.silent)
        return;
    p->value = *p->word;
    p->word = NULL;
    p->remote->failures += cut;
    p->cb(p->arg, cut ? -12 : 0);
    if (cut)
        forget(i);
}

void put_wire_step(int i)
{
    const put_t *p = &wire.put[i];
    if (p->word != NULL) {
        end_local(i);
    } else if (p->remote->cut && unit_once_in(&wire.random, 2)) {
        forget(i);
    } else if (wire.overtaken || !overtakes(i)) {
        UNIT_CHECK(!p->region->freed);
        memcpy((char *)p->region->base + p->offset, &p->value, sizeof(p->value));
        forget(i);
    }
}

int put_wire_progress(bool any)
{
    onic_transport_lock();
    if (any && wire.puts > 0)
        put_wire_step((int)unit_below(&wire.random, (uint64_t)wire.puts));
    const bool wanted = wire.defer;
    wire.defer = false;
    const int events = wanted && wire.deferred != NULL ? wire.deferred() : 0;
    wire.defer |= events < 0;
    onic_transport_unlock();
    return events > 0 ? events : 0;
}

int onic_transport_progress(void)
{
    return put_wire_progress(true);
}

void put_wire_drain(void)
{
    for (int left = 100000; wire.puts > 0; left--) {
        UNIT_CHECK(left > 0);
        (void)put_wire_progress(true);
    }
}

void onic_transport_require(const onic_transport_config_t *config)
{
    (void)config;
}
