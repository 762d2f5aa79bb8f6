/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Agreement on who shares memory.
 *
 * Each rank says whom it takes for the first member of its node; the answers of all, seen by all,
 * make groups that everybody agrees on even where Open MPI's locality flags do not. The first
 * member makes the segment, the others map it, and a second exchange tells all who could.
 *
 * A segment has no name at first, so that nothing is left of it whoever is killed and when. The
 * others reach it through its maker's descriptor, which the kernel may not allow: in containers
 * with a user namespace for each process, say. The maker cannot know, so it is those who try that
 * say they need a name, all hear it in the second exchange, and all begin again with names. What it
 * costs comes once, because a maker that has heard it gives names from then on. Whether a segment
 * has one is the maker's own affair: who joins looks at the key.
 */
#include "common/support/collective.h"
#include "common/node/node.h"
#include "common/node/segment.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/constants.h"
#include "ompi/group/group.h"
#include "ompi/proc/proc.h"

/** What a rank says in the first exchange. */
typedef struct offer {
    int32_t leader; /**< the first rank that shares a node with it, by Open MPI's flags */
    onic_segment_key_t key;
} offer_t;

/** What it says in the second. */
typedef struct outcome {
    int mapped; /**< whether it has mapped its leader's segment, an onic_joined_t */
    int rc;
} outcome_t;

/* ---- who is here ---------------------------------------------------------------------------- */

static bool flagged_local(struct ompi_communicator_t *comm, int rank)
{
    if (rank == ompi_comm_rank(comm)) {
        return true;
    }
    /* A process that Open MPI has made no object for yet is not on this node. */
    struct ompi_proc_t *proc = ompi_group_get_proc_ptr_raw(comm->c_local_group, rank);
    return !ompi_proc_is_sentinel(proc) && OPAL_PROC_ON_LOCAL_NODE(proc->super.proc_flags);
}

static int first_local(struct ompi_communicator_t *comm)
{
    int rank = 0;
    while (!flagged_local(comm, rank)) {
        rank++;
    }
    return rank;
}

static int count_flagged(struct ompi_communicator_t *comm)
{
    int n = 0;
    for (int i = 0; i < ompi_comm_size(comm); i++) {
        n += flagged_local(comm, i);
    }
    return n;
}

static int leader_of(const offer_t *offers, int rank)
{
    int leader = offers[rank].leader;
    return offers[leader].leader == leader ? leader : rank;
}

/* ---- the node ------------------------------------------------------------------------------- */

static int alloc_node(onic_node_t *node, int size)
{
    memset(node, 0, sizeof(*node));
    node->ranks = malloc((size_t)size * sizeof(int));
    node->index = malloc((size_t)size * sizeof(int));
    return node->ranks != NULL && node->index != NULL ? OMPI_SUCCESS : OMPI_ERR_OUT_OF_RESOURCE;
}

void onic_node_fini(onic_node_t *node)
{
    free(node->ranks);
    free(node->index);
    memset(node, 0, sizeof(*node));
}

/** Fills the node from what all have said; true where nobody of the group is missing. */
static bool fill_node(onic_node_t *node, const offer_t *offers, const int *mapped, int size, int me)
{
    /* `mapped` may be node->index itself. */
    bool complete = true, mine = mapped[me] == ONIC_JOINED;
    int leader = leader_of(offers, me);
    for (int i = 0; i < size; i++) {
        bool same = leader_of(offers, i) == leader;
        bool here = i == me || (same && mapped[i] == ONIC_JOINED && mine);
        complete = complete && here == same;
        node->index[i] = here ? node->n : -1;
        if (here) {
            node->me = i == me ? node->n : node->me;
            node->ranks[node->n++] = i;
        }
    }
    return complete;
}

/** Somebody has needed names: the segments that are made here have them. */
static atomic_bool give_names;

static onic_findable_t findable(void)
{
    return atomic_load(&give_names) ? ONIC_BY_NAME : ONIC_BY_DESCRIPTOR;
}

static bool needs_again(const int *joined, int size)
{
    for (int i = 0; i < size; i++) {
        if (joined[i] == ONIC_NEEDS_NAME) {
            atomic_store(&give_names, true);
            return true;
        }
    }
    return false;
}

static onic_joined_t join(const offer_t *offers, int me, size_t bytes, onic_segment_t *segment)
{
    int leader = leader_of(offers, me);
    const onic_segment_key_t *key = &offers[leader].key;
    onic_joined_t joined = leader != me    ? onic_segment_join(key, bytes, 1, segment, NULL)
                           : key->size > 0 ? ONIC_JOINED
                                           : ONIC_NOT_JOINED;
    if (joined != ONIC_JOINED) {
        onic_segment_unmap(segment);
    }
    return joined;
}

