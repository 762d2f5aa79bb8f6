/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The service of barriers in the kernel, nicbarrier-bpf, as processes without any privilege ask it,
 * between hosts over veth and a bridge: what it refuses, and what others cannot do to a group. That
 * barriers are right there, check_nicbarrier_bpf_conformance tests.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "coll_nicbarrier/engines/datagram/bpf/local.h"
#include "test/unit/bpf_hosts.h"

/* As ck_assert, for hosts. */
#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: host %d: %s\n", __FILE__, __LINE__, h->me, #condition);        \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

static int begin(bpf_host_t *h)
{
    nicbarrier_reason_t why = {""};
    if (bpf_host_install(h, &h->client, &why) != 0) {
        fprintf(stderr, "host %d: %s\n", h->me, why.text);
        return -1;
    }
    if (!bpf_host_teach(h)) {
        fprintf(stderr, "host %d: not all packets come\n", h->me);
        return -1;
    }
    return 0;
}

static int end(bpf_host_t *h)
{
    bpf_host_meet(h);
    nicbarrier_bpf_client_close(&h->client);
    return 0;
}

/* ---- the service ----------------------------------------------------------------------------- */

/** Asks the service over a new connection; its error. */
static int ask(const nicbarrier_bpf_request_t *r, size_t len, int descriptor)
{
    nicbarrier_bpf_reply_t reply;
    int page = -1;
    const int fd = nicbarrier_bpf_local_connect("eth0");
    const ssize_t n = nicbarrier_bpf_local_send(fd, r, len, descriptor) == 0
                          ? nicbarrier_bpf_local_receive(fd, &reply, sizeof(reply), &page)
                          : -1;
    if (page >= 0)
        close(page);
    close(fd);
    return n == sizeof(reply) ? (int)reply.error : -1;
}

/** Requests that are not granted. */
static int refusals(bpf_host_t *h)
{
    nicbarrier_bpf_request_t good = h->plan.request;
    good.version = NICBARRIER_BPF_VERSION;
    nicbarrier_bpf_request_t r = good;
    /* A descriptor that comes with a request is not kept. */
    REQUIRE(ask(&r, sizeof(r), -1) == 0 && ask(&r, sizeof(r), h->socket) == 0);
    REQUIRE(ask(&r, sizeof(r) - 1, -1) == EINVAL);
    r.version++;
    REQUIRE(ask(&r, sizeof(r), -1) == EINVAL);
    r = good;
    r.sends |= UINT64_C(1) << r.nsteps;
    REQUIRE(ask(&r, sizeof(r), -1) == EINVAL);
    r = good;
    r.nsteps = NICBARRIER_RULE_STEPS + 1;
    REQUIRE(ask(&r, sizeof(r), -1) == EINVAL);
    r = good;
    r.drop = 1001;
    REQUIRE(ask(&r, sizeof(r), -1) == EINVAL);
    return 0;
}

/** As many groups as are allowed, and no more; they are gone when their process is. */
static int bounds(bpf_host_t *h)
{
    nicbarrier_reason_t why = {""};
    const nicbarrier_bpf_client_t plan = h->plan;
    nicbarrier_bpf_client_t more[3];
    int status = 0;
    const pid_t child = fork();
    if (child == 0)
        _exit(bpf_host_install(h, &h->client, &why) != 0);
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    for (int i = 0; i < 3; i++) {
        h->plan.request.id.cookie = 1000 + (uint32_t)i;
        REQUIRE(bpf_host_install(h, &more[i], &why) == 0);
    }
    h->plan = plan;
    REQUIRE(bpf_host_install(h, &h->client, &why) != 0 &&
            strstr(why.text, "as are allowed") != NULL);
    for (int i = 0; i < 2; i++)
        nicbarrier_bpf_client_close(&more[i]);
    h->plan.request.id.cookie = 1002;
    REQUIRE(bpf_host_install(h, &h->client, &why) != 0 && strstr(why.text, "such a group") != NULL);
    nicbarrier_bpf_client_close(&more[2]);
    h->plan = plan;
    return 0;
}

/** A group that was stopped stays as it is. */
static int stops(bpf_host_t *h)
{
    REQUIRE(nicbarrier_bpf_client_enter(&h->client, 1) && bpf_host_wait(h, 1));
    bpf_host_meet(h);
    nicbarrier_bpf_client_stop(&h->client);
    REQUIRE(!nicbarrier_bpf_client_enter(&h->client, 2));
    REQUIRE(h->client.page->entered == 1 && h->client.page->word == 1);
    return 0;
}

