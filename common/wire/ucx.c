/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

#include "common/wire/wire_internal.h"

#include "ompi/constants.h"
#include "opal/mca/memory/base/base.h"
#include "opal/memoryhooks/memory.h"
#include "opal/util/output.h"

/** All of UCX 1.x; it brings libucs and libucm. */
#define LIBRARY "libucp.so.0"
#define HOOKS   "UCX_MEM_MMAP_HOOK_MODE"

/** Where UCX keeps no memory registered its hooks are left out. Its events stay allowed: Open MPI's
 *  components tell UCX of memory by their own hooks. */
static void *load(bool hooks)
{
    const bool off = !hooks && !onic_user_says("UCX_MEM_*");
    if (off)
        setenv(HOOKS, "none", 0);
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (off)
        unsetenv(HOOKS);
    return library;
}

static void tell_of_freed(void *base, size_t bytes, void *arg, bool from_alloc)
{
    (void)arg;
    (void)from_alloc;
    onic_ucx.vm_munmap(base, bytes);
}

/** Any component that keeps memory registered has Open MPI's hooks installed, and behind them UCX's
 *  see next to nothing. So they are installed now, before UCX makes its caches of registrations, as
 *  Open MPI's own UCX components do, and UCX is told; else it would find its hooks without effect
 *  and cache nothing. They stay: once closed they cannot be opened again. Whom they tell is
 *  forgotten when MPI is finalised, and it may be initialised again. */
static void install_hooks(void)
{
    if (mca_base_framework_open(&opal_memory_base_framework, 0) == OPAL_SUCCESS &&
        opal_mem_hooks_register_release(tell_of_freed, NULL) == OPAL_SUCCESS)
        onic_ucx.set_external_event(UCM_EVENT_VM_UNMAPPED);
}

int onic_ucx_load(void)
{
    static const struct {
        const char *name;
        void **at;
    } functions[] = {
#define ENTRY(prefix, name) {#prefix "_" #name, (void **)&onic_ucx.name},
        ONIC_UCX_FUNCTIONS(ENTRY)
#undef ENTRY
    };
    static bool loaded, hooks;
    hooks = loaded ? hooks : onic_wire_registers();
    void *library = loaded ? NULL : load(hooks);
    bool found = loaded || library != NULL;
    for (size_t i = 0; !loaded && found && i < sizeof(functions) / sizeof(functions[0]); i++)
        found = (*functions[i].at = dlsym(library, functions[i].name)) != NULL;
    if (!found)
        opal_output(0, "ompi-nic: UCX cannot be loaded: %s", dlerror());
    if (found && hooks)
        install_hooks();
    loaded = found;
    return found ? OMPI_SUCCESS : OMPI_ERROR;
}
