/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Put and get, and their request versions: resolve, choose, start.
 */
#include <stddef.h>

#include "common/layout/pack.h"
#include "osc_nicstride/channel/request.h"
#include "osc_nicstride/methods/methods.h"
#include "osc_nicstride/origin/choose.h"
#include "osc_nicstride/origin/contiguous.h"
#include "osc_nicstride/origin/resolve.h"
#include "osc_nicstride/sync/enter.h"
#include "osc_nicstride/window/calls.h"
#include "osc_nicstride/window/component.h"
#include "osc_nicstride/window/module.h"
#include "osc_nicstride/window/transfer.h"

/**
 * Moves the data by the method that is chosen. `*done_p` says whether that is over already; if not,
 * the transfer's request (if any) will be completed later.
 */
static int move(nicstride_transfer_t *t, bool *done_p)
{
    const nicstride_method_t method = nicstride_choose(t);
    int rc;

    if (method != NICSTRIDE_METHOD_DIRECT)
        nicstride_unflushed_add(&t->m->unflushed);
    rc = nicstride_methods[method].start(t, done_p);
    if ((rc != OMPI_ERR_NOT_SUPPORTED && rc != OMPI_ERR_OUT_OF_RESOURCE) ||
        nicstride_methods[method].needs_target)
        return rc;
    /* Messages can do what another method could not. */
    t->cell = NULL;
    return nicstride_methods[NICSTRIDE_METHOD_PACK].start(t, done_p);
}

/** Contiguous bytes to or from mapped memory need no plan: where the call is 20 ns, resolving it
 *  would double that. */
static inline bool copy_mapped(nicstride_module_t *m, nicstride_direction_t dir, const void *origin,
                               int origin_count, const ompi_datatype_t *origin_dt, int target,
                               ptrdiff_t disp, int target_count, const ompi_datatype_t *target_dt)
{
    size_t bytes;
    void *at;

    if (!nicstride_is_mapped(m, target))
        return false;
    bytes = nicstride_gapless_bytes(target_dt, (size_t)target_count);
    if (bytes == 0 || ((origin_dt != target_dt || origin_count != target_count) &&
                       nicstride_gapless_bytes(origin_dt, (size_t)origin_count) != bytes))
        return false;
    at = nicstride_mapped_bytes(m, target, disp, bytes);
    if (at == NULL)
        return false;
    if (dir == NICSTRIDE_PUT)
        onic_copy_few(at, origin, bytes);
    else
        onic_copy_few((void *)(uintptr_t)origin, at, bytes);
    nicstride_count(NICSTRIDE_METHOD_DIRECT, bytes);
    return true;
}

static int transfer(const char *call, nicstride_direction_t dir, const void *origin,
                    int origin_count, ompi_datatype_t *origin_dt, int target, ptrdiff_t disp,
                    int target_count, ompi_datatype_t *target_dt, ompi_win_t *win)
{
    nicstride_module_t *m = nicstride_module(win);
    nicstride_transfer_t t;
    bool done;
    int rc = nicstride_target_init(&t, m, call, origin, (size_t)origin_count, origin_dt, target,
                                   disp, (size_t)target_count, target_dt);

    if (rc != OMPI_SUCCESS)
        return rc;
    t.type = dir == NICSTRIDE_PUT ? NICSTRIDE_MSG_PUT : NICSTRIDE_MSG_GET;
    if (t.target.size > 0)
        rc = move(&t, &done);
    nicstride_target_fini(&t);
    return rc;
}

static int transfer_request(const char *call, nicstride_direction_t dir, const void *origin,
                            int origin_count, ompi_datatype_t *origin_dt, int target,
                            ptrdiff_t disp, int target_count, ompi_datatype_t *target_dt,
                            ompi_win_t *win, ompi_request_t **request_p)
{
    nicstride_module_t *m = nicstride_module(win);
    nicstride_request_t *request;
    nicstride_transfer_t t;
    bool done = true;
    int rc = nicstride_check_passive(m, call, target);

    if (rc == OMPI_SUCCESS)
        rc = nicstride_target_init(&t, m, call, origin, (size_t)origin_count, origin_dt, target,
                                   disp, (size_t)target_count, target_dt);
    if (rc != OMPI_SUCCESS)
        return rc;
    request = nicstride_request_new(win);
    t.request = request;
    t.type = dir == NICSTRIDE_PUT ? NICSTRIDE_MSG_PUT : NICSTRIDE_MSG_GET;
    if (request == NULL)
        rc = OMPI_ERR_OUT_OF_RESOURCE;
    else if (t.target.size > 0)
        rc = move(&t, &done);
    nicstride_target_fini(&t);
    return nicstride_request_finish(request, rc, done, request_p);
}

int nicstride_put(const void *origin, int origin_count, ompi_datatype_t *origin_dt, int target,
                  ptrdiff_t disp, int target_count, ompi_datatype_t *target_dt, ompi_win_t *win)
{
    if (copy_mapped(nicstride_module(win), NICSTRIDE_PUT, origin, origin_count, origin_dt, target,
                    disp, target_count, target_dt))
        return OMPI_SUCCESS;
    return transfer("MPI_Put", NICSTRIDE_PUT, origin, origin_count, origin_dt, target, disp,
                    target_count, target_dt, win);
}

int nicstride_get(void *origin, int origin_count, ompi_datatype_t *origin_dt, int target,
                  ptrdiff_t disp, int target_count, ompi_datatype_t *target_dt, ompi_win_t *win)
{
    if (copy_mapped(nicstride_module(win), NICSTRIDE_GET, origin, origin_count, origin_dt, target,
                    disp, target_count, target_dt))
        return OMPI_SUCCESS;
    return transfer("MPI_Get", NICSTRIDE_GET, origin, origin_count, origin_dt, target, disp,
                    target_count, target_dt, win);
}

int nicstride_rput(const void *origin, int origin_count, ompi_datatype_t *origin_dt, int target,
                   ptrdiff_t disp, int target_count, ompi_datatype_t *target_dt, ompi_win_t *win,
                   ompi_request_t **request)
{
    return transfer_request("MPI_Rput", NICSTRIDE_PUT, origin, origin_count, origin_dt, target,
                            disp, target_count, target_dt, win, request);
}

int nicstride_rget(void *origin, int origin_count, ompi_datatype_t *origin_dt, int target,
                   ptrdiff_t disp, int target_count, ompi_datatype_t *target_dt, ompi_win_t *win,
                   ompi_request_t **request)
{
    return transfer_request("MPI_Rget", NICSTRIDE_GET, origin, origin_count, origin_dt, target,
                            disp, target_count, target_dt, win, request);
}
