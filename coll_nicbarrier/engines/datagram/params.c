/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Engine datagram: its parameters and counters. */
#include "coll_nicbarrier/engines/datagram/transport.h"

#include "coll_nicbarrier/engines/datagram/udp_address.h"
#include "common/config.h"
#include "common/verbs/verbs_port.h"
#include "common/wire/adapters.h"

#if OMPI_NIC_HAVE_VERBS
#define NO_VERBS ""
#else
#define NO_VERBS ". This build is without libibverbs: there is UDP only"
#endif

nicbarrier_datagram_config_t nicbarrier_datagram_config = {.nack_usec = 1000};
nicbarrier_datagram_counters_t nicbarrier_datagram_counters;

static const char *verbs = "auto";
static int stepper; /* its text counts */
static const char *const steppers[] = {"auto", "bpf", "host", NULL};
static const char *const uses[] = {[NICBARRIER_VERBS_AUTO] = "auto",
                                   [NICBARRIER_VERBS_NEVER] = "never",
                                   [NICBARRIER_VERBS_ALWAYS] = "always",
                                   NULL};

const nicbarrier_param_t nicbarrier_datagram_params[] = {
    {.name = "nack_timeout",
     .help = "Microseconds of silence after which engine datagram asks for a barrier message again",
     .number = &nicbarrier_datagram_config.nack_usec,
     .min = 10,
     .max = 1000000},
    {.name = "silence",
     .help = "Engine datagram: seconds in which a partner answers none of the repeated requests, "
             "after which a barrier fails; 0: never, since a process may be stopped for any time",
     .number = &nicbarrier_datagram_config.silence,
     .max = 1000000},
    {.name = "drop",
     .help = "For tests: of 1000 packets of engine datagram so many are not sent",
     .number = &nicbarrier_datagram_config.drop,
     .max = 1000},
    {.name = "interface",
     .help = "Engine datagram: the interfaces to use for UDP, as a list of names (eth0), networks "
             "(10.0.0.0/8, fd00::/8) and addresses (10.0.0.7), separated by commas; with ^ before "
             "the list, all but those. Partners get the addresses of all that fit and are up, "
             "8 at most. Empty: all but the loopback. May differ between ranks",
     .text = &nicbarrier_datagram_config.interface,
     .valid = nicbarrier_ip_filter_valid,
     .topic = "bad-interface"},
    {.name = "verbs",
     .help = "Engine datagram: when to send by unreliable datagrams of verbs devices (InfiniBand, "
             "RoCE) and not by UDP: auto (between all that have a device and can reach each other "
             "by it; a partner that does not answer by verbs is sent UDP), never, or always (where "
             "that cannot be, the engine is not used)" NO_VERBS,
     .same = true,
     .number = &nicbarrier_datagram_config.verbs,
     .words = uses,
     .text = &verbs},
    {.name = "device",
     .help = "Engine datagram: the verbs devices that may be used, as a list of name[:port[:index "
             "of its address]], of which the first counts that is there and active, as in "
             "mlx5_0:1,mlx5_1; empty takes InfiniBand before Ethernet, then the fastest, and of "
             "Ethernet's addresses one of RoCE 2 and IPv4. May differ between ranks",
     .text = &nicbarrier_datagram_config.device,
     .valid = onic_verbs_filter_valid,
     .topic = "bad-device",
     .directory = ONIC_ADAPTERS},
    {.name = "stepper",
     .help = "Engine datagram: what takes the steps of barriers: auto (bpf where it can), bpf (the "
             "kernel, where nicbarrier-bpf is loaded on the interface; where that cannot be, the "
             "engine is not used), or host (this process). May differ between ranks",
     .number = &stepper,
     .words = steppers,
     .text = &nicbarrier_datagram_config.stepper},
    {.name = NULL},
};

#define COUNTER(field) .value = &nicbarrier_datagram_counters.field

const nicbarrier_counter_t nicbarrier_datagram_counter_table[] = {
    {"nacks_sent", "Engine datagram: requests to repeat a message, sent", COUNTER(nacks)},
    {"retransmits", "Engine datagram: messages repeated, each for a request", COUNTER(retransmits)},
    {"refused", "Engine datagram: packets received that were not understood, or not from a partner",
     COUNTER(refused)},
    {"verbs_sent", "Engine datagram: packets sent by verbs", COUNTER(verbs_sent)},
    {"verbs_fallbacks",
     "Engine datagram: partners that did not answer by verbs and are sent UDP instead",
     COUNTER(fallbacks)},
    {"datagram_completed",
     "Engine datagram: barriers completed; those that become so together count as one",
     COUNTER(completed)},
    {"thread_completed", "Engine datagram: of these, completed by the helper thread",
     COUNTER(thread_completed)},
    {"handovers",
     "Engine datagram: times that the helper thread took over at once, because the program "
     "computes behind its nonblocking barriers",
     COUNTER(handovers)},
    {"stepper_taken",
     "Engine datagram: messages that a stepper below this process (coll_nicbarrier_stepper) has "
     "taken "
     "in by itself",
     COUNTER(stepper_taken)},
    {"stepper_fallbacks",
     "Engine datagram: groups that such a stepper has given up, or did not serve well, which go on "
     "in "
     "this process",
     COUNTER(stepper_fallbacks)},
    {.name = NULL},
};
