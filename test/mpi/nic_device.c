/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Devices for method nic; see nic_device.h. */
#include "common/config.h"

#include "test/mpi/counter.h"
#include "test/mpi/nic_device.h"
#include "test/mpi/testlib.h"

void nic_need_device(void)
{
#if !OMPI_NIC_HAVE_VERBS
    tl_skip("this build is without libibverbs");
#endif
    if (!tl_one_host())
        tl_skip("the adapter of the tests' own is for one host");
}
