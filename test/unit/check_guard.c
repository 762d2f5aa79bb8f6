/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The transport's lock: threads that share it exclude each other, and one that forks never
 *  touches it while it is of one thread alone, from whichever moment on it is not. */
#include "common/transport/guard.h"

#include <pthread.h>
#include <sched.h>

#include "test/unit/unit.h"

enum { ROUNDS = 200000, FORKS = 100000 };

static const bool no_threads = false, threads = true;

static onic_guard_t guard;
static atomic_bool over;
/** Who holds the lock alone adds to it. */
static unsigned long guarded;

static void hold(unsigned long *mine)
{
    guarded++;
    (*mine)++;
}

static unsigned long begin(const bool *several)
{
    guard = (onic_guard_t){.threads = several};
    atomic_store(&over, false);
    return guarded = 0;
}

/** A thread that does nothing but to fork; its result is how often it had the lock. */
static void *forks(void *arg)
{
    unsigned long *had = arg;

    while (!atomic_load(&over)) {
        if (onic_guard_try_fork(&guard) == ONIC_GUARD_TAKEN) {
            hold(had);
            onic_guard_release(&guard);
        }
        sched_yield();
    }
    return NULL;
}

/** A helper, or another thread that is in MPI. */
static void *takes(void *arg)
{
    unsigned long *had = arg;

    for (int i = 0; i < ROUNDS;) {
        if (onic_guard_try(&guard)) {
            i++;
            hold(had);
            onic_guard_release(&guard);
        } else {
            sched_yield();
        }
    }
    return NULL;
}

/* Nobody is ever in the way of the one thread, nor in what it guards. */
START_TEST(a_fork_leaves_it_alone)
{
    unsigned long mine = begin(&no_threads), others = 0;
    pthread_t thread;

    ck_assert(pthread_create(&thread, NULL, forks, &others) == 0);
    for (int i = 0; i < 50 * ROUNDS; i++) {
        UNIT_CHECK(onic_guard_try(&guard));
        hold(&mine);
        onic_guard_release(&guard);
    }
    atomic_store(&over, true);
    pthread_join(thread, NULL);
    UNIT_CHECK(others == 0 && guarded == mine);
}
END_TEST

static void share(bool helped)
{
    unsigned long mine = begin(helped ? &no_threads : &threads), forked = 0, others = 0;
    pthread_t forking, taking;
    bool has_forked = false;

    ck_assert(pthread_create(&forking, NULL, forks, &forked) == 0);
    for (int i = 0; i < ROUNDS && helped; i++) {
        UNIT_CHECK(onic_guard_try(&guard));
        hold(&mine);
        onic_guard_release(&guard);
    }
    while (!onic_guard_try(&guard))
        sched_yield();
    hold(&mine);
    /* As the server thread is started. */
    atomic_store(&guard.helped, helped);
    ck_assert(pthread_create(&taking, NULL, takes, &others) == 0);
    hold(&mine);
    onic_guard_release(&guard);
    (void)takes(&mine);
    pthread_join(taking, NULL);
    /* The helper has ended; it is shared still. */
    for (int i = 0; i < FORKS || !has_forked; i++) {
        if (onic_guard_try(&guard)) {
            has_forked = forked > 0;
            hold(&mine);
            onic_guard_release(&guard);
        } else {
            sched_yield();
        }
    }
    atomic_store(&over, true);
    pthread_join(forking, NULL);
    UNIT_CHECK(others == ROUNDS && forked > 0 && guarded == mine + others + forked);
}

START_TEST(helper_begins_and_ends)
{
    for (int i = 0; i < 10; i++)
        share(true);
}
END_TEST

START_TEST(several_threads)
{
    share(false);
}
END_TEST

int main(void)
{
    return UNIT_RUN("guard", UNIT_ONCE(a_fork_leaves_it_alone), UNIT_ONCE(helper_begins_and_ends),
                    UNIT_ONCE(several_threads));
}
