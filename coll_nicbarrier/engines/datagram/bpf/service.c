/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Barriers in the kernel: the service; see service.h. */
#include "coll_nicbarrier/engines/datagram/bpf/service.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "coll_nicbarrier/engines/datagram/bpf/frame.h"
#include "coll_nicbarrier/engines/datagram/bpf/fd_disposal.h"
#include "coll_nicbarrier/engines/datagram/bpf/local.h"
#include "coll_nicbarrier/engines/datagram/bpf/neighbour.h"
#include "coll_nicbarrier/engines/datagram/bpf/request.h"
#include "common/support/clock.h"

/** Most connections; a user may have twice as many as groups. */
#define CONNECTIONS 4096
/** Nanoseconds until Ethernet addresses are looked up again. */
#define REFRESH_NSEC UINT64_C(5000000000)
/** Connections that may wait to be accepted. */
#define BACKLOG 128
/** Microseconds after which a blocking call within a round is interrupted. */
#define HURRY_USEC 20000

/** A connected process, and its group if it has installed one. */
typedef struct client {
    int fd;
    struct ucred user;
    int page;   /**< of its group; -1: no group */
    int socket; /**< the socket that it has handed over, kept with the group so that nobody else
                   gets its port */
    uint16_t port;
    nicbarrier_bpf_request_t group; /**< as requested, with later addresses */
    nicbarrier_bpf_plan_t plan;
} client_t;

