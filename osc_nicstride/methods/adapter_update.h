/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Accumulates by the adapter: those of windows that have agreed on that (nicstride_module_t's
 * `adapter_updates`), to all targets, the own process among them. They use the keys of method rdma.
 *
 * One element, which is one operation of the adapter, is begun and left to it. All else the call
 * waits for: what comes behind must not overtake its steps.
 */
#ifndef NICSTRIDE_ADAPTER_UPDATE_H
#define NICSTRIDE_ADAPTER_UPDATE_H

#include <stdbool.h>

#include "osc_nicstride/window/transfer.h"

/** As a row's `start`, of an accumulate; but that nothing else can do it. Waits for the target's
 *  key where there is none yet. An error after a text where an adapter cannot do it. */
int nicstride_adapter_update(nicstride_transfer_t *t, bool *done_p);

#endif
