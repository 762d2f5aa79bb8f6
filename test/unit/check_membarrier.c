/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Two processes that each store a word and then load the other's: where one of them makes the
 * barrier for both, never do both miss the other's store.
 */
#include "common/support/membarrier.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/unit/unit.h"

enum { ROUNDS = 20000 };

/** What they share, each word in a line of its own. */
typedef struct shared {
    _Alignas(64) atomic_int mine;
    _Alignas(64) atomic_int yours;
    _Alignas(64) atomic_int begun[2];
    _Alignas(64) atomic_int seen;
    _Alignas(64) atomic_int ended;
} shared_t;

/** Both begin a round at nearly the same time. */
static void meet(shared_t *s, int who, int round)
{
    atomic_store(&s->begun[who], round);
    for (unsigned spins = 1; atomic_load(&s->begun[!who]) < round; spins++)
        if (spins % 1000 == 0)
            sched_yield();
}

/** The side without a barrier of its own, but where it cannot take part. Can it? */
static bool quick_side(shared_t *s)
{
    const bool takes_part = onic_membarrier_register();

    for (int round = 1; round <= ROUNDS; round++) {
        meet(s, 0, round);
        atomic_store_explicit(&s->mine, round, memory_order_release);
        if (takes_part)
            atomic_signal_fence(memory_order_seq_cst);
        else
            atomic_thread_fence(memory_order_seq_cst);
        atomic_store(&s->seen, atomic_load_explicit(&s->yours, memory_order_relaxed));
        atomic_store(&s->ended, round);
    }
    return takes_part;
}

/** Returns the rounds in which both have missed; -1: the kernel makes no such barrier. */
static int slow_side(shared_t *s)
{
    int missed = 0;
    bool made = true;

    for (int round = 1; round <= ROUNDS; round++) {
        meet(s, 1, round);
        atomic_store_explicit(&s->yours, round, memory_order_relaxed);
        made = onic_membarrier() && made;
        const int got = atomic_load_explicit(&s->mine, memory_order_relaxed);
        while (atomic_load(&s->ended) < round)
            sched_yield();
        missed += got < round && atomic_load(&s->seen) < round;
    }
    return made ? missed : -1;
}

/** Does the kernel make such barriers? */
static bool has_barriers(void)
{
    const long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);

    return commands > 0 && (commands & MEMBARRIER_CMD_GLOBAL_EXPEDITED) != 0;
}

START_TEST(one_for_both)
{
    shared_t *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status;

    ck_assert(s != MAP_FAILED);
    const pid_t child = fork();
    if (child == 0)
        _exit(quick_side(s) != has_barriers());
    ck_assert(child > 0);
    ck_assert_int_eq(slow_side(s), has_barriers() ? 0 : -1);
    ck_assert(waitpid(child, &status, 0) == child && status == 0);
    munmap(s, sizeof(*s));
}
END_TEST

int main(void)
{
    return UNIT_RUN("membarrier", UNIT_ONCE(one_for_both));
}
