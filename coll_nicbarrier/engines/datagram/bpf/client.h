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
#include "coll_nicbarrier/engines/engine.h"

/** A group that is in the kernel, as the process that has installed it or another one of its node
 *  has it. */
typedef struct nicbarrier_bpf_client {
    nicbarrier_bpf_page_t *page;
    int service; /**< the connection, over which the group lives; -1: this is another process, or
                      it was removed */
    int bell;    /**< a socket whose packets leave by the interface */
    unsigned char wake[NICBARRIER_PACKET_SIZE];
} nicbarrier_bpf_client_t;

/** How another process of the same user gets at it. */
typedef struct nicbarrier_bpf_share {
    char interface[16];
    nicbarrier_bpf_id_t id;
    nicbarrier_bpf_peer_t by; /**< any partner: on the way to it the program is met */
} nicbarrier_bpf_share_t;

/** Installs what the request says, whose version and order are filled in here. Waits until the
 *  Ethernet addresses of all partners are known, some seconds at most.
 *  @param socket of UDP, that the group's packets come to. @return 0, or -1 and the reason */
int nicbarrier_bpf_client_install(nicbarrier_bpf_client_t *c, const nicbarrier_bpf_share_t *share,
                                  nicbarrier_bpf_request_t *request, int socket,
                                  nicbarrier_reason_t *why);
/** The addresses of step request->id.step, as in request.h. False: that cannot be done. */
bool nicbarrier_bpf_client_readdress(nicbarrier_bpf_client_t *c, nicbarrier_bpf_request_t *request);
/** No program does anything more for the group; the page stays as it is. */
void nicbarrier_bpf_client_stop(nicbarrier_bpf_client_t *c);

/** The same group for another process. 0, or -1. */
int nicbarrier_bpf_client_open(nicbarrier_bpf_client_t *c, const nicbarrier_bpf_share_t *share);

/** Of both: gives it back. */
void nicbarrier_bpf_client_close(nicbarrier_bpf_client_t *c);

/** Enters all epochs up to this one. False: no program has done it. Any thread. */
bool nicbarrier_bpf_client_enter(nicbarrier_bpf_client_t *c, uint64_t epoch);
/** A word has come for step k. Likewise; one thread at a time. */
bool nicbarrier_bpf_client_take(nicbarrier_bpf_client_t *c, uint32_t k, uint64_t word);

/** A state that the rule had, no older than the call. */
void nicbarrier_bpf_client_snapshot(const nicbarrier_bpf_client_t *c, nicbarrier_rule_t *rule);
