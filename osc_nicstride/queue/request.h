/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Requests of request-based calls. */
#ifndef NICSTRIDE_REQUEST_H
#define NICSTRIDE_REQUEST_H

#include <stdbool.h>

#include "common/ompi_compat.h"
#include "ompi/request/request.h"
#include "ompi/win/win.h"

typedef struct nicstride_request {
    ompi_request_t super;
    struct nicstride_request *next_done;
    bool freed; /**< the user freed it before it completed; wire lock */
    bool done;  /**< handed to MPI as complete; wire lock */
} nicstride_request_t;

OBJ_CLASS_DECLARATION(nicstride_request_t);

nicstride_request_t *nicstride_request_new(ompi_win_t *win);
/** The operation is over: MPI completes the request from an MPI thread. */
void nicstride_request_done_locked(nicstride_request_t *r, int error);
/** Ends a request-based call: hands the request to the user, complete if `done`; on an error
 *  frees it and returns the error. `r` may be NULL (memory exhausted, `rc` says so). */
int nicstride_request_finish(nicstride_request_t *r, int rc, bool done, ompi_request_t **request_p);
/** The wire's function for MPI threads: completes what is done. */
int nicstride_requests_complete(void);

#endif
