/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Barriers in the kernel: disposal of descriptors that processes hand over; see
 * fd_disposal.h. */
#include "coll_nicbarrier/engines/datagram/bpf/fd_disposal.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/** Descriptors being closed by threads at a time: of all users, and of each. */
#define CLOSING      64
#define CLOSING_EACH 4

/** A socket option that is a number; -1 if this is no socket or has no such option. */
static int option_of(int fd, int level, int option)
{
    int value = -1;
    socklen_t size = sizeof(value);
    return getsockopt(fd, level, option, &value, &size) == 0 ? value : -1;
}

/** Closing a UDP socket takes no time, even if others have it open, too. */
static bool is_udp(int fd)
{
    return option_of(fd, SOL_SOCKET, SO_PROTOCOL) == IPPROTO_UDP &&
           option_of(fd, SOL_SOCKET, SO_TYPE) == SOCK_DGRAM;
}

/** A descriptor that is no UDP socket may be a file whose close can be delayed by its owner (FUSE,
 *  or a stream with SO_LINGER), so the service's own thread does not close it. */
static struct closing {
    atomic_bool busy;
    uid_t user;
    int fd;
} closing[CLOSING];

static void *close_it(void *arg)
{
    struct closing *c = arg;
    sigset_t all;
    /* Signals are handled by the service's own thread. */
    sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, NULL);
    close(c->fd);
    atomic_store(&c->busy, false);
    return NULL;
}

bool nicbarrier_bpf_fd_many(uid_t user)
{
    int n = 0;
    for (int i = 0; i < CLOSING; i++)
        n += atomic_load(&closing[i].busy) && closing[i].user == user;
    return n >= CLOSING_EACH;
}

/** Closes it in a thread. If there is no thread for it, the descriptor stays open. */
static void close_apart(int fd, uid_t user)
{
    pthread_t thread;
    int i = 0;
    while (i < CLOSING && atomic_load(&closing[i].busy))
        i++;
    if (i == CLOSING)
        return;
    closing[i].user = user;
    closing[i].fd = fd;
    atomic_store(&closing[i].busy, true);
    if (pthread_create(&thread, NULL, close_it, &closing[i]) == 0)
        (void)pthread_detach(thread);
    else
        atomic_store(&closing[i].busy, false);
}

void nicbarrier_bpf_fd_close(int fd, uid_t user)
{
    if (is_udp(fd))
        close(fd);
    else
        close_apart(fd, user);
}

/** True if the socket belongs to this network namespace. In a namespace of their own, users may
 *  open any port. `mine` is a socket of this namespace. */
static bool is_here(int fd, int mine)
{
    uint64_t theirs = 0, here = 1;
    socklen_t size = sizeof(here), len = sizeof(theirs);
    return getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &theirs, &len) == 0 &&
           getsockopt(mine, SOL_SOCKET, SO_NETNS_COOKIE, &here, &size) == 0 && theirs == here;
}

uint16_t nicbarrier_bpf_fd_port(int fd, bool six, int interface, int mine)
{
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    } a;
    socklen_t len = sizeof(a);
    memset(&a, 0, sizeof(a));
    const int bound = is_udp(fd) ? option_of(fd, SOL_SOCKET, SO_BINDTOIFINDEX) : -1;
    if ((bound != 0 && bound != interface) || !is_here(fd, mine) ||
        getsockname(fd, &a.any, &len) != 0)
        return 0;
    if (a.any.sa_family == AF_INET)
        return !six && a.four.sin_addr.s_addr == INADDR_ANY ? ntohs(a.four.sin_port) : 0;
    return memcmp(&a.six.sin6_addr, &in6addr_any, sizeof(in6addr_any)) == 0 &&
                   (six || option_of(fd, IPPROTO_IPV6, IPV6_V6ONLY) == 0)
               ? ntohs(a.six.sin6_port)
               : 0;
}
