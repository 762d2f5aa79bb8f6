/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE
#include "common/ompi_compat.h"
#include "common/support/modex.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "opal/util/proc.h"
#if ONIC_OMPI_AT_LEAST(5, 0)
#include "opal/mca/pmix/pmix-internal.h"
#else
#include "opal/class/opal_object.h"
#include "opal/dss/dss_types.h"
#include "opal/mca/pmix/pmix.h"
/* Not in 5.0, where this library is to load all the same and say that it is for 4.1. */
#pragma weak opal_value_t_class
#endif

/** Fences that this process has entered, and those of them that have ended. */
static atomic_uint fences_begun, fences_ended;

/** An int is PMIx's status, too. */
static void fence_ended(int status, void *arg)
{
    (void)status;
    (void)arg;
    atomic_fetch_add(&fences_ended, 1);
}

#if ONIC_OMPI_AT_LEAST(5, 0)

bool onic_modex_put_bytes(const char *key, const void *bytes, size_t len)
{
    int rc;
    OPAL_MODEX_SEND_STRING(rc, PMIX_GLOBAL, key, bytes, len);
    return rc == PMIX_SUCCESS;
}

static bool fence(void)
{
    return PMIx_Commit() == PMIX_SUCCESS &&
           PMIx_Fence_nb(NULL, 0, NULL, 0, fence_ended, NULL) == PMIX_SUCCESS;
}

static bool get(const opal_process_name_t *name, const char *key, uint8_t **bytes_p, size_t *len_p)
{
    int rc;
    OPAL_MODEX_RECV_STRING(rc, key, name, bytes_p, len_p);
    return rc == PMIX_SUCCESS;
}

#else

/** A data symbol that 5.0 does not have: a reference to it would make the loader refuse this
 *  library there, before any code could say why. */
static const opal_pmix_base_module_t *pmix(void)
{
    return dlsym(RTLD_DEFAULT, "opal_pmix");
}

bool onic_modex_put_bytes(const char *key, const void *bytes, size_t len)
{
    const opal_pmix_base_module_t *module = pmix();
    char *name = strdup(key);
    opal_value_t value;
    bool done = false;

    if (module != NULL && module->put != NULL && name != NULL) {
        OBJ_CONSTRUCT(&value, opal_value_t);
        value.key = name;
        value.type = OPAL_BYTE_OBJECT;
        value.data.bo.bytes = (uint8_t *)(uintptr_t)bytes;
        value.data.bo.size = (int)len;
        done = module->put(OPAL_PMIX_GLOBAL, &value) == OPAL_SUCCESS;
        value.key = NULL;
        value.data.bo.bytes = NULL;
        OBJ_DESTRUCT(&value);
    }
    free(name);
    return done;
}

static bool fence(void)
{
    const opal_pmix_base_module_t *module = pmix();

    return module != NULL && module->commit != NULL && module->fence_nb != NULL &&
           module->commit() == OPAL_SUCCESS &&
           module->fence_nb(NULL, 0, fence_ended, NULL) == OPAL_SUCCESS;
}

static bool get(const opal_process_name_t *name, const char *key, uint8_t **bytes_p, size_t *len_p)
{
    const opal_pmix_base_module_t *module = pmix();
    opal_value_t *value = NULL;
    bool found;

    if (module == NULL || module->get == NULL)
        return false;
    found = module->get(name, key, NULL, &value) == OPAL_SUCCESS && value != NULL &&
            value->type == OPAL_BYTE_OBJECT;
    if (found) {
        *bytes_p = value->data.bo.bytes;
        *len_p = (size_t)value->data.bo.size;
        value->data.bo.bytes = NULL;
    }
    if (value != NULL)
        OBJ_RELEASE(value);
    return found;
}

#endif

void *onic_modex_get_bytes(opal_process_name_t name, const char *key, size_t *len_p)
{
    uint8_t *bytes = NULL;

    *len_p = 0;
    if (!get(&name, key, &bytes, len_p) || *len_p == 0) {
        free(bytes);
        return NULL;
    }
    return bytes;
}

bool onic_modex_fence_begin(void)
{
    atomic_fetch_add(&fences_begun, 1);
    if (!fence()) {
        atomic_fetch_sub(&fences_begun, 1);
        return false;
    }
    return true;
}

bool onic_modex_fence_ended(void)
{
    return atomic_load(&fences_ended) == atomic_load(&fences_begun);
}
