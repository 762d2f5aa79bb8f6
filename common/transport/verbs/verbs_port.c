/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/transport/verbs/verbs_port.h"

#include <string.h>

enum { GID = 16, SUBNET = 8 };

/** Of 16 bytes, those before an IPv4 address. */
static const uint8_t four[12] = {[10] = 0xff, [11] = 0xff};
static const uint8_t nothing[GID];

static bool is_ipv4(const uint8_t gid[GID])
{
    return memcmp(gid, four, sizeof(four)) == 0;
}

/* ---- addresses ------------------------------------------------------------------------------- */

bool onic_verbs_reaches(const onic_verbs_address_t *mine, const onic_verbs_address_t *theirs)
{
    return mine->link == theirs->link &&
           (mine->link != ONIC_VERBS_INFINIBAND || memcmp(mine->gid, theirs->gid, SUBNET) == 0) &&
           (mine->link != ONIC_VERBS_ROCE2 || is_ipv4(mine->gid) == is_ipv4(theirs->gid));
}

/* ---- choice ---------------------------------------------------------------------------------- */

uint32_t onic_verbs_rate(unsigned speed, unsigned width)
{
    static const uint16_t lane[] = {25, 50, 100, 100, 140, 250, 500, 1000}; /* speed 1, 2, 4 .. */
    static const uint8_t lanes[] = {1, 4, 8, 12, 2};                        /* width likewise */

    for (unsigned i = 0; i < sizeof(lane) / sizeof(lane[0]); i++)
        for (unsigned j = 0; j < sizeof(lanes); j++)
            if (speed == 1U << i && width == 1U << j)
                return (uint32_t)lane[i] * lanes[j];
    return 0;
}

bool onic_verbs_is_better(const onic_verbs_seen_t *a, const onic_verbs_seen_t *b)
{
    return a->infiniband != b->infiniband ? a->infiniband : a->rate > b->rate;
}

int onic_verbs_worth(const onic_verbs_address_t *a)
{
    const bool local = a->gid[0] == 0xfe && (a->gid[1] & 0xc0) == 0x80;

    if (a->gid[0] == 0xff || memcmp(a->gid, nothing, GID) == 0)
        return 0;
    if (a->link == ONIC_VERBS_ROCE2)
        return is_ipv4(a->gid) ? 6 : local ? 4 : 5;
    if (a->link == ONIC_VERBS_ROCE1)
        return is_ipv4(a->gid) ? 3 : local ? 1 : 2;
    return 0;
}
