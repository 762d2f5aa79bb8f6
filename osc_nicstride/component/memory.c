/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The processes of a window on this node, and their memory: control blocks and window memory
 *  in one shared segment, or private memory if that is impossible. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/transport/shm/segment.h"
#include "common/support/collective.h"
#include "common/support/help.h"
#include "osc_nicstride/component/setup.h"
#include "osc_nicstride/window/control.h"
#include "osc_nicstride/window/place.h"
#include "osc_nicstride/window/state.h"

#include "opal/util/proc.h"

static bool mpi_allocates(int flavor)
{
    return flavor == MPI_WIN_FLAVOR_ALLOCATE || flavor == MPI_WIN_FLAVOR_SHARED;
}

/** Bytes of the node's segment: `tables` bytes of tables, then the memory of each process. If the
 *  segment begins at `base`, `m->mapped` gets the address of each. 0: too many. */
static size_t place_data(nicstride_module_t *m, size_t tables, const nicstride_facts_t *facts,
                         char *base)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    nicstride_part_t part = {tables, tables};

    for (int i = 0; i < m->node.n; i++) {
        const uint64_t s = facts[m->node.ranks[i]].info.size;

        if (s > SIZE_MAX / 4 || part.to > SIZE_MAX / 4)
            return 0;
        part = nicstride_place(m->parts, page, part.to, i, s);
        m->mapped[i] = base != NULL ? base + part.from : NULL;
    }
    return onic_whole_pages(part.to);
}

/** Makes the node's segment, with the window's memory in it if that is wanted and possible. If not
 *  even the control blocks can be shared, each process becomes a node of its own. `*short_p`: there
 *  was not enough shared memory. */
static int map_segment(nicstride_module_t *m, const nicstride_facts_t *facts, bool *data_p,
                       bool *short_p)
{
    const bool allocates = mpi_allocates(m->flavor);
    bool data = allocates;

    for (;;) {
        onic_made_t made = ONIC_NO_SPACE;
        size_t tables, bytes;
        int rc = OMPI_SUCCESS;

        data = data && m->node.n > 1;
        m->ctl = nicstride_ctl_place(m->node.n, m->size, data);
        tables = onic_whole_pages((size_t)nicstride_ctl_blocks(&m->node) * m->ctl.bytes +
                                  (size_t)m->size * sizeof(nicstride_rank_info_t));
        bytes = data ? place_data(m, tables, facts, NULL) : tables;
        if (bytes > 0)
            rc = onic_node_segment(m->comm, &m->node, bytes, data, &m->segment, &made);
        if (rc != OMPI_SUCCESS)
            return rc;
        if (made == ONIC_MADE) {
            if (data)
                (void)place_data(m, tables, facts, m->segment.base);
            *data_p = data;
            return OMPI_SUCCESS;
        }
        *short_p = *short_p || made == ONIC_NO_SPACE;
        if (made == ONIC_NO_SPACE && !data)
            onic_node_alone(&m->node);
        data = made == ONIC_NODE_SPLIT && allocates;
    }
}

/** Writes what is kept for each rank. All processes of the node write the same, so that none has to
 *  wait for another. */
static void keep_facts(nicstride_module_t *m, const nicstride_facts_t *facts)
{
    nicstride_rank_info_t *info = (void *)nicstride_ctl(m, nicstride_ctl_blocks(&m->node));

    for (int i = 0; i < m->size; i++)
        info[i] = facts[i].info;
    m->info = info;
}

static int private_memory(nicstride_module_t *m, size_t size)
{
    /* A process that is alone on its node still has neighbours, whose data may pass through its
     * caches. */
    const size_t shift = nicstride_shift(m->parts, m->node.n > 1 ? m->node.me : m->rank);

    if (size > SIZE_MAX / 4 || posix_memalign(&m->own, (size_t)sysconf(_SC_PAGESIZE),
                                              shift + (size > 0 ? size : 1)) != 0) {
        m->own = NULL;
        return nicstride_select_error(OMPI_ERR_OUT_OF_RESOURCE, "out of memory");
    }
    m->base = (char *)m->own + shift;
    return OMPI_SUCCESS;
}

/** Bytes of the window's memory on this node. */
static uint64_t node_bytes(const nicstride_module_t *m, const nicstride_facts_t *facts)
{
    uint64_t bytes = 0;

    for (int i = 0; i < m->node.n; i++)
        bytes += facts[m->node.ranks[i]].info.size;
    return bytes;
}

/** Warns that shared memory is short. All processes of the node have the same text; one prints
 *  it. */
static void warn_no_shared_memory(uint64_t bytes)
{
    static bool said;

    if (!said)
        onic_help(NICSTRIDE_HELP_FILE, "no-shared-memory", (unsigned long long)bytes,
                  opal_process_info.nodename);
    said = true;
}

/** How the parts lie if ranks were given different info: one behind another (the default of shared
 *  windows) if any rank wants that, otherwise on pages if any rank does. */
static nicstride_parts_t parts_of(const nicstride_module_t *m, const nicstride_facts_t *facts)
{
    int32_t wishes = 0;

    for (int i = 0; i < m->size; i++)
        wishes |= facts[i].wishes;
    return wishes & NICSTRIDE_WANTS_CONTIGUOUS ? NICSTRIDE_PARTS_CONTIGUOUS
           : wishes & NICSTRIDE_WANTS_PAGES    ? NICSTRIDE_PARTS_ON_PAGES
                                               : NICSTRIDE_PARTS_SHIFTED;
}

int nicstride_make_memory(nicstride_module_t *m, void **base, size_t size,
                          const nicstride_facts_t *facts)
{
    const uint64_t bytes = node_bytes(m, facts);
    bool data = false, is_short = false;
    int rc;

    m->parts = parts_of(m, facts);
    m->mapped = calloc((size_t)m->node.n, sizeof(*m->mapped));
    if (m->mapped == NULL)
        onic_abort_no_memory(m->comm, "a window");
    rc = map_segment(m, facts, &data, &is_short);
    if (rc != OMPI_SUCCESS)
        return rc;
    keep_facts(m, facts);
    m->shared = data;
    if (data)
        m->base = m->mapped[m->node.me];
    else if (mpi_allocates(m->flavor))
        rc = private_memory(m, size);
    else if (m->flavor == MPI_WIN_FLAVOR_CREATE)
        m->base = *base;
    if (rc == OMPI_SUCCESS && mpi_allocates(m->flavor) && !data && is_short) {
        if (m->flavor == MPI_WIN_FLAVOR_SHARED)
            rc = nicstride_select_error(OMPI_ERR_RMA_SHARED,
                                        "there is not enough shared memory for a shared window");
        else
            warn_no_shared_memory(bytes);
    }
    /* A process can always reach its own memory. */
    m->mapped[m->node.me] = m->base;
    return rc;
}
