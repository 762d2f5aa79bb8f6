/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The table of all methods, and how each begins; see method.h. */
#ifndef NICSTRIDE_METHODS_H
#define NICSTRIDE_METHODS_H

#include "osc_nicstride/methods/method.h"
#include "osc_nicstride/window/transfer.h"

/** By number. The row of NICSTRIDE_METHOD_AUTO has a name only. */
extern const nicstride_method_row_t nicstride_methods[NICSTRIDE_METHOD_LAST];

nicstride_start_t nicstride_direct_start; /* direct.c */
/* single_copy.c: OMPI_ERR_NOT_SUPPORTED where the kernel does not permit it, and
 * OMPI_ERR_OUT_OF_RESOURCE where it has no memory for it now, could tear elements (whole_words.h),
 * or the other process has ended. */
nicstride_start_t nicstride_cma_start;
nicstride_start_t nicstride_sieve_start;
nicstride_start_t nicstride_pack_start; /* message.c */
nicstride_start_t nicstride_mover_start;
nicstride_start_t nicstride_zcopy_start;

/** Can the kernel copy to and from the peer's memory? Asked once. Takes the wire lock then. */
bool nicstride_single_copy_works(nicstride_peer_t *p);

/** Could single copy of the pieces of this transfer tear elements? Then it refuses. */
bool nicstride_may_tear(const nicstride_transfer_t *t);

#endif
