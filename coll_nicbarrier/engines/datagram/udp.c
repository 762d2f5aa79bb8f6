/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Engine datagram: transport UDP. One unconnected socket, of IPv6 (which takes IPv4, too) where an
 * interface has an address of IPv6 that is good for more than its link, else of IPv4.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/errqueue.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "coll_nicbarrier/engines/datagram/datagram.h"
#include "coll_nicbarrier/engines/datagram/filter.h"

/** Bytes that the kernel may keep for us: some hundred packets. */
#define RECEIVE_BUFFER (1 << 20)
/** Sockets that are connected to partners; a power of two. */
#define LINKS 256

/**
 * A socket connected to a partner, to send only: the kernel then need not look for the route with
 * each packet, which is a tenth of a barrier's time. Its own port is another one than the partner
 * was told, so nothing ever comes there.
 */
typedef struct udp_link {
    unsigned users; /**< candidates of partners that have this address */
    bool open;      /**< it has been used */
    int fd;         /**< -1 where it could not be had */
    nicbarrier_address_t to;
} udp_link_t;

static struct {
    int fd;
    bool ipv6;
    nicbarrier_udp_address_t mine;
    bool errors;            /**< there is something in the error queue */
    udp_link_t link[LINKS]; /**< by a hash of the address; who finds it taken has none */
} udp = {.fd = -1};

/* ---- my addresses -----------------------------------------------------------------------------
 */

static bool ip_of(const struct ifaddrs *i, nicbarrier_ip_t *p)
{
    unsigned char mask[16] = {0};
    memset(p, 0, sizeof(*p));
    if (i->ifa_addr->sa_family == AF_INET) {
        p->family = 4;
        memcpy(p->bytes, &((const struct sockaddr_in *)(const void *)i->ifa_addr)->sin_addr, 4);
        memcpy(mask, &((const struct sockaddr_in *)(const void *)i->ifa_netmask)->sin_addr, 4);
    } else {
        const struct sockaddr_in6 *a = (const void *)i->ifa_addr;
        if (IN6_IS_ADDR_LINKLOCAL(&a->sin6_addr)) {
            return false;
        }
        p->family = 6;
        memcpy(p->bytes, &a->sin6_addr, 16);
        memcpy(mask, &((const struct sockaddr_in6 *)(const void *)i->ifa_netmask)->sin6_addr, 16);
    }
    for (int bit = 0; bit < 128 && (mask[bit / 8] >> (7 - bit % 8) & 1) != 0; bit++) {
        p->prefix++;
    }
    return true;
}

/** Bridges join containers and virtual machines of this host more often than hosts. */
static bool is_bridge(const char *interface)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/sys/class/net/%s/bridge", interface);
    return access(path, F_OK) == 0;
}

/** 1: an address to name, 0: none, -1: the filter is malformed. */
static int usable(const struct ifaddrs *i, const char *filter, nicbarrier_ip_t *p)
{
    const unsigned up = IFF_UP | IFF_RUNNING;
    if (i->ifa_addr == NULL || i->ifa_netmask == NULL ||
        (i->ifa_addr->sa_family != AF_INET && i->ifa_addr->sa_family != AF_INET6) ||
        (i->ifa_flags & up) != up || !ip_of(i, p)) {
        return 0;
    }
    if (filter != NULL) {
        return nicbarrier_ip_wanted(p, i->ifa_name, filter);
    }
    return (i->ifa_flags & IFF_LOOPBACK) == 0;
}

static int collect(const struct ifaddrs *all, const char *filter, nicbarrier_reason_t *why)
{
    nicbarrier_ip_t p;
    udp.mine.n = 0;
    for (int bridges = 0; bridges <= 1; bridges++) {
        for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next) {
            const int rc = usable(i, filter, &p);
            if (rc < 0) {
                nicbarrier_reason(why, "'%s' is no list of interfaces or networks", filter);
                return -1;
            }
            if (rc > 0 && is_bridge(i->ifa_name) == (bridges == 1) &&
                udp.mine.n < NICBARRIER_IPS_MAX) {
                udp.mine.ip[udp.mine.n++] = p;
            }
        }
    }
    if (udp.mine.n == 0) {
        nicbarrier_reason(why,
                          filter != NULL ? "no interface that is up fits '%s'"
                                         : "no interface is up but the loopback%s",
                          filter != NULL ? filter : "");
        return -1;
    }
    return 0;
}

