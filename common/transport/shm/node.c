/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Agreement on who shares memory, and making it. From what each rank has published (its
 *  first member of the node) all form the same groups. The first member makes a segment and sends
 *  the others its key; they map it and answer, and the first sends all the result.
 *
 *  A segment has no name at first, so that nothing is left of it whichever process is killed: the
 *  others reach it through its maker's descriptor. The kernel may not allow that, in containers
 *  with a user namespace for each process, say; a process that tries answers that it needs a name,
 *  and the node begins again with one, as that maker does from then on. */
#include "common/ompi_compat.h"
#include "common/support/collective.h"
#include "common/transport/shm/node.h"
#include "common/transport/shm/segment.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/communicator/communicator.h"
#include "ompi/constants.h"
#include "ompi/group/group.h"
#include "ompi/proc/proc.h"

/* ---- which ranks are here ------------------------------------------------------------------- */

bool onic_node_has(struct ompi_communicator_t *comm, int rank)
{
    if (rank == ompi_comm_rank(comm))
        return true;
    /* A process that Open MPI has made no object for yet is not on this node. */
    struct ompi_proc_t *proc = ompi_group_get_proc_ptr_raw(comm->c_local_group, rank);
    return !ompi_proc_is_sentinel(proc) && OPAL_PROC_ON_LOCAL_NODE(proc->super.proc_flags);
}

int onic_node_leader(struct ompi_communicator_t *comm)
{
    int rank = 0;
    while (!onic_node_has(comm, rank))
        rank++;
    return rank;
}

static int32_t leader_of(const int32_t *leaders, size_t stride, int rank)
{
    return *(const int32_t *)(const void *)((const char *)leaders + (size_t)rank * stride);
}

int onic_node_first(const int32_t *leaders, size_t stride, int rank)
{
    const int32_t leader = leader_of(leaders, stride, rank);
    return leader_of(leaders, stride, leader) == leader ? leader : rank;
}

void onic_node_fini(onic_node_t *node)
{
    free(node->ranks);
    free(node->place);
    memset(node, 0, sizeof(*node));
}

static void fill_places(onic_node_t *node)
{
    const int first = node->ranks[0];
    memset(node->place, 0, (size_t)(node->ranks[node->n - 1] - first + 1) * sizeof(*node->place));
    for (int i = 0; i < node->n; i++)
        node->place[node->ranks[i] - first] = (uint16_t)(i + 1);
}

void onic_node_find(struct ompi_communicator_t *comm, const int32_t *leaders, size_t stride,
                    onic_node_t *node)
{
    const int size = ompi_comm_size(comm), me = ompi_comm_rank(comm);
    const int leader = onic_node_first(leaders, stride, me);
    int last = leader;
    memset(node, 0, sizeof(*node));
    for (int i = leader; i < size; i++) {
        if (onic_node_first(leaders, stride, i) == leader) {
            node->n++;
            last = i;
        }
    }
    node->ranks = malloc((size_t)node->n * sizeof(*node->ranks));
    node->place = malloc((size_t)(last - leader + 1) * sizeof(*node->place));
    if (node->ranks == NULL || node->place == NULL)
        onic_abort_no_memory(comm, "a segment of shared memory");
    node->n = 0;
    for (int i = leader; i <= last; i++) {
        if (onic_node_first(leaders, stride, i) == leader) {
            node->me = i == me ? node->n : node->me;
            node->ranks[node->n++] = i;
        }
    }
    fill_places(node);
}

void onic_node_alone(onic_node_t *node)
{
    node->ranks[0] = node->ranks[node->me];
    node->n = 1;
    node->me = 0;
    fill_places(node);
}

/** Leaves those members for which `joined` says so, or this process alone. */
static void split(onic_node_t *node, const int *joined)
{
    int n = 0, me = 0;
    if (joined[node->me] != ONIC_JOINED) {
        onic_node_alone(node);
        return;
    }
    for (int i = 0; i < node->n; i++) {
        if (joined[i] == ONIC_JOINED) {
            me = i == node->me ? n : me;
            node->ranks[n++] = node->ranks[i];
        }
    }
    node->n = n;
    node->me = me;
    fill_places(node);
}

/* ---- segments ------------------------------------------------------------------------------- */

/** Some process has needed names: the segments that are made here have them. */
static atomic_bool give_names;

/** What the first member decides: an onic_made_t, or to begin again with a name. */
enum { AGAIN = ONIC_NODE_SPLIT + 1 };

/** A segment on its way. */
typedef struct making {
    struct ompi_communicator_t *comm;
    onic_node_t *node;
    size_t size;
    bool parts;
    onic_segment_t *segment;
    onic_segment_key_t key;
    int *joined; /**< of each member, an onic_joined_t; the first member's but where it is split */
} making_t;

