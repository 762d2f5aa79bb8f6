/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The way to a partner, by rtnetlink; see neighbour.h. */
#include "coll_nicbarrier/engines/datagram/bpf/neighbour.h"

#include <errno.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/** A netlink request, or the answer to it. */
typedef union message {
    struct nlmsghdr header;
    struct {
        struct nlmsghdr header;
        struct rtmsg body;
    } route;
    struct {
        struct nlmsghdr header;
        struct ndmsg body;
    } neighbour;
    unsigned char room[4096];
} message_t;

static void add_attribute(message_t *m, unsigned short type, const void *value, size_t len)
{
    struct rtattr *a = (struct rtattr *)(void *)(m->room + NLMSG_ALIGN(m->header.nlmsg_len));
    a->rta_type = type;
    a->rta_len = (unsigned short)RTA_LENGTH(len);
    memcpy(RTA_DATA(a), value, len);
    m->header.nlmsg_len = NLMSG_ALIGN(m->header.nlmsg_len) + RTA_ALIGN(a->rta_len);
}

/** An attribute after the body of an answer, or NULL. */
static const void *attribute(const message_t *m, size_t body, unsigned short type, size_t len)
{
    const size_t end = m->header.nlmsg_len;
    for (size_t at = NLMSG_ALIGN(NLMSG_LENGTH(body)); at + sizeof(struct rtattr) <= end;) {
        const struct rtattr *a = (const struct rtattr *)(const void *)(m->room + at);
        if (a->rta_len < sizeof(*a) || at + a->rta_len > end)
            return NULL;
        if (a->rta_type == type && a->rta_len == RTA_LENGTH(len))
            return RTA_DATA(a);
        at += RTA_ALIGN(a->rta_len);
    }
    return NULL;
}

/** Asks the kernel. The answer overwrites the request. @return 0, or an errno */
static int ask(message_t *m)
{
    const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (fd < 0)
        return errno;
    ssize_t n = send(fd, m, m->header.nlmsg_len, 0);
    n = n < 0 ? n : recv(fd, m, sizeof(*m), 0);
    const int error = n < 0 ? errno : 0;
    close(fd);
    if (error != 0)
        return error;
    if (!NLMSG_OK(&m->header, (size_t)n))
        return EPROTO;
    if (m->header.nlmsg_type == NLMSG_ERROR)
        return -((const struct nlmsgerr *)NLMSG_DATA(&m->header))->error;
    return 0;
}

/** Finds the next hop towards `to->ip` (a router, or that address itself) and my own address. */
static int find_route(int interface, bool six, const nicbarrier_bpf_end_t *to,
                      nicbarrier_bpf_end_t *from, uint8_t next[16])
{
    const size_t len = six ? 16 : 4;
    message_t m;
    memset(&m, 0, sizeof(m));
    m.header = (struct nlmsghdr){.nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)),
                                 .nlmsg_type = RTM_GETROUTE,
                                 .nlmsg_flags = NLM_F_REQUEST};
    m.route.body.rtm_family = six ? AF_INET6 : AF_INET;
    m.route.body.rtm_dst_len = (unsigned char)(8 * len);
    add_attribute(&m, RTA_DST, to->ip, len);
    const int error = ask(&m);
    if (error != 0)
        return error;
    const int *by = attribute(&m, sizeof(struct rtmsg), RTA_OIF, sizeof(*by));
    const void *mine = attribute(&m, sizeof(struct rtmsg), RTA_PREFSRC, len);
    const void *router = attribute(&m, sizeof(struct rtmsg), RTA_GATEWAY, len);
    if (by == NULL || *by != interface || mine == NULL || m.route.body.rtm_type != RTN_UNICAST)
        return ENETUNREACH;
    memset(from->ip, 0, sizeof(from->ip));
    memcpy(from->ip, mine, len);
    memcpy(next, router != NULL ? router : to->ip, len);
    return 0;
}

static void begin_neighbour(message_t *m, int interface, bool six, const uint8_t ip[16], int type)
{
    memset(m, 0, sizeof(*m));
    m->header = (struct nlmsghdr){.nlmsg_len = NLMSG_LENGTH(sizeof(struct ndmsg)),
                                  .nlmsg_type = (unsigned short)type,
                                  .nlmsg_flags = NLM_F_REQUEST};
    m->neighbour.body.ndm_family = six ? AF_INET6 : AF_INET;
    m->neighbour.body.ndm_ifindex = interface;
    add_attribute(m, NDA_DST, ip, six ? 16 : 4);
}

/** Makes the kernel look up the Ethernet address. */
static void look_for(int interface, bool six, const uint8_t ip[16])
{
    message_t m;
    begin_neighbour(&m, interface, six, ip, RTM_NEWNEIGH);
    m.header.nlmsg_flags |= NLM_F_CREATE | NLM_F_REPLACE | NLM_F_ACK;
    m.neighbour.body.ndm_flags = NTF_USE;
    (void)ask(&m);
}

static int find_mac(int interface, bool six, const uint8_t ip[16], uint8_t mac[6])
{
    const int valid = NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_PROBE | NUD_STALE | NUD_DELAY;
    message_t m;
    begin_neighbour(&m, interface, six, ip, RTM_GETNEIGH);
    const int error = ask(&m);
    const void *found = error != 0 ? NULL : attribute(&m, sizeof(struct ndmsg), NDA_LLADDR, 6);
    if (found == NULL || (m.neighbour.body.ndm_state & valid) == 0) {
        look_for(interface, six, ip);
        return error == 0 || error == ENOENT ? EAGAIN : error;
    }
    memcpy(mac, found, 6);
    return 0;
}

int nicbarrier_bpf_mac(int interface, uint8_t mac[6])
{
    struct ifreq r = {.ifr_flags = 0};
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const bool done = fd >= 0 && if_indextoname((unsigned)interface, r.ifr_name) != NULL &&
                      ioctl(fd, SIOCGIFHWADDR, &r) == 0;
    if (fd >= 0)
        close(fd);
    if (!done || r.ifr_hwaddr.sa_family != ARPHRD_ETHER)
        return ENETUNREACH;
    memcpy(mac, r.ifr_hwaddr.sa_data, 6);
    return 0;
}

int nicbarrier_bpf_neighbour(int interface, bool six, nicbarrier_bpf_end_t *to,
                             nicbarrier_bpf_end_t *from)
{
    uint8_t next[16];
    int error = find_route(interface, six, to, from, next);
    error = error != 0 ? error : nicbarrier_bpf_mac(interface, from->mac);
    return error != 0 ? error : find_mac(interface, six, next, to->mac);
}

/* ---- the interface --------------------------------------------------------------------------- */

int nicbarrier_bpf_link_watch(void)
{
    const struct sockaddr_nl links = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK};
    const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&links, sizeof(links)) == 0)
        return fd;
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
}

/** The content of the messages does not matter, since some may have been lost. */
bool nicbarrier_bpf_link_is_gone(int watch, int interface)
{
    message_t m;
    char name[IF_NAMESIZE];
    while (recv(watch, &m, sizeof(m), 0) >= 0 || errno == ENOBUFS) {
    }
    return if_indextoname((unsigned)interface, name) == NULL && (errno == ENXIO || errno == ENODEV);
}
