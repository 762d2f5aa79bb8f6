/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What programs of methods that an adapter serves need: for method nic a device of verbs, or, on a
 * machine without, the adapter of the tests' own (test/fabric/adapter.c), which test/run loads
 * before all else; and the keys of a target, which come with the first transfers.
 */
#pragma once

#include <mpi.h>
#include <stdbool.h>

#include "test/mpi/counter.h"

/** The method that is forced; "auto" where none is. */
const char *adapter_method(void);
bool adapter_is_nic(void);

/** After tl_init: skips the program where the method can have no device, or the component is not
 *  loaded. MPI_T is initialised then. */
void adapter_need(void);

/** A counter of the method's: "osc_nicstride_WHAT_METHOD". */
counter_t *adapter_counter(const char *what);

/** Puts one element of `type` from `from` until that goes by the method: then there are keys, and a
 *  connection. False where it does not. */
bool adapter_await(MPI_Win win, int target, MPI_Aint disp, const void *from, MPI_Datatype type);
