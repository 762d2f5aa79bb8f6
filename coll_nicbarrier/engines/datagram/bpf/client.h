/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Barriers in the kernel: a process's access to a group. It needs no privilege and no bpf() call:
 * the service (service.h) hands over a descriptor of the group's page, which is mapped; entering a
 * barrier is a store and a send on a socket. One thread at a time, but for what reads the page.
 */
#pragma once

#include <stdbool.h>

#include "coll_nicbarrier/engines/datagram/bpf/state.h"
#include "coll_nicbarrier/engines/datagram/wire/packet.h"
#include "coll_nicbarrier/engines/engine.h"

typedef struct nicbarrier_bpf_client {
    nicbarrier_bpf_page_t *page;
    int service; /**< the connection that keeps the group alive; -1: it was stopped */
    int bell;    /**< a socket whose packets leave through the interface */
    unsigned char wake[NICBARRIER_PACKET_SIZE];
} nicbarrier_bpf_client_t;

/** Installs a group, whose page then has what `first` has, and its key. `by` is any partner that is
 *  reached by the interface. Waits until the kernel knows the Ethernet address of that partner,
 * some seconds at most. @return 0, or -1 and the reason */
int nicbarrier_bpf_client_install(nicbarrier_bpf_client_t *c, const nicbarrier_bpf_id_t *id,
                                  const nicbarrier_bpf_page_t *first, const char *interface,
                                  nicbarrier_address_t by, nicbarrier_reason_t *why);
/** The programs neither keep nor send packets of the group any more; its page stays as it is. May
 *  be called again. */
void nicbarrier_bpf_client_stop(nicbarrier_bpf_client_t *c);
/** Closes what install has made. */
void nicbarrier_bpf_client_close(nicbarrier_bpf_client_t *c);

/* If one of the next two returns false, no program has carried it out. */

/** Enters all epochs up to this one. */
bool nicbarrier_bpf_client_enter(nicbarrier_bpf_client_t *c, uint64_t epoch);
/** A word has come to the process for step k. */
bool nicbarrier_bpf_client_take(nicbarrier_bpf_client_t *c, uint32_t k, uint64_t word);

/** A state that the rule was in at the time of the call or later: with the effects of earlier
 *  calls, and no number in it is less than what the page showed before. */
void nicbarrier_bpf_client_snapshot(const nicbarrier_bpf_client_t *c, nicbarrier_rule_t *rule);

/** What the page shows. Any thread. */
static inline uint64_t nicbarrier_bpf_completed(const nicbarrier_bpf_page_t *page)
{
    return __atomic_load_n(&page->word, __ATOMIC_ACQUIRE) & ~NICBARRIER_WORD_FAILED;
}

static inline bool nicbarrier_bpf_failed(const nicbarrier_bpf_page_t *page)
{
    return __atomic_load_n(&page->word, __ATOMIC_ACQUIRE) >= NICBARRIER_WORD_FAILED;
}
