/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Resolving communication calls: may it be made now, what does it move, and does that stay inside
 * the target's window?
 */
#include <stddef.h>
#include <inttypes.h>

#include "osc_nicstride/target.h"
#include "osc_nicstride/component.h"
#include "osc_nicstride/counted.h"
#include "osc_nicstride/errors.h"
#include "osc_nicstride/module.h"
#include "common/device.h"
#include "common/flatten.h"
#include "common/help.h"

static const onic_layout_t no_layout;

/** NULL, or why the target may not be accessed now. */
static const char *enter_epoch(nicstride_module_t *m, int target)
{
    const char *wrong;

    OPAL_THREAD_LOCK(&m->lock);
    wrong = nicstride_epoch_access(&m->epoch, (uint32_t)target);
    OPAL_THREAD_UNLOCK(&m->lock);
    if (wrong == NULL && !nicstride_is_past_fence(m, target))
        nicstride_await_done(m, target);
    return wrong;
}

bool nicstride_may_enter(nicstride_module_t *m, int target)
{
    return enter_epoch(m, target) == NULL;
}

int nicstride_check_passive(nicstride_module_t *m, const char *call, int target)
{
    const char *wrong;

    OPAL_THREAD_LOCK(&m->lock);
    wrong = nicstride_epoch_passive(&m->epoch, (uint32_t)target);
    OPAL_THREAD_UNLOCK(&m->lock);
    if (wrong != NULL)
        return nicstride_error(m, call, OMPI_ERR_RMA_SYNC, "%s (target rank %d)", wrong, target);
    return OMPI_SUCCESS;
}

static int flatten(nicstride_module_t *m, const char *call, bool target, const ompi_datatype_t *dt,
                   size_t count, onic_layout_t *l)
{
    int rc = onic_flatten(dt, count, l);

    if (rc == OMPI_SUCCESS)
        return rc;
    *l = no_layout;
    if (rc == OMPI_ERR_OUT_OF_RESOURCE)
        return nicstride_error(m, call, rc, "no memory to describe a datatype");
    /* Sizes or offsets beyond 64 bits: at the target that is outside of any window. */
    return nicstride_error(m, call, target ? OMPI_ERR_RMA_RANGE : MPI_ERR_TYPE,
                           "what the %s datatype covers exceeds the address space",
                           target ? "target" : "origin");
}

int nicstride_check_host(const nicstride_module_t *m, const char *call, const char *what,
                         const void *base, const onic_layout_t *l)
{
    const char *first = (const char *)((uintptr_t)base + (uintptr_t)l->lb);
    const char *last = (const char *)((uintptr_t)base + (uintptr_t)l->ub - 1);

    if (!onic_devices_told() || l->size == 0 || (!onic_on_device(first) && !onic_on_device(last)))
        return OMPI_SUCCESS;
    return nicstride_error(m, call, MPI_ERR_BUFFER,
                           "the %s buffer, %p to %p, is memory of a device, and only host memory "
                           "is supported",
                           what, (const void *)first, (const void *)last);
}

static int out_of_bounds(nicstride_module_t *m, const nicstride_target_t *a, ptrdiff_t disp)
{
    const nicstride_rank_info_t *info = &m->info[a->peer->rank];

    return nicstride_error(m, a->call, OMPI_ERR_RMA_RANGE,
                           "displacement %td with a datatype that covers bytes %" PRId64
                           " to %" PRId64 " from there leaves the window of target rank %d, which "
                           "has %" PRIu64 " bytes and displacement unit %" PRIu32,
                           disp, a->target.lb, a->target.ub, a->peer->rank, info->size,
                           info->disp_unit);
}

/** Own memory of a dynamic window is checked here; that of others by them. */
static int check_attached(nicstride_module_t *m, const nicstride_target_t *a)
{
    bool inside;

    onic_wire_lock();
    inside = nicstride_regions_cover(&m->regions, (uint64_t)a->disp, &a->target);
    onic_wire_unlock();
    if (inside)
        return OMPI_SUCCESS;
    return nicstride_error(m, a->call, OMPI_ERR_RMA_RANGE,
                           "address %#" PRIx64 " is not in memory attached to the window",
                           (uint64_t)a->disp);
}

