/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Registrations of users' memory with an adapter, kept for the next transfer from or to the
 *  same place in a cache of Open MPI's (rcache grdma). It drops what is given back to the system,
 *  of which Open MPI's hooks of memory and UCX's tell it; where Open MPI has no hooks nothing is
 *  kept, and each transfer registers anew. What is registered is bounded: where there is no
 *  room for more all goes that is not in use.
 *
 *  MPI threads, one at a time. Only in builds with libibverbs (OMPI_NIC_HAVE_VERBS). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/support/export.h"

struct ibv_pd;
struct mca_rcache_base_module_t;

/** All zero: closed. */
typedef struct onic_registrations {
    struct mca_rcache_base_module_t *cache;
    struct ibv_pd *pd;
    size_t most; /**< bytes that may be registered, in all */
    size_t held; /**< bytes that are registered */
    bool full;   /**< the last one failed for lack of room */
} onic_registrations_t;

/** One that is in use. */
typedef struct onic_registration onic_registration_t;

/** Opens a cache, which stays where it is until it is closed. UCX has been loaded. False where
 *  Open MPI has none. */
ONIC_EXPORT bool onic_registrations_open(onic_registrations_t *r, struct ibv_pd *pd, size_t most);

/** Closes it; nothing may be in use. Does nothing if it is closed. */
ONIC_EXPORT void onic_registrations_close(onic_registrations_t *r);

/** Registers `bytes` > 0 of memory, or finds them registered; `written`: the adapter writes to
 *  them. `key` gets their key.
 *
 *  @return NULL where that cannot be: there is less memory to lock, it is not all there, or too
 *  much else is in use */
ONIC_EXPORT onic_registration_t *onic_register(onic_registrations_t *r, const void *base,
                                               size_t bytes, bool written, uint32_t *key);

/** Gives it back when the transfer that used it is over. */
ONIC_EXPORT void onic_unregister(onic_registrations_t *r, onic_registration_t *reg);
