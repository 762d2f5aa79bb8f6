/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

#include "common/wire/wire_internal.h"

#include "ompi/constants.h"
#include "opal/util/output.h"

/** All of UCX 1.x; it brings libucs, in which ucs_status_string is. */
#define LIBRARY "libucp.so.0"
#define HOOKS   "UCX_MEM_MMAP_HOOK_MODE"

/** Events stay allowed: Open MPI's components tell UCX of memory by their own hooks. */
static void *load(void)
{
    const bool off = !onic_user_says("UCX_MEM_*") && !onic_wire_registers();
    if (off)
        setenv(HOOKS, "none", 0);
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (off)
        unsetenv(HOOKS);
    return library;
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
    static bool loaded;
    void *library = loaded ? NULL : load();
    bool found = loaded || library != NULL;
    for (size_t i = 0; !loaded && found && i < sizeof(functions) / sizeof(functions[0]); i++)
        found = (*functions[i].at = dlsym(library, functions[i].name)) != NULL;
    if (!found)
        opal_output(0, "ompi-nic: UCX cannot be loaded: %s", dlerror());
    loaded = found;
    return found ? OMPI_SUCCESS : OMPI_ERROR;
}
