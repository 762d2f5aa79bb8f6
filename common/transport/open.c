/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The transport's life: how it is opened, flushed and closed. */
#define _GNU_SOURCE
#include "common/ompi_compat.h"
#include "common/support/clock.h"
#include "common/support/helper_thread.h"
#include "common/support/modex.h"
#include "common/support/help.h"
#include "common/transport/row/requirements.h"
#include "common/transport/ucx/adapters.h"
#include "common/transport/ucx/ucx.h"
#include "common/transport/internal.h"
#include "common/transport/shm/neighbour.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/constants.h"
#include "ompi/proc/proc.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/proc.h"

/** How long a closing transport waits for what is still on its way. */
#define FLUSH_USEC 5000000U
/** How often one that waits for the others looks whether they are alive. */
#define LOOK_NSEC UINT64_C(1000000)

/** Guards the reference count and what was asked for; opening and closing happen under it. */
static pthread_mutex_t open_mutex = PTHREAD_MUTEX_INITIALIZER;
static onic_transport_config_t required;

/** Flushes of peers that are under way. */
static unsigned flushing;

static void flushed(void *arg, int status)
{
    (void)arg, (void)status;
    flushing--;
}

/** Begins to flush all that was sent and put to the peer. Lost peers are left out: UCX prints
 *  errors of their flushes. */
static void begin_flush(onic_peer_t *peer)
{
    onic_request_t *r =
        peer->failed == OMPI_SUCCESS ? onic_request_get(peer, flushed, NULL, 0) : NULL;
    flushing += r != NULL && onic_request_begun(r, onic_ucx_flush(r)) == 0;
}

static bool is_flushing(void)
{
    return flushing > 0;
}

/** Makes progress until `is_left` is false, or until then. */
static void wait_until_none(bool (*is_left)(void), uint64_t end)
{
    while (is_left() && onic_now_nsec() < end) {
        if (onic_transport_progress_locked() == 0) {
            /* A process that has died makes no room. */
            onic_transport_unlock();
            onic_transport_look_for_dead();
            sched_yield();
            onic_transport_lock();
        }
    }
}

void onic_transport_flush(void)
{
    const uint64_t end = onic_now_nsec() + UINT64_C(1000) * FLUSH_USEC;
    uint64_t name;
    onic_peer_t *peer;

    onic_transport_lock();
    wait_until_none(onic_rows_leave_work, end);
    /* All are started first: while one waits, messages that come may add to the table. */
    OPAL_HASH_TABLE_FOREACH(name, uint64, peer, &onic_transport.peers)
    {
        begin_flush(peer);
    }
    wait_until_none(is_flushing, end);
    onic_transport_unlock();
}

bool onic_transport_leave(unsigned usec)
{
    const uint64_t end = onic_now_nsec() + UINT64_C(1000) * usec;
    uint64_t look = 0;
    onic_transport_flush();
    if (onic_transport_job_is_broken() || !onic_modex_fence_begin())
        return false;
    for (uint64_t now = onic_now_nsec();
         !onic_modex_fence_ended() && now < end && !onic_transport_job_is_broken();
         now = onic_now_nsec()) {
        opal_progress();
        sched_yield();
        if (now >= look) {
            look = now + LOOK_NSEC;
            onic_transport_look_for_dead();
        }
    }
    return onic_modex_fence_ended();
}

/* ---- opening and closing -------------------------------------------------------------------- */

/** The first `n` rows, in reverse. */
static void stop_rows(unsigned n)
{
    while (n-- > 0)
        onic_rows[n]->stop();
}

static int start_rows(const onic_transport_config_t *config)
{
    onic_row_calls = (onic_row_calls_t){.arrived = onic_am_arrived,
                                        .lost = onic_peer_on_lost,
                                        .broken = onic_peer_on_broken,
                                        .left = onic_send_left};
    onic_requests_start();
    for (unsigned n = 0; n < ONIC_ROWS; n++) {
        const int rc = onic_rows[n]->start(config);
        if (rc != OMPI_SUCCESS) {
            stop_rows(n);
            return rc;
        }
    }
    return OMPI_SUCCESS;
}

