/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Processes and communicators come and go. */
#include "pml_superpipe/calls/calls.h"

#include <stdlib.h>

#include "ompi/mca/pml/base/base.h"
#include "ompi/proc/proc.h"
#include "opal/util/output.h"
#include "opal/util/proc.h"

#include "common/mover/links.h"

/** Microseconds that a process waits at its end for the others of its job. */
#define LEAVE_USEC 10000000

/** Peers are looked up when they are first sent to. */
int superpipe_add_procs(struct ompi_proc_t **procs, size_t nprocs)
{
    return mca_pml_base_pml_check_selected("superpipe", procs, nprocs);
}

/** At the end: nobody closes a connection on which others still send. */
int superpipe_del_procs(struct ompi_proc_t **procs, size_t nprocs)
{
    (void)procs;
    (void)nprocs;
    if (superpipe.open)
        (void)onic_wire_leave(LEAVE_USEC);
    return OMPI_SUCCESS;
}

int superpipe_enable(bool enable)
{
    (void)enable;
    return OMPI_SUCCESS;
}

/** The next process of this node, or the next of another; NULL where there is none. */
static onic_peer_t *next_peer(ompi_communicator_t *comm, bool on_node)
{
    const int me = ompi_comm_rank(comm), size = ompi_comm_size(comm);
    superpipe_peer_t *p = NULL;
    int rc = OMPI_SUCCESS;

    for (int i = 1; i < size && p == NULL; i++) {
        const int rank = (me + i) % size;
        const ompi_proc_t *proc = ompi_comm_peer_lookup(comm, rank);

        if ((OPAL_PROC_ON_LOCAL_NODE(proc->super.proc_flags) != 0) == on_node)
            p = superpipe_peer_of(comm, rank, &rc);
    }
    return p != NULL ? p->wire : NULL;
}

static void show_plan(void)
{
    const uint64_t eager[2] = {superpipe.params.eager, superpipe.params.eager};
    char table[SUPERPIPE_PLAN_MAX], numbers[ONIC_LINKS_TEXT_MAX];
    const char *source;

    onic_wire_lock();
    const onic_links_t links = *superpipe_links_locked(&source);
    onic_wire_unlock();
    superpipe_plan_table(&links, (superpipe_protocol_t)superpipe.params.protocol,
                         superpipe.params.single_copy, onic_mover_area() > 0, eager, table,
                         sizeof(table));
    onic_links_write(&links, numbers, sizeof(numbers));
    opal_output(0,
                "pml_superpipe: protocols by kind of peer, data and bytes, by the model\n%s"
                "pml_superpipe: its numbers, %s\n%s",
                table, source, numbers);
}

/** In MPI_Init, where all addresses are known and all processes are in MPI: what the links are
 * like. Of another node the first process of each asks. */
static void look_around(ompi_communicator_t *world)
{
    const bool first = opal_process_info.my_local_rank == 0;

    if (superpipe.params.measures)
        onic_links_measure(superpipe.params.single_copy, next_peer(world, true),
                           first ? next_peer(world, false) : NULL);
    if (superpipe.params.show_plan && OMPI_PROC_MY_NAME->vpid == 0)
        show_plan();
}

int superpipe_add_comm(ompi_communicator_t *comm)
{
    superpipe_channel_t *c = calloc(1, sizeof(*c));
    const int nranks = comm->c_remote_group->grp_proc_count;
    bool added;

    if (c == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    if (superpipe_comm_init(&c->match, ONIC_COMM_INDEX(comm), nranks > 0 ? (uint32_t)nranks : 1) !=
        0) {
        free(c);
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    c->comm = comm;
    onic_wire_lock();
    added = superpipe_comms_add(&superpipe.comms, &c->match);
    if (added) {
        comm->c_pml_comm = (struct mca_pml_comm_t *)c;
        c->next = superpipe.channels;
        superpipe.channels = c;
        superpipe_unpark_locked(c);
    }
    onic_wire_unlock();
    if (added && comm == &ompi_mpi_comm_world.comm)
        look_around(comm);
    if (added)
        return OMPI_SUCCESS;
    superpipe_comm_fini(&c->match);
    free(c);
    return OMPI_ERROR;
}

static void remove_channel_locked(superpipe_channel_t *c)
{
    superpipe_channel_t **at = &superpipe.channels;

    while (*at != NULL && *at != c)
        at = &(*at)->next;
    if (*at != NULL)
        *at = c->next;
    superpipe_comms_remove(&superpipe.comms, &c->match);
}

int superpipe_del_comm(ompi_communicator_t *comm)
{
    superpipe_channel_t *c = (superpipe_channel_t *)comm->c_pml_comm;
    superpipe_receive_t *receive;
    superpipe_message_t *m;
    size_t cursor = 0;

    if (c == NULL)
        return OMPI_SUCCESS;
    comm->c_pml_comm = NULL;
    onic_wire_lock();
    remove_channel_locked(c);
    /* Receives keep their communicator; only at the end of the program there may be some. */
    while ((receive = superpipe_match_abandon(&c->match.match, SUPERPIPE_ALL_RECEIVES, &cursor)) !=
           NULL)
        superpipe_fail_locked(superpipe_request_of(receive), MPI_ERR_COMM);
    while ((m = superpipe_comm_discard(&c->match)) != NULL)
        superpipe_discard_locked((superpipe_unexpected_t *)m);
    onic_wire_unlock();
    superpipe_comm_fini(&c->match);
    free(c);
    return OMPI_SUCCESS;
}

int superpipe_dump(ompi_communicator_t *comm, int verbose)
{
    const superpipe_channel_t *c = (superpipe_channel_t *)comm->c_pml_comm;

    (void)verbose;
    if (c != NULL)
        opal_output(0,
                    "pml_superpipe: communicator %llu: %llu receives posted so far, %llu messages "
                    "wait for their receive",
                    (unsigned long long)c->match.context, (unsigned long long)c->match.match.posts,
                    (unsigned long long)c->match.match.nunexpected);
    return OMPI_SUCCESS;
}
