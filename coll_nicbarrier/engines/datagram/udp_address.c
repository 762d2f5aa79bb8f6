/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Addresses in endpoint records; see udp_address.h. The encoded form, numbers in network byte
 * order:
 *
 *      0  magic   2 bytes
 *      2  port    2
 *      4  cookie  4
 *      8  host    8
 *     16  number  1
 *     17  zero    3
 *     20  for each address: family 1, prefix 1, address 16
 */
#include "coll_nicbarrier/engines/datagram/udp_address.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "common/support/bytes.h"

#define MAGIC 0x4e50

enum {
    AT_PORT = 2,
    AT_COOKIE = 4,
    AT_HOST = 8,
    AT_NUMBER = 16,
    AT_ZERO = 17,
    HEAD = 20,
    EACH = 18
};

/** No interface and no network has a longer name; nor an interface one of so many characters. */
#define NAME_MAX_LEN  64
#define INTERFACE_MAX 16

/* ---- wire form ------------------------------------------------------------------------------ */

uint32_t nicbarrier_udp_address_encode(const nicbarrier_udp_address_t *p,
                                       unsigned char bytes[NICBARRIER_UDP_ADDRESS_SIZE])
{
    memset(bytes, 0, HEAD);
    onic_put16(bytes, MAGIC);
    onic_put16(bytes + AT_PORT, p->port);
    onic_put32(bytes + AT_COOKIE, p->cookie);
    onic_put64(bytes + AT_HOST, p->host);
    bytes[AT_NUMBER] = p->n;
    for (int i = 0; i < p->n; i++) {
        unsigned char *at = bytes + HEAD + EACH * i;
        at[0] = p->ip[i].family;
        at[1] = p->ip[i].prefix;
        memcpy(at + 2, p->ip[i].bytes, sizeof(p->ip[i].bytes));
    }
    return HEAD + (uint32_t)EACH * p->n;
}

static const char *check_ip(const nicbarrier_ip_t *p)
{
    static const uint8_t zero[12];

    if (p->family != 4 && p->family != 6)
        return "an address of an unknown family";
    if (p->prefix > (p->family == 4 ? 32 : 128))
        return "an address with an impossible prefix";
    if (p->family == 4 && memcmp(p->bytes + 4, zero, sizeof(zero)) != 0)
        return "an address with something behind it";
    return NULL;
}

const char *nicbarrier_udp_address_decode(const void *bytes, size_t len,
                                          nicbarrier_udp_address_t *p)
{
    static const unsigned char zero[HEAD - AT_ZERO];
    const unsigned char *b = bytes;

    if (len < HEAD)
        return "shorter than its head";
    memset(p, 0, sizeof(*p));
    p->port = onic_get16(b + AT_PORT);
    p->cookie = onic_get32(b + AT_COOKIE);
    p->host = onic_get64(b + AT_HOST);
    p->n = b[AT_NUMBER];
    if (onic_get16(b) != MAGIC)
        return "of another engine or version";
    if (p->port == 0 || memcmp(b + AT_ZERO, zero, sizeof(zero)) != 0)
        return "a head that cannot be";
    if (p->n == 0 || p->n > NICBARRIER_IPS_MAX || len != HEAD + (size_t)EACH * p->n)
        return "not as many addresses as it says";
    for (int i = 0; i < p->n; i++) {
        nicbarrier_ip_t *ip = &p->ip[i];
        ip->family = b[HEAD + EACH * i];
        ip->prefix = b[HEAD + EACH * i + 1];
        memcpy(ip->bytes, b + HEAD + EACH * i + 2, sizeof(ip->bytes));
        const char *why = check_ip(ip);
        if (why != NULL)
            return why;
    }
    return NULL;
}

/* ---- choice --------------------------------------------------------------------------------- */

bool nicbarrier_ip_within(const nicbarrier_ip_t *p, const nicbarrier_ip_t *network)
{
    const unsigned whole = network->prefix / 8, rest = network->prefix % 8;

    if (p->family != network->family || memcmp(p->bytes, network->bytes, whole) != 0)
        return false;
    return rest == 0 || ((p->bytes[whole] ^ network->bytes[whole]) >> (8 - rest)) == 0;
}

static bool same_address(const nicbarrier_ip_t *a, const nicbarrier_ip_t *b)
{
    return a->family == b->family && memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
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
    static const nicbarrier_ip_t loopback = {.family = 4, .prefix = 8, .bytes = {127, 0, 0, 1}};
    const bool same_host = mine->host == theirs->host;
    int n = 0;

    if (same_host)
        order[n++] = loopback;
    for (int far = 0; far <= 1; far++) {
        for (int i = 0; i < theirs->n; i++) {
            const nicbarrier_ip_t *p = &theirs->ip[i];
            const bool usable = p->family == 4 || ipv6;
            const bool mirror = !same_host && among(p, mine, same_address);
            if (usable && !mirror && among(p, mine, nicbarrier_ip_within) == (far == 0))
                order[n++] = *p;
        }
    }
    return n;
}

/* ---- filters -------------------------------------------------------------------------------- */

/* 1: a network, 0: something else, -1: a network that cannot be. */
static int parse_network(const char *text, nicbarrier_ip_t *p)
{
    char address[NAME_MAX_LEN];
    const char *slash = strchr(text, '/');
    const size_t len = slash != NULL ? (size_t)(slash - text) : strlen(text);
    char *end;

    memset(p, 0, sizeof(*p));
    memcpy(address, text, len);
    address[len] = '\0';
    if (inet_pton(AF_INET, address, p->bytes) == 1)
        p->family = 4;
    else if (inet_pton(AF_INET6, address, p->bytes) == 1)
        p->family = 6;
    else
        return slash == NULL ? 0 : -1;
    p->prefix = p->family == 4 ? 32 : 128;
    if (slash == NULL)
        return 1;
    const unsigned long bits = strtoul(slash + 1, &end, 10);
    if (slash[1] < '0' || slash[1] > '9' || *end != '\0' || bits > p->prefix)
        return -1;
    p->prefix = (uint8_t)bits;
    return 1;
}

/* What the kernel takes for the name of an interface. */
static bool possible_name(const char *name)
{
    return strlen(name) < INTERFACE_MAX && strcspn(name, ": \t\r\n\v\f") == strlen(name) &&
           strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* One item of a filter; as nicbarrier_ip_wanted. */
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
    static const nicbarrier_ip_t any = {.family = 4};

    return nicbarrier_ip_wanted(&any, "", filter) >= 0;
}
