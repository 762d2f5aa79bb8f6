/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Calls of communication, and of dynamic windows: Open MPI's functions for them, one for each call,
 * with its arguments, which Open MPI has checked but where a function says otherwise. MPI threads,
 * no lock held. OMPI_SUCCESS, or an error of MPI's or Open MPI's, after a text.
 */
#ifndef NICSTRIDE_RMA_H
#define NICSTRIDE_RMA_H

#include <stddef.h>

#include "common/ompi_compat.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/op/op.h"
#include "ompi/request/request.h"
#include "ompi/win/win.h"

int nicstride_attach(ompi_win_t *win, void *base, size_t size);
int nicstride_detach(ompi_win_t *win, const void *base);
int nicstride_put(const void *origin, int origin_count, ompi_datatype_t *origin_dt, int target,
                  ptrdiff_t disp, int target_count, ompi_datatype_t *target_dt, ompi_win_t *win);
int nicstride_get(void *origin, int origin_count, ompi_datatype_t *origin_dt, int target,
                  ptrdiff_t disp, int target_count, ompi_datatype_t *target_dt, ompi_win_t *win);
int nicstride_rput(const void *origin, int origin_count, ompi_datatype_t *origin_dt, int target,
                   ptrdiff_t disp, int target_count, ompi_datatype_t *target_dt, ompi_win_t *win,
                   ompi_request_t **request);
int nicstride_rget(void *origin, int origin_count, ompi_datatype_t *origin_dt, int target,
                   ptrdiff_t disp, int target_count, ompi_datatype_t *target_dt, ompi_win_t *win,
                   ompi_request_t **request);
int nicstride_accumulate(const void *origin, int origin_count, ompi_datatype_t *origin_dt,
                         int target, ptrdiff_t disp, int target_count, ompi_datatype_t *target_dt,
                         ompi_op_t *op, ompi_win_t *win);
int nicstride_raccumulate(const void *origin, int origin_count, ompi_datatype_t *origin_dt,
                          int target, ptrdiff_t disp, int target_count, ompi_datatype_t *target_dt,
                          ompi_op_t *op, ompi_win_t *win, ompi_request_t **request);
int nicstride_get_accumulate(const void *origin, int origin_count, ompi_datatype_t *origin_dt,
                             void *result, int result_count, ompi_datatype_t *result_dt, int target,
                             ptrdiff_t disp, int target_count, ompi_datatype_t *target_dt,
                             ompi_op_t *op, ompi_win_t *win);
int nicstride_rget_accumulate(const void *origin, int origin_count, ompi_datatype_t *origin_dt,
                              void *result, int result_count, ompi_datatype_t *result_dt,
                              int target, ptrdiff_t disp, int target_count,
                              ompi_datatype_t *target_dt, ompi_op_t *op, ompi_win_t *win,
                              ompi_request_t **request);
int nicstride_fetch_and_op(const void *origin, void *result, ompi_datatype_t *dt, int target,
                           ptrdiff_t disp, ompi_op_t *op, ompi_win_t *win);
int nicstride_compare_and_swap(const void *origin, const void *compare, void *result,
                               ompi_datatype_t *dt, int target, ptrdiff_t disp, ompi_win_t *win);

#endif
