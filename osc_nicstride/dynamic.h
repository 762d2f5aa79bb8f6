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

#include "osc_nicstride/module.h"

/** Dynamic windows: is [addr, addr + size) attached at the peer, by our cache of its table? Asks
 *  the target where the cache is empty or of an old generation. */
bool nicstride_region_known(nicstride_module_t *m, nicstride_peer_t *p, uint64_t addr,
                            uint64_t size);

/** The same, without asking: false where it is not known. */
bool nicstride_region_remembered(nicstride_module_t *m, const nicstride_peer_t *p, uint64_t addr,
                                 uint64_t size);

#endif
