/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE
#include "common/ompi_compat.h"
#include "common/support/device.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#if ONIC_OMPI_AT_LEAST(5, 0)
#include "opal/mca/accelerator/accelerator.h"
#else
#include "opal/datatype/opal_convertor.h"
#endif

onic_device_fn_t onic_device_fn;

/* What Open MPI offers differs by series, and in 4.1 by how it was built: a reference to a symbol
 * that is not there would make the loader refuse this library. */

#if ONIC_OMPI_AT_LEAST(5, 0)

static const opal_accelerator_base_module_t *accelerator;

static bool on_accelerator(const void *p)
{
    int device;
    uint64_t flags = 0;

    return accelerator->check_addr(p, &device, &flags) > 0 &&
           (flags & MCA_ACCELERATOR_FLAGS_UNIFIED_MEMORY) == 0;
}

static onic_device_fn_t find(void)
{
    const opal_accelerator_base_component_t *selected =
        dlsym(RTLD_DEFAULT, "opal_accelerator_base_selected_component");

    accelerator = dlsym(RTLD_DEFAULT, "opal_accelerator");
    if (accelerator == NULL || accelerator->check_addr == NULL || selected == NULL ||
        strcmp(selected->base_version.mca_component_name, "null") == 0)
        return NULL;
    return on_accelerator;
}

#else

typedef bool (*check_one_buf_t)(char *buffer, opal_convertor_t *convertor);

static check_one_buf_t check_one_buf;

static bool on_cuda(const void *p)
{
    /* Only for its flags. */
    opal_convertor_t convertor = {.flags = 0};

    return check_one_buf((char *)(uintptr_t)p, &convertor) &&
           (convertor.flags & CONVERTOR_CUDA_UNIFIED) == 0;
}

static onic_device_fn_t find(void)
{
    /* True in a build for CUDA, until CUDA is not found or the user does not want it. */
    const bool *wanted = dlsym(RTLD_DEFAULT, "opal_cuda_support");

    check_one_buf = (check_one_buf_t)dlsym(RTLD_DEFAULT, "opal_cuda_check_one_buf");
    return wanted != NULL && *wanted && check_one_buf != NULL ? on_cuda : NULL;
}

#endif

void onic_device_init(void)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

    pthread_mutex_lock(&mutex);
    if (!onic_devices_told())
        __atomic_store_n(&onic_device_fn, find(), __ATOMIC_RELEASE);
    pthread_mutex_unlock(&mutex);
}
