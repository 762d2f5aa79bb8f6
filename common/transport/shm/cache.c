/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The caches, the processor and the place of this process, from Open MPI's topology, and how
 *  far others are. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/transport/shm/node.h"
#include "common/ompi_compat.h"

#include "ompi/constants.h"
#include "ompi/proc/proc.h"
#if __has_include("opal/mca/hwloc/base/base.h")
#include "opal/mca/hwloc/base/base.h"
#else
#include "opal/hwloc/hwloc-internal.h"
#endif

/* By its name of each series. */
#ifdef OPAL_PROC_ON_LOCAL_PACKAGE
#define ON_PACKAGE(flags) OPAL_PROC_ON_LOCAL_PACKAGE(flags)
#else
#define ON_PACKAGE(flags) OPAL_PROC_ON_LOCAL_SOCKET(flags)
#endif

/** What is assumed where the topology cannot tell. */
#define L2_DEFAULT ((size_t)1 << 20)

static size_t l2_size(hwloc_topology_t topology)
{
    hwloc_obj_t cache = hwloc_get_obj_by_type(topology, HWLOC_OBJ_L2CACHE, 0);
    if (cache == NULL || cache->attr == NULL || cache->attr->cache.size == 0)
        return L2_DEFAULT;
    return (size_t)cache->attr->cache.size;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static size_t l2 = L2_DEFAULT;
static onic_locality_t place = {.package = -1, .numa = -1, .cache = -1};
static onic_processor_t processor;
static int caches = 1;
static bool cache_known;

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

/** FNV-1a over the indices of the set. */
static uint64_t hash(hwloc_const_cpuset_t set)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (int i = hwloc_bitmap_first(set); i >= 0; i = hwloc_bitmap_next(set, i))
        h = (h ^ (uint64_t)i) * 0x100000001b3u;
    return h;
}

static void find_place(hwloc_topology_t topology)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    if (set != NULL && hwloc_get_cpubind(topology, set, HWLOC_CPUBIND_PROCESS) == 0 &&
        !hwloc_bitmap_iszero(set)) {
        place.package = holder(topology, HWLOC_OBJ_PACKAGE, set);
        place.numa = holder(topology, HWLOC_OBJ_NUMANODE, set);
        place.cache = cache_holder(topology, set);
        place.processors = hwloc_bitmap_weight(set);
        place.processor_set = hash(set);
    }
    hwloc_bitmap_free(set);
}

static int number(hwloc_obj_t obj, const char *name)
{
    const char *text = hwloc_obj_get_info_by_name(obj, name);

    return text != NULL ? atoi(text) : 0;
}

/** A cache that no level tells of counts as shared in each package. */
static void find_processor(hwloc_topology_t topology)
{
    hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
    const char *vendor = package != NULL ? hwloc_obj_get_info_by_name(package, "CPUVendor") : NULL;

    cache_known = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_L3CACHE) > 0;
    caches =
        hwloc_get_nbobjs_by_type(topology, cache_known ? HWLOC_OBJ_L3CACHE : HWLOC_OBJ_PACKAGE);
    if (vendor == NULL)
        return;
    snprintf(processor.vendor, sizeof(processor.vendor), "%s", vendor);
    processor.family = number(package, "CPUFamilyNumber");
    processor.model = number(package, "CPUModelNumber");
}

/** Open MPI loads its topology on demand, and not safely from two threads: once is enough. */
static void look(void)
{
    if (opal_hwloc_base_get_topology() == OPAL_SUCCESS && opal_hwloc_topology != NULL) {
        l2 = l2_size(opal_hwloc_topology);
        find_place(opal_hwloc_topology);
        find_processor(opal_hwloc_topology);
    }
}

onic_locality_t onic_locality(void)
{
    pthread_once(&once, look);
    return place;
}

size_t onic_l2_size(void)
{
    pthread_once(&once, look);
    return l2;
}

onic_processor_t onic_processor(void)
{
    pthread_once(&once, look);
    return processor;
}

onic_kind_t onic_distance(uint64_t name)
{
    const opal_process_name_t process = {(opal_jobid_t)(name >> 32), (opal_vpid_t)name};
    ompi_proc_t *proc = (ompi_proc_t *)ompi_proc_lookup(process);
    const unsigned shared =
        proc != NULL && !ompi_proc_is_sentinel(proc) ? proc->super.proc_flags : 0;

    pthread_once(&once, look);
    return caches <= 1 || (cache_known ? OPAL_PROC_ON_LOCAL_L3CACHE(shared) : ON_PACKAGE(shared))
               ? ONIC_NEAR
               : ONIC_FAR;
}
