/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What this process knows of its links (common/model/link.h), for all components: what one of them
 * has measured, the others need not measure again.
 *
 * A component that was given numbers by the user does not ask here.
 */
#ifndef ONIC_LINKS_H
#define ONIC_LINKS_H

#include <stdbool.h>

#include "common/model/link.h"
#include "common/support/export.h"
#include "common/wire/wire.h"

/** The longest that measuring with a peer takes, in microseconds: where all wait for that, and
 * where a job starts, in which the peer may come late and memory is mapped for the first time. */
#define ONIC_LINKS_USEC       1500
#define ONIC_LINKS_START_USEC 6000
/** How often that is tried with peers of a kind: one that has lost its processor, or is not in MPI,
 *  does not answer. */
#define ONIC_LINKS_TRIES 3

typedef struct onic_links_known {
    onic_links_t links;       /**< the default ones, but for what was measured */
    onic_measured_t measured; /**< samples that are 0 have not been measured */
    unsigned version;         /**< grows with every change; 0: nothing has been measured */
    const char *source;       /**< who has measured last, in words */
} onic_links_known_t;

/** What is known now. The wire lock must be held, as long as it is looked at. */
ONIC_EXPORT const onic_links_known_t *onic_links_known_locked(void);

/**
 * Measures what is not known yet: what this process can by itself, in well below a millisecond, and
 * what it takes to send to a process of this node and to one of another (NULL for those that are
 * not to be asked), in `usec` microseconds for each at most. What cannot be measured stays as it
 * is; nothing is printed. A peer that has opened the mover answers while it is in MPI, also in a
 * fence of Open MPI's own, or has a server thread that is awake. MPI thread, after onic_mover_open,
 * without the wire lock; any number of times.
 */
ONIC_EXPORT void onic_links_measure(bool single_copy, onic_peer_t *near, onic_peer_t *far,
                                    unsigned usec);

/** Takes what another process of the node has measured and this one lacks. Without the wire lock.
 */
ONIC_EXPORT void onic_links_take(const onic_measured_t *theirs);

/** Reads what a user has given as a component's parameter `cost`: "measure" and "default", which
 *  change nothing, a list of numbers of the node, or @FILE. False where it is none of these: then a
 *  text has been printed, "bad-cost" of that help file. Where the numbers come from, in words, is
 *  given in *source_p. MPI thread. */
ONIC_EXPORT bool onic_links_given(onic_links_t *links, const char *cost, const char *help_file,
                                  const char **source_p);

#endif
