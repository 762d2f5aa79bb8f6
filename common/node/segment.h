/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Making and mapping one segment of shared memory. Internal to the library; node.h is its face.
 *
 * None of these print anything: whether a failure matters is for the caller to say.
 */
#ifndef ONIC_SEGMENT_H
#define ONIC_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/node/node.h"

/**
 * Space of a segment that is mapped and still to be reserved, which takes long for much memory. A
 * process that is killed meanwhile should leave no name behind, so names are taken away before
 * that.
 */
typedef struct onic_reservation {
    int fd; /**< -1: there is nothing to be done */
    size_t from;
    size_t to;
} onic_reservation_t;

#define ONIC_RESERVATION_NONE ((onic_reservation_t){-1, 0, 0})

/** Reserves the space. False where there is not as much: what was mapped must not be used then. */
bool onic_segment_reserve(onic_reservation_t *r);
/** Does without. */
void onic_segment_forgo(onic_reservation_t *r);

/** Gives memory to whole pages of a segment, and maps them. `file`: of its key, found by
 * descriptor. False where there is none: a store there would end the process. */
bool onic_segment_fill(const onic_segment_t *segment, const onic_file_key_t *file, size_t from,
                       size_t len);

/** How others find a segment. */
typedef enum onic_findable {
    /** Through the maker's descriptor: a maker that is killed leaves nothing behind. Where the
     *  system has no files without a name it gets one. */
    ONIC_BY_DESCRIPTOR,
    /** In /dev/shm: for processes that must not look into the maker. */
    ONIC_BY_NAME
} onic_findable_t;

/**
 * Creates a zeroed segment of `size` > 0 bytes and maps it. The space of the first of `shares`
 * shares is to be reserved by *r_p, or is reserved where that is NULL. False where it cannot be
 * had; the key is empty then. Otherwise onic_segment_withdraw must follow.
 *
 * Either way it is a file of /dev/shm, whose size says how much memory may be shared here. Memory
 * that belongs to no file system (memfd) knows no bound but the killer of processes that comes when
 * memory runs out.
 */
bool onic_segment_make(size_t size, int shares, onic_findable_t how, onic_segment_key_t *key,
                       onic_segment_t *segment, onic_reservation_t *r_p);

/**
 * Maps a segment that another process has made. The space of share `share`, from 1 on, is to be
 * reserved likewise: so every process gets its share from the memory that is near to it. Beyond
 * the last share nothing is left to reserve.
 */
onic_joined_t onic_segment_join(const onic_segment_key_t *key, size_t size, int share,
                                onic_segment_t *segment, onic_reservation_t *r_p);

/** By its maker: no process can find it any more, and the key is empty. The memory stays until the
 * last mapping is gone. */
void onic_segment_withdraw(onic_segment_key_t *key);

/* ---- how much of a small shared memory the library takes for itself -----------------------------
 *
 * What makes transfers faster must leave room for what a program asks for: the memory of its
 * windows. Two things take a part, the queues and the landing areas: a quarter of what is free, of
 * all processes together, is the most that they come to.
 */

/** One of the two, of all processes together, takes no more than this part of what is free. */
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

#endif
