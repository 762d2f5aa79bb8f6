/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/config.h"

#if OMPI_NIC_HAVE_VERBS

#include <errno.h>
#include <infiniband/verbs.h>
#include <string.h>

#include "common/ompi_compat.h"
#include "opal/mca/rcache/rcache.h"
#include "opal/mca/rcache/base/base.h"

#include "common/verbs/registrations.h"

struct onic_registration {
    mca_rcache_base_registration_t super; /* first */
    struct ibv_mr *mr;
};

/** For the cache, which drops what it can do without and tries again as long as it is told that
 *  there is not room. */
static int register_memory(void *arg, void *base, size_t bytes, mca_rcache_base_registration_t *reg)
{
    const bool written = (reg->access_flags & MCA_RCACHE_ACCESS_LOCAL_WRITE) != 0;
    onic_registrations_t *r = arg;

    if (bytes > r->most)
        return OPAL_ERR_BAD_PARAM;
    if (r->held + bytes > r->most)
        return OPAL_ERR_OUT_OF_RESOURCE;
    ((onic_registration_t *)reg)->mr =
        ibv_reg_mr(r->pd, base, bytes, written ? IBV_ACCESS_LOCAL_WRITE : 0);
    /* Where it is not for want of room, as where not all of it is memory, nothing is dropped. */
    if (((onic_registration_t *)reg)->mr == NULL)
        return errno == ENOMEM || errno == EAGAIN ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_ERROR;
    r->held += bytes;
    r->made++;
    return OPAL_SUCCESS;
}

static int deregister_memory(void *arg, mca_rcache_base_registration_t *reg)
{
    struct ibv_mr *mr = ((onic_registration_t *)reg)->mr;
    onic_registrations_t *r = arg;

    r->held -= mr->length;
    return ibv_dereg_mr(mr) == 0 ? OPAL_SUCCESS : OPAL_ERROR;
}

bool onic_registrations_open(onic_registrations_t *r, struct ibv_pd *pd, size_t most)
{
    mca_rcache_base_resources_t resources = {.cache_name = "ompi-nic",
                                             .reg_data = r,
                                             .sizeof_reg = sizeof(onic_registration_t),
                                             .register_mem = register_memory,
                                             .deregister_mem = deregister_memory};

    *r = (onic_registrations_t){.pd = pd, .most = most};
    r->cache = mca_rcache_base_module_create("grdma", NULL, &resources);
    return r->cache != NULL;
}

void onic_registrations_close(onic_registrations_t *r)
{
    if (r->cache != NULL)
        (void)mca_rcache_base_module_destroy(r->cache);
    memset(r, 0, sizeof(*r));
}

onic_registration_t *onic_register(onic_registrations_t *r, const void *base, size_t bytes,
                                   bool written, onic_rdma_region_t *region)
{
    mca_rcache_base_registration_t *reg = NULL;
    /* Memory that is only read may not be writable. */
    const int access = written ? MCA_RCACHE_ACCESS_LOCAL_WRITE : 0;

    if (r->cache->rcache_register(r->cache, (void *)(uintptr_t)base, bytes, 0, access, &reg) !=
        OPAL_SUCCESS)
        return NULL;
    struct onic_registration *mine = (onic_registration_t *)reg;

    *region = (onic_rdma_region_t){
        .addr = (uintptr_t)mine->mr->addr, .bytes = mine->mr->length, .key = mine->mr->lkey};
    return mine;
}

void onic_unregister(onic_registrations_t *r, onic_registration_t *reg)
{
    (void)r->cache->rcache_deregister(r->cache, &reg->super);
}

#endif
