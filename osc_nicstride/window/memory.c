/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The node of a window and its memory: control blocks and window memory in one shared segment,
 * private memory where that cannot be had.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/support/help.h"
#include "osc_nicstride/window/component.h"
#include "osc_nicstride/window/control.h"
#include "osc_nicstride/window/module.h"
#include "osc_nicstride/window/window.h"
#include "opal/util/proc.h"

static size_t page_align(size_t n)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return (n + page - 1) / page * page;
}

bool nicstride_allocates(int flavor)
{
    return flavor == MPI_WIN_FLAVOR_ALLOCATE || flavor == MPI_WIN_FLAVOR_SHARED;
}

/** Bytes of the segment of a node: control blocks, then the memory of each process (`sizes`, by
 *  rank). 0 where that is more than there can be. */
static size_t segment_bytes(const nicstride_module_t *m, size_t ctl, const uint64_t *sizes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint64_t total = ctl;

    for (int i = 0; i < m->node.n; i++) {
        uint64_t s = sizes[m->node.ranks[i]];

        if (s > SIZE_MAX / 4 || total > SIZE_MAX / 4)
            return 0;
        total = nicstride_place(m->parts, page, total, i, s).to;
    }
    return page_align(total);
}

static void map_data(nicstride_module_t *m, size_t ctl, const uint64_t *sizes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    nicstride_part_t part = {ctl, ctl};

    for (int i = 0; i < m->node.n; i++) {
        part = nicstride_place(m->parts, page, part.to, i, sizes[m->node.ranks[i]]);
        m->mapped[i] = (char *)m->segment.base + part.from;
    }
}

/** A node of my own: used where the processes of a node shall not share memory. */
static void node_alone(nicstride_module_t *m)
{
    m->node.n = 1;
    m->node.me = 0;
    m->node.ranks = m->alone_ranks;
    m->node.index = m->alone_index;
    m->alone_ranks = m->alone_index = NULL;
    m->node.ranks[0] = m->rank;
    for (int i = 0; i < m->size; i++)
        m->node.index[i] = i == m->rank ? 0 : -1;
}

/** What a node can have, best first. */
enum { WITH_DATA, CONTROL_ONLY, ALONE, GIVE_UP };

/**
 * Makes the segment of each node, with the window's memory in it if that is wanted and can be had.
 * Making a segment is collective over all nodes, so a node that is content goes along with the
 * further attempts of others and drops what it gets.
 */
