/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The contents of NICSTRIDE_MSG_PUTV and NICSTRIDE_MSG_GETV: consecutive contiguous puts, or
 *  gets, of one origin. Each is a record:
 *
 *      place (8 bytes)  length (4)  data of a put
 *
 *  A place is an offset into the window, or an address if the window is dynamic. Host byte order,
 *  no gaps. A put of 8 bytes takes up 20 bytes in a vector, and 74 as a message of its own.
 *
 *  Pure; lengths are checked. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/** Bytes of a record before its data. */
#define NICSTRIDE_RECORD_HEAD 12

/** Writes the head of a record; returns where its data belongs. */
static inline unsigned char *nicstride_record_write(unsigned char *at, uint64_t place, uint32_t len)
{
    memcpy(at, &place, sizeof(place));
    memcpy(at + sizeof(place), &len, sizeof(len));
    return at + NICSTRIDE_RECORD_HEAD;
}

typedef struct nicstride_record {
    uint64_t place;
    uint32_t len;
    const unsigned char *data;
} nicstride_record_t;

/** Reads the record at `*at_p` (initially 0) of a vector of `bytes` bytes, and advances. `puts`:
 *  data follows each head. False at the end: `*at_p` is then `bytes`, or less if the rest is not a
 *  record. */
static inline bool nicstride_record_next(const void *vector, size_t bytes, bool puts, size_t *at_p,
                                         nicstride_record_t *r)
{
    const unsigned char *at = (const unsigned char *)vector + *at_p;
    size_t left = bytes - *at_p;

    if (left < NICSTRIDE_RECORD_HEAD)
        return false;
    memcpy(&r->place, at, sizeof(r->place));
    memcpy(&r->len, at + sizeof(r->place), sizeof(r->len));
    r->data = at + NICSTRIDE_RECORD_HEAD;
    left -= NICSTRIDE_RECORD_HEAD;
    if (puts && r->len > left)
        return false;
    *at_p += NICSTRIDE_RECORD_HEAD + (puts ? r->len : 0);
    return true;
}

/** The bytes that a vector of gets asks for in all its records. */
static inline uint64_t nicstride_getv_bytes(const void *vector, size_t bytes)
{
    nicstride_record_t r;
    uint64_t sum = 0;

    for (size_t at = 0; nicstride_record_next(vector, bytes, false, &at, &r);)
        sum += r.len;
    return sum;
}
