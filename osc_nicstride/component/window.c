/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Making windows. If anything fails on one rank, that rank still takes part in all
 *  collective steps, so that every rank learns of it: an error on one rank is an error on all. */
#include <stdlib.h>
#include <string.h>

#include "common/support/collective.h"
#include "common/support/device.h"
#include "osc_nicstride/check/check.h"
#include "osc_nicstride/component/setup.h"
#include "osc_nicstride/sync/fence.h"
#include "osc_nicstride/target/target.h"
#include "osc_nicstride/origin/origin.h"
#include "osc_nicstride/window/state.h"
#include "common/pipeline/pipeline.h"
#include "osc_nicstride/window/control.h"
#include "osc_nicstride/methods/methods.h"
#include "osc_nicstride/queue/presence.h"

#include "ompi/info/info.h"
#include "ompi/runtime/mpiruntime.h"
#include "opal/util/output.h"

/* ---- memory of others ------------------------------------------------------------------------ */

/** Where this process maps the memory of a rank. NULL: it is not mapped, or it is empty. If the
 *  parts of a shared window may lie apart, empty parts have no address, as with osc/sm of Open
 *  MPI. */
static void *mapped_base(const nicstride_module_t *m, int rank)
{
    const int local = onic_node_index(&m->node, rank);
    const bool apart = m->flavor != MPI_WIN_FLAVOR_SHARED || m->parts != NICSTRIDE_PARTS_CONTIGUOUS;

    if (local < 0 || (apart && nicstride_info(m, rank)->size == 0))
        return NULL;
    return m->mapped[local];
}

/** Prints no text when it refuses, as a program calls this to find out. */
static int shared_query(ompi_win_t *win, int rank, size_t *size, onic_disp_unit_t *disp_unit,
                        void *baseptr)
{
    nicstride_module_t *m = nicstride_module(win);
    int found = rank;

    if (m->flavor == MPI_WIN_FLAVOR_DYNAMIC)
        return OMPI_ERR_RMA_FLAVOR;
    if (rank == MPI_PROC_NULL) {
        /* By the standard, this is the lowest rank that has memory. */
        for (found = 0; found < m->size && nicstride_info(m, found)->size == 0; found++)
            ;
    } else if (rank < 0 || rank >= m->size) {
        return MPI_ERR_RANK;
    }
    *size = 0;
    *disp_unit = 0;
    *(void **)baseptr = NULL;
    if (found == m->size)
        return OMPI_SUCCESS;
    *disp_unit = (onic_disp_unit_t)nicstride_info(m, found)->disp_unit;
    *(void **)baseptr = mapped_base(m, found);
    /* The size is 0 if the memory cannot be reached (MPI-4.1, 12.2.3). */
    if (*(void **)baseptr != NULL)
        *size = nicstride_info(m, found)->size;
    return OMPI_SUCCESS;
}

/* ---- making ---------------------------------------------------------------------------------- */