/** Where the service does not come to it, as one that was killed, a process that has stopped its
 *  group gets all packets itself. */
static int left_alone(bpf_host_t *h)
{
    char bytes[NICBARRIER_PACKET_SIZE];
    struct pollfd socket = {.fd = h->socket, .events = POLLIN};
    int kept = -1, ends[2];
    REQUIRE(begin(h) == 0);
    if (h->me == 0) {
        REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0 && close(ends[1]) == 0);
        kept = h->client.service;
        h->client.service = ends[0];
        nicbarrier_bpf_client_stop(&h->client);
    }
    bpf_host_meet(h);
    if (h->me == 1) {
        REQUIRE(nicbarrier_bpf_client_enter(&h->client, 1));
    } else {
        REQUIRE(poll(&socket, 1, 100000) == 1);
        REQUIRE(recv(h->socket, bytes, sizeof(bytes), 0) == sizeof(bytes));
        close(kept);
    }
    return end(h);
}

/** Another user cannot make a group in the place of one; and who knows its key orders nothing that
 *  its own user has not. */
static int stranger(bpf_host_t *h)
{
    nicbarrier_reason_t why = {""};
    nicbarrier_bpf_client_t c;
    for (int i = 0; i < 100000 && atomic_load(&h->shared->strange) == 0; i++)
        (void)usleep(1000);
    REQUIRE(atomic_load(&h->shared->strange) == 1);
    REQUIRE(bpf_host_install(h, &c, &why) != 0);
    REQUIRE(strstr(why.text, "such a group") != NULL);
    /* With a group of one's own, the packets that ring for the other one. */
    const nicbarrier_bpf_id_t theirs = h->plan.request.id;
    h->plan.request.id.cookie++;
    REQUIRE(bpf_host_install(h, &c, &why) == 0);
    const nicbarrier_packet_t ring = {
        .kind = NICBARRIER_PACKET_WAKE, .cookie = theirs.cookie, .key = theirs.key};
    nicbarrier_packet_encode(&ring, c.wake);
    for (int i = 0; i < 100; i++)
        REQUIRE(!nicbarrier_bpf_client_enter(&c, 7));
    nicbarrier_bpf_client_close(&c);
    atomic_store(&h->shared->strange, 2);
    return 0;
}

static int beside_a_stranger(bpf_host_t *h)
{
    REQUIRE(begin(h) == 0);
    if (h->me == 0) {
        const nicbarrier_bpf_page_t *page = h->client.page;
        atomic_store(&h->shared->strange, 1);
        for (int i = 0; i < 100000 && atomic_load(&h->shared->strange) != 2; i++)
            (void)usleep(1000);
        REQUIRE(atomic_load(&h->shared->strange) == 2);
        REQUIRE(page->entered == 0 && page->word == 0 && page->enter == 0);
    }
    bpf_host_meet(h);
    REQUIRE(nicbarrier_bpf_client_enter(&h->client, 1) && bpf_host_wait(h, 1));
    return end(h);
}

static int serve(bpf_host_t *h)
{
    if (refusals(h) != 0 || bounds(h) != 0)
        return 1;
    bpf_host_meet(h);
    if (begin(h) != 0 || stops(h) != 0)
        return 1;
    return end(h);
}

START_TEST(the_service)
{
    const bpf_hosts_t all = {.n = 2, .load = true};
    bpf_hosts_run(&all, serve);
}
END_TEST

START_TEST(another_user)
{
    const bpf_hosts_t all = {.n = 2, .load = true, .stranger = stranger};
    bpf_hosts_run(&all, beside_a_stranger);
}
END_TEST

START_TEST(without_the_service)
{
    const bpf_hosts_t all = {.n = 2, .load = true};
    bpf_hosts_run(&all, left_alone);
}
END_TEST

int main(void)
{
    const char *obstacle = bpf_hosts_obstacle();
    if (obstacle != NULL) {
        unit_skip(obstacle);
        return EXIT_SUCCESS;
    }
    return UNIT_RUN("nicbarrier_bpf_hosts", UNIT_ONCE(the_service), UNIT_ONCE(another_user),
                    UNIT_ONCE(without_the_service));
}
