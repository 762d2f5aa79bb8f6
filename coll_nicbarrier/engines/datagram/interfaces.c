/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The addresses of this host; see transport.h. */
#include "coll_nicbarrier/engines/datagram/transport.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "common/support/peer_file.h"

/** Is it up, and has an address of IP? */
static bool is_ip(const struct ifaddrs *i)
{
    const unsigned up = IFF_UP | IFF_RUNNING;
    return i->ifa_addr != NULL && i->ifa_netmask != NULL &&
           (i->ifa_addr->sa_family == AF_INET || i->ifa_addr->sa_family == AF_INET6) &&
           (i->ifa_flags & up) == up;
}

static bool ip_of(const struct ifaddrs *i, nicbarrier_ip_t *p)
{
    const struct sockaddr_in *four = (const void *)i->ifa_addr;
    const struct sockaddr_in6 *six = (const void *)i->ifa_addr;
    const bool v4 = i->ifa_addr->sa_family == AF_INET;
    unsigned char mask[16] = {0};
    *p = nicbarrier_ip_loopback;
    if (v4) {
        memcpy(p->bytes + 12, &four->sin_addr, 4);
        memcpy(mask, &((const struct sockaddr_in *)(const void *)i->ifa_netmask)->sin_addr, 4);
    } else if (!IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr)) {
        memcpy(p->bytes, &six->sin6_addr, 16);
        memcpy(mask, &((const struct sockaddr_in6 *)(const void *)i->ifa_netmask)->sin6_addr, 16);
    } else {
        return false;
    }
    p->prefix = v4 ? 96 : 0;
    for (int bit = 0; bit < 128 && (mask[bit / 8] >> (7 - bit % 8) & 1) != 0; bit++)
        p->prefix++;
    return true;
}

void nicbarrier_interface_of(const nicbarrier_ip_t *ip, char name[IF_NAMESIZE])
{
    struct ifaddrs *all;
    nicbarrier_ip_t p;
    if (getifaddrs(&all) != 0)
        return;
    for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next)
        if (is_ip(i) && ip_of(i, &p) && memcmp(p.bytes, ip->bytes, sizeof(p.bytes)) == 0)
            snprintf(name, IF_NAMESIZE, "%s", i->ifa_name);
    freeifaddrs(all);
}

/** 1: an address to name, 0: none, -1: the filter is malformed. */
static int usable(const struct ifaddrs *i, const char *filter, nicbarrier_ip_t *p)
{
    if (!is_ip(i) || !ip_of(i, p))
        return 0;
    if (filter != NULL)
        return nicbarrier_ip_wanted(p, i->ifa_name, filter);
    return (i->ifa_flags & IFF_LOOPBACK) == 0;
}

static int collect(const struct ifaddrs *all, const char *filter,
                   nicbarrier_ip_t ip[NICBARRIER_IPS_MAX], nicbarrier_reason_t *why)
{
    nicbarrier_ip_t p;
    int n = 0;
    for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next) {
        const int rc = usable(i, filter, &p);
        if (rc < 0) {
            nicbarrier_reason(why, "'%s' is no list of interfaces or networks", filter);
            return -1;
        }
        if (rc > 0 && n < NICBARRIER_IPS_MAX)
            ip[n++] = p;
    }
    if (n == 0) {
        nicbarrier_reason(why,
                          filter != NULL ? "no interface that is up fits '%s'"
                                         : "no interface is up but the loopback%s",
                          filter != NULL ? filter : "");
        return -1;
    }
    return n;
}

int nicbarrier_interfaces(const char *filter, nicbarrier_ip_t ip[NICBARRIER_IPS_MAX],
                          nicbarrier_reason_t *why)
{
    struct ifaddrs *all;
    if (getifaddrs(&all) != 0) {
        nicbarrier_reason(why, "the interfaces cannot be listed: %s", strerror(errno));
        return -1;
    }
    const int n = collect(all, filter, ip, why);
    freeifaddrs(all);
    return n;
}

/* ---- my host --------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * UINT64_C(1099511628211);
    return hash;
}

uint64_t nicbarrier_host_name(uint32_t cookie)
{
    char boot[64];
    struct stat ns;
    const size_t n = onic_file_text(ONIC_BOOT_ID, boot, sizeof(boot));
    if (n == 0 || stat("/proc/self/ns/net", &ns) != 0)
        return cookie;
    return mix(mix(UINT64_C(14695981039346656037), boot, n), &ns.st_ino, sizeof(ns.st_ino));
}
