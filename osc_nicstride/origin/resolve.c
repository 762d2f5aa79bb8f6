/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Resolving communication calls: whether a call may be made now, what it moves, and whether
 *  that stays inside the target's window. */
#include <inttypes.h>
#include <string.h>

#include "common/layout/flatten.h"
#include "common/support/device.h"
#include "osc_nicstride/origin/origin.h"
#include "osc_nicstride/sync/fence.h"
#include "osc_nicstride/window/control.h"
#include "osc_nicstride/window/module.h"
#include "osc_nicstride/window/state.h"

static const onic_layout_t no_layout;

onic_flattened_t nicstride_flattened;

int nicstride_flatten(nicstride_module_t *m, const char *call, const char *what,
                      const ompi_datatype_t *dt, size_t count, onic_layout_t *l)
{
    const int rc = onic_flatten(dt, count, l, &nicstride_flattened);

    if (rc == OMPI_SUCCESS)
        return rc;
    *l = no_layout;
    if (rc == OMPI_ERR_OUT_OF_RESOURCE)
        return nicstride_error(m, call, rc, "no memory to describe a datatype");
    /* Sizes or offsets beyond 64 bits. At the target they are outside of any window. */
    return nicstride_error(m, call, strcmp(what, "target") == 0 ? OMPI_ERR_RMA_RANGE : MPI_ERR_TYPE,
                           "what the %s datatype covers exceeds the address space", what);
}

int nicstride_check_host(const nicstride_module_t *m, const char *call, const char *what,
                         const void *base, const onic_layout_t *l)
{
    const char *first = (const char *)((uintptr_t)base + (uintptr_t)l->lb);
    const char *last = (const char *)((uintptr_t)base + (uintptr_t)l->ub - 1);

    if (!onic_layout_on_device(base, l))
        return OMPI_SUCCESS;
    return nicstride_error(m, call, MPI_ERR_BUFFER,
                           "the %s buffer, %p to %p, is memory of a device, and only host memory "
                           "is supported",
                           what, (const void *)first, (const void *)last);
}

static int out_of_bounds(nicstride_module_t *m, const nicstride_transfer_t *a, ptrdiff_t disp)
{
    const nicstride_rank_info_t *info = nicstride_info(m, a->peer->rank);

    return nicstride_error(m, a->call, OMPI_ERR_RMA_RANGE,
                           "displacement %td with a datatype that covers bytes %" PRId64
                           " to %" PRId64 " from there leaves the window of target rank %d, which "
                           "has %" PRIu64 " bytes and displacement unit %" PRIu32,
                           disp, a->target.lb, a->target.ub, a->peer->rank, info->size,
                           info->disp_unit);
}

/** Checks this process's own memory in a dynamic window; other processes check theirs. */
static int check_attached(nicstride_module_t *m, const nicstride_transfer_t *a)
{
    bool inside;

    onic_transport_lock();
    inside = nicstride_regions_cover(&m->regions, (uint64_t)a->disp, &a->target, 0, a->target.size);
    onic_transport_unlock();
    if (inside)
        return OMPI_SUCCESS;
    return nicstride_error(m, a->call, OMPI_ERR_RMA_RANGE,
                           "address %#" PRIx64 " is not in memory attached to the window",
                           (uint64_t)a->disp);
}

/** Finds where the target's bytes are, and by which paths they can be reached. Everything that the
 *  call describes must be in the window, whatever part of it is moved. For a dynamic window only
 *  the target knows that, and it is told only what is moved. */
static int locate(nicstride_module_t *m, nicstride_transfer_t *a, ptrdiff_t disp)
{
    const int rank = a->peer->rank;
    const nicstride_rank_info_t *info = nicstride_info(m, rank);
    const bool dynamic = m->flavor == MPI_WIN_FLAVOR_DYNAMIC;

    a->disp = disp;
    if (!dynamic && __builtin_mul_overflow((int64_t)disp, (int64_t)info->disp_unit, &a->disp))
        return out_of_bounds(m, a, disp);
    if (!dynamic && !nicstride_layout_fits(&a->target, a->disp, info->size))
        return out_of_bounds(m, a, disp);
    a->remote = nicstride_base(m, rank) + (uint64_t)a->disp;
    if (rank == m->rank) {
        a->mapped = true;
        a->direct = (char *)(uintptr_t)a->remote;
    } else if (!dynamic && a->peer->local >= 0 && m->mapped[a->peer->local] != NULL) {
        a->mapped = true;
        a->direct = m->mapped[a->peer->local] + a->disp;
    }
    return OMPI_SUCCESS;
}