static uint64_t mix(uint64_t hash, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * UINT64_C(1099511628211);
    }
    return hash;
}

/** Names the kernel and its network namespace. Where that cannot be told, a number that nobody else
 *  has: then the loopback interface is not used. */
static uint64_t host_name(uint32_t cookie)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    char boot[64];
    struct stat ns;
    const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, boot, sizeof(boot));
    if (fd >= 0) {
        close(fd);
    }
    if (n <= 0 || stat("/proc/self/ns/net", &ns) != 0) {
        const pid_t pid = getpid();
        const uint64_t now = onic_now_nsec();
        return mix(mix(mix(hash, &cookie, sizeof(cookie)), &pid, sizeof(pid)), &now, sizeof(now));
    }
    return mix(mix(hash, boot, (size_t)n), &ns.st_ino, sizeof(ns.st_ino));
}

/* ---- socket -----------------------------------------------------------------------------------
 */

typedef union any_address {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
} any_address_t;

/** Hosts may say that nobody listens; as far as the kernel passes it on. */
static void want_errors(void)
{
    const int yes = 1;
    (void)setsockopt(udp.fd, IPPROTO_IP, IP_RECVERR, &yes, sizeof(yes));
    if (udp.ipv6) {
        (void)setsockopt(udp.fd, IPPROTO_IPV6, IPV6_RECVERR, &yes, sizeof(yes));
    }
}

/** Before anything can come. */
static bool attach_filter(void)
{
    struct sock_filter program[NICBARRIER_FILTER_MAX];
    const struct sock_fprog filter = {nicbarrier_filter_build(&udp.mine, program), program};
    return setsockopt(udp.fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) == 0;
}

