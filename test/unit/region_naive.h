/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The naive table of attached memory that the tests of regions compare with, and the small pieces
 * of the address space where they do so.
 */
#pragma once

#include "osc_nicstride/window/region.h"
#include "test/unit/unit.h"

#define WORLD       192 /* bytes */
#define MAX_REGIONS 64

static const uint64_t origins[] = {0, 0x7ffffffff000, INT64_MAX - 64, UINT64_MAX - WORLD + 1};
#define ORIGINS (sizeof(origins) / sizeof(origins[0]))

/** The naive table: regions in no order, offsets in the world. */
typedef struct naive {
    uint64_t base[MAX_REGIONS];
    uint64_t size[MAX_REGIONS];
    size_t n;
} naive_t;

/* The region that holds a byte, or -1. */
static inline int naive_owner(const naive_t *v, uint64_t byte)
{
    for (size_t i = 0; i < v->n; i++)
        if (byte >= v->base[i] && byte < v->base[i] + v->size[i])
            return (int)i;
    return -1;
}

static inline bool naive_covers(const naive_t *v, uint64_t from, uint64_t size)
{
    for (uint64_t b = from; b < from + size; b++)
        if (b >= WORLD || naive_owner(v, b) < 0)
            return false;
    return true;
}
