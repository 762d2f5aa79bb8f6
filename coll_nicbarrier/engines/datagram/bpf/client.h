/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Barriers in the kernel: what a process has of a group. No privilege and no call of bpf() is
 * needed for it: the service (service.h) hands over a descriptor of the group's page, which is
 * mapped, and to enter is a store and a send on a socket.
 */
#pragma once

#include <stdbool.h>

#include "coll_nicbarrier/engines/datagram/bpf/request.h"
#include "coll_nicbarrier/engines/datagram/wire/packet.h"
#include "coll_nicbarrier/engines/engine.h"

/** How another process of the same user gets at a group. */
typedef struct nicbarrier_bpf_share {
    char interface[16];
    nicbarrier_bpf_id_t id;
    nicbarrier_bpf_peer_t by; /**< any partner: on the way to it the program is met */
    uint32_t six;             /**< 1: it is reached by IPv6 */
} nicbarrier_bpf_share_t;

/** A group that is in the kernel, as the process that has installed it or another one of its node
 *  has it: of a stepper (stepper.h). */
typedef struct nicbarrier_offload {
    nicbarrier_bpf_share_t share;
    nicbarrier_bpf_request_t request; /**< with the addresses that partners have */
    nicbarrier_bpf_page_t *page;
    int service; /**< the connection, over which the group lives; -1: this is another process, or
                      it was removed */
    int bell;    /**< a socket whose packets leave by the interface */
    unsigned char wake[NICBARRIER_PACKET_SIZE];
} nicbarrier_bpf_client_t;

/** Installs what the request says; version, order and name are filled in here. Waits until the
 *  Ethernet addresses of all partners are known, some seconds at most.
 *  @param socket of UDP, that the group's packets come to. @return 0, or -1 and the reason */
int nicbarrier_bpf_client_install(nicbarrier_bpf_client_t *c, int socket, nicbarrier_reason_t *why);
/** Partners of step k have the addresses that now stand in the request. False: that cannot be. */
bool nicbarrier_bpf_client_readdress(nicbarrier_bpf_client_t *c, uint32_t k);
/** No program does anything more for the group; the page stays as it is. */
void nicbarrier_bpf_client_stop(nicbarrier_bpf_client_t *c);

/** The same group for another process, by what is shared. 0, or -1. */
int nicbarrier_bpf_client_open(nicbarrier_bpf_client_t *c);

/** Of both: gives it back. */
void nicbarrier_bpf_client_close(nicbarrier_bpf_client_t *c);

/** Enters all epochs up to this one. False: no program has done it. Any thread. */
bool nicbarrier_bpf_client_enter(nicbarrier_bpf_client_t *c, uint64_t epoch);
/** A word has come for step k. Likewise; one thread at a time. */
bool nicbarrier_bpf_client_take(nicbarrier_bpf_client_t *c, uint32_t k, uint64_t word);

/** A state that the rule had, no older than the call. */
void nicbarrier_bpf_client_snapshot(const nicbarrier_bpf_client_t *c, nicbarrier_rule_t *rule);
