/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Agreement on the component. In Open MPI each process chooses by itself which component
 *  serves a window, and does not learn if another process chose differently. That happens if a host
 *  has another version of this component, or none, or if a process has other parameters. So each
 *  process publishes its version and parameters during MPI_Init. When a window is made, its members
 *  agree along a tree (onic_agree_among), in which each looks up its neighbours: if all match their
 *  neighbours, all are alike; otherwise all decline. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "osc_nicstride/component/setup.h"
#include "osc_nicstride/window/state.h"
#include "osc_nicstride/window/control.h"
#include "common/config.h"
#include "common/support/collective.h"
#include "common/support/help.h"
#include "common/support/modex.h"
#include "common/support/selection.h"
#include "common/transport/transport.h"
#include "ompi/group/group.h"
#include "ompi/mca/osc/base/base.h"
#include "ompi/proc/proc.h"
#include "opal/class/opal_hash_table.h"
#include "opal/util/proc.h"
#include "common/transport/put.h"
#include "osc_nicstride/target/target.h"
#include "common/pipeline/pipeline.h"
#include "osc_nicstride/queue/operation.h"
#include "osc_nicstride/queue/wait.h"
#include "opal/runtime/opal_progress.h"

#define KEY      "ompi-nic.osc_nicstride"
#define TEXT_MAX 320

static char mine[TEXT_MAX];

/** Whether processes that were looked up are the same, not NULL then, by their names as 64 bits. */
static opal_hash_table_t known;
static bool has_table;
static pthread_mutex_t known_mutex = PTHREAD_MUTEX_INITIALIZER;

/** The list of components from which the user lets Open MPI choose. */
static const char *selection(void)
{
    const char *text = ompi_osc_base_framework.framework_selection;

    return text != NULL && text[0] != '\0' ? text : "all";
}

/** True if the user has asked for this component. With the initial priority another component is
 *  chosen if there is one, and nothing needs to be exchanged. */
static bool wanted(void)
{
    return nicstride_component.params.priority > NICSTRIDE_PRIORITY_INITIAL ||
           onic_selects(selection(), "nicstride");
}

/** Describes everything that must be the same in all processes, so that they choose the same
 *  component and take the same collective steps when they make a window. Sizes and byte order stand
 *  for what may differ between builds of one version. */
static void describe(char *text, size_t size)
{
    const nicstride_params_t *p = &nicstride_component.params;

    snprintf(text, size, "version %s.%zu.%zu.%d.%d, priority %zu, node %d, check %d, osc %s",
             OMPI_NIC_VERSION, sizeof(nicstride_rank_info_t), nicstride_ctl_place(2, 1, true).bytes,
             NICSTRIDE_MSG_FORM, __BYTE_ORDER__, p->priority, p->node, p->check > 0, selection());
}

int nicstride_agreement_init(void)
{
    describe(mine, sizeof(mine));
    /* Without an exchange there are no other processes; if there are some, they will decline. */
    (void)onic_modex_put_bytes(KEY, mine, strlen(mine) + 1);
    OBJ_CONSTRUCT(&known, opal_hash_table_t);
    has_table = true;
    return opal_hash_table_init(&known, 64);
}

void nicstride_agreement_fini(void)
{
    /* Open MPI also closes a component whose opening failed. */
    if (has_table)
        OBJ_DESTRUCT(&known);
    has_table = false;
}

/** True if a member has published the same as this process. Finding nothing may take seconds, so
 *  each process is looked up only once. */
static bool joins(ompi_communicator_t *comm, int rank)
{
    const uint64_t name = onic_rank_name(comm, rank);
    void *same = (void *)(uintptr_t) true;
    size_t len;

    if (rank == ompi_comm_rank(comm))
        return true;
    pthread_mutex_lock(&known_mutex);
    if (opal_hash_table_get_value_uint64(&known, name, &same) != OPAL_SUCCESS) {
        onic_count(&nicstride_counters.lookups, 1);
        void *theirs =
            onic_modex_get_bytes(ompi_group_get_proc_name(comm->c_local_group, rank), KEY, &len);
        if (theirs == NULL || len != strlen(mine) + 1 || memcmp(theirs, mine, len) != 0)
            same = NULL;
        free(theirs);
        (void)opal_hash_table_set_value_uint64(&known, name, same);
    }
    pthread_mutex_unlock(&known_mutex);
    return same != NULL;
}

/** Names the first process that differs. One process of each host prints the text. */
static void warn_differs(ompi_communicator_t *comm)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    const int size = ompi_comm_size(comm);
    size_t len;
    int odd = 0;

    if (opal_process_info.my_local_rank != 0 || atomic_flag_test_and_set(&said))
        return;
    while (odd < size && joins(comm, odd))
        odd++;
    if (odd == size)
        return;
    const opal_proc_t *proc = &ompi_group_peer_lookup(comm->c_local_group, odd)->super;
    const char *host = opal_get_proc_hostname(proc);
    char *theirs = onic_modex_get_bytes(proc->proc_name, KEY, &len);

    if (theirs != NULL)
        theirs[len - 1] = '\0';
    onic_help(NICSTRIDE_HELP_FILE, "peer-differs", opal_process_info.nodename, mine,
              host != NULL ? host : "(unknown)",
              theirs != NULL ? theirs : "none, or one that is not to be used",
              (unsigned)proc->proc_name.vpid);
    free(theirs);
}

bool nicstride_all_agree(ompi_communicator_t *comm)
{
    if (!wanted() || onic_agree_among(comm, joins))
        return true;
    warn_differs(comm);
    return false;
}

/* ---- the transport --------------------------------------------------------------------------- */

static int open_wire_once(void)
{
    nicstride_component_t *c = &nicstride_component;
    onic_transport_config_t config = {
        .server_thread = c->params.server,
        .server_idle_usec = (unsigned)c->params.server_idle,
        .single_copy = c->params.cma,
        .queues = c->params.queues,
        .memory = c->params.memory,
    };
    const onic_pipeline_config_t pipeline = {.rx_pool = c->params.area,
                                             .schedule = (onic_schedule_kind_t)c->params.schedule,
                                             .links = &c->links};
    int rc;

    if (c->wire_open)
        return OMPI_SUCCESS;
    rc = onic_transport_open(&config);
    if (rc != OMPI_SUCCESS)
        return rc;
    c->wire_open = true;
    onic_pipeline_open(&pipeline);
    /* Inline data travels in a header, which may have less room than would pay. */
    const size_t room = onic_header_max - sizeof(nicstride_msg_t);

    c->limits.near = c->limits.near < room ? c->limits.near : room;
    c->limits.far = c->limits.far < room ? c->limits.far : room;
    onic_transport_set_fns(ONIC_AM_OSC,
                           &(onic_transport_fns_t){.am = nicstride_am,
                                                   .work[ONIC_LOCKED] = nicstride_work_locked,
                                                   .work[ONIC_MPI] = nicstride_requests_complete});
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
    /* Another component may keep the transport open, from which peers may still be removed. */
    onic_transport_set_fns(ONIC_AM_OSC, ONIC_TRANSPORT_NO_FNS);
    onic_pipeline_close();
    nicstride_component.wire_open = false;
    return onic_transport_close();
}
