/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Engine datagram: its parameters and counters. */
#pragma once

#include "coll_nicbarrier/engines/engine.h"

/** Values of parameter stepper: the first that can, or one of steppers.c alone, in its order. */
enum { NICBARRIER_AUTO, NICBARRIER_BPF, NICBARRIER_HOST };

/** The values of the engine's parameters, already checked. */
typedef struct nicbarrier_datagram_config {
    const char *interface; /**< names of interfaces, separated by commas; NULL: choose */
    int stepper;           /**< NICBARRIER_AUTO .. */
    int nack_usec;         /**< silence after which a NACK is sent; 10 .. 1000000 */
    int drop;              /**< for tests: packets dropped of each 1000 to send */
} nicbarrier_datagram_config_t;

extern nicbarrier_datagram_config_t nicbarrier_datagram_config;
extern const onic_param_t nicbarrier_datagram_params[];

/** What the engine has done in this process since it was started. */
typedef struct nicbarrier_datagram_counters {
    unsigned long long nacks;       /**< NACKs sent */
    unsigned long long retransmits; /**< messages repeated because a NACK asked for them */
    unsigned long long refused;     /**< packets received that were malformed or not a partner's */
    unsigned long long completed;   /**< barriers; several completed at once count as one */
    unsigned long long thread_completed;  /**< of these, completed by the helper thread */
    unsigned long long stepper_taken;     /**< words that the kernel has taken in by itself */
    unsigned long long stepper_fallbacks; /**< groups that the process took over */
} nicbarrier_datagram_counters_t;

extern nicbarrier_datagram_counters_t nicbarrier_datagram_counters;

enum { NICBARRIER_DATAGRAM_COUNTERS = 7 };
extern const onic_counter_t nicbarrier_datagram_counter_table[NICBARRIER_DATAGRAM_COUNTERS];