static int allocate_tables(nicstride_module_t *m)
{
    const size_t n = (size_t)m->size;
    uint8_t *target = malloc(n);

    m->peer = calloc(n, sizeof(*m->peer));
    if (target == NULL || m->peer == NULL) {
        free(target);
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    nicstride_epoch_init(&m->epoch, (uint32_t)n, target);
    return OMPI_SUCCESS;
}

static void give_name(nicstride_module_t *m)
{
    onic_transport_lock();
    m->name = ++nicstride_component.last_name;
    onic_transport_unlock();
}

/** From now on messages find the window. Must come before the last exchange, after which they
 *  arrive. */
static int enlist(nicstride_module_t *m)
{
    int rc;

    onic_transport_lock();
    rc = opal_hash_table_set_value_uint32(&nicstride_component.windows, m->name, m);
    onic_transport_unlock();
    return rc;
}

/** True if messages are needed to reach any other rank. Forced methods may send messages even where
 *  loads and stores would do. */
static bool sends_messages(const nicstride_module_t *m)
{
    const int forced = nicstride_component.params.method;
    bool sends =
        m->size > 1 && forced != NICSTRIDE_METHOD_AUTO && nicstride_methods[forced]->needs_target;

    sends = sends || m->node.n < m->size;
    for (int i = 0; i < m->node.n && !sends; i++)
        sends = m->mapped[i] == NULL && i != m->node.me;
    return sends;
}

/** What this process sends to the others. If `rc` is an error, nothing else matters. */
static nicstride_facts_t facts_of(const nicstride_module_t *m, int rc, void **base, size_t size,
                                  onic_disp_unit_t disp_unit, opal_info_t *info)
{
    nicstride_component_t *c = &nicstride_component;
    const bool dynamic = m->flavor == MPI_WIN_FLAVOR_DYNAMIC;
    nicstride_facts_t facts;

    memset(&facts, 0, sizeof(facts));
    facts.rc = rc > 0 ? OMPI_ERROR : rc;
    if (rc != OMPI_SUCCESS)
        return facts;
    facts.leader =
        c->params.node || m->flavor == MPI_WIN_FLAVOR_SHARED ? onic_node_leader(m->comm) : m->rank;
    facts.address = (int32_t)onic_address_record_size();
    facts.wishes = nicstride_memory_wants(m, info);
    if (!onic_transport_knows(m->comm))
        facts.wishes |= NICSTRIDE_WANTS_ADDRESSES;
    facts.info = (nicstride_rank_info_t){
        .size = dynamic ? 0 : size,
        .name = onic_rank_name(m->comm, m->rank),
        .disp_unit = dynamic ? 1 : (uint32_t)disp_unit,
        .win = m->name,
        .align =
            m->flavor == MPI_WIN_FLAVOR_CREATE ? (uint32_t)((uintptr_t)*base % NICSTRIDE_LINE) : 0,
        .granularity = nicstride_info_granularity(info),
    };
    return facts;
}

/** The first exchange. Returns the worst code of all ranks, or OMPI_SUCCESS after finding the
 *  node. */
static int meet(nicstride_module_t *m, const nicstride_facts_t *mine, nicstride_facts_t *facts)
{
    int rc = onic_share(m->comm, mine, sizeof(*mine), facts);

    for (int i = 0; i < m->size && rc == OMPI_SUCCESS; i++)
        rc = facts[i].rc;
    if (rc == OMPI_SUCCESS)
        onic_node_find(m->comm, &facts->leader, sizeof(*facts), &m->node);
    return rc;
}

/** Exchanges addresses, unless each rank knows those of all. */
static int find_peers(nicstride_module_t *m, const nicstride_facts_t *facts)
{
    bool wanted = false;
    int32_t most = 0;

    for (int i = 0; i < m->size; i++) {
        wanted = wanted || (facts[i].wishes & NICSTRIDE_WANTS_ADDRESSES) != 0;
        most = facts[i].address > most ? facts[i].address : most;
    }
    return wanted ? onic_transport_exchange(m->comm, &m->node, (size_t)most) : OMPI_SUCCESS;
}

static void init_ctl(nicstride_module_t *m)
{
    nicstride_ctl_t *ctl = nicstride_ctl(m, m->node.me);

    /* The segment is zeroed; only this process's block needs more than that. */
    const nicstride_rank_info_t *mine = nicstride_info(m, m->rank);

    ctl->base = (uint64_t)(uintptr_t)m->base;
    ctl->stripe =
        m->shared ? nicstride_stripe(mine->size, mine->granularity) : NICSTRIDE_STRIPE_OF_ONE;
    m->fence = (nicstride_fence_t){.n = m->node.n,
                                   .me = m->node.me,
                                   .board = nicstride_ctl_part(m, 0, m->ctl.board),
                                   .next = m->ctl.bytes};
    nicstride_lockq_init(nicstride_ctl_lockq(m, m->node.me), (uint32_t)m->size);
    if (m->rank == 0)
        nicstride_lockq_init(nicstride_ctl_lockq(m, nicstride_ctl_of_window(m)), (uint32_t)m->size);
}

/** Checks the arguments. `base` points to the user's memory for MPI_Win_create only. */
static int check_arguments(const nicstride_module_t *m, void **base, size_t size,
                           onic_disp_unit_t disp_unit)
{
    if (m->flavor != MPI_WIN_FLAVOR_DYNAMIC && (disp_unit <= 0 || disp_unit > INT32_MAX))
        return nicstride_select_error(OMPI_ERR_BAD_PARAM,
                                      "the displacement unit must be between 1 and 2^31 - 1");
    if (m->flavor == MPI_WIN_FLAVOR_CREATE && size > 0 && onic_on_device(*base))
        return nicstride_select_error(OMPI_ERR_NOT_SUPPORTED,
                                      "MPI_Win_create was given memory of a device, and only host "
                                      "memory is supported");
    return OMPI_SUCCESS;
}

static int prepare(nicstride_module_t *m, void **base, size_t size, onic_disp_unit_t disp_unit)
{
    int rc;

    onic_device_init();
    rc = check_arguments(m, base, size, disp_unit);
    if (rc == OMPI_SUCCESS)
        rc = allocate_tables(m);
    if (rc == OMPI_SUCCESS)
        rc = nicstride_open_wire();
    nicstride_find_handlers();
    give_name(m);
    return rc;
}

static int take_near(nicstride_module_t *m)
{
    int rc = OMPI_SUCCESS;

    m->near = calloc((size_t)m->node.n, sizeof(*m->near));
    if (m->near == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    onic_transport_lock();
    for (int i = 0; i < m->node.n && rc == OMPI_SUCCESS; i++) {
        m->near[i] = onic_peer_named(onic_rank_name(m->comm, m->node.ranks[i]));
        rc = m->near[i] != NULL ? OMPI_SUCCESS : OMPI_ERR_OUT_OF_RESOURCE;
    }
    onic_transport_unlock();
    return rc;
}

/** Finds the nodes of the window from what all have sent, as for onic_node_find. */
static int find_nodes(nicstride_module_t *m, const int32_t *leaders, size_t stride)
{
    nicstride_fence_t *f = &m->fence;
    int *firsts = malloc((size_t)m->size * sizeof(*firsts)), *fit;

    if (firsts == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    f->nodes = 0;
    for (int i = 0; i < m->size; i++) {
        if (i == m->node.ranks[0])
            f->node = f->nodes;
        if (onic_node_first(leaders, stride, i) == i)
            firsts[f->nodes++] = i;
    }
    free(m->firsts);
    free(m->done);
    fit = realloc(firsts, (size_t)f->nodes * sizeof(*firsts));
    m->firsts = fit != NULL ? fit : firsts;
    m->done_step = f->nodes == 1;
    m->done = calloc(m->done_step ? (size_t)m->size : 1, sizeof(*m->done));
    return m->done != NULL ? OMPI_SUCCESS : OMPI_ERR_OUT_OF_RESOURCE;
}

/** Exchanges the leaders of nodes again, because some processes of one node cannot share memory. */
static int find_nodes_again(nicstride_module_t *m)
{
    const int32_t mine = m->node.ranks[0];
    int32_t *firsts = malloc((size_t)m->size * sizeof(*firsts));

    if (firsts == NULL)
        onic_abort_no_memory(m->comm, "a window");
    int rc = onic_share(m->comm, &mine, sizeof(mine), firsts);
    if (rc == OMPI_SUCCESS && find_nodes(m, firsts, sizeof(*firsts)) != OMPI_SUCCESS)
        onic_abort_no_memory(m->comm, "a window");
    free(firsts);
    return rc;
}

/** Builds the window after the first exchange. Each process takes every step; the last agreement
 *  finds out who failed. */
static int build(nicstride_module_t *m, void **base, size_t size, opal_info_t *info,
                 const nicstride_facts_t *facts)
{
    int rc = nicstride_make_memory(m, base, size, facts);
    if (nicstride_component.params.check > 0) {
        const nicstride_promises_t promises = nicstride_info_promises(info);
        const int checked = nicstride_check_begin(m, &promises);

        rc = rc == OMPI_SUCCESS ? checked : rc;
    }
    const int found = find_peers(m, facts);

    if (rc == OMPI_SUCCESS)
        rc = found;
    if (rc == OMPI_SUCCESS) {
        init_ctl(m);
        rc = find_nodes(m, &facts->leader, sizeof(*facts));
    }
    if (rc == OMPI_SUCCESS)
        rc = take_near(m);
    if (rc == OMPI_SUCCESS && m->flavor == MPI_WIN_FLAVOR_SHARED && m->node.n < m->size)
        rc = nicstride_select_error(OMPI_ERR_RMA_SHARED,
                                    "the members of the communicator do not all share memory");
    return rc == OMPI_SUCCESS ? enlist(m) : rc;
}

/** The last exchange, which is also the barrier: no message comes before all are ready for it.
 *  Returns the worst code of all. The window needs a server thread if any member sends messages,
 *  unless every process can wake every other one's threads when it waits. `whole`: this process's
 *  node is still what the facts said. */
static int agree(nicstride_module_t *m, int rc, bool whole)
{
    int facts[] = {rc > 0 ? OMPI_ERROR : rc, -(rc == OMPI_SUCCESS && sends_messages(m)),
                   rc == OMPI_SUCCESS && nicstride_can_wake_all(m), whole};

    rc = onic_agree_all(m->comm, facts, sizeof(facts) / sizeof(facts[0]));
    if (rc != OMPI_SUCCESS || facts[0] != OMPI_SUCCESS)
        return rc != OMPI_SUCCESS ? rc : facts[0];
    m->wants_server = facts[1] != 0 && facts[2] == 0;
    return facts[3] != 0 ? OMPI_SUCCESS : find_nodes_again(m);
}

/** Makes a window. Programs do so in loops, so that it takes two exchanges between all ranks, and
 *  one more where addresses are not known. */
static int make(nicstride_module_t *m, void **base, size_t size, onic_disp_unit_t disp_unit,
                opal_info_t *info)
{
    nicstride_facts_t *facts = malloc((size_t)m->size * sizeof(*facts));
    const nicstride_facts_t mine =
        facts_of(m, prepare(m, base, size, disp_unit), base, size, disp_unit, info);

    if (facts == NULL)
        onic_abort_no_memory(m->comm, "a window");
    int rc = meet(m, &mine, facts);
    if (rc == OMPI_SUCCESS) {
        const int n = m->node.n;

        rc = build(m, base, size, info, facts);
        if (rc == OMPI_SUCCESS) {
            m->win->w_osc_module = &m->super;
            rc = nicstride_subscribe_info(m->win);
        }
        rc = agree(m, rc, m->node.n == n);
    }
    free(facts);
    return rc;
}

/** True if the members are exactly the processes of MPI_COMM_WORLD. All get the same answer. */
static bool is_world(ompi_communicator_t *comm)
{
    ompi_group_t *world = ompi_mpi_comm_world.comm.c_local_group;
    int result = MPI_UNEQUAL;

    /* A process that uses sessions only may have no world. */
    return world != NULL && ompi_group_size(comm->c_local_group) == ompi_group_size(world) &&
           ompi_group_compare(world, comm->c_local_group, &result) == OMPI_SUCCESS &&
           result != MPI_UNEQUAL;
}

int nicstride_win_select(ompi_win_t *win, void **base, size_t size, onic_disp_unit_t disp_unit,
                         ompi_communicator_t *comm, opal_info_t *info, int flavor, int *model)
{
    nicstride_module_t *m = calloc(1, sizeof(*m));
    int rc;

    if (m == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    m->super.osc_win_shared_query = shared_query;
    m->super.osc_free = nicstride_win_free;
    nicstride_dynamic_calls(&m->super);
    nicstride_put_get_calls(&m->super);
    nicstride_update_calls(&m->super);
    nicstride_active_calls(&m->super);
    nicstride_passive_calls(&m->super);
    m->win = win;
    m->rank = ompi_comm_rank(comm);
    m->size = ompi_comm_size(comm);
    m->flavor = flavor;
    m->no_locks = nicstride_info_bool(info, "no_locks");
    OBJ_CONSTRUCT(&m->lock, opal_mutex_t);

    rc = ompi_comm_dup(comm, &m->comm);
    if (rc != OMPI_SUCCESS) {
        m->comm = NULL;
        nicstride_window_destroy(m);
        return rc;
    }
    rc = make(m, base, size, disp_unit, info);
    if (rc != OMPI_SUCCESS) {
        win->w_osc_module = NULL;
        nicstride_window_delist(m);
        nicstride_window_destroy(m);
        return rc;
    }
    if (flavor == MPI_WIN_FLAVOR_SHARED)
        *base = mapped_base(m, m->rank);
    else if (flavor == MPI_WIN_FLAVOR_ALLOCATE)
        *base = m->base;
    if (!__atomic_load_n(&nicstride_component.world_met, __ATOMIC_RELAXED) && is_world(comm))
        __atomic_store_n(&nicstride_component.world_met, true, __ATOMIC_RELAXED);
    if (m->wants_server)
        onic_transport_want_server(true);
    if (nicstride_component.params.show_plan)
        nicstride_plan_show(m);
    if (nicstride_component.params.verbose > 0 && m->rank == 0)
        nicstride_window_show(m);
    *model = MPI_WIN_UNIFIED;
    return OMPI_SUCCESS;
}
