/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The wire, opened when the first window is made. */
#include <pthread.h>

#include "common/mover/mover.h"
#include "common/wire/wire.h"
#include "osc_nicstride/queue/request.h"
#include "osc_nicstride/queue/wait.h"
#include "osc_nicstride/component/setup.h"
#include "osc_nicstride/target/target.h"
#include "osc_nicstride/window/state.h"

#include "opal/runtime/opal_progress.h"

/** What is inline travels in a header, which may have no room for as much as would pay. */
static void fit_limits(nicstride_limits_t *l, size_t room)
{
    l->near = l->near < room ? l->near : room;
    l->far = l->far < room ? l->far : room;
}

static int open_wire_once(void)
{
    nicstride_component_t *c = &nicstride_component;
    onic_wire_config_t config = {
        .server_thread = c->params.server,
        .server_idle_usec = (unsigned)c->params.server_idle,
        .single_copy = c->params.cma,
        .tls = c->params.tls,
        .queues = c->params.queues,
        .tcp_seg_size = c->params.tcp_segment,
    };
    const onic_mover_config_t mover = {.area = c->params.area};
    int rc;

    if (c->wire_open)
        return OMPI_SUCCESS;
    rc = onic_wire_open(&config);
    if (rc != OMPI_SUCCESS)
        return rc;
    c->wire_open = true;
    rc = onic_mover_open(&mover);
    if (rc != OMPI_SUCCESS) {
        (void)onic_wire_close();
        c->wire_open = false;
        return rc;
    }
    fit_limits(&c->limits, onic_wire_header_max() - sizeof(nicstride_msg_t));
    onic_wire_set_fns(ONIC_AM_OSC, &(onic_wire_fns_t){.am = nicstride_am,
                                                      .deferred = nicstride_run_deferred,
                                                      .mpi = nicstride_requests_complete,
                                                      .forget = nicstride_process_forget});
    return opal_progress_register_lp(nicstride_look_after_peers);
}

int nicstride_open_wire(void)
{
    static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
    int rc;

    pthread_mutex_lock(&once);
    rc = open_wire_once();
    pthread_mutex_unlock(&once);
    return rc;
}

bool nicstride_close_wire(void)
{
    (void)opal_progress_unregister(nicstride_look_after_peers);
    /* Another component may keep the wire open, and peers leave it. */
    onic_wire_set_fns(ONIC_AM_OSC, ONIC_WIRE_NO_FNS);
    onic_mover_close();
    nicstride_component.wire_open = false;
    return onic_wire_close();
}
