/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Barriers in the kernel: the service; see service.h. */
#include "coll_nicbarrier/engines/datagram/bpf/service.h"

#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "coll_nicbarrier/engines/datagram/bpf/local.h"

/** Most connections. */
#define CONNECTIONS 4096
/** Milliseconds after which it is looked whether the interface is still there. */
#define LOOK_MSEC 500
/** Microseconds after which a blocking call within a round is interrupted. */
#define HURRY_USEC 20000

/** A connected process, and its group if it has installed one. */
typedef struct client {
    int fd;
    struct ucred user;
    int page; /**< of its group; -1: no group */
    nicbarrier_bpf_id_t id;
} client_t;

static struct {
    int listening, interface;
    const nicbarrier_bpf_rules_t *rules;
    client_t client[CONNECTIONS];
    int n;
    bool quit;
} service;

/* ---- who ------------------------------------------------------------------------------------- */

static bool is_member(int fd, gid_t group)
{
    gid_t list[1024];
    socklen_t size = sizeof(list);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, list, &size) != 0)
        return false;
    for (size_t i = 0; i < size / sizeof(list[0]); i++)
        if (list[i] == group)
            return true;
    return false;
}

static bool is_served(int fd, const struct ucred *user)
{
    const nicbarrier_bpf_rules_t *r = service.rules;
    return r->all || user->uid == geteuid() ||
           (r->has_group && (user->gid == r->group || is_member(fd, r->group)));
}

/** The number of the user's connections. */
static unsigned count_of(uid_t user)
{
    unsigned n = 0;
    for (int i = 0; i < service.n; i++)
        n += service.client[i].user.uid == user;
    return n;
}

/* ---- groups ---------------------------------------------------------------------------------- */

/** @return 0, or an errno */
static int install(client_t *c, const nicbarrier_bpf_request_t *r, size_t len)
{
    if (len != sizeof(*r) || r->version != NICBARRIER_BPF_VERSION)
        return EPROTO;
    if (c->page >= 0)
        return EEXIST;
    c->id = r->id;
    c->page = nicbarrier_bpf_install(&c->id);
    return c->page < 0 ? errno : 0;
}

static void remove_group(client_t *c)
{
    if (c->page >= 0) {
        nicbarrier_bpf_remove(&c->id);
        close(c->page);
    }
    c->page = -1;
}

/* ---- requests -------------------------------------------------------------------------------- */

static const char *text_of(int error)
{
    switch (error) {
    case 0:
        return "";
    case EDQUOT:
        return "this user, or all, have as many groups in the kernel as are allowed";
    case E2BIG:
        return "the kernel has no room for more groups";
    case EEXIST:
        return "there is such a group";
    case EPROTO:
        return "another version of ompi-nic";
    case EACCES:
        return "this user may not use nicbarrier-bpf here: it was loaded without --users for it";
    default:
        return strerror(error);
    }
}

/** Sends a client the page of its group, or the error. False if that cannot be done at once: the
 *  service never waits for a client that does not read its replies. */
static bool answer(int fd, int error, int page)
{
    const char *text = text_of(error);
    return nicbarrier_bpf_local_send(fd, text, strlen(text) + 1, page) == 0;
}

/** Serves one request. False if the connection is over. */
static bool serve_one(client_t *c)
{
    nicbarrier_bpf_request_t r;
    const ssize_t n = nicbarrier_bpf_local_receive(c->fd, &r, sizeof(r), NULL);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n <= 0)
        return false;
    const int error = install(c, &r, (size_t)n);
    return answer(c->fd, error, error == 0 ? c->page : -1);
}

/* ---- connections ----------------------------------------------------------------------------- */

static void drop_client(int i)
{
    remove_group(&service.client[i]);
    close(service.client[i].fd);
    service.client[i] = service.client[--service.n];
}

/** Checks whether the user may have one more connection. @return 0, or an errno */
static int admit(int fd, struct ucred *user)
{
    socklen_t size = sizeof(*user);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, user, &size) != 0)
        return errno;
    if (!is_served(fd, user))
        return EACCES;
    return service.n == CONNECTIONS || count_of(user->uid) >= NICBARRIER_BPF_GROUPS_OF_USER ? EDQUOT
                                                                                            : 0;
}

/** Accepts all connections that were waiting when called. */
static void take_clients(void)
{
    for (int i = 0; i < NICBARRIER_BPF_BACKLOG; i++) {
        struct ucred user;
        const int fd = accept4(service.listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        const int error = admit(fd, &user);
        if (error == 0) {
            service.client[service.n++] = (client_t){.fd = fd, .user = user, .page = -1};
        } else {
            (void)answer(fd, error, -1);
            close(fd);
        }
    }
}

/** Descriptors sent with unread messages are closed by the kernel, and may be sockets that linger:
 *  a signal interrupts that. */
static void hurry(bool on)
{
    const suseconds_t usec = on ? HURRY_USEC : 0;
    const struct itimerval t = {{0, usec}, {0, usec}};
    (void)setitimer(ITIMER_REAL, &t, NULL);
}

static void on_alarm(int number)
{
    (void)number;
}

/** Descriptors polled besides those of the processes. */
enum { LISTENING, STOP, OTHERS };

static bool interface_is_gone(void)
{
    char name[IF_NAMESIZE];
    return if_indextoname((unsigned)service.interface, name) == NULL &&
           (errno == ENXIO || errno == ENODEV);
}

/** Serves one round. @return 0, or an errno */
static int serve_all(struct pollfd *fds)
{
    const int n = service.n;
    if (interface_is_gone())
        return ENODEV;
    for (int i = 0; i < n; i++)
        fds[OTHERS + i] = (struct pollfd){.fd = service.client[i].fd, .events = POLLIN};
    const int ready = poll(fds, (nfds_t)n + OTHERS, LOOK_MSEC);
    if (ready <= 0)
        return ready == 0 || errno == EINTR ? 0 : errno;
    service.quit = fds[STOP].revents != 0;
    hurry(true);
    /* Backwards, because a client that is removed is replaced by the last one. */
    for (int i = n - 1; i >= 0; i--)
        if (fds[OTHERS + i].revents != 0 && !serve_one(&service.client[i]))
            drop_client(i);
    if (fds[LISTENING].revents != 0)
        take_clients();
    hurry(false);
    return 0;
}

int nicbarrier_bpf_serve(int listening, int interface, const nicbarrier_bpf_rules_t *rules,
                         int stop)
{
    static struct pollfd fds[OTHERS + CONNECTIONS];
    const struct sigaction alarm = {.sa_handler = on_alarm};
    int error = sigaction(SIGALRM, &alarm, NULL) != 0 ? errno : 0;
    service.listening = listening;
    service.interface = interface;
    service.rules = rules;
    fds[LISTENING] = (struct pollfd){.fd = listening, .events = POLLIN};
    fds[STOP] = (struct pollfd){.fd = stop, .events = POLLIN};
    while (error == 0 && !service.quit)
        error = serve_all(fds);
    return error;
}
