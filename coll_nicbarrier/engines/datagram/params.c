/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Engine datagram: its parameters and counters. */
#include "coll_nicbarrier/engines/datagram/params.h"

nicbarrier_datagram_config_t nicbarrier_datagram_config = {.nack_usec = 1000};
nicbarrier_datagram_counters_t nicbarrier_datagram_counters;

static const char *stepper_word;
static const char *const steppers[] = {"auto", "bpf", "host", NULL}; /* as in steppers.c */

const onic_param_t nicbarrier_datagram_params[] = {
    {.name = "nack_timeout",
     .help = "Microseconds of silence after which engine datagram asks for a barrier message again",
     .number = &nicbarrier_datagram_config.nack_usec,
     .min = 10,
     .max = 1000000},
    {.name = "drop",
     .help = "For tests: of 1000 packets of engine datagram so many are not sent",
     .number = &nicbarrier_datagram_config.drop,
     .max = 1000},
    {.name = "interface",
     .help =
         "Engine datagram: the names of the interfaces to use, separated by commas. Partners get "
         "the IPv4 addresses of those that are up, 8 at most, and use the first that is in a "
         "network of their own. Empty: all but the loopback. May differ between ranks",
     .text = &nicbarrier_datagram_config.interface},
    {.name = "stepper",
     .help = "Engine datagram: what takes the steps of barriers: auto (bpf where it can), bpf (the "
             "kernel, where nicbarrier-bpf is loaded on the interface; where that cannot be, the "
             "engine is not used), or host (this process). May differ between ranks",
     .number = &nicbarrier_datagram_config.stepper,
     .words = steppers,
     .text = &stepper_word},
    {.name = NULL},
};

const onic_counter_t nicbarrier_datagram_counter_table[] = {
    {"nacks_sent", "Engine datagram: requests to repeat a message, sent",
     &nicbarrier_datagram_counters.nacks, 0},
    {"retransmits", "Engine datagram: messages repeated, each for a request",
     &nicbarrier_datagram_counters.retransmits, 0},
    {"refused", "Engine datagram: packets received that were not understood, or not from a partner",
     &nicbarrier_datagram_counters.refused, 0},
    {"datagram_completed",
     "Engine datagram: barriers completed; those that become so together count as one",
     &nicbarrier_datagram_counters.completed, 0},
    {"thread_completed", "Engine datagram: of these, completed by the helper thread",
     &nicbarrier_datagram_counters.thread_completed, 0},
    {"stepper_taken",
     "Engine datagram: messages that a stepper (coll_nicbarrier_stepper) has taken in by itself",
     &nicbarrier_datagram_counters.stepper_taken, 0},
    {"stepper_fallbacks",
     "Engine datagram: groups that such a stepper has given up, which go on in this process",
     &nicbarrier_datagram_counters.stepper_fallbacks, 0},
};
