/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Engine shm: flags on a node; see shm.h. The team uses them on each node in any case;
 *  choosing this engine means that there is no network part. */
#include "coll_nicbarrier/engines/shm/shm.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/support/clock.h"

#define READ(flag) atomic_load_explicit(&(flag)->epoch, memory_order_acquire)

/** Groups of `n` members. */
static int groups_of(int n, int fanout)
{
    return (n + fanout - 1) / fanout;
}

/** The flags of the whole tree; the root's is the last. */
static int flags_of(int n, int fanout)
{
    int flags = n;
    while (n > 1)
        flags += n = groups_of(n, fanout);
    return flags;
}

/* The head, the flags, those of releases, and whether members live, in this order. */

size_t nicbarrier_shm_bytes(int n, int fanout)
{
    const size_t flags = (size_t)flags_of(n, fanout) + (size_t)groups_of(n, fanout);
    const size_t bytes = sizeof(nicbarrier_head_t) + flags * sizeof(nicbarrier_flag_t) +
                         (size_t)n * sizeof(onic_life_t);
    /* Rounded up, so that another area may follow. */
    return (bytes + 127) / 128 * 128;
}

void nicbarrier_shm_attach(nicbarrier_shm_t *s, void *base, int n, int me, int fanout, bool network)
{
    nicbarrier_head_t *head = base;
    nicbarrier_flag_t *flag = (nicbarrier_flag_t *)(void *)(head + 1);
    nicbarrier_flag_t *release = flag + flags_of(n, fanout);
    onic_life_t *life = (onic_life_t *)(void *)(release + groups_of(n, fanout));
    life[me] = onic_life_mine();
    *s = (nicbarrier_shm_t){.head = head,
                            .flag = flag,
                            .release = release,
                            .mine = &flag[me],
                            .my_release = &release[me / fanout],
                            .root = release - 1,
                            .life = life,
                            .me = me,
                            .n = n,
                            .fanout = fanout,
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

static void wake_all(nicbarrier_bed_t *bed)
{
    atomic_fetch_add(&bed->wakes, 1);
    (void)syscall(SYS_futex, &bed->wakes, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void nicbarrier_shm_release(nicbarrier_shm_t *s, uint64_t epoch)
{
    bool raised = false;
    for (int i = 0; i < groups_of(s->n, s->fanout); i++)
        raised = raise_flag(&s->release[i], epoch) || raised;
    if (raised && atomic_load(&s->head->completion.sleepers) > 0)
        wake_all(&s->head->completion);
}

void nicbarrier_shm_fail(nicbarrier_shm_t *s)
{
    if (atomic_exchange(&s->head->failed, 1) == 0) {
        wake_all(&s->head->completion);
        wake_all(&s->head->arrival);
    }
}

bool nicbarrier_shm_failed(const nicbarrier_shm_t *s)
{
    return atomic_load_explicit(&s->head->failed, memory_order_relaxed) != 0;
}

/** Climbs while all siblings have come. True if the root was raised. */
static bool climb(nicbarrier_shm_t *s, uint64_t *epoch_p)
{
    nicbarrier_flag_t *level = s->flag;
    for (int n = s->n, i = s->me; n > 1;) {
        const int first = i - i % s->fanout;
        *epoch_p = lowest(level + first, n - first < s->fanout ? n - first : s->fanout);
        level += n;
        n = groups_of(n, s->fanout);
        i /= s->fanout;
        if (!raise_flag(&level[i], *epoch_p))
            return false;
    }
    return true;
}

void nicbarrier_shm_enter(nicbarrier_shm_t *s, uint64_t epoch)
{
    if (s->flat) {
        atomic_store_explicit(&s->mine->epoch, epoch, memory_order_release);
        return;
    }
    (void)raise_flag(s->mine, epoch);
    if (!climb(s, &epoch))
        return;
    if (!s->network)
        nicbarrier_shm_release(s, epoch);
    else if (atomic_load(&s->head->arrival.sleepers) > 0)
        wake_all(&s->head->arrival);
}

void nicbarrier_shm_depart(nicbarrier_shm_t *s)
{
    if (!s->flat)
        return;
    /* Either this process sees the sleeper's count, or the sleeper sees this flag. */
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&s->head->completion.sleepers, memory_order_relaxed) > 0) {
        uint64_t epoch = nicbarrier_shm_completed(s);
        if (epoch > atomic_load_explicit(&s->woken, memory_order_relaxed)) {
            atomic_store_explicit(&s->woken, epoch, memory_order_relaxed);
            wake_all(&s->head->completion);
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
    return s->flat ? lowest(s->flag, s->n) : READ(s->my_release);
}

bool nicbarrier_shm_done(nicbarrier_shm_t *s, uint64_t epoch)
{
    if (!s->flat)
        return READ(s->my_release) >= epoch;
    /* Starts with the process that was last seen late: while waiting, only one line is read. */
    int i = atomic_load_explicit(&s->behind, memory_order_relaxed);
    for (int left = s->n; left > 0; left--) {
        if (READ(&s->flag[i]) < epoch) {
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

static bool has_arrived(nicbarrier_shm_t *s, uint64_t epoch)
{
    return nicbarrier_shm_arrived(s) >= epoch;
}

static void sleep_in(nicbarrier_bed_t *bed, bool (*over)(nicbarrier_shm_t *s, uint64_t epoch),
                     nicbarrier_shm_t *s, uint64_t epoch, unsigned usec)
{
    struct timespec time = onic_timespec((uint64_t)usec * 1000);
    uint32_t wakes = atomic_load(&bed->wakes);
    atomic_fetch_add(&bed->sleepers, 1);
    atomic_thread_fence(memory_order_seq_cst);
    if (!over(s, epoch) && !nicbarrier_shm_failed(s))
        (void)syscall(SYS_futex, &bed->wakes, FUTEX_WAIT, wakes, &time, NULL, 0);
    atomic_fetch_sub(&bed->sleepers, 1);
}

void nicbarrier_shm_sleep(nicbarrier_shm_t *s, uint64_t epoch, unsigned usec)
{
    sleep_in(&s->head->completion, nicbarrier_shm_done, s, epoch, usec);
}

void nicbarrier_shm_sleep_for_node(nicbarrier_shm_t *s, uint64_t epoch, unsigned usec)
{
    sleep_in(&s->head->arrival, has_arrived, s, epoch, usec);
}

/* ---- the row -------------------------------------------------------------------------------- */

const nicbarrier_engine_t nicbarrier_engine_shm = {
    .name = "shm",
};
