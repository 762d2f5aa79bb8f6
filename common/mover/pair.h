/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Measuring what messages and slots to a peer take, for the model (common/model/calibrate.h).
 *
 * This process asks, the peer's handlers answer: the peer need do nothing but be in MPI, as
 * processes are that wait for this one in a collective call. Nobody waits for longer than the
 * caller says.
 */
#ifndef ONIC_PAIR_H
#define ONIC_PAIR_H

#include "common/model/link.h"
#include "common/support/export.h"
#include "common/wire/wire.h"

/**
 * Measures for some 200 microseconds on a node, and gives up after `usec`. What could not be
 * measured is 0: all of it where the peer does not answer, or another thread is measuring. MPI
 * thread, after onic_mover_open on both sides, without the wire lock.
 */
ONIC_EXPORT void onic_measure_pair(onic_peer_t *peer, unsigned usec, onic_pair_samples_t *samples);

/** Answers others as long as they ask, for `usec` at most: for two processes that measure each
 * other and go on to something in which they would answer late. MPI thread, without the wire lock.
 */
ONIC_EXPORT void onic_pair_stay(unsigned usec);

/** With the mover: from when on asks are answered, and until when. */
void onic_pair_open(void);
void onic_pair_close(void);

#endif
