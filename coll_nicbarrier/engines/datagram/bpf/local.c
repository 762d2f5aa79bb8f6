/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The socket between processes and the service; see local.h. */
#include "coll_nicbarrier/engines/datagram/bpf/local.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

/** The name of the service's socket: this followed by the interface's name, in the abstract
 *  namespace, which belongs to the network namespace. */
#define SOCKET "ompi-nic/nicbarrier-bpf/"

/** Seconds that a process waits for an answer of the service. */
#define PATIENCE_SEC 5

/** The socket's name, in the abstract namespace: it begins with a zero byte. The interface is one
 *  that there is, so its name is short. */
static socklen_t name_of(const char *interface, struct sockaddr_un *a)
{
    memset(a, 0, sizeof(*a));
    a->sun_family = AF_UNIX;
    const int n = snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, SOCKET "%s", interface);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

int nicbarrier_bpf_local_bind(const char *interface)
{
    struct sockaddr_un a;
    const socklen_t len = name_of(interface, &a);
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && bind(fd, (const struct sockaddr *)&a, len) != 0) {
        const int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

int nicbarrier_bpf_local_connect(const char *interface)
{
    const struct timeval patience = {.tv_sec = PATIENCE_SEC};
    struct sockaddr_un a;
    struct ucred user;
    socklen_t size = sizeof(user);
    const socklen_t len = name_of(interface, &a);
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    int error = connect(fd, (const struct sockaddr *)&a, len) != 0 ? errno : 0;
    if (error == 0 && (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &user, &size) != 0 ||
                       (user.uid != 0 && user.uid != geteuid())))
        error = EACCES;
    if (error != 0) {
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

/** Room for one descriptor. */
typedef union control {
    struct cmsghdr header;
    unsigned char room[CMSG_SPACE(sizeof(int))];
} control_t;

int nicbarrier_bpf_local_send(int fd, const void *bytes, size_t len, int descriptor)
{
    struct iovec data = {.iov_base = (void *)(size_t)bytes, .iov_len = len};
    struct msghdr m = {.msg_iov = &data, .msg_iovlen = 1};
    control_t control;
    memset(&control, 0, sizeof(control));
    if (descriptor >= 0) {
        m.msg_control = control.room;
        m.msg_controllen = sizeof(control.room);
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &descriptor, sizeof(descriptor));
    }
    return sendmsg(fd, &m, MSG_NOSIGNAL) == (ssize_t)len ? 0 : -1;
}

ssize_t nicbarrier_bpf_local_receive(int fd, void *bytes, size_t size, int *descriptor)
{
    struct iovec data = {.iov_base = bytes, .iov_len = size};
    control_t control;
    struct msghdr m = {.msg_iov = &data, .msg_iovlen = 1};
    if (descriptor != NULL) {
        *descriptor = -1;
        m.msg_control = control.room;
        /* Without the padding: the kernel would put a second descriptor there, which nobody would
         * close. */
        m.msg_controllen = CMSG_LEN(sizeof(int));
    }
    const ssize_t n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
    if (n < 0)
        return -1;
    const struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    if (c != NULL && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
        c->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(descriptor, CMSG_DATA(c), sizeof(*descriptor));
    return m.msg_flags & MSG_TRUNC ? 1 : n;
}

int nicbarrier_bpf_ask(int service, const nicbarrier_bpf_id_t *id, nicbarrier_reason_t *why)
{
    const nicbarrier_bpf_request_t r = {.version = NICBARRIER_BPF_VERSION, .id = *id};
    char text[NICBARRIER_BPF_REPLY] = "";
    int page = -1;
    /* A client that is turned away gets its reply before it asks, and then finds the connection
     * closed, which the kernel may report first. */
    if (nicbarrier_bpf_local_send(service, &r, sizeof(r), -1) != 0 && errno != EPIPE &&
        errno != ECONNRESET)
        return nicbarrier_reason(why, "%s", strerror(errno));
    ssize_t n = nicbarrier_bpf_local_receive(service, text, sizeof(text) - 1, &page);
    if (n < 0 && errno == ECONNRESET)
        n = nicbarrier_bpf_local_receive(service, text, sizeof(text) - 1, &page);
    if (n > 0 && text[0] == '\0' && page >= 0)
        return page;
    if (page >= 0)
        close(page);
    return nicbarrier_reason(
        why, "%s", text[0] >= ' ' ? text : "the service of nicbarrier-bpf does not answer");
}
