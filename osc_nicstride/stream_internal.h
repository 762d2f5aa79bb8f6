/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Operation objects, which stream.c keeps and small.c uses, too. All is called with the wire lock
 * held.
 */
#ifndef NICSTRIDE_STREAM_INTERNAL_H
#define NICSTRIDE_STREAM_INTERNAL_H

#include "osc_nicstride/module.h"

/** An operation object with undefined contents, perhaps one that was used before; NULL: memory
 *  exhausted. */
nicstride_op_t *nicstride_op_take_locked(void);
/** Gives an object back that owns nothing any more and is in no list. */
void nicstride_op_give_locked(nicstride_op_t *op);
/** Enters an operation into its peer's list of those that are not locally complete. */
void nicstride_op_live_locked(nicstride_op_t *op);

#endif
