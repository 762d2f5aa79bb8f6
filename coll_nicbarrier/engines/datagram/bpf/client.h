/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Barriers in the kernel: a process's access to a group. It needs no privilege and no bpf() call:
 * the service (service.h) hands over a descriptor of the group's page, which is mapped; entering a
 * barrier is a store and a send on a socket.
 */
#pragma once

#include <stdbool.h>

#include "coll_nicbarrier/engines/datagram/bpf/request.h"
#include "coll_nicbarrier/engines/datagram/wire/packet.h"
#include "coll_nicbarrier/engines/engine.h"

/** How another process of the same user gets access to a group. */
typedef struct nicbarrier_bpf_share {
    char interface[16];
    nicbarrier_bpf_id_t id;
    nicbarrier_bpf_peer_t by; /**< any partner: packets towards it pass the program */
    uint32_t six;             /**< 1: the partner is reached by IPv6 */
} nicbarrier_bpf_share_t;

/** A group in the kernel, as seen by the process that has installed it or by another process of its
 *  node; the stepper's handle (stepper.h). */
typedef struct nicbarrier_offload {
    nicbarrier_bpf_share_t share;
    nicbarrier_bpf_request_t request; /**< with the partners' addresses */
    nicbarrier_bpf_page_t *page;
    int service; /**< the connection that keeps the group alive; -1: another process has it, or the
                    group was removed */
    int bell;    /**< a socket whose packets leave through the interface */
    unsigned char wake[NICBARRIER_PACKET_SIZE];
} nicbarrier_bpf_client_t;

/** Installs the group that the request describes; version, order and name are filled in here. Waits
 * until the Ethernet addresses of all partners are known, some seconds at most.
 *  @param socket the UDP socket that receives the group's packets. @return 0, or -1 and the reason
 */
int nicbarrier_bpf_client_install(nicbarrier_bpf_client_t *c, int socket, nicbarrier_reason_t *why);
/** The partners of step k now have the addresses in the request. False if that is not possible. */
bool nicbarrier_bpf_client_readdress(nicbarrier_bpf_client_t *c, uint32_t k);
/** The programs do nothing more for the group; its page stays as it is. */
void nicbarrier_bpf_client_stop(nicbarrier_bpf_client_t *c);

/** Opens the same group in another process, by what was shared. 0, or -1. */
int nicbarrier_bpf_client_open(nicbarrier_bpf_client_t *c);

/** Closes what install or open has made. */
void nicbarrier_bpf_client_close(nicbarrier_bpf_client_t *c);

/** Enters all epochs up to this one. False if no program has done so. Any thread. */
bool nicbarrier_bpf_client_enter(nicbarrier_bpf_client_t *c, uint64_t epoch);
/** A word has come for step k. False if no program has taken it. One thread at a time. */
bool nicbarrier_bpf_client_take(nicbarrier_bpf_client_t *c, uint32_t k, uint64_t word);

/** A state that the rule was in at the time of the call or later. */
void nicbarrier_bpf_client_snapshot(const nicbarrier_bpf_client_t *c, nicbarrier_rule_t *rule);
