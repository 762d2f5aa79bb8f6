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
#include "common/support/spare.h"
#include "common/transport/requirements.h"
#include "common/transport/adapters.h"
#include "common/transport/internal.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "ompi/constants.h"
#include "ompi/proc/proc.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/proc.h"

/** How long a closing wire waits for what is still on its way. */
#define FLUSH_USEC 5000000U
/** Microseconds away from MPI after which a server thread that was needed sees to what is left. */
#define HELP_USEC 1000
/** How often one that waits for the others looks whether they are alive. */
#define LOOK_NSEC UINT64_C(1000000)

/** Guards the reference count and what was asked for; opening and closing happen under it. */
static pthread_mutex_t open_mutex = PTHREAD_MUTEX_INITIALIZER;
static onic_requirements_t required;

size_t onic_transport_header_max(void)
{
    return onic_transport.header_max;
}

/** Progresses until `request` is complete (true) or `usec` have passed. Frees it. */
static bool wait_for(ucs_status_ptr_t request, unsigned usec)
{
    if (!UCS_PTR_IS_PTR(request))
        return true;
    uint64_t end = onic_now_nsec() + UINT64_C(1000) * usec;
    while (onic_ucx.request_check_status(request) == UCS_INPROGRESS && onic_now_nsec() < end)
        if (onic_transport_progress_locked() == 0)
            sched_yield();
    bool done = onic_ucx.request_check_status(request) != UCS_INPROGRESS;
    onic_ucx.request_free(request);
    return done;
}

static void stop_flush(unsigned usec)
{
    (void)wait_for(onic_transport.flush, usec);
    onic_transport.flush = NULL;
}

/** Waits until all that was sent is out; patience for those that do not answer is `usec` in all. */
static void flush_peers(unsigned usec)
{
    ucp_request_param_t param = {.op_attr_mask = 0};
    uint64_t name;
    onic_peer_t *peer;
    bool in_time = true;
    /* All are started first: while one waits, messages that come may add to the table. */
    ucs_status_ptr_t *flushes =
        malloc(opal_hash_table_get_size(&onic_transport.peers) * sizeof(*flushes));
    size_t n = 0;
    if (flushes == NULL)
        return;
    OPAL_HASH_TABLE_FOREACH(name, uint64, peer, &onic_transport.peers)
    {
        /* UCX complains aloud of a flush to a process that is gone, so never by the worker's. */
        if (peer->ep != NULL && peer->failed == UCS_OK)
            flushes[n++] = onic_ucx.ep_flush_nbx(peer->ep, &param);
    }
    for (size_t i = 0; i < n; i++)
        in_time = wait_for(flushes[i], in_time ? usec : 0) && in_time;
    free(flushes);
}

void onic_transport_flush(void)
{
    onic_transport_lock();
    while (!STAILQ_EMPTY(&onic_transport.loop))
        (void)onic_loop_progress();
    const uint64_t end = onic_now_nsec() + UINT64_C(1000) * FLUSH_USEC;
    while (onic_queues_have_waiting() && onic_now_nsec() < end) {
        if (onic_transport_progress_locked() == 0) {
            /* A process that has died makes no room. */
            onic_transport_unlock();
            onic_transport_look_for_dead();
            sched_yield();
            onic_transport_lock();
        }
    }
    flush_peers(FLUSH_USEC);
    stop_flush(FLUSH_USEC);
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

static ucs_status_t create_context(const onic_transport_config_t *config)
{
    ucp_config_t *ucp_config;
    ucs_status_t status = onic_transport_read_config(config, &ucp_config);
    if (status != UCS_OK)
        return status;
    ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS |
                      UCP_PARAM_FIELD_ESTIMATED_NUM_PPN | UCP_PARAM_FIELD_NAME,
        /* Events cost nothing before the transports are armed, which the server thread does. */
        .features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP | (config->puts ? UCP_FEATURE_RMA : 0),
        .estimated_num_eps = (size_t)ompi_proc_world_size(),
        .estimated_num_ppn = (size_t)opal_process_info.num_local_peers + 1,
        .name = "ompi-nic",
    };
    status = onic_ucx.init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, ucp_config,
                                   &onic_transport.context);
    onic_ucx.config_release(ucp_config);
    return status;
}