int nicstride_fit(nicstride_module_t *m, const char *call, const char *from, uint64_t bytes,
                  const char *to, onic_layout_t *room)
{
    if (bytes > room->size)
        return nicstride_error(m, call, MPI_ERR_TYPE,
                               "the %s buffer describes %" PRIu64
                               " bytes, which do not fit into the %" PRIu64 " of the %s buffer",
                               from, bytes, room->size, to);
    if (onic_layout_cut(room, bytes) != ONIC_LAYOUT_OK)
        return nicstride_error(m, call, OMPI_ERR_OUT_OF_RESOURCE,
                               "no memory to describe a datatype");
    return OMPI_SUCCESS;
}

/** Makes both sides equally long. Data may be shorter than its room; the rest of the room stays
 *  unchanged. An accumulate that fetches always fetches all of the target (origin.h). */
static int fit_sides(nicstride_module_t *m, nicstride_transfer_t *a)
{
    if (!a->has_origin || a->origin.size == a->target.size)
        return OMPI_SUCCESS;
    if (a->type == NICSTRIDE_MSG_GET)
        return nicstride_fit(m, a->call, "target", a->target.size, "origin", &a->origin);
    if (a->type == NICSTRIDE_MSG_GET_ACC && a->origin.size < a->target.size)
        return OMPI_SUCCESS;
    return nicstride_fit(m, a->call, "origin", a->origin.size, "target", &a->target);
}

int nicstride_target_init(nicstride_transfer_t *a, nicstride_module_t *m, nicstride_msg_type_t type,
                          const nicstride_arguments_t *g)
{
    const bool has_origin = g->origin_dt != NULL;
    const char *wrong;
    int rc;

    a->call = g->call;
    a->type = type;
    a->has_origin = has_origin;
    a->m = m;
    a->request = NULL;
    a->granule = 1;
    a->op = a->dtype = 0;
    a->result.nruns = 0;
    a->origin_base = (char *)(uintptr_t)g->origin;
    a->origin.nruns = 0;
    a->target.nruns = 0;
    a->direct = NULL;
    a->mapped = false;
    a->peer = nicstride_peer(m, g->target);
    if (a->peer == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    wrong = nicstride_enter(m, g->target);
    if (wrong != NULL)
        return nicstride_error(m, g->call, OMPI_ERR_RMA_SYNC,
                               "%s (target rank %d, displacement %td)", wrong, g->target, g->disp);
    rc = OMPI_SUCCESS;
    if (has_origin)
        rc = nicstride_flatten(m, g->call, "origin", g->origin_dt, (size_t)g->origin_count,
                               &a->origin);
    if (rc == OMPI_SUCCESS)
        rc = nicstride_flatten(m, g->call, "target", g->target_dt, (size_t)g->target_count,
                               &a->target);
    if (rc == OMPI_SUCCESS)
        rc = locate(m, a, g->disp);
    if (rc == OMPI_SUCCESS)
        rc = fit_sides(m, a);
    if (rc == OMPI_SUCCESS && has_origin && onic_devices_told())
        rc = nicstride_check_host(m, g->call, "origin", g->origin, &a->origin);
    if (rc == OMPI_SUCCESS && m->flavor == MPI_WIN_FLAVOR_DYNAMIC && a->peer->rank == m->rank)
        rc = check_attached(m, a);
    if (rc != OMPI_SUCCESS)
        nicstride_target_fini(a);
    return rc;
}

void nicstride_target_fini(nicstride_transfer_t *a)
{
    onic_layout_fini(&a->origin);
    onic_layout_fini(&a->target);
    onic_layout_fini(&a->result);
}
