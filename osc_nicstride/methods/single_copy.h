/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Single copy between processes of a node: the kernel moves bytes between two address spaces.
 *
 * All functions return OMPI_SUCCESS; OMPI_ERR_NOT_SUPPORTED where nothing was moved because the
 * kernel does not permit it, OMPI_ERR_OUT_OF_RESOURCE where it has no memory for it now, could tear
 * elements (whole_words.h), or the other process has ended (in these cases the caller takes another
 * method); or an MPI error class.
 */
#ifndef NICSTRIDE_SINGLE_COPY_H
#define NICSTRIDE_SINGLE_COPY_H

#include "osc_nicstride/window/transfer.h"

/** Can the kernel copy to and from the peer's memory? Asked once. Takes the wire lock then. */
bool nicstride_single_copy_works(nicstride_peer_t *p);

/** Could single copy of the pieces of this transfer tear elements? Then it refuses. */
bool nicstride_may_tear(const nicstride_transfer_t *t);

#endif
