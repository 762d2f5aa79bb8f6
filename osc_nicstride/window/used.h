/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The peers of a window with which there is something to be done: operations under way or
 *  not yet flushed, an error to be returned, a lock of MPI_Win_lock_all. So what is done for all
 *  peers costs what a program uses. A peer enters when it is first used; those that are done with
 *  are taken out when nobody walks along the list. */
#ifndef NICSTRIDE_USED_H
#define NICSTRIDE_USED_H

#include <stdbool.h>

#include "osc_nicstride/window/module.h"

/** Has everything that was started been flushed, without an error that is still to be returned? No
 *  lock. The common case on mapped windows, inlined. */
static inline bool nicstride_is_clean(const nicstride_peer_t *p)
{
    return __atomic_load_n(&p->queue.enqueued, __ATOMIC_RELAXED) ==
               __atomic_load_n(&p->queue.clean, __ATOMIC_ACQUIRE) &&
           !__atomic_load_n(&p->failed, __ATOMIC_RELAXED) &&
           __atomic_load_n(&p->flow.tx.error, __ATOMIC_RELAXED) == 0;
}

/** Puts the peer into its window's list, unless it is there. Wire lock. */
void nicstride_enlist_locked(nicstride_peer_t *p);

/** The same; to be called whenever it is used. Inlined is what happens mostly. */
static inline void nicstride_use_locked(nicstride_peer_t *p)
{
    if (!p->used)
        nicstride_enlist_locked(p);
}

/** The window will be freed: its peers are in no list any more. Wire lock. */
void nicstride_unuse_all_locked(nicstride_module_t *m);

/** Is there anybody? No lock: what this thread has used is not overlooked. */
static inline bool nicstride_any_used(const nicstride_module_t *m)
{
    return __atomic_load_n(&m->used, __ATOMIC_RELAXED) != NULL;
}

/** Walks along the list: the first of it, then the next ones, NULL at the end. What others use
 *  meanwhile may be among them. Each walk that is begun is ended. MPI threads, no lock held. */
nicstride_peer_t *nicstride_used_begin(nicstride_module_t *m);
/** Once more from the first, in the same walk. */
static inline nicstride_peer_t *nicstride_used_first(const nicstride_module_t *m)
{
    return __atomic_load_n(&m->used, __ATOMIC_ACQUIRE);
}
static inline nicstride_peer_t *nicstride_used_next(const nicstride_peer_t *p)
{
    return __atomic_load_n(&p->next_used, __ATOMIC_ACQUIRE);
}
void nicstride_used_end(nicstride_module_t *m);

/** Calls `f` with all peers in the lists of all windows. Wire lock. */
void nicstride_used_each_locked(void (*f)(nicstride_peer_t *p, void *arg), void *arg);

#endif
