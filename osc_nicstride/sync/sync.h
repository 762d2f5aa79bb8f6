/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Calls of synchronisation: Open MPI's functions for them, one for each call, with its arguments,
 * which Open MPI has checked but where a function says otherwise. MPI threads, no lock held.
 * OMPI_SUCCESS, or an error of MPI's or Open MPI's, after a text.
 */
#ifndef NICSTRIDE_SYNC_H
#define NICSTRIDE_SYNC_H

#include "common/ompi_compat.h"
#include "ompi/group/group.h"
#include "ompi/win/win.h"

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
