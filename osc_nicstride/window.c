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
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "osc_nicstride/module.h"

#include "ompi/info/info.h"
#include "ompi/runtime/mpiruntime.h"
#include "opal/util/output.h"
#include "opal/util/show_help.h"

#define HELP_FILE "help-osc-nicstride.txt"

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
static int agree(ompi_communicator_t *comm, int rc)
{
    int worst = rc = rc > 0 ? OMPI_ERROR : rc;
    int coll = comm->c_coll->coll_allreduce(&rc, &worst, 1, MPI_INT, MPI_MIN, comm,
                                            comm->c_coll->coll_allreduce_module);

    return coll != OMPI_SUCCESS ? coll : worst;
}

static int barrier(ompi_communicator_t *comm)
{
    return comm->c_coll->coll_barrier(comm, comm->c_coll->coll_barrier_module);
}

static int allgather_bytes(ompi_communicator_t *comm, const void *mine, void *all, int bytes)
{
    return comm->c_coll->coll_allgather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, comm,
                                        comm->c_coll->coll_allgather_module);
}

static int select_error(int rc, const char *reason)
{
    opal_show_help(HELP_FILE, "select-error", true, reason);
    return rc;
}

/* ---- info keys ------------------------------------------------------------------------------ */

/** Hints that do not change while the window lives: the value given at creation is kept. */
static char *info_bool(opal_infosubscriber_t *object, char *key, char *value)
{
    (void)object;
    (void)key;
    return (strcmp(value, "true") == 0 || strcmp(value, "yes") == 0 || strcmp(value, "1") == 0)
               ? "true"
               : "false";
}

static char *info_no_locks(opal_infosubscriber_t *object, char *key, char *value)
{
    nicstride_module_t *m = nicstride_module((ompi_win_t *)object);

    (void)key;
    (void)value;
    /* Locks cannot come back once the queues were left out, so a change is not taken. */
    return m != NULL && m->no_locks ? "true" : "false";
}

static char *info_ordering(opal_infosubscriber_t *object, char *key, char *value)
{
    static char *const order = "rar,raw,war,waw";

    (void)object;
    (void)key;
    (void)value;
    /* All accumulates are ordered, which satisfies every weaker wish. */
    return order;
}

static char *info_ops(opal_infosubscriber_t *object, char *key, char *value)
{
    (void)object;
    (void)key;
    return strcmp(value, "same_op") == 0 ? "same_op" : "same_op_no_op";
}

static bool info_get_bool(opal_info_t *info, const char *key)
{
    bool value = false;
    int found = 0;

    if (info != NULL)
        opal_info_get_bool(info, (char *)key, &value, &found);
    return found && value;
}

static int subscribe_info(ompi_win_t *win)
{
    static const struct {
        char *key;
        char *value;
        opal_key_interest_callback_t *fn;
    } keys[] = {
        {"no_locks", "false", info_no_locks},
        {"accumulate_ordering", "rar,raw,war,waw", info_ordering},
        {"accumulate_ops", "same_op_no_op", info_ops},
        {"same_size", "false", info_bool},
        {"same_disp_unit", "false", info_bool},
        {"alloc_shared_noncontig", "false", info_bool},
    };

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        int rc = opal_infosubscribe_subscribe(&win->super, keys[i].key, keys[i].value, keys[i].fn);

        if (rc != OPAL_SUCCESS)
            return rc;
    }
    return OMPI_SUCCESS;
}

/* ---- memory --------------------------------------------------------------------------------- */

static size_t page_align(size_t n)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return (n + page - 1) / page * page;
}

static bool allocates(int flavor)
{
    return flavor == MPI_WIN_FLAVOR_ALLOCATE || flavor == MPI_WIN_FLAVOR_SHARED;
}

/** Bytes of the segment of a node: control blocks, then the memory of each process (`sizes`, by
 *  rank). 0 where that is more than there can be. */
static size_t segment_bytes(const nicstride_module_t *m, size_t ctl, const uint64_t *sizes,
                            bool contiguous)
{
    uint64_t total = ctl;

    for (int i = 0; i < m->node.n; i++) {
        uint64_t s = sizes[m->node.ranks[i]];

        if (s > SIZE_MAX / 4 || total > SIZE_MAX / 4)
            return 0;
        total += contiguous ? s : page_align(s);
    }
    return page_align(total);
}

static void map_data(nicstride_module_t *m, size_t ctl, const uint64_t *sizes, bool contiguous)
{
    char *at = (char *)m->segment.base + ctl;

    for (int i = 0; i < m->node.n; i++) {
        uint64_t s = sizes[m->node.ranks[i]];

        m->mapped[i] = at;
        at += contiguous ? s : page_align(s);
    }
}