void nicstride_say_no_single_copy(void)
{
    static bool said;

    if (!said)
        onic_help("help-osc-nicstride.txt", "no-cma", nicstride_hostname());
    said = true;
}

bool nicstride_single_copy_works(nicstride_peer_t *p)
{
    if (p->local < 0 || !mca_osc_nicstride_component.params.cma)
        return false;

    int known = __atomic_load_n(&p->single_copy, __ATOMIC_RELAXED);

    if (known == 0) {
        onic_wire_lock();
        known = onic_peer_can_cma(p->wire) ? 1 : -1;
        onic_wire_unlock();
        __atomic_store_n(&p->single_copy, known, __ATOMIC_RELAXED);
        if (known < 0)
            nicstride_say_no_single_copy();
    }
    return known > 0;
}

/** Where the target's bytes are, and by which paths they can be reached. */
static int locate(nicstride_module_t *m, nicstride_target_t *a, ptrdiff_t disp)
{
    const int rank = a->peer->rank;
    const nicstride_rank_info_t *info = &m->info[rank];
    const bool dynamic = m->flavor == MPI_WIN_FLAVOR_DYNAMIC;

    a->disp = disp;
    if (!dynamic && __builtin_mul_overflow((int64_t)disp, (int64_t)info->disp_unit, &a->disp))
        return out_of_bounds(m, a, disp);
    if (!dynamic && !nicstride_layout_fits(&a->target, a->disp, info->size))
        return out_of_bounds(m, a, disp);
    if (dynamic && rank == m->rank) {
        int rc = check_attached(m, a);

        if (rc != OMPI_SUCCESS)
            return rc;
    }
    a->remote = info->base + (uint64_t)a->disp;
    if (rank == m->rank) {
        a->mapped = true;
        a->direct = (char *)(uintptr_t)a->remote;
    } else if (!dynamic && a->peer->local >= 0 && m->mapped[a->peer->local] != NULL) {
        a->mapped = true;
        a->direct = m->mapped[a->peer->local] + a->disp;
    } else {
        a->cma = nicstride_single_copy_works(a->peer);
    }
    return OMPI_SUCCESS;
}

int nicstride_target_init(nicstride_target_t *a, nicstride_module_t *m, const char *call,
                          const void *origin, size_t origin_count, ompi_datatype_t *origin_dt,
                          int target, ptrdiff_t target_disp, size_t target_count,
                          ompi_datatype_t *target_dt)
{
    const char *wrong;
    int rc = OMPI_SUCCESS;

    a->call = call;
    a->origin_base = (char *)(uintptr_t)origin;
    a->origin.nruns = 0;
    a->target.nruns = 0;
    a->direct = NULL;
    a->mapped = false;
    a->cma = false;
    a->peer = nicstride_peer(m, target);
    if (a->peer == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    wrong = enter_epoch(m, target);
    if (wrong != NULL)
        return nicstride_error(m, call, OMPI_ERR_RMA_SYNC, "%s (target rank %d)", wrong, target);
    if (origin_dt != NULL)
        rc = flatten(m, call, false, origin_dt, origin_count, &a->origin);
    if (rc == OMPI_SUCCESS)
        rc = flatten(m, call, true, target_dt, target_count, &a->target);
    if (rc == OMPI_SUCCESS && origin_dt != NULL && a->origin.size != a->target.size)
        rc = nicstride_error(m, call, MPI_ERR_TYPE,
                             "the origin buffer describes %" PRIu64
                             " bytes and the target buffer %" PRIu64,
                             a->origin.size, a->target.size);
    if (rc == OMPI_SUCCESS && origin_dt != NULL)
        rc = nicstride_check_host(m, call, "origin", origin, &a->origin);
    if (rc == OMPI_SUCCESS)
        rc = locate(m, a, target_disp);
    if (rc != OMPI_SUCCESS)
        nicstride_target_fini(a);
    return rc;
}

void nicstride_target_fini(nicstride_target_t *a)
{
    if (a->origin.nruns != 0)
        onic_layout_fini(&a->origin);
    if (a->target.nruns != 0)
        onic_layout_fini(&a->target);
}
