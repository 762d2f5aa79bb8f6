/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The server thread: passive-target progress while the MPI threads compute.
 *
 * It is in one of three states. Nobody wants it: it sleeps on a condition variable without a
 * timer. MPI threads are alive (their tick counter moves): it looks again every idle_usec. They
 * have been away for a whole such time: it takes over, and then sleeps in poll() until the
 * network or a returning MPI thread wakes it. Transports are armed only then, because an armed
 * shared-memory queue costs its senders a system call. The thread never waits for the wire lock:
 * where that is taken, an MPI thread is at work.
 */
#define _GNU_SOURCE
#include "common/wire_internal.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "ompi/constants.h"
#include "opal/util/output.h"

/** Progress calls in one holding of the lock. */
#define SLICE 16
/** Naps while work is left that no event will announce, in microseconds. */
#define NAP_MIN 20
#define NAP_MAX 1000

typedef enum slice_result {
    SLICE_MORE,  /**< events were handled: there may be more */
    SLICE_ARMED, /**< nothing to do; the next event makes the descriptor readable */
    SLICE_STUCK, /**< nothing could be done, but something is left */
    SLICE_LEAVE  /**< an MPI thread is at work */
} slice_result_t;

/** Sleeps up to `usec` or until somebody signals. The server's mutex is held. */
static void doze(onic_server_t *s, unsigned usec)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(usec % 1000000U) * 1000L;
    until.tv_sec += (time_t)(usec / 1000000U) + until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_cond_timedwait(&s->cond, &s->mutex, &until);
}

static void nap(onic_server_t *s, unsigned usec)
{
    pthread_mutex_lock(&s->mutex);
    if (!s->stop) {
        doze(s, usec);
    }
    pthread_mutex_unlock(&s->mutex);
}

/** True while the server is wanted and no MPI thread has shown up since `seen`. */
static bool in_charge(onic_server_t *s, uint64_t seen)
{
    return atomic_load(&onic_wire.mpi_ticks) == seen && atomic_load(&s->want) > 0;
}

/** Progress and arm by turns. Arming fails once after each event, whose signal it takes away. It
 *  announces only what completes later: verbs say nothing of what came in between the last look
 *  and the arming, so there is one more look after it. */
static slice_result_t progress_and_arm(void)
{
    int busy = 0;
    for (int i = 0; i < SLICE; i++) {
        if (onic_wire_progress_locked() > 0) {
            continue;
        }
        if (!onic_wire.deferred_left && ucp_worker_arm(onic_wire.worker) == UCS_OK) {
            if (onic_wire_progress_locked() == 0 && !onic_wire.deferred_left) {
                return SLICE_ARMED;
            }
            continue;
        }
        if (++busy > 3) {
            return SLICE_STUCK;
        }
    }
    return SLICE_MORE;
}

static slice_result_t run_slice(void)
{
    if (!onic_wire_trylock()) {
        return SLICE_LEAVE;
    }
    slice_result_t result = progress_and_arm();
    onic_wire_unlock();
    return result;
}

/** Waits for an event of the network, or for an MPI thread that comes back or leaves work. */
static void park(onic_server_t *s, uint64_t seen)
{
    uint64_t count;
    struct pollfd fds[2] = {{.fd = s->worker_fd, .events = POLLIN},
                            {.fd = s->wake_fd, .events = POLLIN}};
    atomic_store(&s->parked, true);
    if (in_charge(s, seen) && atomic_load(&onic_wire.deferred) == 0) {
        (void)poll(fds, 2, -1);
    }
    atomic_store(&s->parked, false);
    while (read(s->wake_fd, &count, sizeof(count)) < 0 && errno == EINTR) {
    }
}

static void serve_until_back(onic_server_t *s, uint64_t seen)
{
    unsigned usec = NAP_MIN;
    while (in_charge(s, seen)) {
        switch (run_slice()) {
        case SLICE_MORE:
            usec = NAP_MIN;
            break;
        case SLICE_ARMED:
            park(s, seen);
            usec = NAP_MIN;
            break;
        case SLICE_STUCK:
            nap(s, usec);
            usec = usec < NAP_MAX / 2 ? 2 * usec : NAP_MAX;
            break;
        case SLICE_LEAVE:
            return;
        }
    }
}

/** Stands in for the MPI threads until one of them is back. */
static void serve(onic_server_t *s, uint64_t seen)
{
    onic_beat_set_away(true);
    serve_until_back(s, seen);
    onic_beat_set_away(false);
}

static void *server_main(void *arg)
{
    onic_server_t *s = arg;
    pthread_mutex_lock(&s->mutex);
    while (!s->stop) {
        if (atomic_load(&s->want) <= 0) {
            pthread_cond_wait(&s->cond, &s->mutex);
            continue;
        }
        uint64_t seen = atomic_load(&onic_wire.mpi_ticks);
        doze(s, s->idle_usec);
        if (s->stop || !in_charge(s, seen)) {
            continue;
        }
        pthread_mutex_unlock(&s->mutex);
        serve(s, seen);
        pthread_mutex_lock(&s->mutex);
    }
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

void onic_server_wake(void)
{
    /* Only the first of those who come back needs to knock. */
    if (atomic_exchange(&onic_wire.server.parked, false)) {
        uint64_t one = 1;
        while (write(onic_wire.server.wake_fd, &one, sizeof(one)) < 0 && errno == EINTR) {
        }
    }
}

static void init_sleep(onic_server_t *s)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&s->cond, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&s->mutex, NULL);
}

static void fini_sleep(onic_server_t *s)
{
    pthread_cond_destroy(&s->cond);
    pthread_mutex_destroy(&s->mutex);
}

int onic_server_start(const onic_wire_config_t *config)
{
    onic_server_t *s = &onic_wire.server;
    atomic_store(&s->parked, false);
    s->stop = false;
    s->idle_usec = config->server_idle_usec;
    ucs_status_t status = ucp_worker_get_efd(onic_wire.worker, &s->worker_fd);
    if (status != UCS_OK) {
        opal_output(0, "ompi-nic: no passive progress: UCX gives no event descriptor: %s",
                    ucs_status_string(status));
        return onic_ucs_error(status);
    }
    s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->wake_fd < 0) {
        opal_output(0, "ompi-nic: no passive progress: eventfd: %s", strerror(errno));
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    init_sleep(s);
    /* The caller has blocked all signals; the thread inherits that. */
    int rc = pthread_create(&s->thread, NULL, server_main, s);
    if (rc != 0) {
        opal_output(0, "ompi-nic: no passive progress: cannot start the server thread: %s",
                    strerror(rc));
        fini_sleep(s);
        close(s->wake_fd);
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    (void)pthread_setname_np(s->thread, "onic-server");
    s->running = true;
    return OMPI_SUCCESS;
}

void onic_server_stop(void)
{
    onic_server_t *s = &onic_wire.server;
    if (!s->running) {
        return;
    }
    pthread_mutex_lock(&s->mutex);
    s->stop = true;
    pthread_cond_signal(&s->cond);
    pthread_mutex_unlock(&s->mutex);
    onic_mpi_tick();
    pthread_join(s->thread, NULL);
    s->running = false;
    fini_sleep(s);
    close(s->wake_fd);
}

void onic_wire_want_server(bool want)
{
    onic_server_t *s = &onic_wire.server;
    int before = atomic_fetch_add(&s->want, want ? 1 : -1);
    if (s->running && ((want && before == 0) || (!want && before == 1))) {
        pthread_mutex_lock(&s->mutex);
        pthread_cond_signal(&s->cond);
        pthread_mutex_unlock(&s->mutex);
        onic_mpi_tick();
    }
}
