/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * One unconnected socket: IPv6 (which takes IPv4, too) if an interface has an IPv6 address that is
 * not link-local, else IPv4.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "coll_nicbarrier/engines/datagram/params.h"
#include "coll_nicbarrier/engines/datagram/udp.h"
#include "common/support/peer_file.h"

/** Bytes that the kernel may buffer for us: some hundred packets. */
#define RECEIVE_BUFFER (1 << 20)

static struct {
    int fd;
    bool ipv6;
    nicbarrier_udp_address_t mine;
    bool errors; /**< the error queue is not empty */
} udp = {.fd = -1};

/* ---- the addresses of this host ------------------------------------------------------------- */

typedef union any_address {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
} any_address_t;

/** Extracts the IP address and port from a socket address. */
static void split(const any_address_t *a, nicbarrier_ip_t *ip, uint16_t *port)
{
    *ip = nicbarrier_ip_loopback;
    if (a->any.sa_family == AF_INET) {
        memcpy(ip->bytes + 12, &a->four.sin_addr, 4);
        *port = ntohs(a->four.sin_port);
    } else {
        memcpy(ip->bytes, &a->six.sin6_addr, 16);
        *port = ntohs(a->six.sin6_port);
    }
}

/** True if the interface is up and has an IP address. */
static bool is_ip(const struct ifaddrs *i)
{
    const unsigned up = IFF_UP | IFF_RUNNING;
    return i->ifa_addr != NULL && i->ifa_netmask != NULL &&
           (i->ifa_addr->sa_family == AF_INET || i->ifa_addr->sa_family == AF_INET6) &&
           (i->ifa_flags & up) == up;
}

/** The interface's address and network. False if the address is link-local. */
static bool ip_of(const struct ifaddrs *i, nicbarrier_ip_t *p)
{
    const any_address_t *a = (const void *)i->ifa_addr, *m = (const void *)i->ifa_netmask;
    const bool v4 = a->any.sa_family == AF_INET;
    const uint8_t *mask = v4 ? (const uint8_t *)&m->four.sin_addr : m->six.sin6_addr.s6_addr;
    const int bits = v4 ? 32 : 128;
    uint16_t port;
    split(a, p, &port);
    p->prefix = v4 ? 96 : 0;
    for (int bit = 0; bit < bits && (mask[bit / 8] >> (7 - bit % 8) & 1) != 0; bit++)
        p->prefix++;
    return v4 || !IN6_IS_ADDR_LINKLOCAL(&a->six.sin6_addr);
}

/** The name of the interface with this address, if there is one. */
static void interface_of(const nicbarrier_ip_t *ip, char name[IF_NAMESIZE])
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

/** True if the interface is to be published; gives its address and network. */
static bool is_wanted(const struct ifaddrs *i, const char *filter, nicbarrier_ip_t *p)
{
    if (!is_ip(i) || !ip_of(i, p))
        return false;
    return filter != NULL ? nicbarrier_ip_wanted(p, i->ifa_name, filter) > 0
                          : (i->ifa_flags & IFF_LOOPBACK) == 0;
}

static int collect(const struct ifaddrs *all, const char *filter,
                   nicbarrier_ip_t ip[NICBARRIER_IPS_MAX], nicbarrier_reason_t *why)
{
    int n = 0;
    for (const struct ifaddrs *i = all; i != NULL && n < NICBARRIER_IPS_MAX; i = i->ifa_next)
        n += is_wanted(i, filter, &ip[n]);
    if (n == 0)
        return nicbarrier_reason(why,
                                 filter != NULL ? "no interface that is up fits '%s'"
                                                : "no interface is up but the loopback%s",
                                 filter != NULL ? filter : "");
    return n;
}

/** Finds the addresses of all interfaces that are up and match the filter (nicbarrier_ip_wanted;
 * NULL: all but the loopback). Returns how many, at least 1; or -1 and the reason. */
static int find_interfaces(const char *filter, nicbarrier_ip_t ip[NICBARRIER_IPS_MAX],
                           nicbarrier_reason_t *why)
{
    struct ifaddrs *all;
    if (getifaddrs(&all) != 0)
        return nicbarrier_reason(why, "the interfaces cannot be listed: %s", strerror(errno));
    const int n = collect(all, filter, ip, why);
    freeifaddrs(all);
    return n;
}

static uint64_t mix(uint64_t hash, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * UINT64_C(1099511628211);
    return hash;
}

