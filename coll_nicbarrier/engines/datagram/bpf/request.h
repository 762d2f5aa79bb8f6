/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Barriers in the kernel: requests of processes to the service (service.h), over a local socket.
 * All have one size, and a reply follows each. Pure. Requests are checked without trust.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coll_nicbarrier/engines/datagram/bpf/state.h"
#include "coll_nicbarrier/schedule/schedule.h"

/** The name of the service's socket: this followed by the interface's name, in the abstract
 *  namespace, which belongs to the network namespace. */
#define NICBARRIER_BPF_SOCKET "ompi-nic/nicbarrier-bpf/"

/** Changes with the layout of anything that both sides use. */
#define NICBARRIER_BPF_VERSION 3

typedef enum nicbarrier_bpf_order {
    NICBARRIER_BPF_INSTALL = 1, /**< install a group; has the process's socket; reply: its page */
    NICBARRIER_BPF_OPEN,        /**< open a group of the same user; reply: its page */
    NICBARRIER_BPF_READDRESS,   /**< step `number` of the connection's group has new addresses */
    NICBARRIER_BPF_REMOVE,      /**< remove the connection's group */
    NICBARRIER_BPF_LIST,        /**< describe the group with that number; ENOENT past the last */
    NICBARRIER_BPF_QUIT, /**< end the service, for its own user; the connection closes last */
    NICBARRIER_BPF_ORDERS
} nicbarrier_bpf_order_t;

/** The address of a partner. */
typedef struct nicbarrier_bpf_peer {
    uint8_t ip[16]; /**< network byte order; IPv4: the first 4 bytes, the others 0 */
    uint16_t port;  /**< UDP port */
    uint16_t zero;
    uint32_t cookie; /**< carried by packets to the partner */
} nicbarrier_bpf_peer_t;

typedef struct nicbarrier_bpf_request {
    uint32_t version;
    uint32_t order;
    nicbarrier_bpf_id_t id;
    uint32_t number;
    /* For INSTALL and READDRESS. */
    uint32_t me; /**< my index in the group */
    uint32_t nsteps;
    uint32_t six;  /**< 1: all partners are reached by IPv6 */
    uint32_t drop; /**< for tests: messages dropped of each 1000 */
    nicbarrier_step_t step[NICBARRIER_RULE_STEPS];
    nicbarrier_bpf_peer_t to[NICBARRIER_RULE_STEPS], from[NICBARRIER_RULE_STEPS];
} nicbarrier_bpf_request_t;

typedef struct nicbarrier_bpf_reply {
    uint32_t version;
    uint32_t error; /**< an errno; 0: done. EAGAIN: the path to a partner is being looked up */
    char text[120]; /**< a description of the error */
    /* For LIST. */
    nicbarrier_bpf_id_t id;
    uint32_t user, process, nsteps, zero;
    uint64_t entered, completed;
    uint64_t count[NICBARRIER_BPF_COUNTERS];
} nicbarrier_bpf_reply_t;

/** @return NULL, or what is wrong with the request (a static English fragment). In a valid one each
 *  step that sends has a receiver, and each step that waits a sender. */
const char *nicbarrier_bpf_request_wrong(const void *bytes, size_t len);