static int map_segment(nicstride_module_t *m, const uint64_t *sizes, bool *data_p)
{
    bool done = false;

    *data_p = false;
    for (int level = sizes != NULL ? WITH_DATA : CONTROL_ONLY; level < GIVE_UP; level++) {
        onic_segment_t segment = {0};
        size_t ctl, want;
        bool ok = false;
        int mine, left = 0, rc;

        if (level == ALONE && !done && m->alone_ranks != NULL) {
            onic_node_fini(&m->node);
            node_alone(m);
            m->ctl_size = nicstride_ctl_bytes(1, m->size);
        }
        ctl = want = page_align((size_t)m->node.n * m->ctl_size);
        if (level == WITH_DATA && m->node.n > 1)
            want = segment_bytes(m, ctl, sizes);
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
                map_data(m, ctl, sizes);
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
    /* Alone on its node it still has neighbours, whose memory may come through its own caches. */
    const size_t shift = nicstride_shift(m->parts, m->node.n > 1 ? m->node.me : m->rank);

    if (size > SIZE_MAX / 2 || posix_memalign(&m->own, (size_t)sysconf(_SC_PAGESIZE),
                                              shift + (size > 0 ? size : 1)) != 0) {
        m->own = NULL;
        return nicstride_select_error(OMPI_ERR_OUT_OF_RESOURCE, "out of memory");
    }
    m->base = (char *)m->own + shift;
    return OMPI_SUCCESS;
}

static void say_no_shared_memory(const nicstride_module_t *m, size_t size)
{
    static bool said;

    if (!said)
        onic_help(NICSTRIDE_HELP_FILE, "no-shared-memory", size, opal_process_info.nodename,
                  m->rank);
    said = true;
}

/** Bits beside the size: this rank wants the parts of a shared window one behind another; it wants
 *  memory from the begin of a page. */
#define WANTS_CONTIGUOUS (UINT64_C(1) << 63)
#define WANTS_PAGES      (UINT64_C(1) << 62)
/** There is no such memory, whether it is a byte more or not. */
#define LARGEST (WANTS_PAGES - 1)

static uint64_t wishes_of(const nicstride_module_t *m, opal_info_t *info)
{
    uint64_t wishes = nicstride_info_pages(info) ? WANTS_PAGES : 0;

    if (m->flavor == MPI_WIN_FLAVOR_SHARED && !nicstride_info_bool(info, "alloc_shared_noncontig"))
        wishes |= WANTS_CONTIGUOUS;
    return wishes;
}

/** Gathers the sizes of all ranks. Ranks may have been told different things about how the parts
 *  lie; they lie one behind another, which is the default of shared windows, where anybody wants
 *  that, and on pages where anybody wants that. */
static int gather_sizes(nicstride_module_t *m, size_t size, opal_info_t *info)
{
    const uint64_t mine = (size < LARGEST ? size : LARGEST) | wishes_of(m, info);
    uint64_t wishes = 0;
    int rc = nicstride_allgather(m->comm, &mine, m->sizes, sizeof(mine));

    for (int i = 0; i < m->size && rc == OMPI_SUCCESS; i++) {
        wishes |= m->sizes[i];
        m->sizes[i] &= ~(WANTS_CONTIGUOUS | WANTS_PAGES);
    }
    m->parts = wishes & WANTS_CONTIGUOUS ? NICSTRIDE_PARTS_CONTIGUOUS
               : wishes & WANTS_PAGES    ? NICSTRIDE_PARTS_ON_PAGES
                                         : NICSTRIDE_PARTS_SHIFTED;
    return rc;
}

/** Finds the node and makes the segment. The control blocks must be had; memory for the window
 *  falls back to private memory unless it must be shared. */
int nicstride_make_memory(nicstride_module_t *m, void **base, size_t size, opal_info_t *info)
{
    uint64_t *sizes = NULL;
    bool data = false;
    int rc;

    if (nicstride_allocates(m->flavor)) {
        sizes = m->sizes;
        rc = gather_sizes(m, size, info);
        if (rc != OMPI_SUCCESS)
            return rc;
    }
    m->ctl_size = nicstride_ctl_bytes(m->node.n, m->size);
    rc = map_segment(m, sizes, &data);
    if (rc == OMPI_SUCCESS && data)
        m->base = m->mapped[m->node.me];
    else if (rc == OMPI_SUCCESS && nicstride_allocates(m->flavor))
        rc = private_memory(m, size);
    else if (m->flavor == MPI_WIN_FLAVOR_CREATE)
        m->base = *base;
    if (rc == OMPI_SUCCESS && nicstride_allocates(m->flavor) && !data && m->node.n > 1) {
        if (m->flavor == MPI_WIN_FLAVOR_SHARED)
            rc = nicstride_select_error(OMPI_ERR_RMA_SHARED,
                                        "there is not enough shared memory for a shared window");
        else
            say_no_shared_memory(m, size);
    }
    /* A process can always reach its own memory. */
    m->mapped[m->node.me] = m->base;
    return rc;
}

int nicstride_find_node(nicstride_module_t *m)
{
    onic_segment_t probe = {0};
    bool shared = false;
    int rc;

    if (!mca_osc_nicstride_component.params.node && m->flavor != MPI_WIN_FLAVOR_SHARED) {
        node_alone(m);
        return OMPI_SUCCESS;
    }
    rc = onic_node_create(m->comm, 4096, &m->node, &probe, &shared);
    if (rc == OMPI_SUCCESS)
        onic_segment_unmap(&probe);
    return rc;
}
