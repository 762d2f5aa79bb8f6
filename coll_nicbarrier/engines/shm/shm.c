/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coll_nicbarrier/engines/shm/shm.h"

#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define READ(flag) atomic_load_explicit(&(flag)->epoch, memory_order_acquire)

size_t nicbarrier_shm_bytes(int n)
{
    size_t flags = (size_t)nicbarrier_tree_max(n) + (size_t)n;
    return sizeof(nicbarrier_head_t) + flags * sizeof(nicbarrier_flag_t);
}

/** Groups of leaves come first among the groups: their release flags have the same order. */
static void find_releases(nicbarrier_shm_t *s)
{
    const nicbarrier_tree_t *t = &s->tree;
    int top = t->leaves;
    for (int i = 0; i < t->leaves; i++) {
        top = t->parent[i] >= top ? t->parent[i] + 1 : top;
    }
    s->releases = t->vertices == 1 ? 1 : top - t->leaves;
    s->my_release = &s->release[t->vertices == 1 ? 0 : t->parent[s->leaf] - t->leaves];
}

int nicbarrier_shm_init(nicbarrier_shm_t *s, void *base, const nicbarrier_locality_t *where, int n,
                        int me, int fanout, bool network)
{
    memset(s, 0, sizeof(*s));
    if (nicbarrier_arrange(&s->tree, where, n, fanout) != 0) {
        return -1;
    }
    s->head = base;
    s->vertex = (nicbarrier_flag_t *)(void *)(s->head + 1);
    s->release = s->vertex + nicbarrier_tree_max(n);
    s->n = n;
    s->leaf = s->tree.leaf[me];
    s->mine = &s->vertex[s->leaf];
    s->network = network;
    s->flat = !network && n <= fanout;
    find_releases(s);
    return 0;
}

void nicbarrier_shm_free(nicbarrier_shm_t *s)
{
    nicbarrier_tree_free(&s->tree);
}

/* ---- flags ---------------------------------------------------------------------------------- */

/** Raises a flag; false where it was as high already. A full fence in any case. */
static bool raise_flag(nicbarrier_flag_t *flag, uint64_t epoch)
{
    uint64_t old = atomic_load(&flag->epoch);
    while (old < epoch) {
        if (atomic_compare_exchange_weak(&flag->epoch, &old, epoch)) {
            return true;
        }
    }
    atomic_thread_fence(memory_order_seq_cst);
    return false;
}

static uint64_t lowest(const nicbarrier_flag_t *flags, int n)
{
    uint64_t low = UINT64_MAX;
    for (int i = 0; i < n; i++) {
        uint64_t epoch = READ(&flags[i]);
        low = epoch < low ? epoch : low;
    }
    return low;
}

static void wake_all(nicbarrier_shm_t *s)
{
    atomic_fetch_add(&s->head->wakes, 1);
    (void)syscall(SYS_futex, &s->head->wakes, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void nicbarrier_shm_release(nicbarrier_shm_t *s, uint64_t epoch)
{
    bool raised = false;
    for (int i = 0; i < s->releases; i++) {
        raised = raise_flag(&s->release[i], epoch) || raised;
    }
    if (raised && atomic_load(&s->head->sleepers) > 0) {
        wake_all(s);
    }
}

void nicbarrier_shm_fail(nicbarrier_shm_t *s)
{
    if (atomic_exchange(&s->head->failed, 1) == 0) {
        wake_all(s);
    }
}

bool nicbarrier_shm_failed(const nicbarrier_shm_t *s)
{
    return atomic_load_explicit(&s->head->failed, memory_order_relaxed) != 0;
}

/** Climbs as far as all siblings have come; true where the root was raised. */
static bool climb(nicbarrier_shm_t *s, uint64_t *epoch_p)
{
    const nicbarrier_tree_t *t = &s->tree;
    int v = t->parent[s->leaf];
    while (v >= 0) {
        *epoch_p = lowest(&s->vertex[t->first[v]], t->count[v]);
        if (!raise_flag(&s->vertex[v], *epoch_p)) {
            return false;
        }
        v = t->parent[v];
    }
    return true;
}

bool nicbarrier_shm_enter(nicbarrier_shm_t *s, uint64_t epoch)
{
    if (s->flat) {
        atomic_store_explicit(&s->mine->epoch, epoch, memory_order_release);
        return false;
    }
    (void)raise_flag(s->mine, epoch);
    if (!climb(s, &epoch)) {
        return false;
    }
    if (!s->network) {
        nicbarrier_shm_release(s, epoch);
    }
    return s->network;
}

void nicbarrier_shm_depart(nicbarrier_shm_t *s)
{
    if (!s->flat) {
        return;
    }
    /* Either I see the sleeper's note, or it sees my flag. */
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&s->head->sleepers, memory_order_relaxed) > 0) {
        uint64_t epoch = nicbarrier_shm_completed(s);
        if (epoch > atomic_load_explicit(&s->woken, memory_order_relaxed)) {
            atomic_store_explicit(&s->woken, epoch, memory_order_relaxed);
            wake_all(s);
        }
    }
}

