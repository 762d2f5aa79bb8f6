/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Making and mapping one segment of shared memory. None of these waits or prints anything:
 *  whether a failure matters is for the caller to say. Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/transport/shm/node.h"

/** Pages of a segment, one behind another, as they are mapped here. */
typedef struct onic_mapped {
    void *base;       /**< NULL: not mapped */
    size_t from, len; /**< in the segment */
} onic_mapped_t;

/** Gives memory to whole pages of a mapping, from byte `from` of it on. `file`: that of the
 *  segment's key. False where there is no memory: a store there would end the process. */
bool onic_segment_fill(const onic_mapped_t *mapped, const onic_file_key_t *file, size_t from,
                       size_t len);

/** Creates a zeroed segment of `size` > 0 bytes and maps it. Others find it through this process's
 *  descriptor, so that one that is killed leaves nothing behind; `named`: by a name in /dev/shm, as
 *  processes must that may not look into this one. The first `space` bytes are reserved;
 *  all of it can be in `shares` equal shares, so that each process gets its own from memory near to
 *  it. It is a file of /dev/shm, which bounds shared memory. False where it cannot be had;
 *  otherwise onic_segment_withdraw must follow. */
bool onic_segment_make(size_t size, size_t space, int shares, bool named, onic_segment_key_t *key,
                       onic_segment_t *segment);

/** By its maker: reserves the first share, while others reserve theirs. False without space: what
 *  was mapped must not be used then. */
bool onic_segment_reserve(const onic_segment_key_t *key);

/** Whether a process has a segment that another one has made; travels between processes. */
typedef enum onic_joined {
    ONIC_NOT_JOINED,
    ONIC_JOINED,
    ONIC_NEEDS_NAME /**< not joined: it must not open what has no name, or cannot */
} onic_joined_t;

/** Maps a segment of another process, and reserves share `share`, from 1 on, if there is such. */
onic_joined_t onic_segment_join(const onic_segment_key_t *key, size_t size, int share,
                                onic_segment_t *segment);

/** Maps a part of a nameless segment of another process. False where that cannot be. */
bool onic_segment_map_part(const onic_segment_key_t *key, onic_mapped_t *part);
void onic_unmap(onic_mapped_t *mapped);

/** By its maker: no process can find it any more, and the key is empty. The memory stays until the
 *  last mapping is gone. An empty key may be given. */
void onic_segment_withdraw(onic_segment_key_t *key);

/** Rounds up to whole pages. */
ONIC_EXPORT size_t onic_whole_pages(size_t bytes);

/* ---- how much of a small shared memory the library takes for itself -----------------------------
 *
 * What makes transfers faster must leave room for what a program asks for: the memory of its
 * windows. Two things take a part, the queues and the receive pools: a quarter of what is free, of
 * all processes together, is the most that they come to.
 */

/** Each of the two takes, of all processes together, at most 1/8 of what is free. */
#define ONIC_PART_OF 8

/** Bytes that one process may take where it would like `liked`, `free` bytes are free, and it is
 *  one of so many `processes` (at least 1) of its node. */
static inline size_t onic_part(size_t liked, uint64_t free, unsigned processes)
{
    const uint64_t most = free / ONIC_PART_OF / processes;

    return liked < most ? liked : (size_t)most;
}

/** Bytes that this process, one of so many of its node, may take for itself where it would like
 *  `liked` (onic_part), by what is free in /dev/shm. */
size_t onic_segment_part(size_t liked, unsigned processes);
