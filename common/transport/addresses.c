/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file How processes learn each other's addresses: one by one, from what each has published in
 *  Open MPI's exchange; or all those of a communicator at once, where a component opens the
 *  transport after MPI_Init.
 *
 *  The latter are kept once for each node, in sorted tables in shared memory, until the transport
 *  is closed. A process that is first sent to, or heard of, gets a record of its own from there
 *  (peers.c) without a system call, so handlers may look. */
#include "common/support/collective.h"
#include "common/support/modex.h"
#include "common/transport/internal.h"

#include <stdlib.h>
#include <string.h>

#include "ompi/communicator/communicator.h"
#include "ompi/constants.h"
#include "ompi/group/group.h"

/** What is published is found by this. */
#define KEY "ompi-nic.address"

uint64_t onic_rank_name(struct ompi_communicator_t *comm, int rank)
{
    const opal_process_name_t name = ompi_group_get_proc_name(comm->c_local_group, rank);

    return onic_name(name.jobid, name.vpid);
}

/* ---- one by one ---------------------------------------------------------------------------- */

void onic_address_publish(void)
{
    const size_t size = onic_address_record_size();
    void *bytes = !onic_transport.published ? malloc(size) : NULL;

    if (bytes != NULL && onic_address_record(bytes, size) > 0) {
        /* Where there is no exchange no process could read it. */
        (void)onic_modex_put_bytes(KEY, bytes, size);
        onic_transport.published = true;
    }
    free(bytes);
}

/** The peer of that name, by what it has published. */
static onic_peer_t *look_up(uint64_t name, int *rc_p)
{
    const opal_process_name_t process = {(opal_jobid_t)(name >> 32), (opal_vpid_t)name};
    onic_peer_t *peer = NULL;
    onic_address_t a;
    size_t len;
    void *bytes = onic_modex_get_bytes(process, KEY, &len);

    *rc_p = OMPI_ERR_NOT_FOUND;
    if (bytes != NULL && onic_address_read(bytes, len, &a)) {
        onic_transport_lock();
        peer = onic_learn_peer(bytes, len);
        onic_transport_unlock();
        *rc_p = peer != NULL ? OMPI_SUCCESS : OMPI_ERR_OUT_OF_RESOURCE;
    }
    free(bytes);
    return peer;
}

onic_peer_t *onic_transport_get_peer(uint64_t name, int *rc_p)
{
    onic_transport_lock();
    onic_peer_t *peer = onic_peer_named(name);
    onic_transport_unlock();
    *rc_p = OMPI_SUCCESS;
    return peer != NULL ? peer : look_up(name, rc_p);
}

/* ---- all of a communicator ----------------------------------------------------------------- */

bool onic_transport_knows(struct ompi_communicator_t *comm)
{
    const int n = ompi_comm_size(comm);
    bool known = true;

    onic_transport_lock();
    for (int i = 0; i < n && known; i++)
        known = onic_peer_is_known(onic_rank_name(comm, i));
    onic_transport_unlock();
    return known;
}

/** Each has a record by itself: processes of other jobs come and go, and can be forgotten. */
static int keep_each(const char *rows, size_t n, size_t stride)
{
    int rc = OMPI_SUCCESS;

    onic_transport_lock();
    for (const char *at = rows; at < rows + n * stride && rc == OMPI_SUCCESS; at += stride) {
        const onic_address_row_t *row = (const void *)at;

        rc = onic_learn_peer(row->record, row->len) != NULL ? OMPI_SUCCESS
                                                            : OMPI_ERR_OUT_OF_RESOURCE;
    }
    onic_transport_unlock();
    return rc;
}

/** All members are of this job: their addresses are kept once for each node, if it has room. */
static int keep_table(struct ompi_communicator_t *comm, onic_node_t *node, const char *rows,
                      size_t n, size_t stride)
{
    onic_segment_t segment;
    onic_made_t made;
    int written = 0;
    int rc = onic_node_segment(comm, node, n * stride, true, &segment, &made);

    if (rc != OMPI_SUCCESS || made != ONIC_MADE)
        return keep_each(rows, n, stride);
    if (node->me == 0) {
        memcpy(segment.base, rows, n * stride);
        qsort(segment.base, n, stride, onic_address_row_compare);
    }
    /* The others wait until that is done. */
    rc = onic_node_tell(comm, node, &written, sizeof(written));
    if (!onic_table_add(&segment, stride)) {
        onic_segment_unmap(&segment);
        rc = OMPI_ERR_OUT_OF_RESOURCE;
    }
    return rc;
}

static bool is_one_job(struct ompi_communicator_t *comm)
{
    int i = ompi_comm_size(comm) - 1;

    while (i > 0 && onic_rank_name(comm, i) >> 32 == onic_rank_name(comm, 0) >> 32)
        i--;
    return i == 0;
}

int onic_transport_exchange(struct ompi_communicator_t *comm, onic_node_t *node, size_t most)
{
    const size_t stride = onic_address_row_bytes(most), n = (size_t)ompi_comm_size(comm);
    onic_address_row_t *mine = calloc(1, stride);
    char *all = malloc(n * stride);

    if (mine == NULL || all == NULL)
        onic_abort_no_memory(comm, "a table of their addresses");
    mine->name = onic_here.name;
    mine->len = onic_address_record(mine->record, most);
    int rc = onic_share(comm, mine, (int)stride, all);
    if (rc == OMPI_SUCCESS)
        rc = is_one_job(comm) ? keep_table(comm, node, all, n, stride) : keep_each(all, n, stride);
    free(all);
    free(mine);
    return rc;
}
