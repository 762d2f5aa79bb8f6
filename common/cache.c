/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Sizes of the caches, from the topology that Open MPI has loaded.
 */
#include <pthread.h>

#include "common/node.h"
#include "common/ompi_compat.h"

#include "ompi/constants.h"
#if __has_include("opal/mca/hwloc/base/base.h")
#include "opal/mca/hwloc/base/base.h"
#else
#include "opal/hwloc/hwloc-internal.h"
#endif

/** What is assumed where the topology cannot tell. */
#define L2_DEFAULT ((size_t)1 << 20)
#define L3_DEFAULT ((size_t)32 << 20)

static size_t cache_size(hwloc_topology_t topology, hwloc_obj_type_t level, size_t fallback)
{
    hwloc_obj_t cache = hwloc_get_obj_by_type(topology, level, 0);
    if (cache == NULL || cache->attr == NULL || cache->attr->cache.size == 0) {
        return fallback;
    }
    return (size_t)cache->attr->cache.size;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static size_t l2 = L2_DEFAULT, l3 = L3_DEFAULT;

/** Open MPI loads its topology on demand, and not safely from two threads: once is enough. */
static void look(void)
{
    if (opal_hwloc_base_get_topology() == OPAL_SUCCESS && opal_hwloc_topology != NULL) {
        l2 = cache_size(opal_hwloc_topology, HWLOC_OBJ_L2CACHE, L2_DEFAULT);
        l3 = cache_size(opal_hwloc_topology, HWLOC_OBJ_L3CACHE, L3_DEFAULT);
    }
}

void onic_cache_sizes(size_t *l2_p, size_t *l3_p)
{
    pthread_once(&once, look);
    *l2_p = l2;
    *l3_p = l3;
}
