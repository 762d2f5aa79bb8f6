/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/config.h"

#if OMPI_NIC_HAVE_MLX5DV

#include <dlfcn.h>
#include <pthread.h>

#include "common/transport/verbs/mlx5_library.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static onic_mlx5_t library;
static bool complete;

/** The library stays: libibverbs has it, too, for as long as the process lives. */
static void find(void)
{
    void *handle = dlopen("libmlx5.so.1", RTLD_NOW | RTLD_LOCAL);

    if (handle == NULL)
        return;
    complete = true;
#define FIND(name)                                                                                 \
    complete &= (library.name = (__typeof__(library.name))dlsym(handle, "mlx5dv_" #name)) != NULL
    FIND(is_supported);
    FIND(create_qp);
    FIND(qp_ex_from_ibv_qp_ex);
    FIND(devx_general_cmd);
}

const onic_mlx5_t *onic_mlx5(void)
{
    pthread_once(&once, find);
    return complete ? &library : NULL;
}

#endif
