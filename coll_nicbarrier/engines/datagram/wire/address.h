/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Where a process of engine datagram is: an address of IPv4. Pure. */
#pragma once

#include <stdint.h>

/** Both in network byte order. */
typedef struct nicbarrier_address {
    uint32_t ip;
    uint16_t port; /**< of UDP */
} nicbarrier_address_t;
