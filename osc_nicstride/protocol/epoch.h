/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The synchronisation state of one process in one window: which calls MPI allows now. Each
 *  function that can refuse a call returns NULL if the call is legal, and has then changed the
 *  state. Otherwise it returns a static text with the reason ("no lock is held at that target"),
 *  and the state is unchanged. The checks of the smallest calls are inlined. A fence epoch is
 *  tentative, since programs may close their last one without MPI_MODE_NOSUCCEED: it counts once a
 *  call was made in it. Pure; the caller serialises. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum nicstride_access {
    NICSTRIDE_ACCESS_NONE,
    NICSTRIDE_ACCESS_FENCE, /**< between fences; tentative until `used` */
    NICSTRIDE_ACCESS_PSCW,  /**< between start and complete */
    NICSTRIDE_ACCESS_LOCK,  /**< one or more targets locked */
    NICSTRIDE_ACCESS_LOCK_ALL
} nicstride_access_t;

typedef struct nicstride_epoch {
    nicstride_access_t access;
    bool used;       /**< a communication call was made in the fence epoch */
    bool exposed;    /**< between post and wait */
    uint32_t n;      /**< ranks of the window */
    uint32_t locks;  /**< targets locked */
    uint8_t *target; /**< for each rank: 0, a lock type (lockq.h), or one of these: */
} nicstride_epoch_t;

#define NICSTRIDE_TARGET_STARTED    0x80
#define NICSTRIDE_TARGET_NOT_LOCKED 0x81 /**< its lock is not taken (MPI_MODE_NOCHECK) */

#define NICSTRIDE_NO_SUCH_TARGET "there is no such rank in the window"

/** `target` is an array of n bytes owned by the caller; it is zeroed here. */
void nicstride_epoch_init(nicstride_epoch_t *e, uint32_t n, uint8_t *target);

/** MPI_Win_fence. `nosucceed`: MPI_MODE_NOSUCCEED was given, so no epoch follows. */
const char *nicstride_epoch_fence(nicstride_epoch_t *e, bool nosucceed);

/** MPI_Win_start on `ngroup` ranks; for complete: checks that there is such an epoch, and ends it,
 *  with the same ranks in any order. */
const char *nicstride_epoch_start(nicstride_epoch_t *e, const int *ranks, int ngroup);
const char *nicstride_epoch_started(const nicstride_epoch_t *e);
void nicstride_epoch_complete(nicstride_epoch_t *e, const int *ranks, int ngroup);
const char *nicstride_epoch_post(nicstride_epoch_t *e);
/** For wait and test: checks that there is an exposure epoch. Does not end it. */
const char *nicstride_epoch_exposed(const nicstride_epoch_t *e);
/** Ends the exposure epoch. */
void nicstride_epoch_unexpose(nicstride_epoch_t *e);

const char *nicstride_epoch_lock(nicstride_epoch_t *e, uint32_t target, uint8_t type);

/** For unlock: checks that the lock is held. Does not release it, as a flush comes first. */
static inline const char *nicstride_epoch_locked(const nicstride_epoch_t *e, uint32_t target)
{
    if (target >= e->n)
        return NICSTRIDE_NO_SUCH_TARGET;
    if (e->access != NICSTRIDE_ACCESS_LOCK || e->target[target] == 0)
        return "no lock is held at that target";
    return NULL;
}

/** Releases a lock that is held. */
void nicstride_epoch_unlock(nicstride_epoch_t *e, uint32_t target);
const char *nicstride_epoch_lock_all(nicstride_epoch_t *e);
const char *nicstride_epoch_locked_all(const nicstride_epoch_t *e);
void nicstride_epoch_unlock_all(nicstride_epoch_t *e);

/** Checks a communication call to `target`. Marks a tentative fence epoch as used. */
static inline const char *nicstride_epoch_access(nicstride_epoch_t *e, uint32_t target)
{
    if (target >= e->n)
        return NICSTRIDE_NO_SUCH_TARGET;
    switch (e->access) {
    case NICSTRIDE_ACCESS_FENCE:
        e->used = true;
        return NULL;
    case NICSTRIDE_ACCESS_PSCW:
        return e->target[target] != 0 ? NULL : "that target is not in the group of MPI_Win_start";
    case NICSTRIDE_ACCESS_LOCK:
        return nicstride_epoch_locked(e, target);
    case NICSTRIDE_ACCESS_LOCK_ALL:
        return NULL;
    case NICSTRIDE_ACCESS_NONE:
        break;
    }
    return "no access epoch is open";
}

static inline const char *nicstride_epoch_any_passive(const nicstride_epoch_t *e)
{
    if (e->access == NICSTRIDE_ACCESS_LOCK || e->access == NICSTRIDE_ACCESS_LOCK_ALL)
        return NULL;
    return "no passive-target epoch (lock or lock_all) is open";
}

/** Checks a request-based call (such as MPI_Rput) or a flush, which need a passive-target epoch. */
static inline const char *nicstride_epoch_passive(const nicstride_epoch_t *e, uint32_t target)
{
    if (target >= e->n)
        return NICSTRIDE_NO_SUCH_TARGET;
    if (e->access == NICSTRIDE_ACCESS_LOCK)
        return nicstride_epoch_locked(e, target);
    return nicstride_epoch_any_passive(e);
}

/** Checks MPI_Win_free: no epoch but a fence epoch may be open. */
const char *nicstride_epoch_free(const nicstride_epoch_t *e);