/** What a node can have, best first. */
enum { WITH_DATA, CONTROL_ONLY, ALONE, GIVE_UP };

static int node_alone(nicstride_module_t *m);

/**
 * Makes the segment of each node, with the window's memory in it if that is wanted and can be had.
 * Making a segment is collective over all nodes, so a node that is content goes along with the
 * further attempts of others and drops what it gets.
 */
static int map_segment(nicstride_module_t *m, const uint64_t *sizes, bool contiguous, bool *data_p)
{
    bool done = false;

    *data_p = false;
    for (int level = sizes != NULL ? WITH_DATA : CONTROL_ONLY; level < GIVE_UP; level++) {
        onic_segment_t segment = {0};
        size_t ctl, want;
        bool ok = false;
        int mine, left = 0, rc;

        if (level == ALONE && !done) {
            onic_node_fini(&m->node);
            rc = node_alone(m);
            if (rc != OMPI_SUCCESS)
                return rc;
            m->ctl_size = nicstride_ctl_bytes(1, m->size);
        }
        ctl = want = page_align((size_t)m->node.n * m->ctl_size);
        if (level == WITH_DATA && m->node.n > 1)
            want = segment_bytes(m, ctl, sizes, contiguous);
        rc = onic_node_segment(m->comm, &m->node, want > 0 ? want : ctl, &segment, &ok);
        if (rc != OMPI_SUCCESS)
            return rc;
        if (ok && done) {
            onic_segment_unmap(&segment);
        } else if (ok && want > 0) {
            done = true;
            m->segment = segment;
            *data_p = level == WITH_DATA && m->node.n > 1;
            if (*data_p)
                map_data(m, ctl, sizes, contiguous);
        } else if (ok) {
            onic_segment_unmap(&segment);
        }
        mine = !done;
        rc = m->comm->c_coll->coll_allreduce(&mine, &left, 1, MPI_INT, MPI_MAX, m->comm,
                                             m->comm->c_coll->coll_allreduce_module);
        if (rc != OMPI_SUCCESS || !left)
            return rc;
    }
    return OMPI_ERR_OUT_OF_RESOURCE;
}

static int private_memory(nicstride_module_t *m, size_t size)
{
    if (posix_memalign(&m->own, (size_t)sysconf(_SC_PAGESIZE), size > 0 ? size : 1) != 0) {
        m->own = NULL;
        return select_error(OMPI_ERR_OUT_OF_RESOURCE, "out of memory");
    }
    m->base = m->own;
    return OMPI_SUCCESS;
}

static void say_no_shared_memory(const nicstride_module_t *m, size_t size)
{
    static bool said;

    if (!said)
        opal_show_help(HELP_FILE, "no-shared-memory", true, size, nicstride_hostname(),
                       m->rank);
    said = true;
}

/** Finds the node and makes the segment. The control blocks must be had; memory for the window
 *  falls back to private memory unless it must be shared. */
static int make_memory(nicstride_module_t *m, void **base, size_t size, opal_info_t *info)
{
    bool contiguous = m->flavor == MPI_WIN_FLAVOR_SHARED &&
                      !info_get_bool(info, "alloc_shared_noncontig");
    uint64_t mine = size, *sizes = NULL;
    bool data = false;
    int rc;

    if (allocates(m->flavor)) {
        sizes = m->sizes;
        rc = allgather_bytes(m->comm, &mine, sizes, sizeof(mine));
        if (rc != OMPI_SUCCESS)
            return rc;
    }
    m->ctl_size = nicstride_ctl_bytes(m->node.n, m->size);
    rc = map_segment(m, sizes, contiguous, &data);
    if (rc == OMPI_SUCCESS && data)
        m->base = m->mapped[m->node.me];
    else if (rc == OMPI_SUCCESS && allocates(m->flavor))
        rc = private_memory(m, size);
    else if (m->flavor == MPI_WIN_FLAVOR_CREATE)
        m->base = *base;
    if (rc == OMPI_SUCCESS && allocates(m->flavor) && !data && m->node.n > 1) {
        if (m->flavor == MPI_WIN_FLAVOR_SHARED)
            rc = select_error(OMPI_ERR_RMA_SHARED,
                              "there is not enough shared memory for a shared window");
        else
            say_no_shared_memory(m, size);
    }
    /* A process can always reach its own memory. */
    m->mapped[m->node.me] = m->base;
    return rc;
}

