/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/config.h"

#if OMPI_NIC_HAVE_VERBS

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#include "common/ompi_compat.h"
#include "opal/mca/rcache/rcache.h"
#include "opal/mca/rcache/base/base.h"

#include "common/verbs/registrations.h"
#include "common/wire/ucx.h"

/** One of the adapter's. */
typedef struct onic_registered {
    struct onic_registered *next; /**< among those that are to go */
    struct ibv_mr *mr;
} registered_t;

struct onic_registration {
    mca_rcache_base_registration_t super; /* first */
    registered_t *made;
};

/** Some that the cache has dropped with its lock held. That cannot be done there: it frees memory,
 *  whose lock another thread may have that is about to tell the cache of memory given back. */
static void release_dropped(onic_registrations_t *r)
{
    while (r->dropped != NULL) {
        registered_t *gone = r->dropped;

        r->dropped = gone->next;
        (void)ibv_dereg_mr(gone->mr);
        free(gone);
    }
}

/** For the cache, which drops what it can do without and tries again as long as it is told that
 *  there is not room. */
static int register_memory(void *arg, void *base, size_t bytes, mca_rcache_base_registration_t *reg)
{
    const bool written = (reg->access_flags & MCA_RCACHE_ACCESS_LOCAL_WRITE) != 0;
    onic_registrations_t *r = arg;

    release_dropped(r);
    if (bytes > r->most)
        return OPAL_ERR_BAD_PARAM;
    if (r->held + bytes > r->most)
        return OPAL_ERR_OUT_OF_RESOURCE;
    registered_t *made = malloc(sizeof(*made));
    if (made == NULL)
        return OPAL_ERROR;
    made->mr = ibv_reg_mr(r->pd, base, bytes, written ? IBV_ACCESS_LOCAL_WRITE : 0);
    /* Where it is not for want of room, as where not all of it is memory, nothing is dropped. */
    if (made->mr == NULL) {
        const int error = errno;

        free(made);
        return error == ENOMEM || error == EAGAIN ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_ERROR;
    }
    ((onic_registration_t *)reg)->made = made;
    r->held += bytes;
    r->made++;
    return OPAL_SUCCESS;
}

static int deregister_memory(void *arg, mca_rcache_base_registration_t *reg)
{
    registered_t *made = ((onic_registration_t *)reg)->made;
    onic_registrations_t *r = arg;

    r->held -= made->mr->length;
    made->next = r->dropped;
    r->dropped = made;
    return OPAL_SUCCESS;
}

/** A heap that shrinks is seen by UCX's hooks alone where they came before Open MPI's: UCX's sbrk
 * does without the brk of the C library, which is what Open MPI stands before. Within a call that
 * gives memory back, so nothing is allocated here. */
static void forget_freed(ucm_event_type_t type, ucm_event_t *event, void *arg)
{
    onic_registrations_t *r = arg;

    (void)type;
    (void)r->cache->rcache_invalidate_range(r->cache, event->vm_unmapped.address,
                                            event->vm_unmapped.size);
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
    if (r->cache == NULL)
        return false;
    /* UCX's hooks are there already or, where it is told not to, never. */
    (void)onic_ucx.set_event_handler(UCM_EVENT_VM_UNMAPPED | UCM_EVENT_FLAG_NO_INSTALL, 0,
                                     forget_freed, r);
    return true;
}

void onic_registrations_close(onic_registrations_t *r)
{
    if (r->cache != NULL) {
        onic_ucx.unset_event_handler(UCM_EVENT_VM_UNMAPPED, forget_freed, r);
        (void)mca_rcache_base_module_destroy(r->cache);
    }
    release_dropped(r);
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
    const struct ibv_mr *mr = ((onic_registration_t *)reg)->made->mr;

    *region =
        (onic_rdma_region_t){.addr = (uintptr_t)mr->addr, .bytes = mr->length, .key = mr->lkey};
    return (onic_registration_t *)reg;
}

void onic_unregister(onic_registrations_t *r, onic_registration_t *reg)
{
    (void)r->cache->rcache_deregister(r->cache, &reg->super);
    release_dropped(r);
}

#endif
