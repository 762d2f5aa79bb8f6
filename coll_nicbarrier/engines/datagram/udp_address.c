/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Addresses in endpoint records; see udp_address.h. */
#include "coll_nicbarrier/engines/datagram/udp_address.h"

#include <arpa/inet.h>
#include <stdlib.h>

/** Limits: no interface or network has a longer name; no interface name has this many characters.
 */
#define NAME_MAX_LEN  64
#define INTERFACE_MAX 16

const nicbarrier_ip_t nicbarrier_ip_loopback = {{[10] = 0xff, 0xff, 127, 0, 0, 1}, 96 + 8};

const char *nicbarrier_udp_address_decode(const void *bytes, size_t len,
                                          nicbarrier_udp_address_t *p)
{
    memset(p, 0, sizeof(*p));
    if (len < offsetof(nicbarrier_udp_address_t, ip) || len > sizeof(*p))
        return "not of a possible size";
    memcpy(p, bytes, len);
    if (p->n == 0 || p->n > NICBARRIER_IPS_MAX || len != nicbarrier_udp_address_size(p))
        return "not as many addresses as it says";
    if (p->port == 0 || p->zero != 0)
        return "a head that cannot be";
    for (int i = 0; i < p->n; i++)
        if (p->ip[i].prefix > 128)
            return "an address with an impossible prefix";
    return NULL;
}

/* ---- choice --------------------------------------------------------------------------------- */

bool nicbarrier_ip_within(const nicbarrier_ip_t *p, const nicbarrier_ip_t *network)
{
    const unsigned whole = network->prefix / 8, rest = network->prefix % 8;

    if (nicbarrier_ip_is_v4(p) != nicbarrier_ip_is_v4(network) ||
        memcmp(p->bytes, network->bytes, whole) != 0)
        return false;
    return rest == 0 || ((p->bytes[whole] ^ network->bytes[whole]) >> (8 - rest)) == 0;
}

static bool same_address(const nicbarrier_ip_t *a, const nicbarrier_ip_t *b)
{
    return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

static bool among(const nicbarrier_ip_t *p, const nicbarrier_udp_address_t *all,
                  bool (*test)(const nicbarrier_ip_t *, const nicbarrier_ip_t *))
{
    for (int i = 0; i < all->n; i++)
        if (test(p, &all->ip[i]))
            return true;
    return false;
}

int nicbarrier_udp_address_choose(const nicbarrier_udp_address_t *mine,
                                  const nicbarrier_udp_address_t *theirs, bool ipv6,
                                  nicbarrier_ip_t order[NICBARRIER_IPS_MAX + 1])
{
    const bool same_host = mine->host == theirs->host;
    int n = 0;

    if (same_host)
        order[n++] = nicbarrier_ip_loopback;
    for (int far = 0; far <= 1; far++) {
        for (int i = 0; i < theirs->n; i++) {
            const nicbarrier_ip_t *p = &theirs->ip[i];
            const bool usable = ipv6 || nicbarrier_ip_is_v4(p);
            const bool mirror = !same_host && among(p, mine, same_address);
            if (usable && !mirror && among(p, mine, nicbarrier_ip_within) == (far == 0))
                order[n++] = *p;
        }
    }
    return n;
}

/* ---- filters -------------------------------------------------------------------------------- */

/* 1: a network, 0: something else, -1: a malformed network. */
static int parse_network(const char *text, nicbarrier_ip_t *p)
{
    char address[NAME_MAX_LEN];
    const char *slash = strchr(text, '/');
    const size_t len = slash != NULL ? (size_t)(slash - text) : strlen(text);
    char *end;

    *p = nicbarrier_ip_loopback;
    memcpy(address, text, len);
    address[len] = '\0';
    const bool v4 = inet_pton(AF_INET, address, p->bytes + 12) == 1;
    if (!v4 && inet_pton(AF_INET6, address, p->bytes) != 1)
        return slash == NULL ? 0 : -1;
    p->prefix = 128;
    if (slash == NULL)
        return 1;
    const unsigned long bits = strtoul(slash + 1, &end, 10) + (v4 ? 96 : 0);
    if (slash[1] < '0' || slash[1] > '9' || *end != '\0' || bits > p->prefix)
        return -1;
    p->prefix = (uint8_t)bits;
    return 1;
}

/* True if the kernel takes it for the name of an interface. */
static bool possible_name(const char *name)
{
    return strlen(name) < INTERFACE_MAX && strcspn(name, ": \t\r\n\v\f") == strlen(name) &&
           strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* Matches one item of a filter; returns as nicbarrier_ip_wanted. */
static int item_fits(const char *item, const nicbarrier_ip_t *p, const char *interface)
{
    nicbarrier_ip_t network;

    switch (parse_network(item, &network)) {
    case 1:
        return nicbarrier_ip_within(p, &network);
    case 0:
        return possible_name(item) ? strcmp(item, interface) == 0 : -1;
    default:
        return -1;
    }
}

int nicbarrier_ip_wanted(const nicbarrier_ip_t *p, const char *interface, const char *filter)
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
        const int fits = item_fits(item, p, interface);
        if (fits < 0)
            return -1;
        found |= fits;
    }
    return found != without;
}

bool nicbarrier_ip_filter_valid(const char *filter)
{
    return nicbarrier_ip_wanted(&nicbarrier_ip_loopback, "", filter) >= 0;
}
