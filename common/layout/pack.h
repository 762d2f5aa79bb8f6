/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Gather, scatter and strided-to-strided copy of layouts, resumable at any byte.
 *
 *  Pure: no MPI, no allocation, no global state. Safe to call from many threads, each with its own
 *  cursors. Aligned elements of up to 8 bytes are never torn: if source and destination are both
 *  aligned to 2, 4 or 8 bytes, moves do not split such an element. If a layout has a byte of the
 *  destination more than once, the last one in packed order stays. */
#pragma once

#include <stdint.h>

#include "common/layout/copy.h"
#include "common/layout/layout.h"

/** Gathers up to `len` bytes from the cursor's position on into the contiguous `dst`, and moves the
 *  cursor. Returns the bytes copied, less than `len` only at the end of the layout. */
ONIC_EXPORT uint64_t onic_pack(onic_cursor_t *c, const void *base, void *dst, uint64_t len);

/** onic_pack for a long destination that another processor reads next (onic_copy_streaming). */
ONIC_EXPORT uint64_t onic_pack_streaming(onic_cursor_t *c, const void *base, void *dst,
                                         uint64_t len);

/** Scatters up to `len` contiguous bytes from `src` to the cursor's position on; otherwise as
 *  onic_pack. */
ONIC_EXPORT uint64_t onic_unpack(onic_cursor_t *c, void *base, const void *src, uint64_t len);

/** Copies from one layout to another without staging, until either ends or `len` bytes are copied.
 *  Source and destination bytes must not overlap. Elements that are aligned at the source
 *  (`by_src`), or else at the destination, stay whole wherever the other side is: the side that
 *  others may access meanwhile. Returns the bytes copied. */
ONIC_EXPORT uint64_t onic_copy(onic_cursor_t *dst, void *dst_base, onic_cursor_t *src,
                               const void *src_base, uint64_t len, bool by_src);
