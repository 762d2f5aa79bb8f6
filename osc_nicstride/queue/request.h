/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Requests of MPI_Rput and its kin. Operations end in whichever thread progresses the
 *  transport; requests are completed by MPI threads only, from a list. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/ompi_compat.h"
#include "ompi/request/request.h"
#include "ompi/win/win.h"

typedef struct nicstride_request {
    ompi_request_t super;
    struct nicstride_request *next_done;
    uint32_t window; /**< in which its call was noted (check/check.h): its name, */
    uint64_t noted;  /**< and the call's number; 0: it was not */
    bool freed;      /**< the user freed it before it completed; transport lock */
    bool done;       /**< handed to MPI as complete; transport lock */
} nicstride_request_t;

OBJ_CLASS_DECLARATION(nicstride_request_t);

nicstride_request_t *nicstride_request_new(ompi_win_t *win);
/** Ends a request-based call: hands the request to the user, complete if `done`; on an error
 *  frees it and returns the error. `r` may be NULL (memory exhausted, `rc` says so). */
int nicstride_request_finish(nicstride_request_t *r, int rc, bool done, ompi_request_t **request_p);
/** Its operation has ended, with an MPI error class or 0: an MPI thread will complete it. Transport
 *  lock. */
void nicstride_request_end_locked(nicstride_request_t *r, int error);
/** The transport's function for MPI threads: completes what is done. */
int nicstride_requests_complete(void);
