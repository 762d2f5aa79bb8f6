/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Barriers in the kernel: a process's access to a group. It needs no privilege and no bpf() call:
 * the service (service.h) hands over a descriptor of the group's page, which is mapped; entering a
 * barrier is a store and a send on a socket. One thread at a time.
 */
#pragma once

#include <stdbool.h>

#include "coll_nicbarrier/engines/datagram/bpf/request.h"
#include "coll_nicbarrier/engines/datagram/wire/address.h"
#include "coll_nicbarrier/engines/datagram/wire/packet.h"
#include "coll_nicbarrier/engines/engine.h"

/** A group in the kernel: what the stepper has of it (stepper.h). */
typedef struct nicbarrier_offload {
    char interface[16];
    nicbarrier_address_t by; /**< any partner: packets towards it pass the program */
    nicbarrier_bpf_request_t request;
    nicbarrier_bpf_page_t *page;
    int service; /**< the connection that keeps the group alive; -1: it was stopped */
    int bell;    /**< a socket whose packets leave through the interface */
    bool taught; /**< the program has been shown the packets */
    unsigned char wake[NICBARRIER_PACKET_SIZE];
} nicbarrier_bpf_client_t;

/** Installs the group that the request describes; interface and partner are set, too, the rest is
 *  filled in here. Waits until the kernel knows the Ethernet address of that partner, some seconds
 *  at most. @return 0, or -1 and the reason */
int nicbarrier_bpf_client_install(nicbarrier_bpf_client_t *c, nicbarrier_reason_t *why);
/** The programs do nothing more for the group; its page stays as it is. May be called again. */
void nicbarrier_bpf_client_stop(nicbarrier_bpf_client_t *c);
/** Closes what install has made. */
void nicbarrier_bpf_client_close(nicbarrier_bpf_client_t *c);

/** Enters all epochs up to this one. False if no program has done so. */
bool nicbarrier_bpf_client_enter(nicbarrier_bpf_client_t *c, uint64_t epoch);
/** A word has come for step k. False if no program has taken it. */
bool nicbarrier_bpf_client_take(nicbarrier_bpf_client_t *c, uint32_t k, uint64_t word);

/** A state that the rule was in at the time of the call or later. */
void nicbarrier_bpf_client_snapshot(const nicbarrier_bpf_client_t *c, nicbarrier_rule_t *rule);