static void show_plan(const nicstride_module_t *m)
{
    static bool shown;
    char table[4096];

    if (shown || m->rank != 0)
        return;
    shown = true;
    nicstride_plan_table((nicstride_method_t)mca_osc_nicstride_component.params.method, table,
                         sizeof(table));
    opal_output(0, "osc_nicstride: methods by kind of peer, block and size\n%s", table);
}

/* ---- making --------------------------------------------------------------------------------- */

static int open_wire(void)
{
    nicstride_component_t *c = &mca_osc_nicstride_component;
    onic_wire_config_t config = {
        .server_thread = c->params.server,
        .server_idle_usec = c->params.server_idle,
        .tls = c->params.tls,
        .tcp_seg_size = c->params.tcp_segment,
    };
    int rc;

    if (c->wire_open)
        return OMPI_SUCCESS;
    rc = onic_wire_open(&config);
    if (rc != OMPI_SUCCESS)
        return rc;
    c->wire_open = true;
    onic_wire_set_am_fn(ONIC_AM_OSC, nicstride_am);
    onic_wire_set_deferred_fn(ONIC_AM_OSC, nicstride_run_deferred);
    onic_wire_set_mpi_fn(ONIC_AM_OSC, nicstride_requests_complete);
    return OMPI_SUCCESS;
}

