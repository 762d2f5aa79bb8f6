/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The contents of NICSTRIDE_MSG_PUTV and NICSTRIDE_MSG_GETV: contiguous puts, or gets, of
 *  one origin in a row. Each is a record:
 *
 *      place (8 bytes)  length (4)  data of a put
 *
 *  A place is a byte of the window, from its begin, or an address where that is dynamic. Host byte
 *  order, no gaps. A put of 8 bytes takes up 20 bytes so, and 74 as a message of its own.
 *
 *  Pure; lengths are checked. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "osc_nicstride/protocol/limits.h"

/** Bytes before the data. */
#define NICSTRIDE_RECORD_HEAD 12

_Static_assert(NICSTRIDE_GETV_MAX == NICSTRIDE_VECTOR_MAX * NICSTRIDE_RECORD_HEAD,
               "of its records");

/** Writes a record's head; returns where its data belongs. */
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

/** Reads the record at `*at_p` (first 0) of a vector of `bytes` bytes and moves on; `puts`: data
 *  follows. False at the end: `*at_p` is `bytes` then, or less where the rest is no record. */
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

/** Bytes that a vector of gets asks for, of all its records. */
static inline uint64_t nicstride_getv_bytes(const void *vector, size_t bytes)
{
    nicstride_record_t r;
    uint64_t sum = 0;

    for (size_t at = 0; nicstride_record_next(vector, bytes, false, &at, &r);)
        sum += r.len;
    return sum;
}
