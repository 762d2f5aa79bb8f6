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

/** What PMIx was told of the job when this process was started, or of one of its nodes. Not by
 * PMIx_Resolve_nodes and PMIx_Resolve_peers, which ask the daemon first: that of Open MPI 5.0.7
 * does not know the question and prints so. NULL or to be freed by PMIX_VALUE_RELEASE. */
static pmix_value_t *told(const char *node, const char *key, pmix_data_type_t type)
{
    pmix_value_t *value = NULL;
    pmix_proc_t job;
    pmix_info_t info[3];

    PMIX_LOAD_PROCID(&job, opal_process_info.myprocid.nspace, PMIX_RANK_WILDCARD);
    PMIX_INFO_LOAD(&info[0], PMIX_OPTIONAL, NULL, PMIX_BOOL);
    PMIX_INFO_LOAD(&info[1], PMIX_NODE_INFO, NULL, PMIX_BOOL);
    PMIX_INFO_LOAD(&info[2], PMIX_HOSTNAME, node, PMIX_STRING);
    pmix_status_t rc = PMIx_Get(&job, key, info, node == NULL ? 1 : 3, &value);
    for (int i = 0; i < 3; i++)
        PMIX_INFO_DESTRUCT(&info[i]);
    if (rc != PMIX_SUCCESS || value == NULL)
        return NULL;
    if (value->type != type)
        PMIX_VALUE_RELEASE(value);
    return value;
}

/** The lowest rank of a node; false where there is none. */
static bool first_of(const char *node, opal_process_name_t *name_p)
{
    pmix_value_t *leader = told(node, PMIX_LOCALLDR, PMIX_PROC_RANK);

    if (leader == NULL)
        return false;
    *name_p = (opal_process_name_t){OPAL_PROC_MY_NAME.jobid, leader->data.rank};
    PMIX_VALUE_RELEASE(leader);
    return true;
}

static char *nodes_of_job(void)
{
    pmix_value_t *nodes = told(NULL, PMIX_NODE_LIST, PMIX_STRING);
    char *copy = NULL;

    if (nodes != NULL) {
        copy = strdup(nodes->data.string);
        PMIX_VALUE_RELEASE(nodes);
    }
    return copy;
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
            if (!found || name->name.vpid < name_p->vpid)
                *name_p = (opal_process_name_t){OPAL_PROC_MY_NAME.jobid, name->name.vpid};
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
        module->resolve_nodes(OPAL_PROC_MY_NAME.jobid, &nodes) != OPAL_SUCCESS)
        return NULL;
    return nodes;
}

#endif

bool onic_modex_nodes(bool (*visit)(opal_process_name_t first, void *arg), void *arg)
{
    char *nodes = nodes_of_job(), *at = NULL;
    opal_process_name_t first;
    bool known = nodes != NULL && nodes[0] != '\0', more = known;

    for (char *node = known ? strtok_r(nodes, ",", &at) : NULL; node != NULL && more;
         node = strtok_r(NULL, ",", &at)) {
        known = first_of(node, &first);
        more = known && visit(first, arg);
    }
    free(nodes);
    return known;
}

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