/** Maps the leader's segment, or takes private memory. */
static outcome_t take_segment(const offer_t *offers, int me, size_t bytes, onic_segment_t *segment)
{
    outcome_t out = {(int)join(offers, me, bytes, segment), OMPI_SUCCESS};
    if (out.mapped != ONIC_JOINED) {
        out.rc = onic_segment_private(bytes, segment) ? OMPI_SUCCESS : OMPI_ERR_OUT_OF_RESOURCE;
    }
    return out;
}

static int worst(const outcome_t *outcomes, int size)
{
    int rc = OMPI_SUCCESS;
    for (int i = 0; i < size; i++) {
        rc = outcomes[i].rc < rc ? outcomes[i].rc : rc;
    }
    return rc;
}

/**
 * Names the leader; makes the segment if that is this rank, and others share its node. The leader
 * reserves all of it: the share of a process that cannot map would stay without space.
 */
static offer_t make_offer(struct ompi_communicator_t *comm, size_t bytes, onic_segment_t *segment)
{
    offer_t offer;
    memset(&offer, 0, sizeof(offer));
    offer.leader = first_local(comm);
    if (count_flagged(comm) > 1 && offer.leader == ompi_comm_rank(comm)) {
        (void)onic_segment_make(bytes, 1, findable(), &offer.key, segment, NULL);
    }
    return offer;
}

static void withdraw(offer_t *mine)
{
    onic_segment_withdraw(&mine->key);
}

static int settle(onic_node_t *node, const offer_t *offers, const outcome_t *outcomes,
                  const int *mapped, int size, int me, bool *shared_p)
{
    int rc = worst(outcomes, size);
    if (rc == OMPI_SUCCESS) {
        *shared_p = fill_node(node, offers, mapped, size, me);
    }
    return rc;
}

/** The two exchanges. `offers`, `outcomes` and `mapped` have room for all ranks. */
static int attempt(struct ompi_communicator_t *comm, size_t bytes, offer_t *offers,
                   outcome_t *outcomes, int *mapped, onic_segment_t *segment)
{
    int size = ompi_comm_size(comm), me = ompi_comm_rank(comm);
    offer_t mine = make_offer(comm, bytes, segment);
    int rc = onic_share(comm, &mine, (int)sizeof(mine), offers);
    if (rc == OMPI_SUCCESS) {
        outcome_t out = take_segment(offers, me, bytes, segment);
        rc = onic_share(comm, &out, (int)sizeof(out), outcomes);
    }
    withdraw(&mine);
    for (int i = 0; i < size && rc == OMPI_SUCCESS; i++) {
        mapped[i] = outcomes[i].mapped;
    }
    return rc;
}

static int negotiate(struct ompi_communicator_t *comm, size_t bytes, offer_t *offers,
                     outcome_t *outcomes, onic_node_t *node, onic_segment_t *segment,
                     bool *shared_p)
{
    int size = ompi_comm_size(comm), me = ompi_comm_rank(comm), *mapped = node->index;
    int rc = attempt(comm, bytes, offers, outcomes, mapped, segment);
    if (rc == OMPI_SUCCESS && needs_again(mapped, size)) {
        onic_segment_unmap(segment);
        rc = attempt(comm, bytes, offers, outcomes, mapped, segment);
    }
    return rc != OMPI_SUCCESS ? rc : settle(node, offers, outcomes, mapped, size, me, shared_p);
}

int onic_node_create(struct ompi_communicator_t *comm, size_t size, onic_node_t *node,
                     onic_segment_t *segment, bool *shared_p)
{
    size_t n = (size_t)ompi_comm_size(comm);
    offer_t *offers = malloc(n * sizeof(*offers));
    outcome_t *outcomes = malloc(n * sizeof(*outcomes));
    int rc = alloc_node(node, (int)n);
    *shared_p = false;
    *segment = (onic_segment_t){NULL, 0};
    if (offers == NULL || outcomes == NULL) {
        rc = OMPI_ERR_OUT_OF_RESOURCE;
    }
    rc = onic_agree(comm, rc);
    if (rc == OMPI_SUCCESS) {
        rc = negotiate(comm, size, offers, outcomes, node, segment, shared_p);
    }
    if (rc != OMPI_SUCCESS) {
        onic_segment_unmap(segment);
        onic_node_fini(node);
    }
    free(offers);
    free(outcomes);
    return rc;
}

/* ---- one more segment ----------------------------------------------------------------------- */

