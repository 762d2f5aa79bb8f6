/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Engine datagram: its parameters and counters. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "coll_nicbarrier/engines/engine.h"

/** The values of the engine's parameters, checked already. */
typedef struct nicbarrier_datagram_config {
    const char *interface; /**< udp_address.h: nicbarrier_ip_wanted; NULL: choose */
    const char *stepper;   /**< the name of one (stepper.h); NULL or "auto": the first that can */
    int nack_usec;         /**< silence after which a NACK is sent; 10 .. 1000000 */
    int silence;           /**< seconds of a partner after which a group has failed; 0: never */
    int drop;              /**< for tests: of 1000 packets to send so many are dropped */
} nicbarrier_datagram_config_t;

extern nicbarrier_datagram_config_t nicbarrier_datagram_config;
extern const nicbarrier_param_t nicbarrier_datagram_params[];

/** What the engine has done in this process since it was started. May be read at any time. */
typedef struct nicbarrier_datagram_counters {
    _Atomic uint64_t nacks;       /**< sent */
    _Atomic uint64_t retransmits; /**< messages repeated because a NACK asked for them */
    _Atomic uint64_t refused;     /**< received that were not understood, or not from a partner */
    _Atomic uint64_t completed;   /**< barriers, though several at once count as one */
    _Atomic uint64_t thread_completed;  /**< of these, by the helper thread */
    _Atomic uint64_t stepper_taken;     /**< words that a stepper has taken in by itself */
    _Atomic uint64_t stepper_fallbacks; /**< groups that the process took over */
} nicbarrier_datagram_counters_t;

extern nicbarrier_datagram_counters_t nicbarrier_datagram_counters;
extern const nicbarrier_counter_t nicbarrier_datagram_counter_table[];

/** Adds one. The lock is held, so no other thread counts: cheaper than an atomic addition. */
static inline void nicbarrier_count(_Atomic uint64_t *counter)
{
    const uint64_t n = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, n + 1, memory_order_relaxed);
}
