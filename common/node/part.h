/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * How much of a small shared memory the library takes for itself. Pure.
 *
 * What makes transfers faster must leave room for what a program asks for: the memory of its
 * windows. Two things take a part, the queues and the landing areas: a quarter of what is free, of
 * all processes together, is the most that they come to.
 */
#ifndef ONIC_PART_H
#define ONIC_PART_H

#include <stddef.h>
#include <stdint.h>

/** One of the two, of all processes together, takes no more than this part of what is free. */
#define ONIC_PART_OF 8

/** Bytes that one process may take where it would like `liked`, `free` bytes are free, and it is
 *  one of so many `processes` (at least 1) of its node. */
static inline size_t onic_part(size_t liked, uint64_t free, unsigned processes)
{
    const uint64_t most = free / ONIC_PART_OF / processes;

    return liked < most ? liked : (size_t)most;
}

#endif
