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
#include "coll_nicbarrier/engines/datagram/wire/packet.h"

/** The service's socket of an interface: this and the interface's name, in the abstract namespace,
 *  which is of the network's. */
#define NICBARRIER_BPF_SOCKET "ompi-nic/nicbarrier-bpf/"

/** Changes with the layout of anything that both sides see. */
#define NICBARRIER_BPF_VERSION 1

typedef enum nicbarrier_bpf_order {
    NICBARRIER_BPF_INSTALL = 1, /**< a group, with the process's socket; the reply has its page */
    NICBARRIER_BPF_OPEN,        /**< a group of the same user; the reply has its page */
    NICBARRIER_BPF_READDRESS,   /**< step id.step of the connection's group has other addresses */
    NICBARRIER_BPF_REMOVE,      /**< the connection's group */
    NICBARRIER_BPF_LIST,        /**< the group whose number is id.step; ENOENT behind the last */
    NICBARRIER_BPF_QUIT,        /**< for the service's own user: the connection ends behind it */
    NICBARRIER_BPF_ORDERS
} nicbarrier_bpf_order_t;

/** Where a partner is. */
typedef struct nicbarrier_bpf_peer {
    uint8_t ip[16]; /**< network byte order; of IPv4 the first 4 bytes, the others 0 */
    uint16_t port;  /**< of UDP; 0: there is none */
    uint8_t six;    /**< 1: IPv6 */
    uint8_t zero;
} nicbarrier_bpf_peer_t;

typedef struct nicbarrier_bpf_request {
    uint32_t version;
    uint32_t order;
    nicbarrier_bpf_id_t id;
    /* Install; of readdress the addresses of the step. */
    uint64_t drop;          /**< for tests: of 1000 messages so many are not sent */
    nicbarrier_rule_t rule; /**< the state to begin with */
    nicbarrier_bpf_peer_t to[NICBARRIER_RULE_STEPS], from[NICBARRIER_RULE_STEPS];
    uint64_t named[NICBARRIER_RULE_STEPS]; /**< nicbarrier_bpf_sender_t */
    unsigned char packet[NICBARRIER_RULE_STEPS][NICBARRIER_PACKET_SIZE];
} nicbarrier_bpf_request_t;

typedef struct nicbarrier_bpf_reply {
    uint32_t version;
    uint32_t error; /**< an errno; 0: done. EAGAIN: the way to a partner is being looked for */
    char text[120]; /**< where there is an error: in plain words */
    /* List. */
    nicbarrier_bpf_id_t id;
    uint32_t user, process, nsteps, mode;
    uint64_t entered, completed;
    uint64_t count[NICBARRIER_BPF_COUNTERS];
} nicbarrier_bpf_reply_t;

/** @return NULL, or what is wrong with it (a static English fragment). Behind it steps that send
 *  have a receiver and a packet for it, steps that wait a sender, all of one kind of IP, and all
 *  bits are of steps. */
const char *nicbarrier_bpf_request_wrong(const void *bytes, size_t len);
/** Of which kind of IP the partners of a group to be installed are. */
bool nicbarrier_bpf_request_six(const nicbarrier_bpf_request_t *r);