int onic_node_tell(struct ompi_communicator_t *comm, const onic_node_t *node, void *bytes,
                   size_t len)
{
    int rc = OMPI_SUCCESS;
    if (node->me > 0)
        return onic_receive_bytes(comm, node->ranks[0], bytes, len);
    for (int i = 1; i < node->n && rc == OMPI_SUCCESS; i++)
        rc = onic_send_bytes(comm, node->ranks[i], bytes, len);
    return rc;
}

/** All others send to the first member, which receives. */
static int answer(const making_t *m, int mine)
{
    const onic_node_t *node = m->node;
    int rc = OMPI_SUCCESS;
    m->joined[node->me] = mine;
    if (node->me > 0)
        return onic_send_bytes(m->comm, node->ranks[0], &mine, sizeof(mine));
    for (int i = 1; i < node->n && rc == OMPI_SUCCESS; i++)
        rc = onic_receive_bytes(m->comm, node->ranks[i], &m->joined[i], sizeof(m->joined[i]));
    return rc;
}

static int judge(const making_t *m)
{
    bool all = true, needs_name = false;
    for (int i = 0; i < m->node->n; i++) {
        all = all && m->joined[i] == ONIC_JOINED;
        needs_name = needs_name || m->joined[i] == ONIC_NEEDS_NAME;
    }
    return all                                       ? ONIC_MADE
           : needs_name                              ? (int)AGAIN
           : m->parts || m->joined[0] != ONIC_JOINED ? ONIC_NO_SPACE
                                                     : ONIC_NODE_SPLIT;
}

/** Each member's share: that of the first while the others map it and reserve theirs. */
static int take(making_t *m)
{
    if (m->node->me > 0)
        return (int)onic_segment_join(&m->key, m->size, m->node->me, m->segment);
    return onic_segment_reserve(&m->key) ? ONIC_JOINED : ONIC_NOT_JOINED;
}

/** The first member makes it, the others map it. On an error `verdict` means nothing. */
static int attempt(making_t *m, int *verdict)
{
    const onic_node_t *node = m->node;
    memset(&m->key, 0, sizeof(m->key));
    if (node->me == 0) {
        const int shares = m->parts ? node->n : 1;
        /* Not each system has files without a name. */
        if (give_names || !onic_segment_make(m->size, 1, shares, false, &m->key, m->segment))
            (void)onic_segment_make(m->size, 1, shares, true, &m->key, m->segment);
    }
    onic_segment_key_t mine = m->key;
    int rc = onic_node_tell(m->comm, node, &m->key, sizeof(m->key));
    *verdict = ONIC_NO_SPACE;
    if (rc == OMPI_SUCCESS && m->key.size > 0) {
        rc = answer(m, take(m));
        *verdict = node->me == 0 ? judge(m) : *verdict;
    }
    if (node->me == 0)
        onic_segment_withdraw(&mine);
    if (rc == OMPI_SUCCESS && m->key.size > 0)
        rc = onic_node_tell(m->comm, node, verdict, sizeof(*verdict));
    if (rc == OMPI_SUCCESS && *verdict == ONIC_NODE_SPLIT)
        rc = onic_node_tell(m->comm, node, m->joined, (size_t)node->n * sizeof(*m->joined));
    if (rc != OMPI_SUCCESS || *verdict != ONIC_MADE)
        onic_segment_unmap(m->segment);
    return rc;
}

static int make_shared(making_t *m, onic_made_t *made_p)
{
    int verdict = ONIC_NO_SPACE, rc = attempt(m, &verdict);
    if (rc == OMPI_SUCCESS && verdict == AGAIN) {
        atomic_store(&give_names, true);
        rc = attempt(m, &verdict);
    }
    if (rc == OMPI_SUCCESS && verdict == ONIC_NODE_SPLIT)
        split(m->node, m->joined);
    *made_p = verdict == AGAIN ? ONIC_NO_SPACE : (onic_made_t)verdict;
    return rc;
}

int onic_node_segment(struct ompi_communicator_t *comm, onic_node_t *node, size_t size, bool parts,
                      onic_segment_t *segment, onic_made_t *made_p)
{
    making_t m = {.comm = comm, .node = node, .size = size, .parts = parts, .segment = segment};
    *segment = (onic_segment_t){NULL, 0};
    *made_p = ONIC_MADE;
    if (node->n == 1)
        return onic_segment_private(size, segment) ? OMPI_SUCCESS : OMPI_ERR_OUT_OF_RESOURCE;
    m.joined = malloc((size_t)node->n * sizeof(*m.joined));
    /* The others wait. */
    if (m.joined == NULL)
        onic_abort_no_memory(comm, "a segment of shared memory");
    const int rc = make_shared(&m, made_p);
    free(m.joined);
    return rc;
}
