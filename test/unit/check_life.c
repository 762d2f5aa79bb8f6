/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Whether another process has ended: texts of the kernel, and children. */
#include "common/support/life.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test/unit/unit.h"

/* The name may hold what looks like other fields. */
START_TEST(texts)
{
    onic_stat_t stat;

    ck_assert(
        onic_stat_read("17 (a) R 1 17 17 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 3 0 987654 1 2", &stat));
    ck_assert_int_eq(stat.state, 'R');
    ck_assert_int_eq(stat.threads, 3);
    ck_assert_uint_eq(stat.began, 987654);
    ck_assert(onic_stat_read(
        "17 (a) Z 1 2 (b\n) S 1 17 17 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 18446744073709551615 1",
        &stat));
    ck_assert_int_eq(stat.state, 'S');
    ck_assert_uint_eq(stat.began, UINT64_MAX);
    ck_assert(!onic_stat_read("", &stat));
    ck_assert(!onic_stat_read("17 (a", &stat));
    ck_assert(!onic_stat_read("17 (a)", &stat));
    ck_assert(!onic_stat_read("17 (a) R 1 17 17 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 3", &stat));
}
END_TEST

START_TEST(decisions)
{
    const onic_life_t mine = {100, 5, 4026531836, 4026531834};
    onic_life_t other = {200, 7, 4026531836, 4026531834};

    ck_assert(onic_life_comparable(&mine, &other));
    ck_assert(!onic_life_ended(&other, &(onic_stat_t){'S', 1, 7}));
    ck_assert(!onic_life_ended(&other, &(onic_stat_t){'T', 1, 7}));
    ck_assert(onic_life_ended(&other, &(onic_stat_t){'S', 1, 8}));
    ck_assert(onic_life_ended(&other, &(onic_stat_t){'Z', 1, 7}));
    /* Only its first thread has ended. */
    ck_assert(!onic_life_ended(&other, &(onic_stat_t){'Z', 4, 7}));

    const onic_life_t nobody = {0};
    ck_assert(!onic_life_comparable(&mine, &nobody));
    ck_assert(!onic_life_comparable(&nobody, &nobody));
    ck_assert(!onic_life_comparable(&nobody, &other));
    other.time_namespace++;
    ck_assert(!onic_life_comparable(&mine, &other));
    other = (onic_life_t){200, 7, 1, 4026531834};
    ck_assert(!onic_life_comparable(&mine, &other));
}
END_TEST

static void *for_ever(void *arg)
{
    for (;;)
        pause();
    return arg;
}

/** A child that says who it is and goes on until it is killed, without its first thread if so. */
static pid_t make_child(onic_life_t *life, bool first_thread)
{
    int fds[2];

    ck_assert_int_eq(pipe(fds), 0);
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        pthread_t thread;
        *life = onic_life_mine();
        if (write(fds[1], life, sizeof(*life)) != (ssize_t)sizeof(*life) ||
            pthread_create(&thread, NULL, for_ever, NULL) != 0)
            _exit(1);
        if (!first_thread)
            pthread_exit(NULL);
        (void)for_ever(NULL);
    }
    ck_assert_int_gt(pid, 0);
    ck_assert_int_eq(read(fds[0], life, sizeof(*life)), (ssize_t)sizeof(*life));
    close(fds[0]);
    close(fds[1]);
    ck_assert_int_eq(life->pid, pid);
    return pid;
}

/* A child lives, is stopped, goes on, is killed, is waited for. */
START_TEST(children)
{
    onic_life_t child;
    int status;

    const onic_life_t mine = onic_life_mine();
    ck_assert_int_eq(mine.pid, getpid());
    ck_assert_uint_ne(mine.pid_namespace, 0);
    ck_assert(!onic_life_is_dead(&mine));
    const pid_t pid = make_child(&child, true);
    ck_assert(!onic_life_is_dead(&child));
    kill(pid, SIGSTOP);
    ck_assert_int_eq(waitpid(pid, &status, WUNTRACED), pid);
    ck_assert(!onic_life_is_dead(&child));
    kill(pid, SIGCONT);
    kill(pid, SIGKILL);
    siginfo_t info;
    ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    /* Nobody has waited for it: it has ended all the same. */
    ck_assert(onic_life_is_dead(&child));
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(onic_life_is_dead(&child));
    /* Another has its number now. */
    onic_life_t before = mine;
    before.began--;
    ck_assert(onic_life_is_dead(&before));
}
END_TEST

/* A process whose first thread has ended goes on with the others. */
START_TEST(first_thread_ends)
{
    onic_life_t child;
    const pid_t pid = make_child(&child, false);
    char path[64], text[256] = "";

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    while (strstr(text, ") Z") == NULL) {
        FILE *f = fopen(path, "r");
        ck_assert_ptr_nonnull(f);
        text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
        fclose(f);
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    ck_assert(!onic_life_is_dead(&child));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    ck_assert(onic_life_is_dead(&child));
}
END_TEST

/** The process has no descriptor left. */
static void take_descriptors(void)
{
    struct rlimit r;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &r), 0);
    r.rlim_cur = 64;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &r), 0);
    while (dup(STDIN_FILENO) >= 0) {
    }
    ck_assert_int_eq(errno, EMFILE);
}

/* To look takes a descriptor. Where there is none nobody who lives is dead, and who has ended and
 * been waited for is. */
START_TEST(no_descriptors)
{
    onic_life_t child;
    siginfo_t info;
    const pid_t pid = make_child(&child, true);

    (void)onic_life_mine();
    take_descriptors();
    ck_assert(!onic_life_is_dead(&child));
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    ck_assert(onic_life_is_dead(&child));
}
END_TEST

int main(void)
{
    return UNIT_RUN("life", UNIT_ONCE(texts), UNIT_ONCE(decisions), UNIT_ONCE(children),
                    UNIT_ONCE(first_thread_ends), UNIT_ONCE(no_descriptors));
}
