/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test/mpi/phase.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "test/mpi/testlib.h"

/** Seconds: of a phase that takes one or two; and for the others to say where they are. */
enum { PATIENCE = 60, OTHERS = 5 };

static const char *volatile current;

static void say(const char *text)
{
    if (write(STDOUT_FILENO, text, strlen(text)) < 0)
        _exit(TL_EXIT_FAILED);
}

static void stuck(int signal)
{
    char line[128] = "stuck in phase ";

    (void)signal;
    strncat(line, current, sizeof(line) - strlen(line) - 2);
    strcat(line, "\n");
    say(line);
    sleep(OTHERS);
    _exit(TL_EXIT_FAILED);
}

void phase(const char *name)
{
    if (name != NULL) {
        current = name;
        signal(SIGALRM, stuck);
    }
    alarm(name != NULL ? PATIENCE : 0);
}
