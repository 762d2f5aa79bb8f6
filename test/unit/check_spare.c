/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Descriptors in reserve: what is opened for a moment can be opened though none is left,
 * again and again; what stays open leaves enough for that; nothing of the program's is closed. */
#define _GNU_SOURCE /* memfd_create */
#include "common/support/spare.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/unit/unit.h"

enum { LIMIT = 64, THREADS = 3, ROUNDS = 5000, LOOKS = 200000 };

static int taken[LIMIT];
static int n;

static void limit(void)
{
    struct rlimit r;

    ck_assert(getrlimit(RLIMIT_NOFILE, &r) == 0);
    r.rlim_cur = LIMIT;
    ck_assert(setrlimit(RLIMIT_NOFILE, &r) == 0);
}

/** The program takes all that is left. */
static void take_all(void)
{
    for (int fd; (fd = dup(STDIN_FILENO)) >= 0;)
        taken[n++] = fd;
    UNIT_CHECK(errno == EMFILE);
}

static void give_all(void)
{
    while (n > 0)
        close(taken[--n]);
}

static void begin(void)
{
    limit();
    n = 0;
    onic_spare_begin();
    take_all();
    UNIT_CHECK(onic_spare_none_left());
}

static void end(void)
{
    give_all();
    onic_spare_take_back();
    UNIT_CHECK(!onic_spare_none_left());
    onic_spare_end();
    UNIT_CHECK(!onic_spare_has_run_out());
    /* All are given back. */
    take_all();
    UNIT_CHECK(n > 0);
    give_all();
}

/** Those that are given up when none is left. */
enum { GIVEN = ONIC_SPARES - ONIC_SPARES_LEAST };

/** Opens as many as can be had for a moment, and closes them again. */
static int open_for_now(void)
{
    int fd[ONIC_SPARES], got = 0;

    while (got < ONIC_SPARES && (fd[got] = onic_open("/dev/zero", O_RDONLY, 0)) >= 0)
        got++;
    UNIT_CHECK(got == ONIC_SPARES || errno == EMFILE);
    for (int i = 0; i < got; i++)
        onic_close(fd[i]);
    return got;
}

START_TEST(for_a_moment)
{
    begin();
    UNIT_CHECK(open("/dev/zero", O_RDONLY) < 0);
    for (int round = 0; round < 100; round++)
        UNIT_CHECK(open_for_now() == ONIC_SPARES);
    /* The program takes what was given up. */
    take_all();
    for (int round = 0; round < 100; round++) {
        UNIT_CHECK(open_for_now() == ONIC_SPARES_LEAST);
        UNIT_CHECK(onic_open("/nonexistent", O_RDONLY, 0) < 0 && errno == ENOENT);
    }
    end();
}
END_TEST

START_TEST(for_good)
{
    int fd[ONIC_SPARES], kept = 0;

    begin();
    while ((fd[kept] = open("/dev/zero", O_RDONLY)) >= 0 || onic_spare_give(ONIC_FOR_GOOD))
        kept += fd[kept] >= 0;
    UNIT_CHECK(kept == GIVEN && onic_spare_has_run_out());
    for (int i = 0; i < 100; i++)
        UNIT_CHECK(open_for_now() == ONIC_SPARES_LEAST);
    while (kept > 0)
        close(fd[--kept]);
    end();
}
END_TEST

/* Another library has some for good. */
START_TEST(for_others)
{
    begin();
    /* Where there are some it needs none. */
    close(taken[--n]);
    onic_spare_look();
    UNIT_CHECK(!onic_spare_has_run_out());
    take_all();
    const int before = n;
    onic_spare_look();
    UNIT_CHECK(onic_spare_has_run_out());
    take_all();
    UNIT_CHECK(n == before + GIVEN);
    UNIT_CHECK(open_for_now() == ONIC_SPARES_LEAST);
    end();
}
END_TEST

/* A program that closes all descriptors gets their numbers, for whatever it opens. */
static int open_zero(void)
{
    return open("/dev/zero", O_RDONLY);
}

static int open_null(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static int open_memory(void)
{
    return memfd_create("ompi-nic", MFD_CLOEXEC);
}

START_TEST(not_the_programs)
{
    static int (*const open_one[])(void) = {open_zero, open_null, open_memory};

    begin();
    for (int fd = 3; fd < LIMIT; fd++)
        close(fd);
    n = 0;
    for (int fd; (fd = open_one[_i]()) >= 0;)
        taken[n++] = fd;
    errno = EMFILE;
    UNIT_CHECK(!onic_spare_give(ONIC_FOR_NOW));
    for (int i = 0; i < n; i++)
        UNIT_CHECK(fcntl(taken[i], F_GETFD) >= 0);
    end();
}
END_TEST

static atomic_bool looks_over;

/** Counts what it gets in place of the lowest descriptor. */
static void *lowest(void *arg)
{
    int *wrong = arg;
    const int lowest = dup(STDIN_FILENO);

    close(lowest);
    while (!atomic_load(&looks_over)) {
        const int fd = dup(STDIN_FILENO);

        *wrong += fd != lowest;
        close(fd);
    }
    return NULL;
}

/* To see that there are some takes none from other threads. */
START_TEST(looks)
{
    pthread_t thread;
    int wrong = 0;

    begin();
    give_all();
    ck_assert(pthread_create(&thread, NULL, lowest, &wrong) == 0);
    for (int i = 0; i < LOOKS; i++)
        onic_spare_look();
    atomic_store(&looks_over, true);
    pthread_join(thread, NULL);
    UNIT_CHECK(wrong == 0 && !onic_spare_has_run_out());
    /* The highest alone says nothing. */
    UNIT_CHECK(dup2(STDIN_FILENO, LIMIT - 1) == LIMIT - 1 && !onic_spare_none_left());
    close(LIMIT - 1);
    end();
}
END_TEST

static void *open_and_close(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        const int fd = onic_open("/dev/zero", O_RDONLY, 0);

        /* Another thread may be about to take one back. */
        if (fd >= 0)
            onic_close(fd);
    }
    return NULL;
}

START_TEST(several_threads)
{
    pthread_t thread[THREADS];

    begin();
    for (int i = 0; i < THREADS; i++)
        ck_assert(pthread_create(&thread[i], NULL, open_and_close, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    UNIT_CHECK(open_for_now() == ONIC_SPARES);
    end();
}
END_TEST

int main(void)
{
    return UNIT_RUN("spare", UNIT_ONCE(for_a_moment), UNIT_ONCE(for_good), UNIT_ONCE(for_others),
                    UNIT_LOOP(not_the_programs, 0, 3), UNIT_ONCE(looks),
                    UNIT_ONCE(several_threads));
}
