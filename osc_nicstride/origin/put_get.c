/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Put and get, and their request-based versions. Short contiguous calls are done at once;
 *  others are resolved, chosen and started. */
#include "common/layout/copy.h"
#include "osc_nicstride/origin/origin.h"
#include "osc_nicstride/sync/fence.h"
#include "osc_nicstride/window/module.h"

/** Bytes of a call whose buffers are both contiguous and equally long, else 0. */
static inline size_t plain_bytes(const nicstride_arguments_t *g)
{
    const size_t bytes = nicstride_gapless_bytes(g->target_dt, (size_t)g->target_count);

    return (g->origin_dt == g->target_dt && g->origin_count == g->target_count) ||
                   nicstride_gapless_bytes(g->origin_dt, (size_t)g->origin_count) == bytes
               ? bytes
               : 0;
}

/** Copies contiguous bytes to or from mapped memory. This needs no plan: such a call takes 20 ns,
 *  which resolving would double. */
static inline bool copy_mapped(nicstride_module_t *m, nicstride_msg_type_t type,
                               const nicstride_arguments_t *g, size_t bytes)
{
    void *at = nicstride_mapped_bytes(m, g->target, g->disp, bytes);

    if (at == NULL)
        return false;
    if (type == NICSTRIDE_MSG_PUT)
        onic_copy_bytes(at, g->origin, bytes);
    else
        onic_copy_out((void *)(uintptr_t)g->origin, at, bytes);
    nicstride_count(NICSTRIDE_METHOD_DIRECT, bytes);
    return true;
}

/** `request_p` NULL: the call has no request. */
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

static bool send_plain(nicstride_module_t *m, nicstride_msg_type_t type,
                       const nicstride_arguments_t *g, size_t bytes)
{
    const bool get = type == NICSTRIDE_MSG_GET;
    nicstride_short_t s = {
        .type = type,
        .bytes = bytes,
        .data = get ? NULL : g->origin,
        .result = get ? (char *)(uintptr_t)g->origin : NULL,
    };

    /* Buffers at MPI_BOTTOM take the long way. */
    return g->origin != NULL && nicstride_send_short(m, g->target, g->disp, &s);
}

/** Moves contiguous bytes by load and store or in a message, if it is clear at once that this is
 *  the way; else takes the long way. */
static inline int move(ompi_win_t *win, nicstride_msg_type_t type, const nicstride_arguments_t *g)
{
    nicstride_module_t *m = nicstride_module(win);
    const size_t bytes = plain_bytes(g);

    if (bytes > 0 && (nicstride_is_mapped(m, g->target) ? copy_mapped(m, type, g, bytes)
                                                        : send_plain(m, type, g, bytes)))
        return OMPI_SUCCESS;
    return transfer(win, type, g, NULL);
}

static int mpi_put(const void *origin, onic_rma_count_t origin_count, ompi_datatype_t *origin_dt,
                   int target, ptrdiff_t disp, onic_rma_count_t target_count,
                   ompi_datatype_t *target_dt, ompi_win_t *win)
{
    const nicstride_arguments_t g = {"MPI_Put", origin, origin_count, origin_dt,
                                     target,    disp,   target_count, target_dt};

    return move(win, NICSTRIDE_MSG_PUT, &g);
}

static int mpi_get(void *origin, onic_rma_count_t origin_count, ompi_datatype_t *origin_dt,
                   int target, ptrdiff_t disp, onic_rma_count_t target_count,
                   ompi_datatype_t *target_dt, ompi_win_t *win)
{
    const nicstride_arguments_t g = {"MPI_Get", origin, origin_count, origin_dt,
                                     target,    disp,   target_count, target_dt};

    return move(win, NICSTRIDE_MSG_GET, &g);
}

static int mpi_rput(const void *origin, onic_rma_count_t origin_count, ompi_datatype_t *origin_dt,
                    int target, ptrdiff_t disp, onic_rma_count_t target_count,
                    ompi_datatype_t *target_dt, ompi_win_t *win, ompi_request_t **request)
{
    const nicstride_arguments_t g = {"MPI_Rput", origin, origin_count, origin_dt,
                                     target,     disp,   target_count, target_dt};

    return transfer(win, NICSTRIDE_MSG_PUT, &g, request);
}

static int mpi_rget(void *origin, onic_rma_count_t origin_count, ompi_datatype_t *origin_dt,
                    int target, ptrdiff_t disp, onic_rma_count_t target_count,
                    ompi_datatype_t *target_dt, ompi_win_t *win, ompi_request_t **request)
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
