/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Engine shm: flags on a node; see shm.h. The team uses them on each node in any case;
 * choosing this engine means that there is no network part. */
#include "coll_nicbarrier/engines/shm/shm.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/support/clock.h"

int nicbarrier_shm_fanout = 16;

#define READ(flag) atomic_load_explicit(&(flag)->epoch, memory_order_acquire)

/** The parts of the memory, in this order. */
typedef struct parts {
    nicbarrier_head_t *head;
    nicbarrier_flag_t *vertex;
    nicbarrier_flag_t *release;
    onic_life_t *life;
    nicbarrier_tree_t tree;
} parts_t;

static size_t flags_of(int n)
{
    return (size_t)nicbarrier_tree_max(n) + (size_t)n;
}

static parts_t parts_at(void *base, int n)
{
    parts_t p = {.head = base};
    p.vertex = (nicbarrier_flag_t *)(void *)(p.head + 1);
    p.release = p.vertex + nicbarrier_tree_max(n);
    p.life = (onic_life_t *)(void *)(p.vertex + flags_of(n));
    p.tree = nicbarrier_tree_at(p.life + n, n);
    return p;
}

size_t nicbarrier_shm_bytes(int n)
{
    size_t bytes = sizeof(nicbarrier_head_t) + flags_of(n) * sizeof(nicbarrier_flag_t) +
                   (size_t)n * sizeof(onic_life_t) + nicbarrier_tree_bytes(n);
    /* Rounded up, so that another area may follow. */
    return (bytes + 127) / 128 * 128;
}

void nicbarrier_shm_introduce(void *base, int n, int me)
{
    parts_at(base, n).life[me] = onic_life_mine();
}

/** Groups of leaves precede other groups; their release flags have the same order. */
static int groups_of_leaves(const nicbarrier_tree_t *t)
{
    return t->vertices == 1 ? 1 : t->vertex[t->leaves - 1].parent - t->leaves + 1;
}

int nicbarrier_shm_arrange(void *base, int n, const nicbarrier_locality_t *where, int fanout)
{
    parts_t p = parts_at(base, n);
    const int rc = nicbarrier_arrange(&p.tree, where, fanout);
    if (rc == 0) {
        p.head->vertices = p.tree.vertices;
        p.head->releases = groups_of_leaves(&p.tree);
    }
    return rc;
}

void nicbarrier_shm_attach(nicbarrier_shm_t *s, void *base, int n, int me, int fanout, bool network)
{
    const parts_t p = parts_at(base, n);
    const int leaf = p.tree.leaf[me], group = p.tree.vertex[leaf].parent;
    *s = (nicbarrier_shm_t){.head = p.head,
                            .vertex = p.vertex,
                            .release = p.release,
                            .mine = &p.vertex[leaf],
                            .my_release = &p.release[group > 0 ? group - n : 0],
                            .root = &p.vertex[p.head->vertices - 1],
                            .life = p.life,
                            .tree = p.tree.vertex,
                            .leaf = leaf,
                            .n = n,
                            .releases = p.head->releases,
                            .flat = !network && n <= fanout,
                            .network = network};
}

/* ---- flags ---------------------------------------------------------------------------------- */

/** Raises a flag; false if it was as high already. The accesses here and the later reads in climb
 *  (`lowest`) are sequentially consistent: of two processes that raise flags and then read each
 *  other's, one comes second and sees both. */
static bool raise_flag(nicbarrier_flag_t *flag, uint64_t epoch)
{
    uint64_t old = atomic_load(&flag->epoch);
    while (old < epoch)
        if (atomic_compare_exchange_weak(&flag->epoch, &old, epoch))
            return true;
    atomic_thread_fence(memory_order_seq_cst);
    return false;
}

static uint64_t lowest(const nicbarrier_flag_t *flags, int n)
{
    uint64_t low = UINT64_MAX;
    for (int i = 0; i < n; i++) {
        uint64_t epoch = atomic_load(&flags[i].epoch);
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
    for (int i = 0; i < s->releases; i++)
        raised = raise_flag(&s->release[i], epoch) || raised;
    if (raised && atomic_load(&s->head->sleepers) > 0)
        wake_all(s);
}

void nicbarrier_shm_fail(nicbarrier_shm_t *s)
{
    if (atomic_exchange(&s->head->failed, 1) == 0)
        wake_all(s);
}

bool nicbarrier_shm_failed(const nicbarrier_shm_t *s)
{
    return atomic_load_explicit(&s->head->failed, memory_order_relaxed) != 0;
}

/** Climbs while all siblings have come. True if the root was raised. */
static bool climb(nicbarrier_shm_t *s, uint64_t *epoch_p)
{
    for (int v = s->tree[s->leaf].parent; v >= 0; v = s->tree[v].parent) {
        *epoch_p = lowest(&s->vertex[s->tree[v].first], s->tree[v].count);
        if (!raise_flag(&s->vertex[v], *epoch_p))
            return false;
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
    if (!climb(s, &epoch))
        return false;
    if (!s->network)
        nicbarrier_shm_release(s, epoch);
    return s->network;
}

void nicbarrier_shm_depart(nicbarrier_shm_t *s)
{
    if (!s->flat)
        return;
    /* Either this process sees the sleeper's count, or the sleeper sees this flag. */
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
    return READ(s->root);
}

uint64_t nicbarrier_shm_begun(const nicbarrier_shm_t *s)
{
    return READ(s->mine);
}

uint64_t nicbarrier_shm_completed(nicbarrier_shm_t *s)
{
    return s->flat ? lowest(s->vertex, s->n) : READ(s->my_release);
}

bool nicbarrier_shm_done(nicbarrier_shm_t *s, uint64_t epoch)
{
    if (!s->flat)
        return READ(s->my_release) >= epoch;
    /* Starts with the process that was last seen late: while waiting, only one line is read. */
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

bool nicbarrier_shm_has_dead(const nicbarrier_shm_t *s, int from, int count)
{
    for (int i = 0; i < count && i < s->n; i++) {
        const onic_life_t life = s->life[(from + i) % s->n];
        if (onic_life_is_dead(&life))
            return true;
    }
    return false;
}

void nicbarrier_shm_sleep(nicbarrier_shm_t *s, uint64_t epoch, unsigned usec)
{
    struct timespec time = onic_timespec((uint64_t)usec * 1000);
    uint32_t wakes = atomic_load(&s->head->wakes);
    atomic_fetch_add(&s->head->sleepers, 1);
    atomic_thread_fence(memory_order_seq_cst);
    if (!nicbarrier_shm_done(s, epoch) && !nicbarrier_shm_failed(s))
        (void)syscall(SYS_futex, &s->head->wakes, FUTEX_WAIT, wakes, &time, NULL, 0);
    atomic_fetch_sub(&s->head->sleepers, 1);
}

/* ---- the row -------------------------------------------------------------------------------- */

static const nicbarrier_param_t params[] = {
    {.name = "fanout",
     .help =
         "Most processes of a node that watch each other's flags directly; more are arranged in "
         "a tree of such groups by caches, NUMA nodes and packages",
     .same = true,
     .number = &nicbarrier_shm_fanout,
     .min = 2,
     .max = 64},
    {.name = NULL},
};

static int shm_score(void)
{
    return 100;
}

const nicbarrier_engine_t nicbarrier_engine_shm = {
    .name = "shm",
    .what = "flags in shared memory",
    .params = params,
    .score = shm_score,
};
