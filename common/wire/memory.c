/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file How much memory UCX may lock, and what it can have for that on InfiniBand and RoCE. With
 *  its own values it registers some 70 MiB for each device. Where it may not, processes that send
 *  to it wait for ever, and a rendezvous ends the program. */
#define _GNU_SOURCE
#include "opal_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "opal/util/output.h"
#include "opal/util/proc.h"

#include "common/wire/adapters.h"
#include "common/wire/memory_plan.h"
#include "common/wire/wire_internal.h"

/** Containers may see the adapters without these. */
#define DEVICE_FILES "/dev/infiniband"

/* ---- what there is -------------------------------------------------------------------------- */

/** May this process lock more than its limit? The kernel's answer depends on capabilities and user
 *  namespaces, so it is asked; nothing is locked for that but addresses. */
static bool limit_binds(uint64_t limit)
{
    size_t bytes = (size_t)sysconf(_SC_PAGESIZE), enough = (size_t)limit + bytes;
    void *at = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return true;
    /* One locked page that grows beyond the limit, and cannot be read: it is not walked through
     * then. Kernels before 5.18 refuse to lock what cannot be read. */
    bool binds = mlock2(at, bytes, MLOCK_ONFAULT) != 0 || mprotect(at, bytes, PROT_NONE) != 0;
    if (!binds) {
        void *grown = mremap(at, bytes, enough, MREMAP_MAYMOVE);
        binds = grown == MAP_FAILED;
        at = binds ? at : grown;
        bytes = binds ? bytes : enough;
    }
    munmap(at, bytes);
    return binds;
}

/** Bytes that are registered already: pml ucx may have taken its own. */
static uint64_t pinned(void)
{
    char line[128];
    unsigned long long kib = 0;
    FILE *f = fopen("/proc/self/status", "re");
    while (f != NULL && fgets(line, sizeof(line), f) != NULL &&
           sscanf(line, "VmPin: %llu", &kib) != 1) {
    }
    if (f != NULL)
        fclose(f);
    return kib << 10;
}

/** Bytes that may still be registered; UINT64_MAX where nothing limits them. */
static uint64_t registrable(void)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_MEMLOCK, &r) != 0 || r.rlim_cur >= 1ULL << 40 ||
        !limit_binds((uint64_t)r.rlim_cur))
        return UINT64_MAX;
    uint64_t taken = pinned();
    return r.rlim_cur > taken ? (uint64_t)r.rlim_cur - taken : 0;
}

static unsigned verbs_devices(void)
{
    return access(DEVICE_FILES, F_OK) == 0
               ? onic_adapters(ONIC_ADAPTERS, getenv("UCX_NET_DEVICES"), false)
               : 0;
}

bool onic_wire_registers(void)
{
    static const char *const others[] = {"/dev/xpmem", "/dev/knem", "/dev/nvidiactl", "/dev/kfd",
                                         "/dev/kgni0"};
    bool found = onic_tls_have(ONIC_TLS_VERBS, getenv("UCX_TLS")) && verbs_devices() > 0;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]) && !found; i++)
        found = access(others[i], F_OK) == 0;
    return found;
}

/* ---- what comes of it ----------------------------------------------------------------------- */

/** One process of each node speaks. */
static void say(uint64_t bytes, const char *what)
{
    if (opal_process_info.my_local_rank == 0) {
        opal_output(0,
                    "ompi-nic: only %llu KiB of memory may still be locked (ulimit -l), and UCX "
                    "wants %llu MiB and more for InfiniBand and RoCE: %s",
                    (unsigned long long)bytes >> 10, ONIC_DEVICE_BYTES >> 20, what);
    }
}

ucs_status_t onic_wire_fit_memory(onic_wire_config_t *config, char *tls, size_t size)
{
    const char *list = onic_wire_tls(config);
    unsigned devices = onic_tls_have(ONIC_TLS_VERBS, list) ? verbs_devices() : 0;
    uint64_t bytes = devices > 0 ? registrable() : UINT64_MAX;
    onic_memory_plan_t plan = onic_memory_plan(bytes, devices);

    onic_wire.small_queues = plan.queues == ONIC_MEMORY_SMALL;
    onic_wire.rndv_max = plan.rndv_max;
    onic_wire.rcache_max = plan.rcache_max;
    if (plan.queues == ONIC_MEMORY_SMALL)
        say(bytes, "its queues are made smaller");
    if (plan.queues != ONIC_MEMORY_NONE)
        return UCS_OK;
    if (!onic_tls_without_verbs(list, tls, size)) {
        say(bytes, "no other transport is allowed");
        return UCS_ERR_NO_DEVICE;
    }
    say(bytes, "it goes without them, which is slower");
    config->tls = tls;
    return UCS_OK;
}
