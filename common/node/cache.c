/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Sizes of the caches and the place of this process, from Open MPI's topology. */
#include <pthread.h>

#include "common/node/node.h"
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
    if (cache == NULL || cache->attr == NULL || cache->attr->cache.size == 0)
        return fallback;
    return (size_t)cache->attr->cache.size;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static size_t l2 = L2_DEFAULT, l3 = L3_DEFAULT;
static onic_locality_t place = {-1, -1, -1};

/** Index of the object of this type that holds all of `set`, or -1 where none does. */
static int32_t holder(hwloc_topology_t topology, hwloc_obj_type_t type, hwloc_const_cpuset_t set)
{
    for (hwloc_obj_t obj = hwloc_get_next_obj_by_type(topology, type, NULL); obj != NULL;
         obj = hwloc_get_next_obj_by_type(topology, type, obj))
        if (hwloc_bitmap_isincluded(set, obj->cpuset))
            return (int32_t)obj->logical_index;
    return -1;
}

/** The last cache that cores share, in the sizes that processors have them. */
static int32_t cache_holder(hwloc_topology_t topology, hwloc_const_cpuset_t set)
{
    int32_t l3_index = holder(topology, HWLOC_OBJ_L3CACHE, set);
    return l3_index >= 0 ? l3_index : holder(topology, HWLOC_OBJ_L2CACHE, set);
}

static void find_place(hwloc_topology_t topology)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    if (set != NULL && hwloc_get_cpubind(topology, set, HWLOC_CPUBIND_PROCESS) == 0 &&
        !hwloc_bitmap_iszero(set)) {
        place.package = holder(topology, HWLOC_OBJ_PACKAGE, set);
        place.numa = holder(topology, HWLOC_OBJ_NUMANODE, set);
        place.cache = cache_holder(topology, set);
    }
    hwloc_bitmap_free(set);
}

/** Open MPI loads its topology on demand, and not safely from two threads: once is enough. */
static void look(void)
{
    if (opal_hwloc_base_get_topology() == OPAL_SUCCESS && opal_hwloc_topology != NULL) {
        l2 = cache_size(opal_hwloc_topology, HWLOC_OBJ_L2CACHE, L2_DEFAULT);
        l3 = cache_size(opal_hwloc_topology, HWLOC_OBJ_L3CACHE, L3_DEFAULT);
        find_place(opal_hwloc_topology);
    }
}

onic_locality_t onic_locality(void)
{
    pthread_once(&once, look);
    return place;
}

void onic_cache_sizes(size_t *l2_p, size_t *l3_p)
{
    pthread_once(&once, look);
    *l2_p = l2;
    *l3_p = l3;
}
