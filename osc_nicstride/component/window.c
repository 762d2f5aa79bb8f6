/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Making and freeing windows. Both are collective; every step whose outcome may differ between
 * ranks is agreed on before the next, so that an error on one rank is an error on all and nobody
 * is left waiting.
 */
#include <stddef.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/support/device.h"
#include "common/mover/mover.h"
#include "common/support/help.h"
#include "osc_nicstride/sync/counted.h"
#include "osc_nicstride/window/window.h"
#include "osc_nicstride/window/calls.h"
#include "osc_nicstride/window/component.h"
#include "osc_nicstride/channel/connect.h"
#include "osc_nicstride/window/control.h"
#include "osc_nicstride/sync/flush.h"
#include "osc_nicstride/methods/methods.h"
#include "osc_nicstride/target/target.h"
#include "osc_nicstride/channel/hold.h"
#include "osc_nicstride/channel/lost.h"
#include "osc_nicstride/window/module.h"
#include "osc_nicstride/channel/request.h"
#include "osc_nicstride/channel/wait.h"
#include "osc_nicstride/component/model.h"
#include "opal/runtime/opal_progress.h"

#include "ompi/info/info.h"
#include "ompi/runtime/mpiruntime.h"
#include "opal/util/output.h"

static const ompi_osc_base_module_t module_functions = {
    .osc_win_shared_query = nicstride_shared_query,
    .osc_win_attach = nicstride_attach,
    .osc_win_detach = nicstride_detach,
    .osc_free = nicstride_win_free,
    .osc_put = nicstride_put,
    .osc_get = nicstride_get,
    .osc_accumulate = nicstride_accumulate,
    .osc_compare_and_swap = nicstride_compare_and_swap,
    .osc_fetch_and_op = nicstride_fetch_and_op,
    .osc_get_accumulate = nicstride_get_accumulate,
    .osc_rput = nicstride_rput,
    .osc_rget = nicstride_rget,
    .osc_raccumulate = nicstride_raccumulate,
    .osc_rget_accumulate = nicstride_rget_accumulate,
    .osc_fence = nicstride_fence,
    .osc_start = nicstride_start,
    .osc_complete = nicstride_complete,
    .osc_post = nicstride_post,
    .osc_wait = nicstride_wait,
    .osc_test = nicstride_test,
    .osc_lock = nicstride_lock,
    .osc_unlock = nicstride_unlock,
    .osc_lock_all = nicstride_lock_all,
    .osc_unlock_all = nicstride_unlock_all,
    .osc_sync = nicstride_sync,
    .osc_flush = nicstride_flush,
    .osc_flush_all = nicstride_flush_all,
    .osc_flush_local = nicstride_flush_local,
    .osc_flush_local_all = nicstride_flush_local_all,
};

/* ---- agreement ------------------------------------------------------------------------------ */

/** The worst code of all ranks: every rank returns the same. */
int nicstride_agree(ompi_communicator_t *comm, int rc)
{
    int worst = rc = rc > 0 ? OMPI_ERROR : rc;
    int coll = comm->c_coll->coll_allreduce(&rc, &worst, 1, MPI_INT, MPI_MIN, comm,
                                            comm->c_coll->coll_allreduce_module);

    return coll != OMPI_SUCCESS ? coll : worst;
}

int nicstride_allgather(ompi_communicator_t *comm, const void *mine, void *all, int bytes)
{
    return comm->c_coll->coll_allgather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, comm,
                                        comm->c_coll->coll_allgather_module);
}

int nicstride_select_error(int rc, const char *reason)
{
    onic_help(NICSTRIDE_HELP_FILE, "select-error", reason);
    return rc;
}

/* ---- making --------------------------------------------------------------------------------- */

