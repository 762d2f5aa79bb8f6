/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Put and get, and their request versions: resolve, choose, start. */

#include "common/layout/copy.h"
#include "osc_nicstride/origin/origin.h"
#include "osc_nicstride/sync/counted.h"

/** Contiguous bytes to or from mapped memory need no plan: where the call is 20 ns, resolving it
 *  would double that. */
static inline bool copy_mapped(nicstride_module_t *m, nicstride_msg_type_t type,
                               const nicstride_arguments_t *g)
{
    size_t bytes;
    void *at;

    if (!nicstride_is_mapped(m, g->target))
        return false;
    bytes = nicstride_gapless_bytes(g->target_dt, (size_t)g->target_count);
    if (bytes == 0 || ((g->origin_dt != g->target_dt || g->origin_count != g->target_count) &&
                       nicstride_gapless_bytes(g->origin_dt, (size_t)g->origin_count) != bytes))
        return false;
    at = nicstride_mapped_bytes(m, g->target, g->disp, bytes);
    if (at == NULL)
        return false;
    if (type == NICSTRIDE_MSG_PUT)
        onic_copy_bytes(at, g->origin, bytes);
    else
        onic_copy_bytes((void *)(uintptr_t)g->origin, at, bytes);
    nicstride_count(NICSTRIDE_METHOD_DIRECT, bytes);
    return true;
}

/** `request_p` NULL: of a call without a request. */
static int transfer(ompi_win_t *win, nicstride_msg_type_t type, const nicstride_arguments_t *g,
                    ompi_request_t **request_p)
{
    nicstride_module_t *m = nicstride_module(win);
    nicstride_transfer_t t;
    int rc = request_p != NULL ? nicstride_check_passive(m, g->call, g->target) : OMPI_SUCCESS;

    if (rc == OMPI_SUCCESS)
        rc = nicstride_target_init(&t, m, type, g);
    return rc == OMPI_SUCCESS ? nicstride_run(&t, rc, request_p) : rc;
}

static int mpi_put(const void *origin, int origin_count, ompi_datatype_t *origin_dt, int target,
                   ptrdiff_t disp, int target_count, ompi_datatype_t *target_dt, ompi_win_t *win)
{
    const nicstride_arguments_t g = {"MPI_Put", origin, origin_count, origin_dt,
                                     target,    disp,   target_count, target_dt};

    return copy_mapped(nicstride_module(win), NICSTRIDE_MSG_PUT, &g)
               ? OMPI_SUCCESS
               : transfer(win, NICSTRIDE_MSG_PUT, &g, NULL);
}

static int mpi_get(void *origin, int origin_count, ompi_datatype_t *origin_dt, int target,
                   ptrdiff_t disp, int target_count, ompi_datatype_t *target_dt, ompi_win_t *win)
{
    const nicstride_arguments_t g = {"MPI_Get", origin, origin_count, origin_dt,
                                     target,    disp,   target_count, target_dt};

    return copy_mapped(nicstride_module(win), NICSTRIDE_MSG_GET, &g)
               ? OMPI_SUCCESS
               : transfer(win, NICSTRIDE_MSG_GET, &g, NULL);
}

static int mpi_rput(const void *origin, int origin_count, ompi_datatype_t *origin_dt, int target,
                    ptrdiff_t disp, int target_count, ompi_datatype_t *target_dt, ompi_win_t *win,
                    ompi_request_t **request)
{
    const nicstride_arguments_t g = {"MPI_Rput", origin, origin_count, origin_dt,
                                     target,     disp,   target_count, target_dt};

    return transfer(win, NICSTRIDE_MSG_PUT, &g, request);
}

static int mpi_rget(void *origin, int origin_count, ompi_datatype_t *origin_dt, int target,
                    ptrdiff_t disp, int target_count, ompi_datatype_t *target_dt, ompi_win_t *win,
                    ompi_request_t **request)
{
    const nicstride_arguments_t g = {"MPI_Rget", origin, origin_count, origin_dt,
                                     target,     disp,   target_count, target_dt};

    return transfer(win, NICSTRIDE_MSG_GET, &g, request);
}

void nicstride_put_get_calls(ompi_osc_base_module_t *calls)
{
    calls->osc_put = mpi_put;
    calls->osc_get = mpi_get;
    calls->osc_rput = mpi_rput;
    calls->osc_rget = mpi_rget;
}
