/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * A short form of headers, for messages without a layout.
 *
 * Between the cores of a node a message costs mostly the cache lines that it lies in. UCX puts a
 * short one into an element of a queue of which the first line has 28 bytes left: an operation on
 * 8 bytes and its reply keep within it in this form, and take nine tenths of the time of the long
 * one, from call to call (UCX 1.13, transport posix, lines that travel for 90 ns).
 *
 * The form has fixed places, since fields of varying width cost as much time as the cache lines
 * save. What does not fit into them travels in the long form: windows, ranks and displacements
 * beyond 16, 16 and 32 bits, what is said after 2^32 messages to the same rank, and errors.
 *
 * Pure. What nicstride_msg_lengthen returns is not checked but for its form: that is done by
 * nicstride_msg_decode, which knows both forms, and which is what a receiver calls.
 */
#ifndef NICSTRIDE_PROTO_SHORT_H
#define NICSTRIDE_PROTO_SHORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "osc_nicstride/proto.h"

/** Bytes of a short header. */
#define NICSTRIDE_SHORT_SIZE 20

/** The first byte of a header, in these bits, says of which form it is. For the short one it also
 *  says the byte order, as the magic value does for the long one. */
enum {
    NICSTRIDE_SHORT_MASK = 0xc0,
    NICSTRIDE_SHORT_MARK = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 0xc0 : 0x80,
    NICSTRIDE_SHORT_SWAPPED = 0xc0 ^ 0x80 ^ NICSTRIDE_SHORT_MARK /**< from the other order */
};

/**
 * Writes a header in its short form. Data, where the flag NICSTRIDE_MSG_INLINE says so, is for the
 * caller to put behind it: exactly m->len bytes, which the receiver takes from the message's
 * length.
 *
 * @return the bytes of the header; 0 where it has no short form: with a layout, an offset, a
 *         status, another flag, or a number too long for its place
 */
size_t nicstride_msg_shorten(const nicstride_msg_t *m, unsigned char out[NICSTRIDE_SHORT_SIZE]);

/**
 * Reads the short header of a message of `len` bytes in all.
 *
 * @return the bytes of the header, or 0 where it has no right one of this form
 */
size_t nicstride_msg_lengthen(const void *buf, size_t len, nicstride_msg_t *m);

#endif
