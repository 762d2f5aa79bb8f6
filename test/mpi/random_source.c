/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test/mpi/random_source.h"

#include <string.h>

void random_seed(random_source_t *r, uint64_t seed)
{
    r->state = seed;
}

uint64_t random_bits(random_source_t *r)
{
    uint64_t z = (r->state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

int64_t random_between(random_source_t *r, int64_t lo, int64_t hi)
{
    uint64_t range = (uint64_t)hi - (uint64_t)lo + 1; /* 0: all 64 bits */
    uint64_t bits = random_bits(r);

    return (int64_t)((uint64_t)lo + (range != 0 ? bits % range : bits));
}

bool random_one_in(random_source_t *r, int n)
{
    return random_between(r, 1, n) == 1;
}

void random_fill(random_source_t *r, void *buf, size_t len)
{
    unsigned char *p = buf;

    for (size_t done = 0; done < len; done += sizeof(uint64_t)) {
        uint64_t bits = random_bits(r);
        size_t n = len - done < sizeof(bits) ? len - done : sizeof(bits);
        memcpy(p + done, &bits, n);
    }
}
