/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Requests of MPI_Rput and similar calls. Operations end in whichever thread progresses the
 *  transport; only MPI threads complete requests, from a list. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/ompi_compat.h"
#include "ompi/request/request.h"
#include "ompi/win/win.h"

typedef struct nicstride_request {
    ompi_request_t super;
    struct nicstride_request *next_done;
    uint32_t window; /**< the name of the window in which the call was noted (check/check.h) */
    uint64_t noted;  /**< the call's number; 0: it was not noted */
    bool freed;      /**< the user freed it before it completed; transport lock */
    bool done;       /**< handed to MPI as complete; transport lock */
} nicstride_request_t;

OBJ_CLASS_DECLARATION(nicstride_request_t);

nicstride_request_t *nicstride_request_new(ompi_win_t *win);
/** Ends a request-based call: hands the request to the user, complete if `done`. On an error, frees
 *  it and returns the error. `r` may be NULL if memory is exhausted; `rc` is then that error. */
int nicstride_request_finish(nicstride_request_t *r, int rc, bool done, ompi_request_t **request_p);
/** Notes that the request's operation has ended, with an MPI error class or 0. An MPI thread will
 *  complete it. Transport lock. */
void nicstride_request_end_locked(nicstride_request_t *r, int error);
/** Completes requests that are done. The transport calls this on MPI threads. */
int nicstride_requests_complete(void);
