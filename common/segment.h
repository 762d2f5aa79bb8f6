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

#include "common/node.h"

/**
 * Creates a zeroed segment of `size` > 0 bytes with a name of its own, maps it, and reserves the
 * space of the first of `shares` shares. False where it cannot be had; the key is empty then.
 */
bool onic_segment_make(size_t size, int shares, onic_segment_key_t *key, onic_segment_t *segment);

/**
 * Maps a segment that another process has made, and reserves the space of share `share`, from 1 on:
 * so every process gets its share from the memory that is near to it. Beyond the last share
 * nothing is left to reserve.
 */
bool onic_segment_join(const onic_segment_key_t *key, size_t size, int share,
                       onic_segment_t *segment);

/** Takes the name away; the memory stays until the last mapping is gone. */
void onic_segment_unlink(const onic_segment_key_t *key);

/** Zeroed memory of this process alone. */
bool onic_segment_private(size_t size, onic_segment_t *segment);

#endif
