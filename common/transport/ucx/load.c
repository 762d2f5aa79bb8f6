/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

#include "common/support/help.h"
#include "common/transport/ucx/adapters.h"
#include "common/transport/ucx/internal.h"

#include "ompi/constants.h"
#include "opal/mca/memory/base/base.h"
#include "opal/memoryhooks/memory.h"

/** All of UCX 1.x. */
#define LIBRARY(prefix) "lib" #prefix ".so.0"
#define HOOKS           "UCX_MEM_MMAP_HOOK_MODE"

/** UCX's other libraries come with it. */
static bool load(void)
{
    return dlopen(LIBRARY(ucp), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) != NULL;
}

/** Where UCX keeps no memory registered its hooks are left out. Its events stay allowed: Open MPI's
 *  components tell UCX of memory by their own hooks. libucm never leaves a process, and where it
 *  has been another component may have installed its hooks, which call themselves without end in
 *  this mode. */
static bool load_without_hooks(void)
{
    void *before = dlopen(LIBRARY(ucm), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (before != NULL) {
        dlclose(before);
        return load();
    }
    setenv(HOOKS, "none", 0);
    const bool loaded = load();
    unsetenv(HOOKS);
    return loaded;
}

/** From the library that has it: what libucp brings along is not found through libucp where another
 *  component's libraries have brought libucp along. */
static void *find(const char *library, const char *name)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    void *at = handle != NULL ? dlsym(handle, name) : NULL;
    /* Behind it dlerror would have nothing to say. */
    if (at != NULL)
        dlclose(handle);
    return at;
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

static bool find_all(void)
{
    static const struct {
        const char *library, *name;
        void **at;
    } functions[] = {
#define ENTRY(prefix, name) {LIBRARY(prefix), #prefix "_" #name, (void **)&onic_ucx.name},
        ONIC_UCX_FUNCTIONS(ENTRY)
#undef ENTRY
    };
    bool found = true;
    for (size_t i = 0; found && i < sizeof(functions) / sizeof(functions[0]); i++)
        found = (*functions[i].at = find(functions[i].library, functions[i].name)) != NULL;
    return found;
}

int onic_ucx_load(bool opening)
{
    static bool loaded, hooks;
    if (!loaded) {
        hooks = onic_registers_here();
        const bool off = opening && !hooks && !onic_user_says("UCX_MEM_*");
        loaded = (off ? load_without_hooks() : load()) && find_all();
    }
    if (!loaded) {
        onic_say_once("ompi-nic: UCX cannot be loaded, so it is not used: %s", dlerror());
        return OMPI_ERROR;
    }
    if (hooks)
        install_hooks();
    return OMPI_SUCCESS;
}
