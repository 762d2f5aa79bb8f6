/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Dynamic windows: attaching, detaching, and what origins may know of another process's
 *  table.
 *
 *  The target's table decides: everything that comes by message is checked against it there. Only
 *  single copy bypasses the target, so before it the origin must know that the memory is attached.
 *  It learns that from what the target shows of its table in memory that they share. Data in
 *  regions that are not shown goes by message, which needs no knowledge. */
#include "common/support/device.h"
#include "osc_nicstride/origin/origin.h"
#include "osc_nicstride/queue/wait.h"
#include "osc_nicstride/target/target.h"
#include "osc_nicstride/window/control.h"

static int region_error(const nicstride_module_t *m, const char *call, nicstride_region_status_t s,
                        const void *base, size_t size)
{
    switch (s) {
    case NICSTRIDE_REGION_OK:
        return OMPI_SUCCESS;
    case NICSTRIDE_REGION_OVERLAP:
        return nicstride_error(m, call, OMPI_ERR_RMA_ATTACH,
                               "the %zu bytes at %p overlap memory that is attached already", size,
                               base);
    case NICSTRIDE_REGION_NONE:
        return nicstride_error(m, call, OMPI_ERR_RMA_ATTACH, "no region is attached at %p", base);
    case NICSTRIDE_REGION_BAD:
        return nicstride_error(m, call, MPI_ERR_SIZE,
                               "%zu bytes at %p go beyond the end of the address space", size,
                               base);
    default:
        return nicstride_error(m, call, OMPI_ERR_RMA_ATTACH, "memory is exhausted");
    }
}

static void show(nicstride_module_t *m)
{
    nicstride_regions_show(&m->regions, &nicstride_ctl(m, m->node.me)->attached);
}

static int mpi_attach(ompi_win_t *win, void *base, size_t size)
{
    nicstride_module_t *m = nicstride_module(win);
    nicstride_region_status_t s;

    if (m->flavor != MPI_WIN_FLAVOR_DYNAMIC)
        return nicstride_error(m, "MPI_Win_attach", OMPI_ERR_RMA_FLAVOR,
                               "the window was not made by MPI_Win_create_dynamic");
    if (size > 0 && onic_on_device(base))
        return nicstride_error(m, "MPI_Win_attach", OMPI_ERR_RMA_ATTACH,
                               "the %zu bytes at %p are memory of a device, and only host memory "
                               "is supported",
                               size, base);
    onic_transport_lock();
    s = nicstride_regions_attach(&m->regions, (uint64_t)(uintptr_t)base, size);
    show(m);
    onic_transport_unlock();
    return region_error(m, "MPI_Win_attach", s, base, size);
}

/** True if nobody uses memory that is no longer attached. A program must not detach memory before
 *  accesses to it are over. If it does, at least no other memory is changed. */
static bool is_unused(void *arg)
{
    return nicstride_end_accesses_locked(arg, false);
}

static int mpi_detach(ompi_win_t *win, const void *base)
{
    nicstride_module_t *m = nicstride_module(win);
    nicstride_region_status_t s;

    if (m->flavor != MPI_WIN_FLAVOR_DYNAMIC)
        return nicstride_error(m, "MPI_Win_detach", OMPI_ERR_RMA_FLAVOR,
                               "the window was not made by MPI_Win_create_dynamic");
    onic_transport_lock();
    s = nicstride_regions_detach(&m->regions, (uint64_t)(uintptr_t)base);
    show(m);
    onic_transport_unlock();
    nicstride_wait(NULL, NICSTRIDE_WAKE_NOT, is_unused, m);
    return region_error(m, "MPI_Win_detach", s, base, 0);
}

void nicstride_dynamic_calls(ompi_osc_base_module_t *calls)
{
    calls->osc_win_attach = mpi_attach;
    calls->osc_win_detach = mpi_detach;
}
