/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Devices for methods nic and rdma; see adapter.h. */
#include "common/config.h"

#include "test/mpi/adapter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/mpi/testlib.h"

enum { TRIES = 2000 };

const char *adapter_method(void)
{
    const char *method = getenv("OMPI_MCA_osc_nicstride_method");

    return method != NULL ? method : "auto";
}

bool adapter_is_nic(void)
{
    return strcmp(adapter_method(), "nic") == 0;
}

void adapter_need(void)
{
    int provided;

#if !OMPI_NIC_HAVE_VERBS
    if (adapter_is_nic())
        tl_skip("this build is without libibverbs");
#endif
    if (adapter_is_nic() && !tl_one_host())
        tl_skip("the adapter of the tests' own is for one host");
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    if (!counter_loaded("osc_nicstride_messages"))
        tl_skip("osc/nicstride is not loaded");
}

counter_t *adapter_counter(const char *what)
{
    char name[64];

    snprintf(name, sizeof(name), "osc_nicstride_%s_%s", what, adapter_method());
    return counter_begin(name);
}

bool adapter_await(MPI_Win win, int target, MPI_Aint disp, const void *from, MPI_Datatype type)
{
    counter_t *ops = adapter_counter("ops");
    bool there = false;

    for (int i = 0; i < TRIES && !there; i++) {
        TL_MPI(MPI_Put(from, 1, type, target, disp, 1, type, win));
        TL_MPI(MPI_Win_flush(target, win));
        there = counter_read(ops) > 0;
    }
    counter_end(ops);
    return there;
}
