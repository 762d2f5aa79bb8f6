/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Locks that name their owner: dead and stopped owners, and how one waits. That they exclude
 *  each other shows test/explore/pool. */
#include "common/transport/shm/owned_lock.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "test/unit/unit.h"

enum { PROCESSES = 4 };

/** What the processes share. */
static onic_owned_lock_t lock;
static atomic_bool dead[PROCESSES];

typedef enum result { HAD, ORPHANED } result_t;

/** What glue does, with a table of the dead in place of the system. */
static result_t take(uint32_t me)
{
    onic_owned_wait_t w = {0};

    while (!onic_owned_try(&lock, me)) {
        int64_t owner;

        switch (onic_owned_next(&w)) {
        case ONIC_OWNED_SPIN:
            break;
        case ONIC_OWNED_YIELD:
            sched_yield();
            break;
        case ONIC_OWNED_NAP:
            usleep(w.nap);
            break;
        case ONIC_OWNED_LOOK_AT_OWNER:
            owner = onic_owned_by(&lock);
            if (owner >= 0 && atomic_load(&dead[owner]))
                return ORPHANED;
            break;
        }
    }
    return HAD;
}

static void reset(void)
{
    atomic_store(&lock, 0);
    for (int i = 0; i < PROCESSES; i++)
        atomic_store(&dead[i], false);
}

/** Takes the lock and is gone. */
static void *die_with_it(void *arg)
{
    const uint32_t me = (uint32_t)(uintptr_t)arg;

    UNIT_CHECK(take(me) == HAD);
    atomic_store(&dead[me], true);
    return NULL;
}

static void *wait_for_it(void *arg)
{
    return (void *)(uintptr_t)(take((uint32_t)(uintptr_t)arg) == ORPHANED);
}

/* All who wait for a dead owner learn of it, and nobody gets the lock. */
START_TEST(dead_owner)
{
    pthread_t owner, waiters[3];

    reset();
    UNIT_CHECK(pthread_create(&owner, NULL, die_with_it, (void *)3) == 0);
    pthread_join(owner, NULL);
    for (uintptr_t i = 0; i < 3; i++)
        UNIT_CHECK(pthread_create(&waiters[i], NULL, wait_for_it, (void *)i) == 0);
    for (int i = 0; i < 3; i++) {
        void *orphaned = NULL;

        pthread_join(waiters[i], &orphaned);
        UNIT_CHECK(orphaned != NULL);
    }
    UNIT_CHECK(onic_owned_by(&lock) == 3);
    UNIT_CHECK(!onic_owned_try(&lock, 0));
}
END_TEST

/* Who is stopped for long keeps the lock, and who waits gets it after that. */
START_TEST(stopped_owner)
{
    pthread_t waiter;
    void *orphaned = (void *)1;

    reset();
    UNIT_CHECK(take(2) == HAD);
    UNIT_CHECK(pthread_create(&waiter, NULL, wait_for_it, (void *)1) == 0);
    usleep(50000);
    UNIT_CHECK(onic_owned_by(&lock) == 2);
    onic_owned_release(&lock);
    pthread_join(waiter, &orphaned);
    UNIT_CHECK(orphaned == NULL);
    UNIT_CHECK(onic_owned_by(&lock) == 1);
}
END_TEST

/* The steps of a long wait: a bounded time of the processor, then naps that grow, and looks that
 * are neither too frequent nor too rare. */
START_TEST(long_wait)
{
    onic_owned_wait_t w = {0};
    uint64_t spins = 0, yields = 0, slept = 0, looked = 0;
    uint32_t last = 0;

    for (int i = 0; i < 200000; i++) {
        switch (onic_owned_next(&w)) {
        case ONIC_OWNED_SPIN:
            UNIT_CHECK(slept == 0);
            spins++;
            break;
        case ONIC_OWNED_YIELD:
            UNIT_CHECK(slept == 0);
            yields++;
            break;
        case ONIC_OWNED_NAP:
            UNIT_CHECK(w.nap >= last && w.nap <= ONIC_OWNED_NAP_LAST);
            last = w.nap;
            slept += w.nap;
            break;
        case ONIC_OWNED_LOOK_AT_OWNER:
            UNIT_CHECK(slept - looked >= ONIC_OWNED_LOOK);
            UNIT_CHECK(slept - looked <= ONIC_OWNED_LOOK + ONIC_OWNED_NAP_LAST);
            looked = slept;
            break;
        }
    }
    UNIT_CHECK(yields == ONIC_OWNED_YIELDS);
    UNIT_CHECK(spins + yields == ONIC_OWNED_SPINS * ONIC_OWNED_YIELDS);
    UNIT_CHECK(last == ONIC_OWNED_NAP_LAST && looked > 0);
}
END_TEST

int main(void)
{
    return UNIT_RUN("owned_lock", UNIT_ONCE(dead_owner), UNIT_ONCE(stopped_owner),
                    UNIT_ONCE(long_wait));
}