/** Identifies the kernel and its network namespace. If these are not known it identifies only this
 *  process, and the loopback interface is not used. */
static uint64_t host_name(uint32_t cookie)
{
    char boot[64];
    struct stat ns;
    const size_t n = onic_file_text(ONIC_BOOT_ID, boot, sizeof(boot));
    if (n == 0 || stat("/proc/self/ns/net", &ns) != 0)
        return cookie;
    return mix(mix(UINT64_C(14695981039346656037), boot, n), &ns.st_ino, sizeof(ns.st_ino));
}

/* ---- socket --------------------------------------------------------------------------------- */

/** Asks for errors of refused packets (the port is closed), as far as the kernel reports them. */
static void want_errors(void)
{
    const int yes = 1;
    (void)setsockopt(udp.fd, IPPROTO_IP, IP_RECVERR, &yes, sizeof(yes));
    if (udp.ipv6)
        (void)setsockopt(udp.fd, IPPROTO_IPV6, IPV6_RECVERR, &yes, sizeof(yes));
}

/** Returns what has failed, or NULL. */
static const char *open_socket(void)
{
    const int no = 0, size = RECEIVE_BUFFER;
    any_address_t a;
    socklen_t len = udp.ipv6 ? sizeof(a.six) : sizeof(a.four);
    memset(&a, 0, sizeof(a));
    a.any.sa_family = udp.ipv6 ? AF_INET6 : AF_INET;
    udp.fd = socket(a.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (udp.fd < 0)
        return "socket";
    if (udp.ipv6 && setsockopt(udp.fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no)) != 0)
        return "IPv4 on an IPv6 socket";
    /* The kernel may allow less, which must do. */
    (void)setsockopt(udp.fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    want_errors();
    if (bind(udp.fd, &a.any, len) != 0)
        return "bind";
    if (getsockname(udp.fd, &a.any, &len) != 0)
        return "getsockname";
    udp.mine.port = ntohs(udp.ipv6 ? a.six.sin6_port : a.four.sin_port);
    return NULL;
}

void nicbarrier_udp_close(void)
{
    if (udp.fd >= 0)
        close(udp.fd);
    udp.fd = -1;
}

int nicbarrier_udp_open(uint32_t cookie, nicbarrier_reason_t *why)
{
    const char *wanted = nicbarrier_datagram_config.interface;
    const int n = find_interfaces(wanted, udp.mine.ip, why);
    if (n < 0)
        return -1;
    udp.mine.n = (uint8_t)n;
    udp.ipv6 = false;
    for (int i = 0; i < n; i++)
        udp.ipv6 |= !nicbarrier_ip_is_v4(&udp.mine.ip[i]);
    udp.mine.cookie = cookie;
    udp.mine.host = host_name(cookie);
    const char *obstacle = open_socket();
    if (obstacle != NULL) {
        nicbarrier_reason(why, "UDP: %s: %s", obstacle, strerror(errno));
        nicbarrier_udp_close();
        return -1;
    }
    return 0;
}

/* ---- partners ------------------------------------------------------------------------------- */

uint32_t nicbarrier_udp_describe(void *bytes)
{
    memcpy(bytes, &udp.mine, nicbarrier_udp_address_size(&udp.mine));
    return nicbarrier_udp_address_size(&udp.mine);
}

/** Converts an address to the socket's format. */
static void address_of(const nicbarrier_ip_t *p, uint16_t port, nicbarrier_address_t *to)
{
    const struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    any_address_t a = {.six = six};
    if (udp.ipv6) {
        memcpy(&a.six.sin6_addr, p->bytes, 16);
    } else {
        a.four = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
        memcpy(&a.four.sin_addr, p->bytes + 12, 4);
    }
    memset(to, 0, sizeof(*to));
    to->len = udp.ipv6 ? sizeof(a.six) : sizeof(a.four);
    memcpy(to->bytes, &a, to->len);
}

int nicbarrier_udp_resolve(nicbarrier_partner_t *p, const void *bytes, uint32_t len,
                           nicbarrier_reason_t *why)
{
    nicbarrier_udp_address_t theirs;
    nicbarrier_ip_t order[NICBARRIER_IPS_MAX + 1];
    const char *wrong = nicbarrier_udp_address_decode(bytes, len, &theirs);
    if (wrong != NULL)
        return nicbarrier_reason(why, "the addresses of member %d are malformed: %s",
                                 (int)p->member, wrong);
    const int n = nicbarrier_udp_address_choose(&udp.mine, &theirs, udp.ipv6, order);
    if (n == 0)
        return nicbarrier_reason(why, "member %d has no address that can be reached from here",
                                 (int)p->member);
    p->cookie = theirs.cookie;
    for (int i = 0; i < n; i++)
        address_of(&order[i], theirs.port, &p->candidate[p->ncandidates++]);
    return 0;
}

/* ---- packets -------------------------------------------------------------------------------- */

bool nicbarrier_udp_send(const nicbarrier_address_t *to, const unsigned char *packet)
{
    /* The first call may only report that an earlier packet was refused. */
    for (int i = 0; i < 2; i++) {
        if (sendto(udp.fd, packet, NICBARRIER_PACKET_SIZE, MSG_NOSIGNAL,
                   (const struct sockaddr *)(const void *)to->bytes,
                   to->len) == NICBARRIER_PACKET_SIZE)
            return true;
        udp.errors = true;
    }
    return false;
}

int nicbarrier_udp_receive(void *bytes, size_t size, nicbarrier_address_t *from)
{
    socklen_t len = sizeof(from->bytes);
    memset(from, 0, sizeof(*from));
    const ssize_t n =
        recvfrom(udp.fd, bytes, size, MSG_DONTWAIT, (struct sockaddr *)(void *)from->bytes, &len);
    from->len = len;
    udp.errors |= n < 0 && errno != EAGAIN;
    return n < 0 ? -1 : (int)n;
}

/** True if it comes from a host where the port is closed. */
static bool is_refusal(struct msghdr *m)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
        struct sock_extended_err e;
        if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) ||
            (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR)) {
            memcpy(&e, CMSG_DATA(c), sizeof(e));
            return e.ee_errno == ECONNREFUSED;
        }
    }
    return false;
}