/** Maps the segment of the node's first member, or takes private memory where there is no other. */
static onic_joined_t map_next(const onic_node_t *node, const onic_segment_key_t *keys, size_t size,
                              onic_segment_t *segment, onic_reservation_t *space)
{
    const onic_segment_key_t *key = &keys[node->ranks[0]];
    bool mine;
    if (node->n > 1 && node->me > 0) {
        return onic_segment_join(key, size, node->me, segment, space);
    }
    mine = node->n > 1 ? key->size > 0 : onic_segment_private(size, segment);
    return mine ? ONIC_JOINED : ONIC_NOT_JOINED;
}

static bool all_mapped(const onic_node_t *node, const int *mapped)
{
    for (int i = 0; i < node->n; i++) {
        if (mapped[node->ranks[i]] != ONIC_JOINED) {
            return false;
        }
    }
    return true;
}

/** The members map what the first of them makes. */
static int offer_segment(struct ompi_communicator_t *comm, const onic_node_t *node, size_t size,
                         onic_segment_key_t *keys, int *mapped, onic_segment_t *segment,
                         onic_reservation_t *space)
{
    onic_segment_key_t key;
    memset(&key, 0, sizeof(key));
    if (node->n > 1 && node->me == 0) {
        (void)onic_segment_make(size, node->n, findable(), &key, segment, space);
    }
    int rc = onic_share(comm, &key, (int)sizeof(key), keys);
    if (rc == OMPI_SUCCESS) {
        int mine = (int)map_next(node, keys, size, segment, space);
        rc = onic_share(comm, &mine, (int)sizeof(mine), mapped);
    }
    onic_segment_withdraw(&key);
    return rc;
}

/** All map the segment, and only then, when nobody can find it any more, they reserve its space: a
 *  name would be left by who is killed while that goes on. */
static int exchange_segment(struct ompi_communicator_t *comm, const onic_node_t *node, size_t size,
                            onic_segment_key_t *keys, int *mapped, onic_segment_t *segment)
{
    onic_reservation_t space = ONIC_RESERVATION_NONE;
    int mine = ONIC_NOT_JOINED;
    int rc = offer_segment(comm, node, size, keys, mapped, segment, &space);
    if (rc == OMPI_SUCCESS && needs_again(mapped, ompi_comm_size(comm))) {
        onic_segment_forgo(&space);
        onic_segment_unmap(segment);
        rc = offer_segment(comm, node, size, keys, mapped, segment, &space);
    }
    if (rc != OMPI_SUCCESS || !all_mapped(node, mapped)) {
        onic_segment_forgo(&space);
    } else if (onic_segment_reserve(&space)) {
        mine = ONIC_JOINED;
    }
    return rc == OMPI_SUCCESS ? onic_share(comm, &mine, (int)sizeof(mine), mapped) : rc;
}

int onic_node_segment(struct ompi_communicator_t *comm, const onic_node_t *node, size_t size,
                      onic_segment_t *segment, bool *ok_p)
{
    size_t n = (size_t)ompi_comm_size(comm);
    onic_segment_key_t *keys = malloc(n * sizeof(*keys));
    int *mapped = malloc(n * sizeof(*mapped));
    int rc = keys != NULL && mapped != NULL ? OMPI_SUCCESS : OMPI_ERR_OUT_OF_RESOURCE;
    *segment = (onic_segment_t){NULL, 0};
    rc = onic_agree(comm, rc);
    if (rc == OMPI_SUCCESS) {
        rc = exchange_segment(comm, node, size, keys, mapped, segment);
    }
    *ok_p = rc == OMPI_SUCCESS && all_mapped(node, mapped);
    if (!*ok_p) {
        onic_segment_unmap(segment);
    }
    free(keys);
    free(mapped);
    return rc;
}

/* ---- without arrays ---------------------------------------------------------------------------
 */

bool onic_node_has(struct ompi_communicator_t *comm, int rank)
{
    return flagged_local(comm, rank);
}

bool onic_node_make(size_t bytes, bool named, onic_segment_key_t *key, onic_segment_t *segment)
{
    memset(key, 0, sizeof(*key));
    if (named) {
        atomic_store(&give_names, true);
    }
    return onic_segment_make(bytes, 1, findable(), key, segment, NULL);
}

onic_joined_t onic_node_map(const onic_segment_key_t *key, size_t bytes, onic_segment_t *segment)
{
    onic_joined_t joined = onic_segment_join(key, bytes, 1, segment, NULL);
    if (joined != ONIC_JOINED) {
        onic_segment_unmap(segment);
    }
    return joined;
}

void onic_node_hide(onic_segment_key_t *key)
{
    onic_segment_withdraw(key);
}
