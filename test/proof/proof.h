/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What proofs use. A proof is a function without arguments whose inputs are `any_...`: cbmc
 *  shows that for all of them what it asserts holds, and that nothing outside of an object is
 *  touched, no signed number overflows, no shift is too far, and no loop goes on beyond its bound.
 *  See `run`. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Any value: cbmc knows functions without a body by the first half of their names. */
#define ANY(type, name)                                                                            \
    type nondet_##name(void);                                                                      \
    static inline type any_##name(void)                                                            \
    {                                                                                              \
        return nondet_##name();                                                                    \
    }
ANY(uint8_t, 8)
ANY(uint16_t, 16)
ANY(uint32_t, 32)
ANY(uint64_t, 64)
ANY(bool, bool)
ANY(size_t, size)

#define ASSUME(what) __CPROVER_assume(what)
#define PROVE(what)  __CPROVER_assert(what, #what)

/** Bytes that a peer may have sent: `len` of them, and not one more. */
static inline unsigned char *any_bytes(size_t len)
{
    unsigned char *bytes = malloc(len);

    ASSUME(bytes != NULL);
    return bytes;
}

/** A length of at most `most`. */
static inline size_t any_length(size_t most)
{
    const size_t len = any_size();

    ASSUME(len <= most);
    return len;
}

/** Do `len` bytes at `at` lie within the object of `size` bytes at `object`? */
static inline bool lies_in(const void *at, size_t len, const void *object, size_t size)
{
    return __CPROVER_same_object(at, object) &&
           __CPROVER_POINTER_OFFSET(at) >= __CPROVER_POINTER_OFFSET(object) &&
           __CPROVER_POINTER_OFFSET(at) - __CPROVER_POINTER_OFFSET(object) <= size &&
           len <= size - (__CPROVER_POINTER_OFFSET(at) - __CPROVER_POINTER_OFFSET(object));
}
