/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1 */
/**
 * @file
 * Texts of helper threads: they print nothing, and an MPI thread that makes progress prints it all,
 * in order, but not more than may wait. What MPI threads say is printed at once.
 */
#include "test/mpi/testlib.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/support/help.h"
#include "common/wire/wire.h"

enum { LINES = 10, TOO_MANY = 2 * ONIC_SAY_MAX, TEXT = 65536 };

static int file;
static char text[TEXT];

/** What has been printed so far. */
static const char *printed(void)
{
    ssize_t n = pread(file, text, sizeof(text) - 1, 0);

    text[n > 0 ? n : 0] = '\0';
    return text;
}

static int lines_with(const char *what)
{
    int n = 0;

    for (const char *at = printed(); (at = strstr(at, what)) != NULL; at++)
        n++;
    return n;
}

static void *say_some(void *arg)
{
    const int n = *(const int *)arg;

    onic_say_later();
    for (int i = 0; i < n; i++)
        onic_say("line %03d of %d", i, n);
    return NULL;
}

static void *ask_for_help(void *arg)
{
    (void)arg;
    onic_say_later();
    onic_help("help-of-nobody.txt", "topic-of-nobody");
    return NULL;
}

static void run(void *(*fn)(void *), int n)
{
    pthread_t thread;

    TL_CHECK(pthread_create(&thread, NULL, fn, &n) == 0, "no thread");
    pthread_join(thread, NULL);
}

static void check(void)
{
    const char *at;

    onic_say("of an MPI thread");
    TL_CHECK(lines_with("of an MPI thread") == 1, "an MPI thread's text is not printed at once");
    run(say_some, LINES);
    TL_CHECK(lines_with(" of 10") == 0, "a helper thread has printed");
    onic_wire_progress();
    TL_CHECK(lines_with(" of 10") == LINES, "%d of %d lines", lines_with(" of 10"), LINES);
    at = printed();
    for (int i = 0; i < LINES && at != NULL; i++) {
        char line[32];

        snprintf(line, sizeof(line), "line %03d of %d", i, LINES);
        at = strstr(at, line);
        TL_CHECK(at != NULL, "%s is not in its place", line);
    }
    run(say_some, TOO_MANY);
    onic_wire_progress();
    TL_CHECK(lines_with(" of 128") == ONIC_SAY_MAX, "%d lines have waited", lines_with(" of 128"));
    run(ask_for_help, 0);
    TL_CHECK(lines_with("topic-of-nobody") == 0, "a helper thread has printed");
    onic_wire_progress();
    TL_CHECK(lines_with("topic-of-nobody") == 1, "no word of the help that was asked for");
    run(say_some, 1);
}

int main(int argc, char **argv)
{
    const onic_wire_config_t config = {.server_thread = true, .server_idle_usec = 1000};
    char name[] = "/tmp/onic-say-XXXXXX";

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    TL_CHECK(onic_wire_open(&config) == 0, "the wire does not open");
    file = mkstemp(name);
    unlink(name);
    fflush(stderr);
    const int old = dup(STDERR_FILENO);
    dup2(file, STDERR_FILENO);
    check();
    onic_wire_close();
    TL_CHECK(lines_with("line 000 of 1\n") == 1, "what waited at the end is lost");
    fflush(stderr);
    dup2(old, STDERR_FILENO);
    close(old);
    close(file);
    return tl_finish();
}
