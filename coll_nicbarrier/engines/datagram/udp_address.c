/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Addresses in endpoint records; see udp_address.h. */
#include "coll_nicbarrier/engines/datagram/udp_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>

/** Limits: no interface or network has a longer name; no interface name has this many characters.
 */
#define NAME_MAX_LEN  64
#define INTERFACE_MAX 16

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

bool nicbarrier_udp_address_choose(const nicbarrier_udp_address_t *mine,
                                   const nicbarrier_udp_address_t *theirs, nicbarrier_address_t *to)
{
    const nicbarrier_ip_t *far = NULL;

    *to = (nicbarrier_address_t){htonl(INADDR_LOOPBACK), theirs->port};
    if (mine->host == theirs->host)
        return true;
    for (int i = 0; i < theirs->n; i++) {
        const nicbarrier_ip_t *p = &theirs->ip[i];
        if (is_mine(mine, p->ip))
            continue;
        if (is_near(mine, p->ip)) {
            to->ip = p->ip;
            return true;
        }
        far = far != NULL ? far : p;
    }
    to->ip = far != NULL ? far->ip : 0;
    return far != NULL;
}

/* ---- filters -------------------------------------------------------------------------------- */

/* 1: a network, 0: something else, -1: a malformed network. */
static int parse_network(const char *text, nicbarrier_ip_t *p)
{
    char address[NAME_MAX_LEN];
    const char *slash = strchr(text, '/');
    const size_t len = slash != NULL ? (size_t)(slash - text) : strlen(text);
    char *end;

    memcpy(address, text, len);
    address[len] = '\0';
    p->mask = UINT32_MAX;
    if (inet_pton(AF_INET, address, &p->ip) != 1)
        return slash == NULL ? 0 : -1;
    if (slash == NULL)
        return 1;
    const unsigned long bits = strtoul(slash + 1, &end, 10);
    if (slash[1] < '0' || slash[1] > '9' || *end != '\0' || bits > 32)
        return -1;
    p->mask = htonl((uint32_t)(UINT64_C(0xffffffff) << (32 - bits)));
    return 1;
}

/* True if the kernel takes it for the name of an interface. */
static bool possible_name(const char *name)
{
    return strlen(name) < INTERFACE_MAX && strcspn(name, ": \t\r\n\v\f") == strlen(name) &&
           strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* Matches one item of a filter; returns as nicbarrier_ip_wanted. */
static int item_fits(const char *item, uint32_t ip, const char *interface)
{
    nicbarrier_ip_t network;

    switch (parse_network(item, &network)) {
    case 1:
        return ((network.ip ^ ip) & network.mask) == 0;
    case 0:
        return possible_name(item) ? strcmp(item, interface) == 0 : -1;
    default:
        return -1;
    }
}

int nicbarrier_ip_wanted(uint32_t ip, const char *interface, const char *filter)
{
    const bool without = *filter == '^';
    bool found = false;

    filter += without;
    for (bool last = false; !last;) {
        char item[NAME_MAX_LEN];
        const size_t len = strcspn(filter, ",");
        if (len == 0 || len >= sizeof(item))
            return -1;
        memcpy(item, filter, len);
        item[len] = '\0';
        last = filter[len] == '\0';
        filter += len + 1;
        const int fits = item_fits(item, ip, interface);
        if (fits < 0)
            return -1;
        found |= fits;
    }
    return found != without;
}

bool nicbarrier_ip_filter_valid(const char *filter)
{
    return nicbarrier_ip_wanted(0, "", filter) >= 0;
}
