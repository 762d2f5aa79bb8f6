/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The families of the matrix of progress. */
#pragma once

#include "test/mpi/progress.h"

/** Sends in each mode. */
extern const progress_family_t progress_sends;
/** Short ones, when what the receiver has for such is used up. */
extern const progress_family_t progress_sends_without_credit;

/** Sends of all kinds that need no receive where they are short, and with `buffered` long ones of
 *  MPI_Bsend; each is over for MPI when this returns. And their receives; `what` names them. */
void progress_send_all(MPI_Comm comm, int peer, bool buffered);
void progress_receive_all(MPI_Comm comm, int peer, bool buffered, const char *what);

/** One-sided operations. */
extern const progress_family_t progress_accesses;
/** Runs it over windows of all kinds on a communicator of two, which are `a` and `b` among those
 *  that there are cells between; MPI_COMM_NULL in all others. */
void progress_run_accesses(MPI_Comm pair, int a, int b);
