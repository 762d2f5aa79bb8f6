/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/protocol/atomics.h"

#include <string.h>

#include "common/layout/copy.h"

/* ---- elements as numbers, by their size ------------------------------------------------------ */

/** `call` with T as the type for the size. If the size is constant the compiler keeps only one
 *  branch. */
#define BY_SIZE(call)                                                                              \
    do {                                                                                           \
        if (size == 8)                                                                             \
            call(uint64_t);                                                                        \
        if (size == 4)                                                                             \
            call(uint32_t);                                                                        \
        if (size == 2)                                                                             \
            call(uint16_t);                                                                        \
        call(uint8_t);                                                                             \
    } while (0)

ONIC_INLINE uint64_t read(const void *from, size_t size)
{
#define READ(T)                                                                                    \
    {                                                                                              \
        T v;                                                                                       \
        memcpy(&v, from, sizeof(v));                                                               \
        return v;                                                                                  \
    }
    BY_SIZE(READ);
}

ONIC_INLINE void write(void *to, size_t size, uint64_t value)
{
#define WRITE(T)                                                                                   \
    {                                                                                              \
        const T v = (T)value;                                                                      \
        memcpy(to, &v, sizeof(v));                                                                 \
        return;                                                                                    \
    }
    BY_SIZE(WRITE);
}

ONIC_INLINE uint64_t load(void *at, size_t size)
{
#define LOAD(T) return __atomic_load_n((T *)at, __ATOMIC_ACQUIRE)
    BY_SIZE(LOAD);
}

ONIC_INLINE void store(void *at, size_t size, uint64_t v)
{
#define STORE(T)                                                                                   \
    {                                                                                              \
        __atomic_store_n((T *)at, (T)v, __ATOMIC_RELEASE);                                         \
        return;                                                                                    \
    }
    BY_SIZE(STORE);
}

ONIC_INLINE uint64_t exchange(void *at, size_t size, uint64_t v)
{
#define EXCHANGE(T) return __atomic_exchange_n((T *)at, (T)v, __ATOMIC_ACQ_REL)
    BY_SIZE(EXCHANGE);
}

ONIC_INLINE uint64_t add(void *at, size_t size, uint64_t v)
{
#define ADD(T) return __atomic_fetch_add((T *)at, (T)v, __ATOMIC_ACQ_REL)
    BY_SIZE(ADD);
}

/** True if `*was` was there and is now replaced by `next`; otherwise `*was` gets the current
 *  value. */
ONIC_INLINE bool swap(void *at, size_t size, uint64_t *was, uint64_t next)
{
#define SWAP(T)                                                                                    \
    {                                                                                              \
        T v = (T)*was;                                                                             \
        const bool done = __atomic_compare_exchange_n((T *)at, &v, (T)next, false,                 \
                                                      __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);         \
        *was = v;                                                                                  \
        return done;                                                                               \
    }
    BY_SIZE(SWAP);
}

/* ---- new values ------------------------------------------------------------------------------ */

ONIC_INLINE uint64_t next_of(const nicstride_apply_t *a, size_t size, uint64_t was, uint64_t v)
{
    _Alignas(8) unsigned char target[8], source[8];

    write(target, size, was);
    write(source, size, v);
    a->reduce(a->ctx, source, target, 1);
    return read(target, size);
}

/** Updates an element and returns its previous value. If the value does not change, nothing is
 *  stored: a maximum settles, and then processors share its cache line. */
ONIC_INLINE uint64_t update(const nicstride_apply_t *a, void *at, size_t size, uint64_t v)
{
    if (a->kind == NICSTRIDE_APPLY_REPLACE)
        return exchange(at, size, v);
    if (a->adds)
        return add(at, size, v);
    uint64_t was = load(at, size), next = next_of(a, size, was, v);

    while (next != was && !swap(at, size, &was, next))
        next = next_of(a, size, was, v);
    return was;
}

ONIC_INLINE void apply(const nicstride_apply_t *a, char *at, const char *src, char *old, size_t n,
                       size_t size)
{
    /* Each element is stored once: copies of long pieces may store some bytes twice and undo what
     * another process stored in between. */
    if (a->kind == NICSTRIDE_APPLY_REPLACE && old == NULL) {
        for (size_t i = 0; i < n * size; i += size)
            store(at + i, size, read(src + i, size));
        return;
    }
    for (size_t i = 0; i < n * size; i += size) {
        const uint64_t was = update(a, at + i, size, read(src + i, size));

        if (old != NULL)
            write(old + i, size, was);
    }
}

void nicstride_atomic_apply(const nicstride_apply_t *a, void *at, const void *src, void *old,
                            size_t n)
{
    if (a->kind == NICSTRIDE_APPLY_NO_OP) {
        if (old != NULL)
            onic_copy_out(old, at, n * a->size);
        return;
    }
    switch (a->size) {
    case 8:
        apply(a, at, src, old, n, 8);
        break;
    case 4:
        apply(a, at, src, old, n, 4);
        break;
    case 2:
        apply(a, at, src, old, n, 2);
        break;
    default:
        apply(a, at, src, old, n, 1);
    }
}

void nicstride_atomic_cas(void *at, size_t size, const void *compare, const void *desired,
                          void *old)
{
    uint64_t was = read(compare, size);

    (void)swap(at, size, &was, read(desired, size));
    write(old, size, was);
}