static ucs_status_t create_worker(void)
{
    ucp_worker_params_t params = {
        .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE | UCP_WORKER_PARAM_FIELD_EVENTS,
        .thread_mode = UCS_THREAD_MODE_SERIALIZED,
        .events = UCP_WAKEUP_RX | UCP_WAKEUP_TX,
    };
    ucs_status_t status =
        onic_ucx.worker_create(onic_transport.context, &params, &onic_transport.worker);
    if (status != UCS_OK)
        return status;
    ucp_worker_attr_t attr = {.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS |
                                            UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER};
    status = onic_ucx.worker_query(onic_transport.worker, &attr);
    if (status != UCS_OK) {
        onic_ucx.worker_destroy(onic_transport.worker);
        return status;
    }
    onic_transport.address = attr.address;
    onic_transport.address_len = attr.address_length;
    onic_transport.header_max = attr.max_am_header;
    return UCS_OK;
}

static ucs_status_t create_both(const onic_transport_config_t *config)
{
    ucs_status_t status = create_context(config);
    if (status != UCS_OK)
        return status;
    status = create_worker();
    if (status != UCS_OK)
        onic_ucx.cleanup(onic_transport.context);
    return status;
}

/** What UCX locks for each device of InfiniBand or RoCE, and its files. Where it may not, processes
 *  that send to it wait for ever. Containers may see the adapters without the files. */
#define DEVICE_BYTES ((size_t)80 << 20)
#define DEVICE_FILES "/dev/infiniband"

/** May UCX lock what its devices take? Else it is said. */
static bool may_lock(const char *list, bool is_free)
{
    const unsigned devices = onic_tls_have(ONIC_TLS_VERBS, list) && access(DEVICE_FILES, F_OK) == 0
                                 ? onic_adapters(ONIC_ADAPTERS, getenv("UCX_NET_DEVICES"), false)
                                 : 0;
    const bool may = devices == 0 || onic_can_lock(devices * DEVICE_BYTES);
    if (!may)
        onic_say_once("ompi-nic: UCX wants to lock %zu MiB of memory for InfiniBand and RoCE, and "
                      "may not (ulimit -l): %s",
                      devices * DEVICE_BYTES >> 20,
                      is_free ? "it goes without them, which is slower"
                              : "its transports are given, so it is not started");
    return may;
}

/** Whoever gives UCX a list of transports has what it makes of that. Where it has its own choice it
 *  goes without posix memory. For that it opens the other side's files in /proc, which another user
 *  namespace, or fewer rights than the other side's, forbid, if only one way; and where that fails
 *  UCX looks for no other way. It needs room in /dev/shm, too. System V's memory has just an owner
 *  and a group. */
static ucs_status_t create_ucx(const onic_transport_config_t *config)
{
    const char *list = onic_transport_tls(config);
    const bool is_free = onic_tls_are_free(list), verbs = may_lock(list, is_free);
    onic_transport_config_t fitted = *config;
    if (!verbs && !is_free)
        return UCS_ERR_NO_DEVICE;
    if (is_free)
        fitted.tls = verbs ? "^posix" : "^ib,posix";
    return create_both(&fitted);
}

static void destroy_ucx(void)
{
    onic_ucx.worker_release_address(onic_transport.worker, onic_transport.address);
    onic_remotes_stop();
    onic_ucx.worker_destroy(onic_transport.worker);
    /* Nothing is received any more that could put into them. */
    onic_regions_stop();
    onic_ucx.cleanup(onic_transport.context);
}

/** Everything but the server thread; the lock is held. */
static int start_wire(const onic_transport_config_t *config)
{
    ucs_status_t status = create_ucx(config);
    if (status != UCS_OK) {
        const char *given = getenv("UCX_TLS");
        if (onic_spare_none_left())
            onic_say_descriptors();
        onic_say_once(
            "ompi-nic: UCX cannot be started with transports %s%s: %s. The component that "
            "asks for it is not used.",
            config->tls != NULL ? config->tls
            : given != NULL     ? given
                                : "of its own choice",
            config->tls != NULL ? " (parameter tls)"
            : given != NULL     ? " (UCX_TLS)"
                                : "",
            onic_ucx.status_string(status));
        return onic_ucs_error(status);
    }
    onic_spare_begin();
    onic_cma_start(&onic_transport.cma_id, &onic_transport.nonce);
    onic_transport.cma_id.presence = onic_presence_start();
    onic_transport.server.wake_pipe = onic_wake_pipe_open();
    onic_transport.cma_id.wake = onic_file_offer(onic_transport.server.wake_pipe);
    onic_transport.closing = false;
    onic_transport.start_server = onic_transport_start_server;
    onic_transport.published = false;
    onic_credit_pool_init(&onic_credit_pool, config->memory, ompi_proc_world_size());
    onic_transport.puts = config->puts;
    atomic_store(&onic_transport.neps, 0);
    onic_transport.shares_memory = onic_tls_have(ONIC_TLS_MEMORY, onic_transport_tls(config));
    onic_inbox_open(onic_transport.shares_memory ? config->queues : 0);
    int rc = onic_peers_start();
    if (rc == OMPI_SUCCESS) {
        rc = onic_am_start();
        rc = rc == OMPI_SUCCESS ? onic_sends_start() : rc;
        if (rc != OMPI_SUCCESS)
            onic_peers_stop();
    }
    if (rc != OMPI_SUCCESS) {
        onic_say_once("ompi-nic: the transport's tables or message handlers cannot be had");
        onic_inbox_close();
        onic_wake_pipe_close(onic_transport.server.wake_pipe);
        onic_presence_stop();
        onic_spare_end();
        destroy_ucx();
    }
    return rc;
}

