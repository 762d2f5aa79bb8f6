/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The functions that Open MPI calls for a window, one for each call of MPI.
 */
#ifndef NICSTRIDE_CALLS_H
#define NICSTRIDE_CALLS_H

#include <stddef.h>

#include "common/ompi_compat.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/group/group.h"
#include "ompi/info/info.h"
#include "ompi/op/op.h"
#include "ompi/request/request.h"
#include "ompi/win/win.h"

int nicstride_win_select(ompi_win_t *win, void **base, size_t size, int disp_unit,
                         ompi_communicator_t *comm, opal_info_t *info, int flavor, int *model);
int nicstride_win_free(ompi_win_t *win);
int nicstride_shared_query(ompi_win_t *win, int rank, size_t *size, int *disp_unit, void *baseptr);
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
int nicstride_fence(int assert, ompi_win_t *win);
int nicstride_start(ompi_group_t *group, int assert, ompi_win_t *win);
int nicstride_complete(ompi_win_t *win);
int nicstride_post(ompi_group_t *group, int assert, ompi_win_t *win);
int nicstride_wait(ompi_win_t *win);
int nicstride_test(ompi_win_t *win, int *flag);
int nicstride_lock(int type, int target, int assert, ompi_win_t *win);
int nicstride_unlock(int target, ompi_win_t *win);
int nicstride_lock_all(int assert, ompi_win_t *win);
int nicstride_unlock_all(ompi_win_t *win);
int nicstride_sync(ompi_win_t *win);
int nicstride_flush(int target, ompi_win_t *win);
int nicstride_flush_all(ompi_win_t *win);
int nicstride_flush_local(int target, ompi_win_t *win);
int nicstride_flush_local_all(ompi_win_t *win);

#endif
