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

#include <stddef.h>
#include <stdint.h>

#include "coll_nicbarrier/engines/datagram/bpf/state.h"

/** The name of the service's socket: this followed by the interface's name, in the abstract
 *  namespace, which belongs to the network namespace. */
#define NICBARRIER_BPF_SOCKET "ompi-nic/nicbarrier-bpf/"

/** Changes with the layout of anything that both sides use. */
#define NICBARRIER_BPF_VERSION 5

/** Installs the connection's group. With the reply comes its page. */
typedef struct nicbarrier_bpf_request {
    uint32_t version;
    uint32_t nsteps;
    uint32_t drop; /**< for tests: messages dropped of each 1000 */
    uint32_t zero;
    nicbarrier_bpf_id_t id;
    uint64_t sends, waits;                 /**< as in rule.h */
    uint64_t named[NICBARRIER_RULE_STEPS]; /**< as in state.h */
} nicbarrier_bpf_request_t;

typedef struct nicbarrier_bpf_reply {
    uint32_t version;
    uint32_t error; /**< an errno; 0: done */
    char text[120]; /**< a description of the error */
} nicbarrier_bpf_reply_t;

/** @return NULL, or what is wrong with the request (a static English fragment) */
const char *nicbarrier_bpf_request_wrong(const void *bytes, size_t len);
