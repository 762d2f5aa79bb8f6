/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Engine datagram: its parameters and counters. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "coll_nicbarrier/engines/engine.h"

/** Who takes the steps. */
typedef enum nicbarrier_stepper {
    NICBARRIER_AUTO, /**< the kernel where it can, else this process */
    NICBARRIER_BPF,  /**< the kernel alone */
    NICBARRIER_HOST  /**< this process */
} nicbarrier_stepper_t;

/** The values of the engine's parameters, already checked. */
typedef struct nicbarrier_datagram_config {
    const char *interface; /**< names of interfaces, separated by commas; NULL: choose */
    int stepper;           /**< nicbarrier_stepper_t */
    int nack_usec;         /**< silence after which a NACK is sent; 10 .. 1000000 */
    int drop;              /**< for tests: packets dropped of each 1000 to send */
} nicbarrier_datagram_config_t;

extern nicbarrier_datagram_config_t nicbarrier_datagram_config;
extern const nicbarrier_param_t nicbarrier_datagram_params[];

/** What the engine has done in this process since it was started. May be read at any time. */
typedef struct nicbarrier_datagram_counters {
    _Atomic uint64_t nacks;       /**< NACKs sent */
    _Atomic uint64_t retransmits; /**< messages repeated because a NACK asked for them */
    _Atomic uint64_t refused;     /**< packets received that were malformed or not from a partner */
    _Atomic uint64_t completed;   /**< barriers; several completed at once count as one */
    _Atomic uint64_t thread_completed;  /**< of these, completed by the helper thread */
    _Atomic uint64_t stepper_taken;     /**< words that the kernel has taken in by itself */
    _Atomic uint64_t stepper_fallbacks; /**< groups that the process took over */
} nicbarrier_datagram_counters_t;

extern nicbarrier_datagram_counters_t nicbarrier_datagram_counters;
extern const nicbarrier_counter_t nicbarrier_datagram_counter_table[];

/** With the lock held no other thread counts: cheaper than an atomic add. */
static inline void nicbarrier_count(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
                          memory_order_relaxed);
}