/** What is in the way, or NULL. */
static const char *open_socket(void)
{
    const int no = 0, size = RECEIVE_BUFFER;
    any_address_t a;
    socklen_t len = udp.ipv6 ? sizeof(a.six) : sizeof(a.four);
    memset(&a, 0, sizeof(a));
    a.any.sa_family = udp.ipv6 ? AF_INET6 : AF_INET;
    udp.fd = socket(a.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (udp.fd < 0) {
        return "socket";
    }
    if (udp.ipv6 && setsockopt(udp.fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no)) != 0) {
        return "IPv4 on an IPv6 socket";
    }
    /* As much as the kernel allows; it must do. */
    (void)setsockopt(udp.fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    want_errors();
    if (!attach_filter()) {
        return "filter";
    }
    if (bind(udp.fd, &a.any, len) != 0) {
        return "bind";
    }
    if (getsockname(udp.fd, &a.any, &len) != 0) {
        return "getsockname";
    }
    udp.mine.port = ntohs(udp.ipv6 ? a.six.sin6_port : a.four.sin_port);
    return NULL;
}

static void udp_close(void)
{
    for (int i = 0; i < LINKS; i++) {
        if (udp.link[i].open && udp.link[i].fd >= 0) {
            close(udp.link[i].fd);
        }
        udp.link[i] = (udp_link_t){0};
    }
    if (udp.fd >= 0) {
        close(udp.fd);
    }
    udp.fd = -1;
}

static int udp_open(const nicbarrier_datagram_config_t *config, uint32_t cookie,
                    nicbarrier_reason_t *why)
{
    struct ifaddrs *all;
    if (getifaddrs(&all) != 0) {
        nicbarrier_reason(why, "the interfaces cannot be listed: %s", strerror(errno));
        return -1;
    }
    const int rc = collect(all, config->interface, why);
    freeifaddrs(all);
    if (rc != 0) {
        return -1;
    }
    udp.ipv6 = false;
    for (int i = 0; i < udp.mine.n; i++) {
        udp.ipv6 |= udp.mine.ip[i].family == 6;
    }
    udp.mine.cookie = cookie;
    udp.mine.host = host_name(cookie);
    const char *obstacle = open_socket();
    if (obstacle != NULL) {
        nicbarrier_reason(why, "UDP: %s: %s", obstacle, strerror(errno));
        udp_close();
        return -1;
    }
    return 0;
}

/* ---- partners ---------------------------------------------------------------------------------
 */

static uint32_t udp_describe(void *bytes)
{
    return nicbarrier_udp_address_encode(&udp.mine, bytes);
}

/** As the socket wants it: on one of IPv6, IPv4 addresses are mapped. */
static void address_of(const nicbarrier_ip_t *p, uint16_t port, bool ipv6, nicbarrier_address_t *to)
{
    any_address_t a;
    memset(&a, 0, sizeof(a));
    memset(to, 0, sizeof(*to));
    if (!ipv6) {
        a.four.sin_family = AF_INET;
        a.four.sin_port = htons(port);
        memcpy(&a.four.sin_addr, p->bytes, 4);
        to->len = sizeof(a.four);
    } else {
        a.six.sin6_family = AF_INET6;
        a.six.sin6_port = htons(port);
        if (p->family == 4) {
            memset(a.six.sin6_addr.s6_addr + 10, 0xff, 2);
            memcpy(a.six.sin6_addr.s6_addr + 12, p->bytes, 4);
        } else {
            memcpy(&a.six.sin6_addr, p->bytes, 16);
        }
        to->len = sizeof(a.six);
    }
    memcpy(to->bytes, &a, to->len);
}

static uint32_t hash_of(const nicbarrier_address_t *a)
{
    uint64_t words[sizeof(a->bytes) / 8], sum = 0;
    memcpy(words, a->bytes, sizeof(words));
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        sum = (sum ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
    }
    return (uint32_t)(sum >> 56) % LINKS;
}

static bool is_link_to(const udp_link_t *link, const nicbarrier_address_t *to)
{
    return link->users > 0 && memcmp(link->to.bytes, to->bytes, sizeof(to->bytes)) == 0;
}

static void claim_link(const nicbarrier_address_t *to)
{
    udp_link_t *link = &udp.link[hash_of(to)];
    if (link->users == 0) {
        *link = (udp_link_t){.users = 1, .to = *to};
    } else if (is_link_to(link, to)) {
        link->users++;
    }
}

static void udp_release(const nicbarrier_address_t *candidate)
{
    udp_link_t *link = &udp.link[hash_of(candidate)];
    if (is_link_to(link, candidate) && --link->users == 0) {
        if (link->open && link->fd >= 0) {
            close(link->fd);
        }
        *link = (udp_link_t){0};
    }
}

static int udp_resolve(nicbarrier_partner_t *p, const void *bytes, uint32_t len,
                       nicbarrier_reason_t *why)
{
    nicbarrier_udp_address_t theirs;
    nicbarrier_ip_t order[NICBARRIER_IPS_MAX + 1];
    const char *wrong = nicbarrier_udp_address_decode(bytes, len, &theirs);
    if (wrong != NULL) {
        nicbarrier_reason(why, "the addresses of member %d are not understood: %s", (int)p->member,
                          wrong);
        return -1;
    }
    const int n = nicbarrier_udp_address_choose(&udp.mine, &theirs, udp.ipv6, order);
    if (n == 0) {
        nicbarrier_reason(why, "member %d has no address that can be reached from here",
                          (int)p->member);
    }
    p->cookie = theirs.cookie;
    p->host = theirs.host;
    for (int i = 0; i < n; i++) {
        nicbarrier_address_t *to = &p->candidate[p->ncandidates++];
        address_of(&order[i], theirs.port, udp.ipv6, to);
        claim_link(to);
    }
    return 0;
}

/* ---- packets ----------------------------------------------------------------------------------
 */

/** Of an IPv4 address that is mapped into IPv6 the IPv4 one, for which the kernel's way is
 *  shorter. */
static socklen_t unmapped(const nicbarrier_address_t *from, any_address_t *a)
{
    memcpy(a, from->bytes, from->len);
    if (a->any.sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&a->six.sin6_addr)) {
        return from->len;
    }
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = a->six.sin6_port};
    memcpy(&four.sin_addr, a->six.sin6_addr.s6_addr + 12, 4);
    a->four = four;
    return sizeof(four);
}