static struct {
    nicbarrier_bpf_kernel_t *kernel;
    int listening, interface;
    const nicbarrier_bpf_rules_t *rules;
    client_t *client[CONNECTIONS];
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

/** The number of the user's connections, or of its groups. */
static unsigned count_of(uid_t user, bool groups)
{
    unsigned n = 0;
    for (int i = 0; i < service.n; i++) {
        const client_t *c = service.client[i];
        n += c->user.uid == user && (!groups || c->page >= 0);
    }
    return n;
}

/* ---- groups ---------------------------------------------------------------------------------- */

/** Sets who may send the word of step k, as it stands in the packets. */
static void plan_sender(client_t *c, uint32_t k)
{
    const nicbarrier_bpf_request_t *r = &c->group;
    const nicbarrier_packet_t p = {
        .at = (uint8_t)k, .from_at = r->step[k].wait_at, .sender = (uint32_t)r->step[k].wait_for};
    nicbarrier_bpf_sender_t *sender = &c->plan.group.sender[k];
    unsigned char bytes[NICBARRIER_PACKET_SIZE];
    nicbarrier_packet_encode(&p, bytes);
    memcpy(sender->ip, r->from[k].ip, sizeof(sender->ip));
    memcpy(&sender->named, bytes + NICBARRIER_PACKET_SENDER_AT, sizeof(sender->named));
    sender->port[0] = htons(r->from[k].port);
    sender->port[1] = htons(c->port);
}

/** Makes the message of step k. @return 0, or an errno */
static int plan_packet(client_t *c, uint32_t k)
{
    const nicbarrier_bpf_request_t *r = &c->group;
    const nicbarrier_packet_t p = {.kind = NICBARRIER_PACKET_EPOCH,
                                   .at = r->step[k].send_at,
                                   .from_at = (uint8_t)k,
                                   .sender = r->me,
                                   .cookie = r->to[k].cookie,
                                   .key = r->id.key};
    nicbarrier_bpf_end_t to = {.port = r->to[k].port}, from = {.port = c->port};
    unsigned char bytes[NICBARRIER_PACKET_SIZE];
    nicbarrier_packet_encode(&p, bytes);
    memcpy(to.ip, r->to[k].ip, sizeof(to.ip));
    const int error = nicbarrier_bpf_neighbour(service.interface, r->six == 1, &to, &from);
    if (error == 0)
        nicbarrier_bpf_frame(&c->plan.group.packet[k], r->six == 1, &from, &to, bytes);
    return error;
}

/** Plans step k of the client's group with its current addresses. @return 0, or an errno */
static int plan_step(client_t *c, uint32_t k)
{
    if (c->group.step[k].wait_for != NICBARRIER_NOBODY)
        plan_sender(c, k);
    return c->group.step[k].send_to != NICBARRIER_NOBODY ? plan_packet(c, k) : 0;
}

static int plan_all(client_t *c)
{
    int first = 0;
    /* Looks up all addresses before returning an error, so that the kernel resolves them all at
     * once. */
    for (uint32_t k = 0; k < c->group.nsteps; k++) {
        const int error = plan_step(c, k);
        first = first == 0 || first == EAGAIN ? (error != 0 ? error : first) : first;
    }
    return first;
}

static int install(client_t *c, const nicbarrier_bpf_request_t *r, int *socket)
{
    uint64_t sends, waits;
    if (c->page >= 0 || *socket < 0 ||
        (c->port = nicbarrier_bpf_fd_port(*socket, r->six == 1, service.interface,
                                          service.listening)) == 0)
        return EINVAL;
    if (count_of(c->user.uid, true) >= service.rules->groups)
        return EDQUOT;
    c->group = *r;
    memset(&c->plan, 0, sizeof(c->plan));
    c->plan.id = r->id;
    c->plan.group.drop = r->drop;
    nicbarrier_schedule_bits(r->step, (int)r->nsteps, &sends, &waits);
    nicbarrier_rule_init(&c->plan.rule, r->nsteps, sends, waits);
    const int error = plan_all(c);
    if (error != 0)
        return error;
    c->page = nicbarrier_bpf_install(service.kernel, &c->plan);
    if (c->page < 0)
        return errno;
    c->socket = *socket;
    *socket = -1;
    return 0;
}

static int readdress(client_t *c, const nicbarrier_bpf_request_t *r)
{
    const uint32_t k = r->number;
    nicbarrier_bpf_request_t *g = &c->group;
    /* Programs write one packet over another, so all must have one size. */
    if (c->page < 0 || r->nsteps != g->nsteps || r->six != g->six ||
        memcmp(&r->step[k], &g->step[k], sizeof(g->step[k])) != 0)
        return EINVAL;
    g->to[k] = r->to[k];
    g->from[k] = r->from[k];
    const int error = plan_step(c, k);
    return error != 0 ? error : nicbarrier_bpf_update(service.kernel, &c->plan, k);
}

static void remove_group(client_t *c)
{
    if (c->page >= 0) {
        nicbarrier_bpf_remove(service.kernel, &c->plan.id);
        close(c->page);
        close(c->socket);
    }
    c->page = -1;
}

/** Finds a group of the same user. */
static const client_t *find(const client_t *c, const nicbarrier_bpf_id_t *id)
{
    for (int i = 0; i < service.n; i++) {
        const client_t *other = service.client[i];
        if (other->page >= 0 && other->user.uid == c->user.uid && other->plan.id.key == id->key &&
            other->plan.id.cookie == id->cookie)
            return other;
    }
    return NULL;
}

/** Looks up the Ethernet addresses again, since they may have changed. Until a change is noticed,
 *  the engine's repeated messages get through. */
static void refresh(void)
{
    for (int i = 0; i < service.n; i++) {
        client_t *c = service.client[i];
        for (uint32_t k = 0; c->page >= 0 && k < c->group.nsteps; k++) {
            const nicbarrier_bpf_packet_t before = c->plan.group.packet[k];
            if (plan_step(c, k) == 0 &&
                memcmp(&before, &c->plan.group.packet[k], sizeof(before)) != 0)
                (void)nicbarrier_bpf_update(service.kernel, &c->plan, k);
        }
    }
}

/* ---- list ------------------------------------------------------------------------------------ */

/** Describes the number-th group that the client may see. */
static int list(const client_t *c, uint32_t number, nicbarrier_bpf_reply_t *reply)
{
    const bool sees_all = c->user.uid == geteuid();
    for (int i = 0; i < service.n; i++) {
        const client_t *other = service.client[i];
        if (other->page < 0 || (!sees_all && other->user.uid != c->user.uid) || number-- > 0)
            continue;
        reply->id = other->plan.id;
        reply->user = other->user.uid;
        reply->process = (uint32_t)other->user.pid;
        reply->nsteps = other->plan.rule.nsteps;
        return nicbarrier_bpf_look(service.kernel, &other->plan.id, other->page, reply->count,
                                   &reply->entered, &reply->completed);
    }
    return ENOENT;
}

/* ---- requests -------------------------------------------------------------------------------- */

static const char *text_of(int error)
{
    switch (error) {
    case 0:
        return "";
    case EDQUOT:
        return "this user has as many groups in the kernel as are allowed";
    case E2BIG:
        return "the kernel has no room for more groups";
    case EEXIST:
        return "there is such a group";
    case ENETUNREACH:
        return "a partner is not reached by this interface";
    case EAGAIN:
        return "the Ethernet address of a partner is not known yet";
    case EACCES:
        return "this user may not use nicbarrier-bpf here: it was loaded without --users for it";
    case EUSERS:
        return "nicbarrier-bpf has too many connections, of this user or of all";
    default:
        return strerror(error);
    }
}

static int do_order(client_t *c, const nicbarrier_bpf_request_t *r, int *socket,
                    nicbarrier_bpf_reply_t *reply, int *page)
{
    const client_t *found;
    int error;
    switch (r->order) {
    case NICBARRIER_BPF_INSTALL:
        error = install(c, r, socket);
        *page = c->page;
        return error;
    case NICBARRIER_BPF_OPEN:
        found = find(c, &r->id);
        *page = found == NULL ? -1 : found->page;
        return found == NULL ? ENOENT : 0;
    case NICBARRIER_BPF_READDRESS:
        return readdress(c, r);
    case NICBARRIER_BPF_REMOVE:
        remove_group(c);
        return 0;
    case NICBARRIER_BPF_LIST:
        return list(c, r->number, reply);
    default:
        service.quit = service.quit || c->user.uid == geteuid();
        return service.quit ? 0 : EPERM;
    }
}

/** Serves one request. False if the connection is over. */
static bool serve_one(client_t *c)
{
    static nicbarrier_bpf_request_t r;
    nicbarrier_bpf_reply_t reply = {.version = NICBARRIER_BPF_VERSION};
    int socket = -1, page = -1;
    if (nicbarrier_bpf_fd_many(c->user.uid))
        return false;
    const ssize_t n = nicbarrier_bpf_local_receive(c->fd, &r, sizeof(r), &socket);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    const char *wrong = n > 0 ? nicbarrier_bpf_request_wrong(&r, (size_t)n) : NULL;
    if (n > 0) {
        const int error = wrong != NULL ? EINVAL : do_order(c, &r, &socket, &reply, &page);
        reply.error = (uint32_t)error;
        (void)snprintf(reply.text, sizeof(reply.text), "%s", wrong ? wrong : text_of(error));
    }
    if (socket >= 0)
        nicbarrier_bpf_fd_close(socket, c->user.uid);
    /* A client that does not read its replies is dropped: the service never waits for one. */
    return n > 0 && nicbarrier_bpf_local_send(c->fd, &reply, sizeof(reply),
                                              reply.error == 0 ? page : -1) == 0;
}

/* ---- connections ----------------------------------------------------------------------------- */

static void drop_client(int i)
{
    client_t *c = service.client[i];
    remove_group(c);
    close(c->fd);
    free(c);
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
    return nicbarrier_bpf_fd_many(user->uid) || service.n == CONNECTIONS ||
                   count_of(user->uid, false) >= 2 * service.rules->groups
               ? EUSERS
               : 0;
}

/** Sends the client the error, whatever it asks for. */
static void turn_away(int fd, int error)
{
    nicbarrier_bpf_reply_t reply = {.version = NICBARRIER_BPF_VERSION, .error = (uint32_t)error};
    (void)snprintf(reply.text, sizeof(reply.text), "%s", text_of(error));
    (void)nicbarrier_bpf_local_send(fd, &reply, sizeof(reply), -1);
    close(fd);
}

/** Accepts all connections that were waiting when called. */
static void take_clients(void)
{
    for (int i = 0; i < BACKLOG; i++) {
        struct ucred user;
        const int fd = accept4(service.listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        const int error = admit(fd, &user);
        client_t *c = error == 0 ? calloc(1, sizeof(*c)) : NULL;
        if (c == NULL) {
            turn_away(fd, error != 0 ? error : ENOMEM);
            continue;
        }
        c->fd = fd;
        c->user = user;
        c->page = -1;
        service.client[service.n++] = c;
    }
}

int nicbarrier_bpf_reserve(const char *interface)
{
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (nicbarrier_bpf_local_bind(fd, interface) != 0) {
        const int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

int nicbarrier_bpf_listen(int reserved)
{
    return listen(reserved, BACKLOG);
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
enum { LISTENING, STOP, LINKS, OTHERS };

/** Serves one round. @return 0, or an errno */
static int serve_all(struct pollfd *fds)
{
    const int n = service.n;
    for (int i = 0; i < n; i++)
        fds[OTHERS + i] = (struct pollfd){.fd = service.client[i]->fd, .events = POLLIN};
    const int ready = poll(fds, (nfds_t)n + OTHERS, (int)(REFRESH_NSEC / 1000000));
    if (ready <= 0)
        return ready == 0 || errno == EINTR ? 0 : errno;
    service.quit = fds[STOP].revents != 0;
    if (fds[LINKS].revents != 0 && nicbarrier_bpf_link_is_gone(fds[LINKS].fd, service.interface))
        return ENODEV;
    hurry(true);
    /* Backwards, because a client that is removed is replaced by the last one. */
    for (int i = n - 1; i >= 0; i--)
        if (fds[OTHERS + i].revents != 0 && !serve_one(service.client[i]))
            drop_client(i);
    if (fds[LISTENING].revents != 0)
        take_clients();
    hurry(false);
    return 0;
}

int nicbarrier_bpf_serve(int listening, nicbarrier_bpf_kernel_t *k, int interface,
                         const nicbarrier_bpf_rules_t *rules, int stop)
{
    static struct pollfd fds[OTHERS + CONNECTIONS];
    const int links = nicbarrier_bpf_link_watch();
    uint64_t refreshed = onic_now_nsec();
    const struct sigaction alarm = {.sa_handler = on_alarm};
    int error = links < 0 || sigaction(SIGALRM, &alarm, NULL) != 0 ? errno : 0;
    /* The interface may have gone before it was watched. */
    if (error == 0 && nicbarrier_bpf_link_is_gone(links, interface))
        error = ENODEV;
    service.kernel = k;
    service.listening = listening;
    service.interface = interface;
    service.rules = rules;
    fds[LISTENING] = (struct pollfd){.fd = listening, .events = POLLIN};
    fds[STOP] = (struct pollfd){.fd = stop, .events = POLLIN};
    fds[LINKS] = (struct pollfd){.fd = links, .events = POLLIN};
    while (error == 0 && !service.quit) {
        error = serve_all(fds);
        if (onic_now_nsec() - refreshed >= REFRESH_NSEC) {
            refresh();
            refreshed = onic_now_nsec();
        }
    }
    /* Connections stay open until this process ends, so whoever asked for that sees when everything
     * is gone. */
    nicbarrier_bpf_remove_all(k);
    return error;
}
