/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* thorough */
/* windows: create allocate dynamic shared */
/* methods: all */
/** @file Random operations (random_operations.c). */
#include "test/mpi/random_operations.h"
#include "test/mpi/testlib.h"

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    random_operations();
    return tl_finish();
}
