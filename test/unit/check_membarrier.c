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
#include <time.h>
#include <unistd.h>

#include "test/unit/unit.h"

enum { ROUNDS = 20000, SECONDS = 3, KEPT = 1 << 16 };

/** What they share, each word in a line of its own. */
typedef struct shared {
    _Alignas(64) _Atomic uint64_t quick; /**< so often has the quick side stored */
    _Alignas(64) _Atomic uint64_t slow;  /**< so often the slow one */
    _Alignas(64) atomic_bool over;
    _Alignas(64) _Atomic uint64_t seen[KEPT]; /**< of `slow`, after the quick side's last stores */
} shared_t;

/** The side without a barrier of its own, but where it cannot take part. Can it? It does not wait:
 * while its stores are on their way to a line that the other has, it loads again and again what is
 * at hand. */
static bool quick_side(shared_t *s)
{
    const bool takes_part = onic_membarrier_register();

    for (uint64_t n = 1; !atomic_load_explicit(&s->over, memory_order_relaxed); n++) {
        atomic_store_explicit(&s->quick, n, memory_order_release);
        if (takes_part)
            atomic_signal_fence(memory_order_seq_cst);
        else
            atomic_thread_fence(memory_order_seq_cst);
        const uint64_t seen = atomic_load_explicit(&s->slow, memory_order_relaxed);
        atomic_store_explicit(&s->seen[n % KEPT], seen, memory_order_relaxed);
    }
    return takes_part;
}

/** Until the quick side has stored so often; what it saw before the last of them is there. */
static void wait_for(const shared_t *s, uint64_t n)
{
    for (unsigned spins = 1; atomic_load(&s->quick) < n; spins++)
        if (spins % 1000 == 0)
            sched_yield();
}

/** Returns the rounds in which both have missed; -1: the kernel makes no such barrier. */
static int slow_side(shared_t *s)
{
    const time_t end = time(NULL) + SECONDS;
    int missed = 0;
    bool made = true;

    wait_for(s, 1);
    for (uint64_t round = 1; round <= ROUNDS && time(NULL) < end; round++) {
        atomic_store_explicit(&s->slow, round, memory_order_relaxed);
        made = onic_membarrier() && made;
        const uint64_t got = atomic_load_explicit(&s->quick, memory_order_relaxed);
        wait_for(s, got + 2);
        /* Of that store, or of one that is later. */
        missed += atomic_load(&s->seen[(got + 1) % KEPT]) < round;
    }
    atomic_store(&s->over, true);
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
