/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/transport/verbs/verbs_port.h"

#include <stdlib.h>
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

const char *onic_verbs_obstacle(const onic_verbs_address_t *mine,
                                const onic_verbs_address_t *theirs)
{
    if (mine->link != theirs->link)
        return "its link is of another kind";
    if (mine->link == ONIC_VERBS_INFINIBAND && memcmp(mine->gid, theirs->gid, SUBNET) != 0)
        return "it is in another subnet";
    if (mine->link == ONIC_VERBS_ROCE2 && is_ipv4(mine->gid) != is_ipv4(theirs->gid))
        return "one has an address of IPv4 only, the other one of IPv6 only";
    return NULL;
}

/* ---- filters --------------------------------------------------------------------------------- */

/** One item of a filter. */
typedef struct item {
    const char *device; /**< so many bytes */
    size_t len;
    int port, index; /**< -1: any */
} item_t;

/** A number up to `max` at *text, which is moved behind it; -1 where there is none. */
static int number(const char **text, int max)
{
    char *end;
    if (**text < '0' || **text > '9')
        return -1;
    const unsigned long n = strtoul(*text, &end, 10);
    *text = end;
    return n <= (unsigned long)max ? (int)n : -1;
}

/** The item at *filter, which is moved behind it and its comma; false where it cannot be. */
static bool next_item(const char **filter, item_t *item)
{
    const char *at = *filter;

    *item = (item_t){at, strcspn(at, ":,"), -1, -1};
    at += item->len;
    if (item->len == 0)
        return false;
    if (*at == ':') {
        at++;
        item->port = number(&at, 255);
        if (item->port < 1)
            return false;
        if (*at == ':') {
            at++;
            item->index = number(&at, 255);
            if (item->index < 0)
                return false;
        }
    }
    if (*at == ',' && at[1] != '\0')
        at++;
    else if (*at != '\0')
        return false;
    *filter = at;
    return true;
}

static bool names(const item_t *item, const char *device)
{
    return strncmp(item->device, device, item->len) == 0 && device[item->len] == '\0';
}

bool onic_verbs_filter_valid(const char *filter)
{
    item_t item;

    while (*filter != '\0')
        if (!next_item(&filter, &item))
            return false;
    return true;
}

bool onic_verbs_device_wanted(const char *filter, const char *device)
{
    item_t item;
    bool wanted = *filter == '\0';

    while (*filter != '\0' && next_item(&filter, &item))
        wanted |= names(&item, device);
    return wanted;
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

static bool better(const onic_verbs_seen_t *a, const onic_verbs_seen_t *b)
{
    return a->infiniband != b->infiniband ? a->infiniband : a->rate > b->rate;
}

/** Of those that fit the item; NULL: of all. */
static int best_of(const onic_verbs_seen_t *seen, int n, const item_t *item)
{
    int best = -1;

    for (int i = 0; i < n; i++) {
        const bool fits = item == NULL || (names(item, seen[i].device) &&
                                           (item->port < 0 || item->port == seen[i].port));
        if (fits && (best < 0 || better(&seen[i], &seen[best])))
            best = i;
    }
    return best;
}

int onic_verbs_choose(const onic_verbs_seen_t *seen, int n, const char *filter, int *index_p)
{
    item_t item;

    *index_p = -1;
    if (*filter == '\0')
        return best_of(seen, n, NULL);
    while (*filter != '\0' && next_item(&filter, &item)) {
        const int best = best_of(seen, n, &item);
        if (best >= 0) {
            *index_p = item.index;
            return best;
        }
    }
    return -1;
}

/** The more the better; 0: of no use. */
static int worth(const onic_verbs_gid_t *g)
{
    const bool local = g->gid[0] == 0xfe && (g->gid[1] & 0xc0) == 0x80;

    if (g->gid[0] == 0xff || memcmp(g->gid, nothing, GID) == 0)
        return 0;
    if (g->link == ONIC_VERBS_ROCE2)
        return is_ipv4(g->gid) ? 6 : local ? 4 : 5;
    if (g->link == ONIC_VERBS_ROCE1)
        return is_ipv4(g->gid) ? 3 : local ? 1 : 2;
    return 0;
}

int onic_verbs_choose_gid(const onic_verbs_gid_t *gids, int n)
{
    int best = -1, most = 0;

    for (int i = 0; i < n; i++) {
        if (worth(&gids[i]) > most) {
            best = i;
            most = worth(&gids[i]);
        }
    }
    return best;
}
