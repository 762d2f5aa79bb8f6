/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Measuring the numbers of a link (link.h) on the running machine, once for each node.
 *
 * What a process can measure by itself, on its own memory and with its kernel, is measured by the
 * first one of a node that comes to it, and published in memory that all of the node share. The
 * others take it from there if it is there, and else measure themselves: nobody waits for anybody,
 * and a process that dies while it publishes leaves the others to themselves.
 *
 * What takes two it measures with a peer of each kind (common/mover/pair.h), and publishes with it.
 */
#ifndef ONIC_MODEL_CALIBRATE_H
#define ONIC_MODEL_CALIBRATE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/model/link.h"
#include "common/support/export.h"

/* ---- what is shared: pure (shared.c) --------------------------------------------------------- */

#define ONIC_MODEL_SHARED_WORDS (sizeof(onic_measured_t) / sizeof(uint64_t))

/** A place in memory that the processes of a node share. All zero: nothing yet. Words of 8 bytes,
 *  written once; of the same processor, so in its byte order. */
typedef struct onic_model_shared {
    uint64_t state;
    uint64_t sample[ONIC_MODEL_SHARED_WORDS];
} onic_model_shared_t;

/** Takes the samples that another process has published; false where there are none. They are that
 *  process's word: onic_links_fit bounds what they can do. Any thread. */
ONIC_EXPORT bool onic_model_take(const onic_model_shared_t *shared, onic_measured_t *measured);

/** Publishes samples, unless another process has or is about to: then false. Any thread. */
ONIC_EXPORT bool onic_model_publish(onic_model_shared_t *shared, const onic_measured_t *measured);

/**
 * Adds what others have measured and is not known yet: what one process can measure by itself, and
 * with a peer of each kind, is each taken as a whole. Numbers without single copy give way to those
 * with it. True where that has changed anything.
 */
ONIC_EXPORT bool onic_measured_add(onic_measured_t *known, const onic_measured_t *others);

/* ---- glue: calibrate.c ----------------------------------------------------------------------- */

/** Measures for well below a millisecond. Without `single_copy` nothing of that is. Where memory or
 *  permission is lacking, the samples concerned are 0. Any thread. */
ONIC_EXPORT void onic_calibrate(bool single_copy, onic_samples_t *samples);

#endif