/* ---- completion ----------------------------------------------------------------------------- */

uint64_t nicbarrier_shm_arrived(const nicbarrier_shm_t *s)
{
    return READ(&s->vertex[s->tree.vertices - 1]);
}

uint64_t nicbarrier_shm_completed(nicbarrier_shm_t *s)
{
    return s->flat ? lowest(s->vertex, s->n) : READ(s->my_release);
}

bool nicbarrier_shm_pending(nicbarrier_shm_t *s)
{
    return READ(s->mine) > nicbarrier_shm_completed(s);
}

bool nicbarrier_shm_done(nicbarrier_shm_t *s, uint64_t epoch)
{
    if (!s->flat) {
        return READ(s->my_release) >= epoch;
    }
    /* Who was late when last seen is looked at first: while waiting, one line is read. */
    int i = atomic_load_explicit(&s->behind, memory_order_relaxed);
    for (int left = s->n; left > 0; left--) {
        if (READ(&s->vertex[i]) < epoch) {
            atomic_store_explicit(&s->behind, i, memory_order_relaxed);
            return false;
        }
        i = i + 1 < s->n ? i + 1 : 0;
    }
    return true;
}

void nicbarrier_shm_sleep(nicbarrier_shm_t *s, uint64_t epoch, unsigned usec)
{
    struct timespec time = {.tv_sec = usec / 1000000U, .tv_nsec = (long)(usec % 1000000U) * 1000L};
    uint32_t wakes = atomic_load(&s->head->wakes);
    atomic_fetch_add(&s->head->sleepers, 1);
    atomic_thread_fence(memory_order_seq_cst);
    if (!nicbarrier_shm_done(s, epoch)) {
        (void)syscall(SYS_futex, &s->head->wakes, FUTEX_WAIT, wakes, &time, NULL, 0);
    }
    atomic_fetch_sub(&s->head->sleepers, 1);
}

/* ---- skew ----------------------------------------------------------------------------------- */

void nicbarrier_shm_stamp(nicbarrier_shm_t *s, uint64_t epoch, uint64_t nsec)
{
    atomic_store_explicit(&s->mine->stamp_epoch, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&s->mine->stamp, nsec, memory_order_relaxed);
    atomic_store_explicit(&s->mine->stamp_epoch, epoch, memory_order_release);
}

bool nicbarrier_shm_skew(const nicbarrier_shm_t *s, uint64_t epoch, uint64_t *nsec_p)
{
    uint64_t first = UINT64_MAX, last = 0;
    for (int i = 0; i < s->n; i++) {
        const nicbarrier_flag_t *flag = &s->vertex[i];
        uint64_t before = atomic_load_explicit(&flag->stamp_epoch, memory_order_acquire);
        uint64_t nsec = atomic_load_explicit(&flag->stamp, memory_order_relaxed);
        atomic_thread_fence(memory_order_acquire);
        if (before != epoch ||
            atomic_load_explicit(&flag->stamp_epoch, memory_order_relaxed) != epoch) {
            return false;
        }
        first = nsec < first ? nsec : first;
        last = nsec > last ? nsec : last;
    }
    *nsec_p = last - first;
    return true;
}
