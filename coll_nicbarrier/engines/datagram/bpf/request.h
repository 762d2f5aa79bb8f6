/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Barriers in the kernel: what processes ask of the service (service.h), over a socket of this
 * host. All are of one size; a reply follows each. Pure. Checking trusts nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coll_nicbarrier/engines/datagram/bpf/state.h"
#include "coll_nicbarrier/schedule/schedule.h"

/** The service's socket of an interface: this and the interface's name, in the abstract namespace,
 *  which is of the network's. */
#define NICBARRIER_BPF_SOCKET "ompi-nic/nicbarrier-bpf/"

/** Changes with the layout of anything that both sides see. */
#define NICBARRIER_BPF_VERSION 3

typedef enum nicbarrier_bpf_order {
    NICBARRIER_BPF_INSTALL = 1, /**< a group, with the process's socket; the reply has its page */
    NICBARRIER_BPF_OPEN,        /**< a group of the same user; the reply has its page */
    NICBARRIER_BPF_READDRESS,   /**< step `number` of the connection's group has other addresses */
    NICBARRIER_BPF_REMOVE,      /**< the connection's group */
    NICBARRIER_BPF_LIST,        /**< the group of that number; ENOENT behind the last */
    NICBARRIER_BPF_QUIT,        /**< for the service's own user: the connection ends behind it */
    NICBARRIER_BPF_ORDERS
} nicbarrier_bpf_order_t;

/** Where a partner is. */
typedef struct nicbarrier_bpf_peer {
    uint8_t ip[16]; /**< network byte order; of IPv4 the first 4 bytes, the others 0 */
    uint16_t port;  /**< of UDP */
    uint16_t zero;
    uint32_t cookie; /**< of packets to it */
} nicbarrier_bpf_peer_t;

typedef struct nicbarrier_bpf_request {
    uint32_t version;
    uint32_t order;
    nicbarrier_bpf_id_t id;
    uint32_t number;
    /* Install, and readdress. */
    uint32_t me; /**< in the group */
    uint32_t nsteps;
    uint32_t six;  /**< 1: all partners are reached by IPv6 */
    uint32_t drop; /**< for tests: of 1000 messages so many are not sent */
    nicbarrier_step_t step[NICBARRIER_RULE_STEPS];
    nicbarrier_bpf_peer_t to[NICBARRIER_RULE_STEPS], from[NICBARRIER_RULE_STEPS];
} nicbarrier_bpf_request_t;

typedef struct nicbarrier_bpf_reply {
    uint32_t version;
    uint32_t error; /**< an errno; 0: done. EAGAIN: the way to a partner is being looked for */
    char text[120]; /**< where there is an error: in plain words */
    /* List. */
    nicbarrier_bpf_id_t id;
    uint32_t user, process, nsteps, zero;
    uint64_t entered, completed;
    uint64_t count[NICBARRIER_BPF_COUNTERS];
} nicbarrier_bpf_reply_t;

/** @return NULL, or what is wrong with it (a static English fragment). Behind it steps that send
 *  have a receiver, and steps that wait a sender. */
const char *nicbarrier_bpf_request_wrong(const void *bytes, size_t len);
