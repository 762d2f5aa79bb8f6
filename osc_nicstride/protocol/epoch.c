/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The synchronisation state; see epoch.h. Rules of MPI-3.1, chapter 11.5: access epochs of a
 *  window do not overlap, but any number of single targets may be locked at the same time. A fence
 *  epoch exists only if communication happens in it (`used`). The exposure epoch of post is
 *  independent of the access epoch, but a fence, which is both, requires that neither is open. */
#include "osc_nicstride/protocol/epoch.h"

#include <string.h>

void nicstride_epoch_init(nicstride_epoch_t *e, uint32_t n, uint8_t *target)
{
    memset(target, 0, n);
    *e = (nicstride_epoch_t){.access = NICSTRIDE_ACCESS_NONE, .n = n, .target = target};
}

/* The name of the open epoch if it is not a fence epoch; NULL if there is none. */
static const char *bound(const nicstride_epoch_t *e)
{
    switch (e->access) {
    case NICSTRIDE_ACCESS_PSCW:
        return "an access epoch begun by MPI_Win_start is still open";
    case NICSTRIDE_ACCESS_LOCK:
        return "a lock is still held";
    case NICSTRIDE_ACCESS_LOCK_ALL:
        return "all targets are still locked by MPI_Win_lock_all";
    case NICSTRIDE_ACCESS_NONE:
    case NICSTRIDE_ACCESS_FENCE:
        break;
    }
    return NULL;
}

/* Why no access epoch can be opened now; NULL if one can. */
static const char *busy(const nicstride_epoch_t *e)
{
    if (e->access == NICSTRIDE_ACCESS_FENCE && e->used)
        return "communication in the fence epoch has not been closed by another MPI_Win_fence";
    return bound(e);
}

static const char *exposed_still(const nicstride_epoch_t *e)
{
    return e->exposed ? "an exposure epoch begun by MPI_Win_post is still open" : NULL;
}

static void begin(nicstride_epoch_t *e, nicstride_access_t access)
{
    /* The helper thread reads this, too. */
    __atomic_store_n(&e->access, access, __ATOMIC_RELAXED);
    e->used = false;
}

const char *nicstride_epoch_fence(nicstride_epoch_t *e, bool nosucceed)
{
    const char *why = bound(e);

    if (why == NULL)
        why = exposed_still(e);
    if (why == NULL)
        begin(e, nosucceed ? NICSTRIDE_ACCESS_NONE : NICSTRIDE_ACCESS_FENCE);
    return why;
}

/* Marks the targets of a start. None may be marked or locked; if one is wrong, none is marked. */
static const char *mark_started(nicstride_epoch_t *e, const int *ranks, int ngroup)
{
    for (int i = 0; i < ngroup; i++) {
        const char *why = NULL;
        if (ranks[i] < 0 || (uint32_t)ranks[i] >= e->n)
            why = NICSTRIDE_NO_SUCH_TARGET;
        else if (e->target[ranks[i]] != 0)
            why = "a rank is named twice in the group";
        if (why != NULL) {
            while (i-- > 0)
                e->target[ranks[i]] = 0;
            return why;
        }
        e->target[ranks[i]] = NICSTRIDE_TARGET_STARTED;
    }
    return NULL;
}

const char *nicstride_epoch_start(nicstride_epoch_t *e, const int *ranks, int ngroup)
{
    const char *why = busy(e);

    if (why == NULL)
        why = mark_started(e, ranks, ngroup);
    if (why == NULL)
        begin(e, NICSTRIDE_ACCESS_PSCW);
    return why;
}

const char *nicstride_epoch_started(const nicstride_epoch_t *e)
{
    return e->access == NICSTRIDE_ACCESS_PSCW ? NULL : "no access epoch was begun by MPI_Win_start";
}

void nicstride_epoch_complete(nicstride_epoch_t *e, const int *ranks, int ngroup)
{
    for (int i = 0; i < ngroup; i++)
        e->target[ranks[i]] = 0;
    begin(e, NICSTRIDE_ACCESS_NONE);
}

const char *nicstride_epoch_post(nicstride_epoch_t *e)
{
    const char *why = exposed_still(e);

    if (why == NULL)
        e->exposed = true;
    return why;
}

const char *nicstride_epoch_exposed(const nicstride_epoch_t *e)
{
    return e->exposed ? NULL : "no exposure epoch was begun by MPI_Win_post";
}

void nicstride_epoch_unexpose(nicstride_epoch_t *e)
{
    e->exposed = false;
}

const char *nicstride_epoch_lock(nicstride_epoch_t *e, uint32_t target, uint8_t type)
{
    if (target >= e->n)
        return NICSTRIDE_NO_SUCH_TARGET;
    if (e->access == NICSTRIDE_ACCESS_LOCK) {
        if (e->target[target] != 0)
            return "a lock is already held at that target";
    } else {
        const char *why = busy(e);
        if (why != NULL)
            return why;
        begin(e, NICSTRIDE_ACCESS_LOCK);
    }
    e->target[target] = type;
    e->locks++;
    return NULL;
}

void nicstride_epoch_unlock(nicstride_epoch_t *e, uint32_t target)
{
    e->target[target] = 0;
    if (--e->locks == 0)
        begin(e, NICSTRIDE_ACCESS_NONE);
}

const char *nicstride_epoch_lock_all(nicstride_epoch_t *e)
{
    const char *why = busy(e);

    if (why == NULL)
        begin(e, NICSTRIDE_ACCESS_LOCK_ALL);
    return why;
}

const char *nicstride_epoch_locked_all(const nicstride_epoch_t *e)
{
    return e->access == NICSTRIDE_ACCESS_LOCK_ALL
               ? NULL
               : "the targets were not locked by MPI_Win_lock_all";
}

void nicstride_epoch_unlock_all(nicstride_epoch_t *e)
{
    begin(e, NICSTRIDE_ACCESS_NONE);
}

const char *nicstride_epoch_free(const nicstride_epoch_t *e)
{
    const char *why = bound(e);

    return why != NULL ? why : exposed_still(e);
}
