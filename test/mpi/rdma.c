/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2 */
/* windows: create allocate */
/* methods: rdma */
/** @file Keys of method rdma (keys_cases.h). */
#include <stddef.h>

#include "test/mpi/keys_cases.h"

int main(int argc, char **argv)
{
    return keys_cases("rdma", NULL, argc, argv);
}
