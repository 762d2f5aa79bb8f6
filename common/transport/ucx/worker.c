/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file UCX's context and worker: how they are made, progressed and ended. */
#include "common/ompi_compat.h"
#include "common/support/help.h"
#include "common/transport/ucx/adapters.h"
#include "common/transport/ucx/internal.h"

#include <stdlib.h>
#include <ucm/api/ucm.h>
#include <unistd.h>

#include "ompi/constants.h"
#include "ompi/proc/proc.h"
#include "opal/mca/memory/base/base.h"
#include "opal/memoryhooks/memory.h"

size_t onic_header_max;

/* ---- life ------------------------------------------------------------------------------------ */

static void tell_of_freed(void *base, size_t bytes, void *arg, bool from_alloc)
{
    (void)arg;
    (void)from_alloc;
    ucm_vm_munmap(base, bytes);
}

/** Any component that keeps memory registered has Open MPI's hooks installed, and behind them UCX's
 *  see next to nothing. So they are installed now, before UCX makes its caches of registrations, as
 *  Open MPI's own UCX components do, and UCX is told; else it would find its hooks without effect
 *  and cache nothing. They stay: once closed they cannot be opened again. Whom they tell is
 *  forgotten when MPI is finalised, and it may be initialised again. */
static void install_hooks(void)
{
    if (mca_base_framework_open(&opal_memory_base_framework, 0) == OPAL_SUCCESS &&
        opal_mem_hooks_register_release(tell_of_freed, NULL) == OPAL_SUCCESS)
        ucm_set_external_event(UCM_EVENT_VM_UNMAPPED);
}

static ucs_status_t create_context(bool puts, const char *tls)
{
    ucp_config_t *ucp_config;
    ucs_status_t status = onic_ucx_read_config(tls, &ucp_config);
    if (status != UCS_OK)
        return status;
    ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS |
                      UCP_PARAM_FIELD_ESTIMATED_NUM_PPN | UCP_PARAM_FIELD_NAME,
        /* Events cost nothing before the transports are armed, which the server thread does. */
        .features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP | (puts ? UCP_FEATURE_RMA : 0),
        .estimated_num_eps = (size_t)ompi_proc_world_size(),
        .estimated_num_ppn = (size_t)opal_process_info.num_local_peers + 1,
        .name = "ompi-nic",
    };
    status = ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, ucp_config,
                              &onic_ucx_state.context);
    ucp_config_release(ucp_config);
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
        ucp_worker_create(onic_ucx_state.context, &params, &onic_ucx_state.worker);
    if (status != UCS_OK)
        return status;
    ucp_worker_attr_t attr = {.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS |
                                            UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER};
    status = ucp_worker_query(onic_ucx_state.worker, &attr);
    if (status != UCS_OK) {
        ucp_worker_destroy(onic_ucx_state.worker);
        return status;
    }
    onic_ucx_state.address = attr.address;
    onic_ucx_state.address_len = attr.address_length;
    onic_header_max = attr.max_am_header;
    return UCS_OK;
}

static ucs_status_t create_both(bool puts, const char *tls)
{
    ucs_status_t status = create_context(puts, tls);
    if (status != UCS_OK)
        return status;
    status = create_worker();
    if (status != UCS_OK)
        ucp_cleanup(onic_ucx_state.context);
    return status;
}

/** What UCX locks for each device of InfiniBand or RoCE, and its files. Where it may not, processes
 *  that send to it wait for ever. Containers may see the adapters without the files. */
#define DEVICE_BYTES ((size_t)80 << 20)
#define DEVICE_FILES "/dev/infiniband"

/** True if UCX may lock what its devices take. Else prints so. */
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
static ucs_status_t create_ucx(bool puts)
{
    const char *list = getenv("UCX_TLS");
    const bool is_free = onic_tls_are_free(list), verbs = may_lock(list, is_free);
    if (!verbs && !is_free)
        return UCS_ERR_NO_DEVICE;
    return create_both(puts, !is_free ? list : verbs ? "^posix" : "^ib,posix");
}

static void destroy_ucx(void)
{
    ucp_worker_release_address(onic_ucx_state.worker, onic_ucx_state.address);
    onic_ucx_remotes_stop();
    ucp_worker_destroy(onic_ucx_state.worker);
    /* The worker is gone: nothing puts into regions any more. */
    onic_ucx_regions_stop();
    ucp_cleanup(onic_ucx_state.context);
}

static int start(const onic_transport_config_t *config)
{
    install_hooks();
    const ucs_status_t status = create_ucx(config->puts);
    if (status != UCS_OK) {
        const char *list = getenv("UCX_TLS");
        onic_say_once("ompi-nic: UCX cannot be started with transports %s (UCX_TLS): %s. The "
                      "component that asks for it is not used.",
                      list != NULL ? list : "of its own choice", ucs_status_string(status));
        return onic_ucs_error(status);
    }
    onic_ucx_state.pushes = onic_ucx_state.copied = false;
    atomic_store(&onic_ucx_state.neps, 0);
    const int rc = onic_ucx_messages_start();
    if (rc != OMPI_SUCCESS) {
        onic_say_once("ompi-nic: the handlers of UCX's messages cannot be had");
        destroy_ucx();
    }
    return rc;
}

/** Endpoints go with the worker. Closing them one by one would talk to peers that may be gone
 *  already. */
static void stop(void)
{
    destroy_ucx();
    onic_ucx_messages_stop();
}

static void describe(onic_address_t *mine)
{
    mine->ucx = onic_ucx_state.address;
    mine->ucx_len = onic_ucx_state.address_len;
}

static bool reaches(onic_peer_t *peer)
{
    (void)peer;
    return true;
}

/* ---- progress -------------------------------------------------------------------------------- */

static int progress(void)
{
    const int events = onic_ucx_send_to_self() + (int)ucp_worker_progress(onic_ucx_state.worker);
    if (onic_ucx_state.copied)
        onic_ucx_push();
    return events;
}

static bool may_have(void)
{
    return atomic_load_explicit(&onic_ucx_state.neps, memory_order_relaxed) > 0;
}

static int poll_worker(void)
{
    return may_have() ? progress() : 0;
}

/** Arming fails once after each event. What is armed need not be disarmed. */
static bool arm(unsigned nap)
{
    return nap == 0 || ucp_worker_arm(onic_ucx_state.worker) == UCS_OK;
}

static int event_fd(void)
{
    int fd = -1;
    const ucs_status_t status = ucp_worker_get_efd(onic_ucx_state.worker, &fd);
    return status == UCS_OK ? fd : -1;
}

const onic_row_t onic_row_ucx = {
    .joins = true,
    .start = start,
    .stop = stop,
    .describe = describe,
    .reaches = reaches,
    .connect = onic_ucx_connect,
    .free_peer = onic_ucx_free_peer,
    .message_max = onic_ucx_message_max,
    .send_now = onic_ucx_send_now,
    .send = onic_ucx_send,
    .progress = progress,
    .poll = poll_worker,
    .may_have = may_have,
    .leaves_work = onic_ucx_has_to_self,
    .arm = arm,
    .event_fd = event_fd,
};
