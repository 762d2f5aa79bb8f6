/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What the two sides of a reliable connection tell each other. The one that begins it, and
 *  will write and read, tells its address and what it can do; the other one answers with its own,
 *  and with what both of them can do.
 *
 *  Pure. Travels as it is, so it has no gaps. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/transport/verbs/verbs_port.h"

/** Connections of each direction that a process may have. */
#define ONIC_RC_MOST 256

typedef struct onic_rc_terms {
    onic_verbs_address_t address; /**< of the queue pair */
    uint8_t mtu;   /**< of packets: 1 .. 5 for 256 .. 4096 bytes, as verbs has them */
    uint8_t reads; /**< that may be under way at a time; 0: none is possible */
    uint16_t zero;
    uint32_t
        key; /**< of memory that the other side may write, and its address, where the user of */
    uint64_t addr; /**< the connection tells that with the terms; else 0 */
} onic_rc_terms_t;

_Static_assert(sizeof(onic_rc_terms_t) == sizeof(onic_verbs_address_t) + 16, "it has no gaps");

/** What both sides can do: `mine` becomes no more than `theirs`. */
static inline void onic_rc_terms_agree(onic_rc_terms_t *mine, const onic_rc_terms_t *theirs)
{
    mine->mtu = mine->mtu < theirs->mtu ? mine->mtu : theirs->mtu;
    mine->reads = mine->reads < theirs->reads ? mine->reads : theirs->reads;
}