static void stop_wire(void)
{
    onic_server_stop();
    onic_transport_lock();
    onic_transport.closing = true;
    /* Endpoints go with the worker. Closing them one by one would talk to peers that may be gone
     * already; what was to be sent has been flushed before the caller's fence. */
    onic_loop_stop();
    stop_flush(0);
    destroy_ucx();
    onic_sends_stop();
    onic_queues_out_stop();
    onic_inbox_close();
    onic_forget_stop();
    onic_peers_stop();
    onic_wake_pipe_close(onic_transport.server.wake_pipe);
    onic_presence_stop();
    onic_spare_end();
    onic_transport_unlock();
}

/** What can still be done when the transport is open. Without a server thread the program is right,
 * only slower to answer; the text has been given. The lock is held. */
static void meet_requirements(void)
{
    if (required.all.single_copy)
        onic_cma_allow();
    if (required.all.publish)
        onic_address_publish();
    if (required.all.server_thread)
        onic_server_start(required.all.server_idle_usec);
}

/** Starts the transport, or what is missing. UCX's own threads inherit the mask. */
static int start(bool first)
{
    int rc = OMPI_SUCCESS;
    sigset_t all, old;
    onic_signals_to_block(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    onic_transport_lock();
    if (first)
        rc = start_wire(&required.all);
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
    int rc = onic_ucx_load(false);
    if (rc == OMPI_SUCCESS)
        rc = start(true);
    if (rc != OMPI_SUCCESS)
        return rc;
    rc = opal_progress_register(onic_transport_progress);
    if (rc != OMPI_SUCCESS) {
        onic_say_once("ompi-nic: Open MPI takes no more progress functions: %d", rc);
        stop_wire();
    }
    return rc;
}

/** UCX takes one set of transports for the process. */
static void require(const onic_transport_config_t *config)
{
    if (!onic_requirements_add(&required, config)) {
        onic_say_once("ompi-nic: the components of this process share one UCX, which is to use the "
                      "transports \"%s\"; \"%s\" has no effect",
                      required.tls, config->tls);
    }
}

void onic_transport_require(const onic_transport_config_t *config)
{
    pthread_mutex_lock(&open_mutex);
    require(config);
    pthread_mutex_unlock(&open_mutex);
}

int onic_transport_open(const onic_transport_config_t *config)
{
    int rc;
    pthread_mutex_lock(&open_mutex);
    require(config);
    if (onic_transport.refs > 0) {
        onic_transport_lock();
        onic_credit_pool_enlarge(&onic_credit_pool, required.all.memory, ompi_proc_world_size());
        onic_transport_unlock();
    }
    rc = onic_transport.refs == 0 ? open_first() : start(false);
    if (rc == OMPI_SUCCESS)
        onic_transport.refs++;
    pthread_mutex_unlock(&open_mutex);
    return rc;
}

void onic_transport_start_server(void)
{
    /* While another thread opens or closes the transport it is not the time. */
    if (pthread_mutex_trylock(&open_mutex) != 0)
        return;
    if (atomic_exchange(&onic_transport_needs_help, false) && onic_transport.refs > 0 &&
        !atomic_load(&onic_transport.server.running)) {
        onic_transport_lock();
        onic_server_start(HELP_USEC);
        onic_transport_unlock();
        atomic_store(&onic_transport.no_help, !atomic_load(&onic_transport.server.running));
    }
    pthread_mutex_unlock(&open_mutex);
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
        stop_wire();
        required = (onic_requirements_t){.all = {.puts = required.all.puts}};
    }
    pthread_mutex_unlock(&open_mutex);
    return last;
}
