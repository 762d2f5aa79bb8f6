/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * A network adapter that takes the steps of engine datagram's barriers by itself (stepper.h), made
 * for tests: a thread that reads the engine's socket and sees each packet before the engine does.
 * It is slow at random times, swaps packets, passes up what it need not, and may end. Stands in
 * place of the library's table of steppers; programs with it are linked with `adapter_wraps`
 * (local.mk).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/** To be set before the engine is opened. */
typedef struct adapter_config {
    bool absent;      /**< there is none */
    unsigned dies_at; /**< it is gone when it has been asked for so much; 0: never */
    bool calm;        /**< nothing at random */
    uint64_t seed;
} adapter_config_t;

extern adapter_config_t adapter_config;
