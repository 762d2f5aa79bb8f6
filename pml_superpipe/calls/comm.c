/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Adding and removing processes and communicators. */
#include "pml_superpipe/calls/calls.h"
#include "pml_superpipe/protocols/choice.h"

#include <stdlib.h>

#include "ompi/mca/pml/base/base.h"
#include "ompi/proc/proc.h"
#include "opal/util/output.h"
#include "opal/util/proc.h"

#include "common/support/device.h"

/** Microseconds that a process waits for the others of its job at its end. */
#define LEAVE_USEC 10000000

/** Called at the end: no process closes a connection on which others still send. */
int superpipe_del_procs(struct ompi_proc_t **procs, size_t nprocs)
{
    if (superpipe.open) {
        superpipe_drain();
        (void)onic_transport_leave(LEAVE_USEC);
    }
    /* The state of the peers is freed with the transport. */
    for (size_t i = 0; i < nprocs; i++)
        procs[i]->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML] = NULL;
    return OMPI_SUCCESS;
}

static void show_plan(void)
{
    char table[8192], numbers[ONIC_LINKS_TEXT_MAX];
    FILE *to = fmemopen(table, sizeof(table), "w");

    if (to == NULL)
        return;
    superpipe_plan_table(to, &superpipe.table, superpipe.params.protocol, superpipe.params.eager);
    fclose(to);
    onic_links_write(&superpipe.table.links, numbers, sizeof(numbers));
    opal_output(0,
                "pml_superpipe: protocols by kind of peer, data and bytes\n%s"
                "pml_superpipe: the numbers that this comes from: %s\n%s",
                table, superpipe.links_from, numbers);
}

/** Makes no peers: each is looked up at the first send to it. */
int superpipe_add_procs(ompi_proc_t **procs, size_t nprocs)
{
    if (!superpipe.plan_shown && superpipe.params.show_plan && OPAL_PROC_MY_NAME.vpid == 0)
        show_plan();
    if (!superpipe.plan_shown && superpipe.params.verbose > 0 && OPAL_PROC_MY_NAME.vpid == 0)
        opal_output(0, "pml_superpipe: in use by %u processes, %u of them on %s; on the node by %s",
                    (unsigned)ompi_proc_world_size(),
                    (unsigned)opal_process_info.num_local_peers + 1, opal_process_info.nodename,
                    superpipe.params.queues > 0 ? "queues in shared memory" : "UCX");
    superpipe.plan_shown = true;
    onic_device_init();
    return mca_pml_base_pml_check_selected("superpipe", procs, nprocs);
}

int superpipe_enable(bool enable)
{
    (void)enable;
    return OMPI_SUCCESS;
}

int superpipe_add_comm(ompi_communicator_t *comm)
{
    superpipe_channel_t *c = calloc(1, sizeof(*c));
    const int procs = comm->c_remote_group->grp_proc_count;
    const size_t nranks = procs > 0 ? (size_t)procs : 1;

    if (c == NULL || (c->peer = calloc(nranks, sizeof(superpipe_peer_t *))) == NULL) {
        free(c);
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    c->comm = comm;
    comm->c_pml_comm = (struct mca_pml_comm_t *)c;
    onic_transport_lock();
    LIST_INSERT_HEAD(&superpipe.channels, c, of_all);
    onic_transport_unlock();
    return OMPI_SUCCESS;
}

int superpipe_del_comm(ompi_communicator_t *comm)
{
    superpipe_channel_t *c = (superpipe_channel_t *)comm->c_pml_comm;
    const uint32_t context = ONIC_COMM_INDEX(comm);
    superpipe_receive_t *receive;
    superpipe_message_t *m, *next;
    size_t cursor = 0;

    if (c == NULL)
        return OMPI_SUCCESS;
    comm->c_pml_comm = NULL;
    onic_transport_lock();
    LIST_REMOVE(c, of_all);
    /* Receives retain their communicator, so some can be left only at the end of the program. */
    while ((receive = superpipe_match_abandon(&superpipe.match, context, SUPERPIPE_ALL_RECEIVES,
                                              &cursor)) != NULL)
        superpipe_fail_locked(superpipe_request_of(receive), MPI_ERR_COMM);
    for (m = TAILQ_FIRST(superpipe_match_arrived(&superpipe.match, context)); m != NULL; m = next) {
        next = TAILQ_NEXT(m, of_context);
        if (m->context != context)
            continue;
        superpipe_match_take(&superpipe.match, m);
        superpipe_discard_locked((superpipe_unexpected_t *)m);
    }
    onic_transport_unlock();
    free(c->peer);
    free(c);
    return OMPI_SUCCESS;
}

/** True if this process can notice the other one's death by looking: it is on this machine, or of
 *  another job. */
static bool dies_in_sight(ompi_group_t *group, int rank)
{
    const ompi_proc_t *proc = ompi_group_peer_lookup_existing(group, rank);

    return ompi_group_get_proc_name(group, rank).jobid != OPAL_PROC_MY_NAME.jobid ||
           (proc != NULL && OPAL_PROC_ON_LOCAL_NODE(proc->super.proc_flags));
}

/* Looking up other ranks might block for nothing: without a connection their death would not be
 * noticed. If processes have been lost already, the rank may be one that has sent before. */
void superpipe_watch_stranger(ompi_communicator_t *comm, int rank)
{
    int rc;

    /* If the lookup finds nothing, a later send may still find it. */
    if (onic_transport_losses() > 0 || dies_in_sight(comm->c_remote_group, rank))
        (void)superpipe_peer_find(comm, rank, &rc);
}

int superpipe_dump(ompi_communicator_t *comm, int verbose)
{
    (void)comm, (void)verbose;
    return OMPI_SUCCESS;
}
