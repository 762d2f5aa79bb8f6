/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Processes of other jobs that have left, and that no communicator names any more. */
#include "pml_superpipe/protocols/process.h"

#include <stdlib.h>

#include "ompi/group/group.h"
#include "ompi/proc/proc.h"

static uint64_t name_in(const ompi_group_t *group, int rank)
{
    const opal_process_name_t name = ompi_group_get_proc_name((ompi_group_t *)group, rank);

    return onic_name(name.jobid, name.vpid);
}

bool superpipe_is_foreign(const ompi_communicator_t *comm)
{
    const ompi_group_t *group = comm->c_remote_group;
    const uint64_t job = onic_wire_me() >> 32;

    for (int rank = 0; rank < group->grp_proc_count; rank++)
        if (name_in(group, rank) >> 32 != job)
            return true;
    return false;
}

static bool is_named_locked(uint64_t name)
{
    const superpipe_comm_t *comm = NULL;

    while ((comm = superpipe_comms_next(&superpipe.comms, comm)) != NULL) {
        const superpipe_channel_t *c = (const superpipe_channel_t *)comm;
        const ompi_group_t *group = c->foreign ? c->comm->c_remote_group : NULL;

        for (int rank = 0; group != NULL && rank < group->grp_proc_count; rank++)
            if (name_in(group, rank) == name)
                return true;
    }
    return false;
}

/** Does a message of it wait for a communicator that is still to be made here? */
static bool has_parked_locked(const superpipe_peer_t *p)
{
    const superpipe_message_t *m = superpipe.comms.all_parked.head;

    while (m != NULL && ((const superpipe_unexpected_t *)m)->from != p)
        m = m->next;
    return m != NULL;
}

/** Its process in Open MPI, which may outlive it, knows it no longer. */
static void unbind(uint64_t name, const superpipe_peer_t *p)
{
    const opal_process_name_t process = {(opal_jobid_t)(name >> 32), (opal_vpid_t)name};
    ompi_proc_t *proc = (ompi_proc_t *)ompi_proc_lookup(process);

    if (proc != NULL && proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML] == p)
        proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML] = NULL;
}

static void free_peer_locked(superpipe_peer_t *p)
{
    superpipe_peer_t **at = &superpipe.peers;

    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    superpipe.numbered[p->number - 1] = NULL;
    superpipe.nfree++;
    /* Who is only out of reach may still send with its number: nobody else gets that. */
    superpipe.retired = superpipe.retired || !onic_peer_has_died(p->wire);
    *onic_peer_slot(p->wire, ONIC_AM_PML) = NULL;
    free(p->learned);
    free(p);
}

bool superpipe_forget(onic_peer_t *wire, bool left)
{
    const uint64_t name = onic_peer_name(wire);
    superpipe_peer_t *p = *onic_peer_slot(wire, ONIC_AM_PML);

    if (is_named_locked(name))
        return false;
    if (!left || p == NULL)
        return true;
    superpipe_end_lost_locked();
    if (!p->lost || p->open != NULL || p->early != NULL || p->has_heard || has_parked_locked(p))
        return false;
    unbind(name, p);
    free_peer_locked(p);
    return true;
}
