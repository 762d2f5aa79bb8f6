/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What the two sides of a reliable connection tell each other. The one that begins it, and
 * will write and read, tells its address and what it can do; the other one answers with its own,
 * and with what both of them can do.
 *
 *  Pure. Travels as it is, so it has no gaps; reading trusts nothing. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/verbs/verbs_port.h"

/** Connections of each direction that a process may have. */
#define ONIC_RC_MOST 256

typedef struct onic_rc_terms {
    onic_verbs_address_t address; /**< of the queue pair */
    uint8_t mtu;   /**< of packets: 1 .. 5 for 256 .. 4096 bytes, as verbs has them */
    uint8_t reads; /**< that may be under way at a time; 0: none is possible */
    uint16_t zero;
    uint32_t mark_key; /**< an answer: where the other side writes that it has ended the */
    uint64_t mark;     /**< connection, and the key for that; else 0 */
} onic_rc_terms_t;

_Static_assert(sizeof(onic_rc_terms_t) == sizeof(onic_verbs_address_t) + 16, "it has no gaps");

/** Takes over terms that have come. @return NULL, or what is wrong with them (a static English
 *  fragment) */
static inline const char *onic_rc_terms_read(const void *bytes, size_t len, onic_rc_terms_t *t)
{
    if (len != sizeof(*t))
        return "not the size of a connection's terms";
    memcpy(t, bytes, sizeof(*t));
    if (t->mtu < 1 || t->mtu > 5 || t->zero != 0)
        return "terms that cannot be";
    return onic_verbs_address_read(bytes, sizeof(t->address), &t->address);
}

/** What both sides can do: `mine` becomes no more than `theirs`. */
static inline void onic_rc_terms_agree(onic_rc_terms_t *mine, const onic_rc_terms_t *theirs)
{
    mine->mtu = mine->mtu < theirs->mtu ? mine->mtu : theirs->mtu;
    mine->reads = mine->reads < theirs->reads ? mine->reads : theirs->reads;
}

/* ---- places -------------------------------------------------------------------------------------
 *
 * The places of a process's connections, of which there are so many in each direction: which
 * one gives way to another, and which one a process that asks gets.
 *
 * Pure; any thread. */

/** A place of a connection that this process has begun. */
typedef enum onic_place_state {
    ONIC_PLACE_FREE = 0,
    ONIC_PLACE_BUSY, /**< something is under way on it, or it is being made */
    ONIC_PLACE_IDLE,
    ONIC_PLACE_ENDING /**< it will be free */
} onic_place_state_t;

typedef struct onic_place {
    onic_place_state_t state;
    uint64_t used; /**< when last, by a clock that counts uses of all places, and attempts to get
                        one; not after `now` */
} onic_place_t;

/** Turns of that clock for each place, before an unused connection gives way: making another one
 *  takes as long as many transfers, so where all are in use in turn none does. */
#define ONIC_PLACE_TURNS 8

/** Which of `n` connections, which are all the places, is to be ended so that the next one finds a
 *  place: of those that are idle the one used longest ago, if that is long enough. -1: none; nor
 *  where a place is free, or will be. */
static inline int onic_place_to_end(const onic_place_t *place, unsigned n, uint64_t now)
{
    int oldest = -1;

    for (unsigned i = 0; i < n; i++) {
        if (place[i].state == ONIC_PLACE_FREE || place[i].state == ONIC_PLACE_ENDING)
            return -1;
        if (place[i].state == ONIC_PLACE_IDLE && (oldest < 0 || place[i].used < place[oldest].used))
            oldest = (int)i;
    }
    return oldest >= 0 && now - place[oldest].used >= (uint64_t)ONIC_PLACE_TURNS * n ? oldest : -1;
}

/** A place of a connection that another process has begun. */
typedef struct onic_served_place {
    bool taken;
    bool ended;       /**< the other process has said so */
    uint64_t process; /**< whose, where taken */
} onic_served_place_t;

/** Which of `n` places a process that asks gets: its own, one that is free, or one that has ended;
 *  -1: none. */
static inline int onic_place_for(const onic_served_place_t *place, unsigned n, uint64_t process)
{
    int empty = -1, ended = -1;

    for (unsigned i = 0; i < n; i++)
        if (!place[i].taken)
            empty = (int)i;
        else if (place[i].process == process)
            return (int)i;
        else if (place[i].ended)
            ended = (int)i;
    return empty >= 0 ? empty : ended;
}