static void open_link(udp_link_t *link)
{
    any_address_t a;
    const socklen_t len = unmapped(&link->to, &a);
    link->open = true;
    link->fd = socket(a.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (link->fd >= 0 && connect(link->fd, &a.any, len) != 0) {
        close(link->fd);
        link->fd = -1;
    }
}

/** -1 where there is none for this address. */
static int link_to(const nicbarrier_address_t *to)
{
    udp_link_t *link = &udp.link[hash_of(to)];
    if (!is_link_to(link, to)) {
        return -1;
    }
    if (!link->open) {
        open_link(link);
    }
    return link->fd;
}

static bool udp_send(const nicbarrier_address_t *to, const unsigned char *packet, bool fast)
{
    const int fd = fast ? link_to(to) : -1;
    /* The first call may only tell that an earlier packet was refused. */
    for (int i = 0; i < 2 && fd >= 0; i++) {
        if (send(fd, packet, NICBARRIER_PACKET_SIZE, MSG_NOSIGNAL) == NICBARRIER_PACKET_SIZE) {
            return true;
        }
    }
    for (int i = 0; i < 2; i++) {
        if (sendto(udp.fd, packet, NICBARRIER_PACKET_SIZE, MSG_NOSIGNAL,
                   (const struct sockaddr *)(const void *)to->bytes,
                   to->len) == NICBARRIER_PACKET_SIZE) {
            return true;
        }
        udp.errors = true;
    }
    return false;
}

/** The host is what proved right; the port is the one that its record named. */
static bool udp_adopt(nicbarrier_partner_t *p, const nicbarrier_address_t *from)
{
    any_address_t a, prepared;
    const nicbarrier_address_t *last = &p->candidate[p->ncandidates - 1];
    memcpy(&a, from->bytes, from->len);
    memcpy(&prepared, last->bytes, last->len);
    if (last->via != NICBARRIER_VIA_UDP || from->len != last->len) {
        return false;
    }
    if (a.any.sa_family == AF_INET6) {
        a.six.sin6_port = prepared.six.sin6_port;
    } else {
        a.four.sin_port = prepared.four.sin_port;
    }
    memset(p->at.bytes, 0, sizeof(p->at.bytes));
    memcpy(p->at.bytes, &a, from->len);
    p->at.len = from->len;
    p->at.via = NICBARRIER_VIA_UDP;
    return true;
}

static int udp_receive(void *bytes, size_t size, nicbarrier_address_t *from)
{
    socklen_t len = sizeof(from->bytes);
    const ssize_t n =
        recvfrom(udp.fd, bytes, size, MSG_DONTWAIT, (struct sockaddr *)(void *)from->bytes, &len);
    from->len = len;
    from->via = NICBARRIER_VIA_UDP;
    udp.errors |= n < 0 && errno != EAGAIN;
    return n < 0 ? -1 : (int)n;
}

/** Is it from a host where nobody listens? */
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

/** The kernel gives back the packet's data, as far as the host has: mostly all of it. */
static bool udp_refused(unsigned char packet[NICBARRIER_PACKET_SIZE])
{
    while (udp.errors) {
        _Alignas(struct cmsghdr) char control[256];
        struct iovec data = {packet, NICBARRIER_PACKET_SIZE};
        struct msghdr m = {.msg_iov = &data,
                           .msg_iovlen = 1,
                           .msg_control = control,
                           .msg_controllen = sizeof(control)};
        const ssize_t n = recvmsg(udp.fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT);
        udp.errors = n >= 0;
        if (n == NICBARRIER_PACKET_SIZE && is_refusal(&m)) {
            return true;
        }
    }
    return false;
}

static int udp_descriptor(void)
{
    return udp.fd;
}

/** A socket is always armed. */
static bool udp_arm(void)
{
    return true;
}

void nicbarrier_udp_throw(const nicbarrier_address_t *to, const unsigned char *packet)
{
    any_address_t a;
    if (to->len > sizeof(a)) {
        return;
    }
    memcpy(&a, to->bytes, to->len);
    const int fd = socket(a.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0) {
        (void)sendto(fd, packet, NICBARRIER_PACKET_SIZE, MSG_NOSIGNAL, &a.any, to->len);
        close(fd);
    }
}

bool nicbarrier_udp_local(nicbarrier_address_t *a)
{
    static const nicbarrier_ip_t loopback = {.family = 4, .prefix = 8, .bytes = {127, 0, 0, 1}};
    address_of(&loopback, udp.mine.port, udp.ipv6, a);
    return true;
}

const nicbarrier_transport_t nicbarrier_udp = {
    .name = "UDP",
    .open = udp_open,
    .close = udp_close,
    .describe = udp_describe,
    .resolve = udp_resolve,
    .release = udp_release,
    .send = udp_send,
    .adopt = udp_adopt,
    .receive = udp_receive,
    .refused = udp_refused,
    .descriptor = udp_descriptor,
    .arm = udp_arm,
};
