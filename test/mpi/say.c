/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1 */
/**
 * @file
 * Lines that several threads say at once come out whole, and those of each in order; equal ones
 * that are said once are printed once.
 */
#include "test/mpi/testlib.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/support/help.h"

enum { THREADS = 4, LINES = 100, TEXT = 65536 };

static char text[TEXT];

static int count(const char *what)
{
    int n = 0;

    for (const char *at = text; (at = strstr(at, what)) != NULL; at++)
        n++;
    return n;
}

static void *say_some(void *arg)
{
    for (int i = 0; i < LINES; i++)
        onic_say("line %03d of thread %d.", i, *(const int *)arg);
    onic_say_once("all threads of process %d say this", (int)getpid());
    return NULL;
}

static void say_all(void)
{
    pthread_t thread[THREADS];
    int number[THREADS];

    for (int i = 0; i < THREADS; i++) {
        number[i] = i;
        TL_CHECK(pthread_create(&thread[i], NULL, say_some, &number[i]) == 0, "no thread");
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    onic_help("help-of-nobody.txt", "topic-of-nobody");
}

static void check(void)
{
    for (int k = 0; k < THREADS; k++) {
        const char *at = text;

        for (int i = 0; i < LINES && at != NULL; i++) {
            char line[48];

            snprintf(line, sizeof(line), "] line %03d of thread %d.\n", i, k);
            at = strstr(at, line);
            TL_CHECK(at != NULL, "%s is not in its place", line);
        }
    }
    TL_CHECK(count("all threads of process") == 1, "%d times", count("all threads of process"));
    TL_CHECK(count("ompi-nic: topic-of-nobody (the help file") == 1, "no word of the help");
}

int main(int argc, char **argv)
{
    char name[] = "/tmp/onic-say-XXXXXX";

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    const int file = mkstemp(name), old = dup(STDERR_FILENO);
    unlink(name);
    fflush(stderr);
    /* Lines of several threads go behind each other. */
    (void)!fcntl(file, F_SETFL, O_APPEND);
    dup2(file, STDERR_FILENO);
    say_all();
    fflush(stderr);
    dup2(old, STDERR_FILENO);
    close(old);
    TL_CHECK(pread(file, text, sizeof(text) - 1, 0) > 0, "nothing was printed");
    check();
    close(file);
    return tl_finish();
}