/** Everything but the server thread; the lock is held. */
static int start_transport(const onic_transport_config_t *asked)
{
    onic_transport_config_t config = *asked;
    onic_here.name = onic_name(OPAL_PROC_MY_NAME.jobid, OPAL_PROC_MY_NAME.vpid);
    onic_transport.shares_memory = onic_tls_have(ONIC_TLS_MEMORY, getenv("UCX_TLS"));
    config.queues = onic_transport.shares_memory ? asked->queues : 0;
    onic_here_start();
    int rc = start_rows(&config);
    if (rc != OMPI_SUCCESS) {
        onic_here_stop();
        return rc;
    }
    onic_transport.published = false;
    onic_transport.window = onic_credit_window(config.memory, (uint64_t)ompi_proc_world_size());
    onic_transport.puts = config.puts;
    rc = onic_peers_start();
    if (rc != OMPI_SUCCESS) {
        onic_say_once("ompi-nic: memory is exhausted");
        stop_rows(ONIC_ROWS);
        onic_here_stop();
    }
    return rc;
}

static void stop_transport(void)
{
    onic_transport_lock();
    onic_requests.closing = true;
    onic_transport_unlock();
    onic_server_stop();
    onic_transport_lock();
    /* What was to be sent has been flushed before the caller's fence. */
    stop_rows(ONIC_ROWS);
    onic_requests_stop();
    onic_peers_stop();
    onic_here_stop();
    onic_transport_unlock();
}

/** Fulfils what can be fulfilled while the transport is open. Without a server thread, of which a
 *  text tells, the program is right, only slower to answer. The lock is held. */
static void meet_requirements(void)
{
    if (required.single_copy)
        onic_cma_allow();
    if (required.publish)
        onic_address_publish();
    if (required.server_thread)
        onic_server_start(required.server_idle_usec);
}

/** Starts the transport, or what is missing of it. UCX's own threads inherit the signal mask. */
static int start(bool first)
{
    int rc = OMPI_SUCCESS;
    sigset_t all, old;
    onic_signals_to_block(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    onic_transport_lock();
    if (first)
        rc = start_transport(&required);
    if (rc == OMPI_SUCCESS)
        meet_requirements();
    onic_transport_unlock();
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return rc;
}

static int open_first(void)
{
    static bool fork_is_guarded;
    if (!fork_is_guarded)
        fork_is_guarded = onic_transport_guard_fork();
    int rc = start(true);
    if (rc != OMPI_SUCCESS)
        return rc;
    rc = opal_progress_register(onic_transport_progress);
    if (rc != OMPI_SUCCESS) {
        onic_say_once("ompi-nic: Open MPI takes no more progress functions: %d", rc);
        stop_transport();
    }
    return rc;
}

void onic_transport_require(const onic_transport_config_t *config)
{
    pthread_mutex_lock(&open_mutex);
    onic_requirements_add(&required, config);
    pthread_mutex_unlock(&open_mutex);
}

int onic_transport_open(const onic_transport_config_t *config)
{
    int rc;
    pthread_mutex_lock(&open_mutex);
    onic_requirements_add(&required, config);
    rc = onic_transport.refs == 0 ? open_first() : start(false);
    if (rc == OMPI_SUCCESS)
        onic_transport.refs++;
    pthread_mutex_unlock(&open_mutex);
    return rc;
}

bool onic_transport_shares_memory(void)
{
    return onic_transport.shares_memory;
}

bool onic_transport_close(void)
{
    pthread_mutex_lock(&open_mutex);
    const bool last = --onic_transport.refs == 0;
    if (last) {
        (void)opal_progress_unregister(onic_transport_progress);
        stop_transport();
        required = (onic_transport_config_t){.puts = required.puts};
    }
    pthread_mutex_unlock(&open_mutex);
    return last;
}
