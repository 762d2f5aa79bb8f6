/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Single copy between processes of a node: the kernel moves bytes between two address spaces.
 *
 * All functions return OMPI_SUCCESS; OMPI_ERR_NOT_SUPPORTED where nothing was moved because the
 * kernel does not permit it, OMPI_ERR_OUT_OF_RESOURCE where it has no memory for it now, or the
 * other process has ended (in these cases the caller takes another method); or an MPI error class.
 */
#ifndef NICSTRIDE_SINGLE_COPY_H
#define NICSTRIDE_SINGLE_COPY_H

#include "osc_nicstride/target.h"

/** Moves every contiguous piece by itself, many in one system call. */
int nicstride_cma_put(const nicstride_target_t *a);
int nicstride_cma_get(const nicstride_target_t *a);

/** Contiguous bytes at `remote` in the peer's address space. */
#define NICSTRIDE_CMA_BYTES_MAX (1u << 30)
int nicstride_cma_bytes(const nicstride_peer_t *p, nicstride_direction_t dir, void *local,
                        uint64_t remote, size_t bytes);

/** Reads covering extents and gathers from them. Stride-form targets only. */
int nicstride_sieve_get(const nicstride_target_t *a);

#endif
