/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Engine datagram: one unconnected socket of IPv4; see udp.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/errqueue.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "coll_nicbarrier/engines/datagram/params.h"
#include "coll_nicbarrier/engines/datagram/udp.h"

/** Bytes that the kernel may buffer for us: some hundred packets. */
#define RECEIVE_BUFFER (1 << 20)

static struct {
    int fd;
    nicbarrier_udp_address_t mine;
    bool errors; /**< the error queue is not empty */
} udp = {.fd = -1};

static struct sockaddr_in socket_address(nicbarrier_address_t a)
{
    return (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = a.ip, .sin_port = a.port};
}

/* ---- the addresses of this host ------------------------------------------------------------- */

/** True if the interface is up, has an address, and is to be published; gives its address and
 *  network. */
static bool is_wanted(const struct ifaddrs *i, const char *list, nicbarrier_ip_t *p)
{
    const unsigned up = IFF_UP | IFF_RUNNING;
    if (i->ifa_addr == NULL || i->ifa_netmask == NULL || i->ifa_addr->sa_family != AF_INET ||
        (i->ifa_flags & up) != up)
        return false;
    p->ip = ((const struct sockaddr_in *)(const void *)i->ifa_addr)->sin_addr.s_addr;
    p->mask = ((const struct sockaddr_in *)(const void *)i->ifa_netmask)->sin_addr.s_addr;
    return list != NULL ? nicbarrier_interface_is_in(i->ifa_name, list)
                        : (i->ifa_flags & IFF_LOOPBACK) == 0;
}

/** Finds the addresses of all interfaces of the list (NULL: all but the loopback) that are up.
 *  Returns how many, at least 1; or -1 and the reason. */
static int find_interfaces(const char *list, nicbarrier_ip_t ip[NICBARRIER_IPS_MAX],
                           nicbarrier_reason_t *why)
{
    struct ifaddrs *all;
    int n = 0;
    if (getifaddrs(&all) != 0)
        return nicbarrier_reason(why, "the interfaces cannot be listed: %s", strerror(errno));
    for (const struct ifaddrs *i = all; i != NULL && n < NICBARRIER_IPS_MAX; i = i->ifa_next)
        n += is_wanted(i, list, &ip[n]);
    freeifaddrs(all);
    if (n == 0)
        return nicbarrier_reason(why,
                                 list != NULL ? "no interface of '%s' is up with IPv4"
                                              : "no interface is up with IPv4 but the loopback%s",
                                 list != NULL ? list : "");
    return n;
}

/* ---- socket --------------------------------------------------------------------------------- */

/** Returns what has failed, or NULL. */
static const char *open_socket(void)
{
    const int yes = 1, size = RECEIVE_BUFFER;
    struct sockaddr_in a = socket_address((nicbarrier_address_t){INADDR_ANY, 0});
    socklen_t len = sizeof(a);
    udp.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (udp.fd < 0)
        return "socket";
    /* The kernel may allow less, which must do. */
    (void)setsockopt(udp.fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    /* Asks for errors of refused packets (the port is closed), as far as the kernel reports them.
     */
    (void)setsockopt(udp.fd, IPPROTO_IP, IP_RECVERR, &yes, sizeof(yes));
    if (bind(udp.fd, (const struct sockaddr *)&a, len) != 0)
        return "bind";
    if (getsockname(udp.fd, (struct sockaddr *)&a, &len) != 0)
        return "getsockname";
    udp.mine.port = a.sin_port;
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
    const int n = find_interfaces(nicbarrier_datagram_config.interface, udp.mine.ip, why);
    if (n < 0)
        return -1;
    udp.mine.n = (uint8_t)n;
    udp.mine.cookie = cookie;
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

const char *nicbarrier_udp_resolve(const void *bytes, uint32_t len, uint32_t *cookie,
                                   nicbarrier_address_t *to)
{
    nicbarrier_udp_address_t theirs;
    const char *wrong = nicbarrier_udp_address_decode(bytes, len, &theirs);
    if (wrong != NULL)
        return wrong;
    *cookie = theirs.cookie;
    *to = nicbarrier_udp_address_choose(&udp.mine, &theirs);
    return NULL;
}

/* ---- packets -------------------------------------------------------------------------------- */

void nicbarrier_udp_send(nicbarrier_address_t to, const unsigned char *packet)
{
    const struct sockaddr_in a = socket_address(to);
    /* The first call may only report that an earlier packet was refused. */
    for (int i = 0; i < 2; i++) {
        if (sendto(udp.fd, packet, NICBARRIER_PACKET_SIZE, MSG_NOSIGNAL,
                   (const struct sockaddr *)&a, sizeof(a)) == NICBARRIER_PACKET_SIZE)
            return;
        udp.errors = true;
    }
}

int nicbarrier_udp_receive(void *bytes, size_t size, nicbarrier_address_t *from)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    socklen_t len = sizeof(a);
    const ssize_t n = recvfrom(udp.fd, bytes, size, MSG_DONTWAIT, (struct sockaddr *)&a, &len);
    *from = (nicbarrier_address_t){a.sin_addr.s_addr, a.sin_port};
    udp.errors |= n < 0 && errno != EAGAIN;
    return n < 0 ? -1 : (int)n;
}

/** True if it comes from a host where the port is closed. */
static bool is_refusal(struct msghdr *m)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
        struct sock_extended_err e;
        if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) {
            memcpy(&e, CMSG_DATA(c), sizeof(e));
            return e.ee_errno == ECONNREFUSED;
        }
    }
    return false;
}

/** The kernel returns as much of the packet's data as the host has sent back: usually all of it. */
bool nicbarrier_udp_refused(unsigned char packet[NICBARRIER_PACKET_SIZE])
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
        if (n == NICBARRIER_PACKET_SIZE && is_refusal(&m))
            return true;
    }
    return false;
}

int nicbarrier_udp_descriptor(void)
{
    return udp.fd;
}