/** A node of my own: used where the processes of a node shall not share memory. */
static int node_alone(nicstride_module_t *m)
{
    m->node.n = 1;
    m->node.me = 0;
    m->node.ranks = malloc(sizeof(int));
    m->node.index = malloc((size_t)m->size * sizeof(int));
    if (m->node.ranks == NULL || m->node.index == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    m->node.ranks[0] = m->rank;
    for (int i = 0; i < m->size; i++)
        m->node.index[i] = i == m->rank ? 0 : -1;
    return OMPI_SUCCESS;
}

static int find_node(nicstride_module_t *m)
{
    onic_segment_t probe = {0};
    bool shared = false;
    int rc;

    if (!mca_osc_nicstride_component.params.node && m->flavor != MPI_WIN_FLAVOR_SHARED)
        return node_alone(m);
    rc = onic_node_create(m->comm, 4096, &m->node, &probe, &shared);
    if (rc == OMPI_SUCCESS)
        onic_segment_unmap(&probe);
    return rc;
}

static int allocate_tables(nicstride_module_t *m)
{
    size_t n = (size_t)m->size;

    m->info = calloc(n, sizeof(*m->info));
    m->sizes = calloc(n, sizeof(*m->sizes));
    m->mapped = calloc(n, sizeof(*m->mapped));
    m->wire = calloc(n, sizeof(*m->wire));
    m->peer = calloc(n, sizeof(*m->peer));
    m->epoch_target = calloc(n, 1);
    m->held_ranks = calloc(n, sizeof(int));
    m->start_ranks = calloc(n, sizeof(int));
    m->post_ranks = calloc(n, sizeof(int));
    if (m->info == NULL || m->sizes == NULL || m->mapped == NULL || m->wire == NULL || m->peer == NULL ||
        m->epoch_target == NULL || m->held_ranks == NULL || m->start_ranks == NULL ||
        m->post_ranks == NULL)
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

static void delist(nicstride_module_t *m)
{
    onic_wire_lock();
    opal_hash_table_remove_value_uint32(&mca_osc_nicstride_component.windows, m->name);
    nicstride_drop_deferred_locked(m->name);
    onic_wire_unlock();
}

/** Tells all ranks about my part; a server thread is wanted where any rank is reached by message. */
static int exchange_info(nicstride_module_t *m, size_t size, int disp_unit)
{
    nicstride_rank_info_t mine = {
        .base = m->flavor == MPI_WIN_FLAVOR_DYNAMIC ? 0 : (uint64_t)(uintptr_t)m->base,
        .size = m->flavor == MPI_WIN_FLAVOR_DYNAMIC ? 0 : size,
        .disp_unit = m->flavor == MPI_WIN_FLAVOR_DYNAMIC ? 1 : (uint32_t)disp_unit,
        .win = m->name,
    };
    int rc = allgather_bytes(m->comm, &mine, m->info, sizeof(mine));

    for (int i = 0; i < m->size && rc == OMPI_SUCCESS; i++) {
        int local = m->node.index[i];

        if (i != m->rank && (local < 0 || m->mapped[local] == NULL))
            m->wants_server = true;
    }
    return rc;
}

static void init_ctl(nicstride_module_t *m)
{
    nicstride_ctl_t *ctl = nicstride_ctl(m, m->node.me);

    /* The segment is zeroed; only my own block needs more than that. */
    atomic_store(&ctl->generation, 1);
    m->regions.generation = 1;
    nicstride_lockq_init(nicstride_ctl_lockq(m, m->node.me), (uint32_t)m->size);
}

static void destroy(nicstride_module_t *m)
{
    for (int i = 0; m->peer != NULL && i < m->size; i++)
        free(m->peer[i]);
    if (m->wire != NULL && m->wire[0] != NULL)
        onic_wire_put_peers(m->wire, m->size);
    onic_segment_unmap(&m->segment);
    onic_node_fini(&m->node);
    nicstride_regions_fini(&m->regions);
    free(m->own);
    free(m->info);
    free(m->sizes);
    free(m->mapped);
    free(m->wire);
    free(m->peer);
    free(m->epoch_target);
    free(m->held_ranks);
    free(m->start_ranks);
    free(m->post_ranks);
    if (m->comm != NULL)
        ompi_comm_free(&m->comm);
    OBJ_DESTRUCT(&m->lock);
    free(m);
}

static int check_arguments(const nicstride_module_t *m, int disp_unit)
{
    if (m->flavor != MPI_WIN_FLAVOR_DYNAMIC && disp_unit <= 0)
        return select_error(OMPI_ERR_BAD_PARAM, "the displacement unit must be positive");
    return OMPI_SUCCESS;
}

/** What this process can do by itself. */
static int prepare(nicstride_module_t *m, int disp_unit)
{
    int rc = check_arguments(m, disp_unit);

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
    int rc = agree(m->comm, prepare(m, disp_unit)), gathered;

    if (rc == OMPI_SUCCESS)
        rc = onic_wire_get_peers(m->comm, m->wire);
    if (rc == OMPI_SUCCESS)
        rc = find_node(m);
    if (rc != OMPI_SUCCESS)
        return rc;
    rc = make_memory(m, base, size, info);
    if (rc == OMPI_SUCCESS) {
        init_ctl(m);
        rc = enlist(m);
    }
    gathered = exchange_info(m, size, disp_unit);
    if (rc == OMPI_SUCCESS)
        rc = gathered;
    if (rc == OMPI_SUCCESS && m->flavor == MPI_WIN_FLAVOR_SHARED && m->node.n < m->size)
        rc = select_error(OMPI_ERR_RMA_SHARED,
                          "the members of the communicator do not all share memory");
    return rc;
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
    m->no_locks = info_get_bool(info, "no_locks");
    OBJ_CONSTRUCT(&m->lock, opal_mutex_t);

    rc = ompi_comm_dup(comm, &m->comm);
    if (rc != OMPI_SUCCESS) {
        m->comm = NULL;
        destroy(m);
        return rc;
    }
    rc = build(m, base, size, disp_unit, info);
    if (rc == OMPI_SUCCESS) {
        win->w_osc_module = &m->super;
        rc = subscribe_info(win);
    }
    /* The last agreement is the barrier too: no message comes before all are ready for it. */
    rc = agree(m->comm, rc);
    if (rc != OMPI_SUCCESS) {
        win->w_osc_module = NULL;
        delist(m);
        destroy(m);
        return rc;
    }
    if (allocates(flavor))
        *base = m->base;
    if (m->wants_server)
        onic_wire_want_server(true);
    if (mca_osc_nicstride_component.params.show_plan)
        show_plan(m);
    *model = MPI_WIN_UNIFIED;
    return OMPI_SUCCESS;
}

/* ---- freeing -------------------------------------------------------------------------------- */

/** A window that the user forgot is freed by MPI_Finalize. Others may have freed theirs, or have
 *  them in another order, so nothing collective is safe then, and nothing is needed: a fence of
 *  all processes has come before. */
static bool in_finalize(void)
{
    return ompi_mpi_state >= OMPI_MPI_STATE_FINALIZE_PAST_COMM_SELF_DESTRUCT;
}

int nicstride_win_free(ompi_win_t *win)
{
    nicstride_module_t *m = nicstride_module(win);
    int rc = OMPI_SUCCESS;

    if (m == NULL)
        return OMPI_SUCCESS;
    if (!in_finalize()) {
        const char *wrong = nicstride_epoch_free(&m->epoch);

        if (wrong != NULL)
            return nicstride_error(m, "MPI_Win_free", OMPI_ERR_RMA_SYNC, "%s", wrong);
        rc = nicstride_flush_all_peers(m, true);
        barrier(m->comm);
    }
    if (m->wants_server)
        onic_wire_want_server(false);
    delist(m);
    win->w_osc_module = NULL;
    destroy(m);
    return rc;
}
