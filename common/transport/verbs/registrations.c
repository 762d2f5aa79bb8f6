/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/config.h"

#if OMPI_NIC_HAVE_VERBS

#include <errno.h>
#include <infiniband/verbs.h>
#include <string.h>
#include <ucm/api/ucm.h>

#include "common/ompi_compat.h"
#include "opal/mca/rcache/rcache.h"
#include "opal/mca/rcache/base/base.h"

#include "common/transport/verbs/registrations.h"

struct onic_registration {
    mca_rcache_base_registration_t super; /* first */
    struct ibv_mr *mr;
};

/** For the cache. It is never told that there is no room: what it drops then it drops with a lock
 *  held that a thread waits for which tells it of memory given back, with locks of malloc. */
static int register_memory(void *arg, void *base, size_t bytes, mca_rcache_base_registration_t *reg)
{
    const bool written = (reg->access_flags & MCA_RCACHE_ACCESS_LOCAL_WRITE) != 0;
    onic_registrations_t *r = arg;
    struct ibv_mr *mr = NULL;

    r->full = r->held + bytes > r->most;
    if (!r->full) {
        mr = ibv_reg_mr(r->pd, base, bytes, written ? IBV_ACCESS_LOCAL_WRITE : 0);
        /* Else not all of it is memory. */
        r->full = mr == NULL && (errno == ENOMEM || errno == EAGAIN);
    }
    if (mr == NULL)
        return OPAL_ERROR;
    ((onic_registration_t *)reg)->mr = mr;
    r->held += bytes;
    return OPAL_SUCCESS;
}

static int deregister_memory(void *arg, mca_rcache_base_registration_t *reg)
{
    struct ibv_mr *mr = ((onic_registration_t *)reg)->mr;
    onic_registrations_t *r = arg;

    r->held -= mr->length;
    return ibv_dereg_mr(mr) == 0 ? OPAL_SUCCESS : OPAL_ERROR;
}

/** A heap that shrinks is seen by UCX's hooks alone where they came before Open MPI's: UCX's sbrk
 *  does without the brk of the C library, which is what Open MPI stands before. Within a call that
 *  gives memory back, so nothing is allocated here. */
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
    (void)ucm_set_event_handler(UCM_EVENT_VM_UNMAPPED | UCM_EVENT_FLAG_NO_INSTALL, 0, forget_freed,
                                r);
    return true;
}

void onic_registrations_close(onic_registrations_t *r)
{
    if (r->cache != NULL) {
        ucm_unset_event_handler(UCM_EVENT_VM_UNMAPPED, forget_freed, r);
        (void)mca_rcache_base_module_destroy(r->cache);
    }
    memset(r, 0, sizeof(*r));
}

static bool register_once(onic_registrations_t *r, const void *base, size_t bytes, int access,
                          mca_rcache_base_registration_t **reg_p)
{
    r->full = false;
    return r->cache->rcache_register(r->cache, (void *)(uintptr_t)base, bytes, 0, access, reg_p) ==
           OPAL_SUCCESS;
}

onic_registration_t *onic_register(onic_registrations_t *r, const void *base, size_t bytes,
                                   bool written, uint32_t *key)
{
    mca_rcache_base_registration_t *reg = NULL;
    /* Memory that is only read may not be writable. */
    const int access = written ? MCA_RCACHE_ACCESS_LOCAL_WRITE : 0;

    bool had = register_once(r, base, bytes, access, &reg);
    if (!had && r->full && bytes <= r->most) {
        /* All that is not in use goes when the cache is asked again. */
        (void)r->cache->rcache_invalidate_range(r->cache, NULL, SIZE_MAX);
        had = register_once(r, base, bytes, access, &reg);
    }
    if (!had)
        return NULL;
    const struct ibv_mr *mr = ((onic_registration_t *)reg)->mr;

    *key = mr->lkey;
    return (onic_registration_t *)reg;
}

void onic_unregister(onic_registrations_t *r, onic_registration_t *reg)
{
    (void)r->cache->rcache_deregister(r->cache, &reg->super);
}

#endif
