/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Network engines are opened once for each process, when the first agreement may need them.
 */
#ifndef NICBARRIER_OPEN_H
#define NICBARRIER_OPEN_H

#include "coll_nicbarrier/engines/engine.h"

/** Opens the engine of that number unless it is open. 0, or -1 and the reason. Any number of
 *  threads at once, within MPI calls, not within opal_progress. */
int nicbarrier_engine_open(int engine, const nicbarrier_engine_settings_t *settings,
                           nicbarrier_reason_t *why);

/** Closes those that are open, at the end of the process. */
void nicbarrier_engines_close(void);

#endif
