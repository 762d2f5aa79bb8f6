/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Addresses in endpoint records; see udp_address.h. */
#include "coll_nicbarrier/engines/datagram/udp_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

const char *nicbarrier_udp_address_decode(const void *bytes, size_t len,
                                          nicbarrier_udp_address_t *p)
{
    memset(p, 0, sizeof(*p));
    if (len < offsetof(nicbarrier_udp_address_t, ip) || len > sizeof(*p))
        return "not of a possible size";
    memcpy(p, bytes, len);
    if (p->n == 0 || p->n > NICBARRIER_IPS_MAX || len != nicbarrier_udp_address_size(p))
        return "not as many addresses as it says";
    return p->port == 0 || p->zero != 0 ? "a head that cannot be" : NULL;
}

/* ---- choice --------------------------------------------------------------------------------- */

static bool is_mine(const nicbarrier_udp_address_t *mine, uint32_t ip)
{
    for (int i = 0; i < mine->n; i++)
        if (mine->ip[i].ip == ip)
            return true;
    return false;
}

static bool is_near(const nicbarrier_udp_address_t *mine, uint32_t ip)
{
    for (int i = 0; i < mine->n; i++)
        if (((mine->ip[i].ip ^ ip) & mine->ip[i].mask) == 0)
            return true;
    return false;
}

nicbarrier_address_t nicbarrier_udp_address_choose(const nicbarrier_udp_address_t *mine,
                                                   const nicbarrier_udp_address_t *theirs)
{
    nicbarrier_address_t to = {htonl(INADDR_LOOPBACK), theirs->port};
    bool found = false;

    for (int i = 0; i < theirs->n; i++) {
        const uint32_t ip = theirs->ip[i].ip;
        if (is_mine(mine, ip))
            continue;
        if (is_near(mine, ip))
            return (nicbarrier_address_t){ip, theirs->port};
        if (!found)
            to.ip = ip;
        found = true;
    }
    return to;
}

/* ---- interfaces ----------------------------------------------------------------------------- */

bool nicbarrier_interface_is_in(const char *interface, const char *list)
{
    const size_t len = strlen(interface);

    for (const char *at = list; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strcspn(at, ",") == len && memcmp(at, interface, len) == 0)
            return true;
    }
    return false;
}
