/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE
#include "common/ompi_compat.h"
#include "common/support/modex.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
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

#if ONIC_OMPI_AT_LEAST(5, 0)

bool onic_modex_put(const char *key, const char *text)
{
    int rc;
    OPAL_MODEX_SEND_STRING(rc, PMIX_GLOBAL, key, text, strlen(text) + 1);
    return rc == PMIX_SUCCESS;
}

static bool get(const opal_process_name_t *name, const char *key, uint8_t **bytes_p, size_t *len_p)
{
    int rc;
    OPAL_MODEX_RECV_STRING(rc, key, name, bytes_p, len_p);
    return rc == PMIX_SUCCESS;
}

/** The lowest rank of a node; false where there is none. */
static bool first_of(const char *node, opal_process_name_t *name_p)
{
    pmix_proc_t *procs = NULL;
    pmix_nspace_t job;
    size_t n = 0;

    PMIX_LOAD_NSPACE(job, opal_process_info.myprocid.nspace);
    if (PMIx_Resolve_peers(node, job, &procs, &n) != PMIX_SUCCESS || n == 0) {
        return false;
    }
    *name_p = (opal_process_name_t){OPAL_PROC_MY_NAME.jobid, procs[0].rank};
    for (size_t i = 1; i < n; i++) {
        name_p->vpid = procs[i].rank < name_p->vpid ? procs[i].rank : name_p->vpid;
    }
    PMIX_PROC_FREE(procs, n);
    return true;
}

static char *nodes_of_job(void)
{
    char *nodes = NULL;
    pmix_nspace_t job;

    PMIX_LOAD_NSPACE(job, opal_process_info.myprocid.nspace);
    return PMIx_Resolve_nodes(job, &nodes) == PMIX_SUCCESS ? nodes : NULL;
}

#else

/** A data symbol that 5.0 does not have: a reference to it would make the loader refuse this
 *  library there, before any code could say why. */
static const opal_pmix_base_module_t *pmix(void)
{
    return dlsym(RTLD_DEFAULT, "opal_pmix");
}

bool onic_modex_put(const char *key, const char *text)
{
    const opal_pmix_base_module_t *module = pmix();
    char *name = strdup(key), *bytes = strdup(text);
    opal_value_t value;
    bool done = false;

    if (module != NULL && module->put != NULL && name != NULL && bytes != NULL) {
        OBJ_CONSTRUCT(&value, opal_value_t);
        value.key = name;
        value.type = OPAL_BYTE_OBJECT;
        value.data.bo.bytes = (uint8_t *)bytes;
        value.data.bo.size = (int)strlen(bytes) + 1;
        done = module->put(OPAL_PMIX_GLOBAL, &value) == OPAL_SUCCESS;
        value.key = NULL;
        value.data.bo.bytes = NULL;
        OBJ_DESTRUCT(&value);
    }
    free(name);
    free(bytes);
    return done;
}

static bool get(const opal_process_name_t *name, const char *key, uint8_t **bytes_p, size_t *len_p)
{
    const opal_pmix_base_module_t *module = pmix();
    opal_value_t *value = NULL;
    bool found;

    if (module == NULL || module->get == NULL) {
        return false;
    }
    found = module->get(name, key, NULL, &value) == OPAL_SUCCESS && value != NULL &&
            value->type == OPAL_BYTE_OBJECT;
    if (found) {
        *bytes_p = value->data.bo.bytes;
        *len_p = (size_t)value->data.bo.size;
        value->data.bo.bytes = NULL;
    }
    if (value != NULL) {
        OBJ_RELEASE(value);
    }
    return found;
}

/** The lowest rank of a node; false where there is none. */
static bool first_of(const char *node, opal_process_name_t *name_p)
{
    opal_namelist_t *name;
    opal_list_t procs;
    bool found = false;

    OBJ_CONSTRUCT(&procs, opal_list_t);
    if (pmix()->resolve_peers(node, OPAL_PROC_MY_NAME.jobid, &procs) == OPAL_SUCCESS) {
        OPAL_LIST_FOREACH(name, &procs, opal_namelist_t)
        {
            if (!found || name->name.vpid < name_p->vpid) {
                *name_p = (opal_process_name_t){OPAL_PROC_MY_NAME.jobid, name->name.vpid};
            }
            found = true;
        }
    }
    OPAL_LIST_DESTRUCT(&procs);
    return found;
}

static char *nodes_of_job(void)
{
    const opal_pmix_base_module_t *module = pmix();
    char *nodes = NULL;

    if (module == NULL || module->resolve_nodes == NULL || module->resolve_peers == NULL ||
        module->resolve_nodes(OPAL_PROC_MY_NAME.jobid, &nodes) != OPAL_SUCCESS) {
        return NULL;
    }
    return nodes;
}

#endif

/** All of the list have a first process. */
static bool all_have_first(const char *nodes)
{
    char *copy = strdup(nodes), *at = NULL;
    opal_process_name_t first;
    bool all = copy != NULL && nodes[0] != '\0';

    for (char *node = all ? strtok_r(copy, ",", &at) : NULL; node != NULL && all;
         node = strtok_r(NULL, ",", &at)) {
        all = first_of(node, &first);
    }
    free(copy);
    return all;
}

bool onic_modex_nodes(bool (*visit)(opal_process_name_t first, void *arg), void *arg)
{
    char *nodes = nodes_of_job(), *at = NULL;
    opal_process_name_t first;

    if (nodes == NULL || !all_have_first(nodes)) {
        free(nodes);
        return false;
    }
    for (char *node = strtok_r(nodes, ",", &at); node != NULL; node = strtok_r(NULL, ",", &at)) {
        if (first_of(node, &first) && !visit(first, arg)) {
            break;
        }
    }
    free(nodes);
    return true;
}

bool onic_modex_get(opal_process_name_t name, const char *key, char *text, size_t size)
{
    uint8_t *bytes = NULL;
    size_t len = 0;
    bool found = get(&name, key, &bytes, &len) && bytes != NULL && len > 0;

    text[0] = '\0';
    if (found) {
        snprintf(text, size, "%.*s", (int)len, (const char *)bytes);
    }
    free(bytes);
    return found;
}