/** The kernel returns as much of the packet's data as the host has sent back: usually all of it. */
bool nicbarrier_udp_refused(unsigned char packet[NICBARRIER_PACKET_SIZE], nicbarrier_address_t *to)
{
    memset(to, 0, sizeof(*to));
    while (udp.errors) {
        _Alignas(struct cmsghdr) char control[256];
        struct iovec data = {packet, NICBARRIER_PACKET_SIZE};
        struct msghdr m = {.msg_name = to->bytes,
                           .msg_namelen = sizeof(to->bytes),
                           .msg_iov = &data,
                           .msg_iovlen = 1,
                           .msg_control = control,
                           .msg_controllen = sizeof(control)};
        const ssize_t n = recvmsg(udp.fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT);
        udp.errors = n >= 0;
        to->len = m.msg_namelen;
        if (n == NICBARRIER_PACKET_SIZE && is_refusal(&m))
            return true;
    }
    return false;
}

int nicbarrier_udp_descriptor(void)
{
    return udp.fd;
}

void nicbarrier_udp_send_once(const nicbarrier_address_t *to, const unsigned char *packet)
{
    const struct sockaddr *a = (const void *)to->bytes;
    const int fd = socket(a->sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0) {
        (void)sendto(fd, packet, NICBARRIER_PACKET_SIZE, MSG_NOSIGNAL, a, to->len);
        close(fd);
    }
}

void nicbarrier_udp_local(nicbarrier_address_t *a)
{
    address_of(&nicbarrier_ip_loopback, udp.mine.port, a);
}

/** Finds the local address from which the kernel sends there. Returns 0 or the error. */
static int find_route(const nicbarrier_address_t *to, any_address_t *mine)
{
    const struct sockaddr *a = (const void *)to->bytes;
    socklen_t len = sizeof(*mine);
    const int fd = socket(a->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const bool found =
        fd >= 0 && connect(fd, a, to->len) == 0 && getsockname(fd, &mine->any, &len) == 0;
    const int error = found ? 0 : errno;
    if (fd >= 0)
        close(fd);
    return error;
}

int nicbarrier_udp_way(const nicbarrier_address_t *to, nicbarrier_way_t *way,
                       nicbarrier_reason_t *why)
{
    any_address_t a;
    nicbarrier_ip_t mine;
    uint16_t port;
    memset(way, 0, sizeof(*way));
    const int error = find_route(to, &a);
    if (error != 0)
        return nicbarrier_reason(why, "a partner cannot be reached: %s", strerror(error));
    split(&a, &mine, &port);
    interface_of(&mine, way->interface);
    memcpy(&a, to->bytes, to->len);
    split(&a, &way->theirs, &way->their_port);
    return 0;
}
