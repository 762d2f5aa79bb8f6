/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The transport of a process: the product's lock, progress and server thread, for programs
 * that have rows of their own. A program that includes this defines poll_stand_in and onic_rows. */
#pragma once

#include "test/explore/explore.h"

#include <pthread.h>
#define pthread_self() ((pthread_t)explore_me())

#include <stdlib.h>
#include <string.h>

#include "common/transport/internal.h"

#include <poll.h>

/** What the server thread sleeps in. */
static int poll_stand_in(struct pollfd *fds, nfds_t n, const struct timespec *time);
#define ppoll(fds, n, time, mask) poll_stand_in(fds, n, time)

/* Each begins with that. */
#undef _GNU_SOURCE
#include "common/transport/progress.c"
#undef _GNU_SOURCE
#include "common/transport/state.c"
#undef _GNU_SOURCE
#include "common/transport/server.c"

/** The program's descriptors: the pipe and the network's. */
enum { PIPE = 3, NETWORK = 4 };

bool opal_uses_threads;
onic_requests_t onic_requests;
onic_here_t onic_here = {.wake_pipe = PIPE};

int onic_requests_progress(void)
{
    return 0;
}

void onic_requests_abandon(void)
{
}

void onic_transport_look_for_dead(void)
{
}

void onic_transport_count_loss(void)
{
}

void onic_say_once(const char *format, ...)
{
    (void)format;
}

/** Rows that leave nothing. */
static inline bool leaves_nothing(void)
{
    return false;
}

/** The thread that serves. */
static unsigned server_thread;
/** Nobody else is under the lock. */
static unsigned holder;

/** Handlers can tell whether they may complete requests: not in the server thread. */
static void is_alone(void)
{
    EXPLORE_ASSERT(onic_guard_is_helper(&onic_transport_guard) == (explore_me() == server_thread));
    EXPLORE_ASSERT(holder == 0);
    holder = 1;
    holder = 0;
}

/** Thread 0 serves. */
static void new_transport(void)
{
    onic_server_t *s = &onic_transport.server;
    onic_transport_guard.helper = server_thread = 0;
    opal_uses_threads = true;
    STAILQ_INIT(&onic_requests.done);
    s->fds[0].fd = PIPE;
    s->fds[1].fd = NETWORK;
    s->nfds = 2;
    s->idle_usec = 1000;
    s->running = true;
    onic_transport_guard.helped = true;
}

static void serve(void)
{
    (void)server_main(&onic_transport.server);
}

static void stop_server(void)
{
    atomic_store(&onic_transport.server.stop, true);
    onic_wake_pipe_write(PIPE, ONIC_WAKE_SELF);
}
