/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Ending what waits for lost peers. */
#ifndef NICSTRIDE_END_LOST_H
#define NICSTRIDE_END_LOST_H

/**
 * Ends the operations under way to peers that were lost since the last call, those of requests
 * among them, for whom nobody else waits. Costs a comparison where nothing was lost. Wire lock.
 * Returns how many peers; a negative value, and asks to be called again, where a lock was busy.
 */
int nicstride_end_lost_locked(void);

#endif