static int open_wire_once(void)
{
    nicstride_component_t *c = &mca_osc_nicstride_component;
    onic_wire_config_t config = {
        .server_thread = c->params.server,
        .server_idle_usec = c->params.server_idle,
        .single_copy = c->params.cma,
        .tls = c->params.tls,
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
    onic_wire_set_am_fn(ONIC_AM_OSC, nicstride_am);
    onic_wire_set_deferred_fn(ONIC_AM_OSC, nicstride_run_deferred);
    onic_wire_set_mpi_fn(ONIC_AM_OSC, nicstride_requests_complete);
    return opal_progress_register_lp(nicstride_look_after_peers);
}

/** Threads may make their first windows at the same time. */
static int open_wire(void)
{
    static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
    int rc;

    pthread_mutex_lock(&once);
    rc = open_wire_once();
    pthread_mutex_unlock(&once);
    return rc;
}

static int allocate_tables(nicstride_module_t *m)
{
    size_t n = (size_t)m->size;

    m->info = calloc(n, sizeof(*m->info));
    m->alone_ranks = calloc(1, sizeof(int));
    m->alone_index = calloc(n, sizeof(int));
    m->sizes = calloc(n, sizeof(*m->sizes));
    m->mapped = calloc(n, sizeof(*m->mapped));
    m->wire = calloc(n, sizeof(*m->wire));
    m->peer = calloc(n, sizeof(*m->peer));
    m->epoch_target = calloc(n, 1);
    m->start_ranks = calloc(n, sizeof(int));
    m->post_ranks = calloc(n, sizeof(int));
    m->done = calloc(n, sizeof(*m->done));
    m->firsts = calloc(n, sizeof(*m->firsts));
    if (m->alone_ranks == NULL || m->alone_index == NULL || m->info == NULL || m->sizes == NULL ||
        m->mapped == NULL || m->wire == NULL || m->peer == NULL || m->epoch_target == NULL ||
        m->start_ranks == NULL || m->post_ranks == NULL || m->done == NULL || m->firsts == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    nicstride_epoch_init(&m->epoch, (uint32_t)n, m->epoch_target);
    return OMPI_SUCCESS;
}

static int enlist(nicstride_module_t *m)
{
    nicstride_component_t *c = &mca_osc_nicstride_component;
    int rc;

    onic_wire_lock();
    m->name = ++c->last_name;
    rc = opal_hash_table_set_value_uint32(&c->windows, m->name, m);
    onic_wire_unlock();
    return rc;
}

/** Is any other rank reached by message? Forced methods send them where load and store would do. */
static bool sends_messages(const nicstride_module_t *m)
{
    const int forced = mca_osc_nicstride_component.params.method;
    bool sends =
        m->size > 1 && forced != NICSTRIDE_METHOD_AUTO && nicstride_methods[forced].needs_target;

    for (int i = 0; i < m->size && !sends; i++) {
        const int local = m->node.index[i];

        sends = i != m->rank && (local < 0 || m->mapped[local] == NULL);
    }
    return sends;
}

/** How many processes may send here, in whatever window. */
static uint64_t processes(const nicstride_module_t *m)
{
    const uint64_t job = ompi_proc_world_size(), members = (uint64_t)m->size;

    return job > members ? job : members;
}

/** Tells all ranks about my part. A server thread is wanted where any of them sends messages,
 *  unless all can wake all others' threads when they wait. */
static int exchange_info(nicstride_module_t *m, size_t size, int disp_unit)
{
    const uint64_t kept =
        mca_osc_nicstride_component.params.memory - mca_osc_nicstride_component.replies.limit;
    const uint64_t part = nicstride_loan_part(kept, processes(m));
    nicstride_rank_info_t mine = {
        .base = m->flavor == MPI_WIN_FLAVOR_DYNAMIC ? 0 : (uint64_t)(uintptr_t)m->base,
        .size = m->flavor == MPI_WIN_FLAVOR_DYNAMIC ? 0 : size,
        .disp_unit = m->flavor == MPI_WIN_FLAVOR_DYNAMIC ? 1 : (uint32_t)disp_unit,
        .win = m->name,
        .window = mca_osc_nicstride_component.params.window,
        .share = part < UINT32_MAX ? (uint32_t)part : UINT32_MAX,
        .wakes = nicstride_can_wake_all(m),
        .sends = sends_messages(m),
        .first = (uint32_t)m->node.ranks[0],
    };
    bool all_wake = true;

    onic_wire_lock();
    nicstride_bank_open(&mca_osc_nicstride_component.bank, kept, processes(m));
    onic_wire_unlock();
    int rc = nicstride_allgather(m->comm, &mine, m->info, sizeof(mine));

    for (int i = 0; i < m->size && rc == OMPI_SUCCESS; i++) {
        if (m->info[i].sends != 0)
            m->by_message = true;
        if (m->info[i].wakes == 0)
            all_wake = false;
        if (i == m->node.ranks[0])
            m->fence.node = m->fence.nodes;
        if (m->info[i].first == (uint32_t)i)
            m->firsts[m->fence.nodes++] = i;
    }
    m->wants_server = m->by_message && !all_wake;
    return rc;
}

static void init_ctl(nicstride_module_t *m)
{
    nicstride_ctl_t *ctl = nicstride_ctl(m, m->node.me);

    /* The segment is zeroed; only my own block needs more than that. */
    ctl->me = (uint32_t)m->node.me;
    m->fence = (nicstride_fence_t){
        .n = m->node.n, .me = m->node.me, .board = nicstride_ctl_board(m, 0), .next = m->ctl_size};
    nicstride_lockq_init(nicstride_ctl_lockq(m, m->node.me), (uint32_t)m->size);
}

/** `base` points to the user's memory for MPI_Win_create only. */
static int check_arguments(const nicstride_module_t *m, void **base, size_t size, int disp_unit)
{
    if (m->flavor != MPI_WIN_FLAVOR_DYNAMIC && disp_unit <= 0)
        return nicstride_select_error(OMPI_ERR_BAD_PARAM, "the displacement unit must be positive");
    if (m->flavor == MPI_WIN_FLAVOR_CREATE && size > 0 && onic_on_device(*base))
        return nicstride_select_error(OMPI_ERR_NOT_SUPPORTED,
                                      "MPI_Win_create was given memory of a device, and only host "
                                      "memory is supported");
    return OMPI_SUCCESS;
}

/** What this process can do by itself. */
static int prepare(nicstride_module_t *m, void **base, size_t size, int disp_unit)
{
    int rc;

    onic_device_init();
    rc = check_arguments(m, base, size, disp_unit);
    if (rc == OMPI_SUCCESS)
        rc = allocate_tables(m);
    if (rc == OMPI_SUCCESS)
        rc = open_wire();
    return rc;
}

/**
 * The collective steps. Each ends with the same code on all ranks, or goes on to the last one,
 * which agrees: agreements cost a collective each and windows are made in loops.
 */
static int build(nicstride_module_t *m, void **base, size_t size, int disp_unit, opal_info_t *info)
{
    int rc = nicstride_agree(m->comm, prepare(m, base, size, disp_unit)), gathered;

    if (rc == OMPI_SUCCESS)
        rc = onic_wire_get_peers(m->comm, m->wire);
    if (rc == OMPI_SUCCESS)
        rc = nicstride_find_node(m);
    if (rc != OMPI_SUCCESS)
        return rc;
    rc = nicstride_make_memory(m, base, size, info);
    if (rc == OMPI_SUCCESS) {
        init_ctl(m);
        rc = enlist(m);
    }
    gathered = exchange_info(m, size, disp_unit);
    if (rc == OMPI_SUCCESS)
        rc = gathered;
    if (rc == OMPI_SUCCESS && m->flavor == MPI_WIN_FLAVOR_SHARED && m->node.n < m->size)
        rc = nicstride_select_error(OMPI_ERR_RMA_SHARED,
                                    "the members of the communicator do not all share memory");
    return rc;
}

/** Are the members all processes of MPI_COMM_WORLD, and no others? Every one of them gets the same
 *  answer. */
static bool is_world(ompi_communicator_t *comm)
{
    ompi_group_t *world = ompi_mpi_comm_world.comm.c_local_group;
    int result = MPI_UNEQUAL;

    /* Who began MPI by sessions alone may have no world. */
    return world != NULL && ompi_group_size(comm->c_local_group) == ompi_group_size(world) &&
           ompi_group_compare(world, comm->c_local_group, &result) == OMPI_SUCCESS &&
           result != MPI_UNEQUAL;
}

int nicstride_win_select(ompi_win_t *win, void **base, size_t size, int disp_unit,
                         ompi_communicator_t *comm, opal_info_t *info, int flavor, int *model)
{
    nicstride_module_t *m = calloc(1, sizeof(*m));
    int rc;

    if (m == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    m->super = module_functions;
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
    rc = build(m, base, size, disp_unit, info);
    if (rc == OMPI_SUCCESS) {
        nicstride_connect_neighbours(m);
        nicstride_model_measure(m);
        win->w_osc_module = &m->super;
        rc = nicstride_subscribe_info(win);
    }
    /* The last agreement is the barrier too: no message comes before all are ready for it. */
    rc = nicstride_agree(m->comm, rc);
    if (rc != OMPI_SUCCESS) {
        win->w_osc_module = NULL;
        nicstride_window_delist(m);
        nicstride_window_destroy(m);
        return rc;
    }
    nicstride_model_take(m);
    if (flavor == MPI_WIN_FLAVOR_SHARED)
        *base = nicstride_shared_base(m, m->rank);
    else if (flavor == MPI_WIN_FLAVOR_ALLOCATE)
        *base = m->base;
    if (!mca_osc_nicstride_component.world_met)
        mca_osc_nicstride_component.world_met = is_world(comm);
    if (m->wants_server)
        onic_wire_want_server(true);
    if (mca_osc_nicstride_component.params.show_plan)
        nicstride_model_show(m);
    *model = MPI_WIN_UNIFIED;
    return OMPI_SUCCESS;
}
