/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Dynamic windows: what is attached here and at peers.
 */
#ifndef NICSTRIDE_DYNAMIC_H
#define NICSTRIDE_DYNAMIC_H

#include <stdbool.h>
#include <stdint.h>

#include "osc_nicstride/window/module.h"

/** Dynamic windows: is [addr, addr + size) attached at the peer, as far as is known here? Where it
 * is not known the target is asked, once for each generation of its table; the answer serves a
 * later call. Never waits. */
bool nicstride_region_known(nicstride_module_t *m, nicstride_peer_t *p, uint64_t addr,
                            uint64_t size);

#endif
