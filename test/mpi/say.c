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

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/support/help.h"

enum { THREADS = 4, LINES = 100 };

static const char *text;

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
    TL_CHECK(tl_count(text, "all threads of process") == 1, "%d times",
             tl_count(text, "all threads of process"));
    TL_CHECK(tl_count(text, "ompi-nic: topic-of-nobody (the help file") == 1,
             "no word of the help");
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_listen();
    say_all();
    text = tl_heard();
    check();
    return tl_finish();
}
