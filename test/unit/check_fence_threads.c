/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Fences by flags between threads: what one has written before a fence, in plain memory, all see
 * behind it. In a program of its own, as ThreadSanitizer is for these alone (check_fence has one
 * thread).
 */
#include "osc_nicstride/protocol/fence.h"

#include <pthread.h>
#include <sched.h>

#include "test/unit/unit.h"

enum { THREADS = 3, FENCES = 500 };

static _Alignas(64) char boards[THREADS * 64 * 5];
static uint32_t written[THREADS]; /* plain memory: what fences must make visible */
static bool wrong;

static void *take_part(void *arg)
{
    const int me = *(int *)arg;
    nicstride_fence_t f = {
        .n = THREADS, .me = me, .nodes = 1, .board = boards, .next = sizeof(boards) / THREADS};

    for (uint32_t k = 1; k <= FENCES; k++) {
        written[me] = k;
        nicstride_fence_begin(&f, false);
        while (nicstride_fence_next(&f) != NICSTRIDE_FENCE_OVER)
            sched_yield();
        for (int i = 0; i < THREADS; i++)
            if (written[i] != k)
                __atomic_store_n(&wrong, true, __ATOMIC_RELAXED);
        /* Others read what this one is about to write. */
        nicstride_fence_begin(&f, false);
        while (nicstride_fence_next(&f) != NICSTRIDE_FENCE_OVER)
            sched_yield();
    }
    return NULL;
}

START_TEST(threads)
{
    pthread_t thread[THREADS];
    int me[THREADS];

    ck_assert_uint_le(nicstride_fence_board_bytes(THREADS, 1), sizeof(boards) / THREADS);
    for (int i = 0; i < THREADS; i++) {
        me[i] = i;
        ck_assert_int_eq(pthread_create(&thread[i], NULL, take_part, &me[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    ck_assert(!wrong);
}
END_TEST

int main(void)
{
    return UNIT_RUN("fence between threads", UNIT_ONCE(threads));
}
