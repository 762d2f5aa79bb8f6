/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Barriers in the kernel: a process's side; see client.h. */
#include "coll_nicbarrier/engines/datagram/bpf/client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "coll_nicbarrier/engines/datagram/bpf/local.h"
#include "common/support/clock.h"
#include "common/support/pause.h"

/** The service is asked again every millisecond while Ethernet addresses are looked up, this many
 *  times at most: the kernel repeats its own request, which may be lost, after a second. */
#define TRIES 2500

/* ---- the service ----------------------------------------------------------------------------- */

static int map_page(nicbarrier_bpf_client_t *c, int fd)
{
    void *at = fd < 0 ? MAP_FAILED
                      : mmap(NULL, sizeof(*c->page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    c->page = at == MAP_FAILED ? NULL : at;
    return c->page == NULL ? -1 : 0;
}

/** A socket whose packets are seen by the program at the interface's egress. They have no checksum:
 *  the adapter would compute it over the packet that the program makes of them. */
static int open_bell(const nicbarrier_bpf_share_t *share)
{
    const int yes = 1;
    const bool six = share->six == 1;
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    } to = {.six = {.sin6_family = AF_INET6, .sin6_port = htons(share->by.port)}};
    memcpy(&to.six.sin6_addr, share->by.ip, sizeof(to.six.sin6_addr));
    if (!six) {
        to.four = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(share->by.port)};
        memcpy(&to.four.sin_addr, share->by.ip, sizeof(to.four.sin_addr));
    }
    const int fd = socket(to.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 &&
        setsockopt(fd, six ? IPPROTO_UDP : SOL_SOCKET, six ? UDP_NO_CHECK6_TX : SO_NO_CHECK, &yes,
                   sizeof(yes)) == 0 &&
        connect(fd, &to.any, six ? sizeof(to.six) : sizeof(to.four)) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* ---- groups ---------------------------------------------------------------------------------- */

/** A service that has not answered is not asked again for this long. */
#define LEFT_ALONE_NSEC UINT64_C(60000000000)
static _Atomic uint64_t left_alone_until;

static void leave_alone(void)
{
    atomic_store(&left_alone_until, onic_now_nsec() + LEFT_ALONE_NSEC);
}

static bool is_left_alone(void)
{
    return onic_now_nsec() < atomic_load(&left_alone_until);
}

/** Closes the connection. The service then removes the group in its own time. */
static void hang_up(nicbarrier_bpf_client_t *c)
{
    close(c->service);
    c->service = -1;
}

/** Sends the service an order whose reply has the group's page, again and again while it looks up
 *  addresses. */
static int get_page(nicbarrier_bpf_client_t *c, nicbarrier_bpf_order_t order, int socket,
                    nicbarrier_reason_t *why)
{
    const struct timespec msec = {.tv_nsec = 1000000};
    nicbarrier_bpf_reply_t reply = {.text = ""};
    int page = -1;
    int error = nicbarrier_bpf_ask(c->service, &c->request, order, socket, &reply, &page);
    for (int i = 0; i < TRIES && error == EAGAIN; i++) {
        (void)nanosleep(&msec, NULL);
        error = nicbarrier_bpf_ask(c->service, &c->request, order, socket, &reply, &page);
    }
    if (error == ETIMEDOUT) {
        leave_alone();
        hang_up(c);
    }
    if (error != 0)
        nicbarrier_reason(why, "%s", reply.text[0] != '\0' ? reply.text : strerror(error));
    else if (map_page(c, page) != 0)
        nicbarrier_reason(why, "its page cannot be mapped");
    return c->page != NULL ? 0 : -1;
}

static int begin(nicbarrier_bpf_client_t *c, nicbarrier_bpf_order_t order, int socket,
                 nicbarrier_reason_t *why)
{
    const nicbarrier_bpf_share_t *share = &c->share;
    const nicbarrier_packet_t p = {
        .kind = NICBARRIER_PACKET_WAKE, .cookie = share->id.cookie, .key = share->id.key};
    nicbarrier_packet_encode(&p, c->wake);
    c->request.id = share->id;
    /* Another process has written this string. */
    c->share.interface[sizeof(c->share.interface) - 1] = '\0';
    c->page = NULL;
    c->bell = -1;
    c->service = -1;
    if (is_left_alone())
        return nicbarrier_reason(why, "the service of nicbarrier-bpf has not answered of late");
    c->service = nicbarrier_bpf_local_connect(share->interface);
    if (c->service < 0 && errno == ECONNREFUSED)
        nicbarrier_reason(why, "nicbarrier-bpf is not loaded on %s", share->interface);
    else if (c->service < 0)
        nicbarrier_reason(why, "the service of nicbarrier-bpf on %s cannot be asked: %s",
                          share->interface, strerror(errno));
    else if ((c->bell = open_bell(share)) < 0)
        nicbarrier_reason(why, "no socket for entering: %s", strerror(errno));
    else if (get_page(c, order, socket, why) == 0)
        return 0;
    nicbarrier_bpf_client_close(c);
    return -1;
}

int nicbarrier_bpf_client_install(nicbarrier_bpf_client_t *c, int socket, nicbarrier_reason_t *why)
{
    return begin(c, NICBARRIER_BPF_INSTALL, socket, why);
}

int nicbarrier_bpf_client_open(nicbarrier_bpf_client_t *c)
{
    nicbarrier_reason_t why;
    if (begin(c, NICBARRIER_BPF_OPEN, -1, &why) != 0)
        return -1;
    hang_up(c);
    return 0;
}

/** Sends an order whose reply has no page. A late reply to an earlier order may have one. */
static bool order(nicbarrier_bpf_client_t *c, nicbarrier_bpf_order_t what)
{
    nicbarrier_bpf_reply_t reply;
    int page;
    if (is_left_alone())
        return false;
    const int error = nicbarrier_bpf_ask(c->service, &c->request, what, -1, &reply, &page);
    if (error == ETIMEDOUT)
        leave_alone();
    if (page >= 0)
        close(page);
    return error == 0;
}

bool nicbarrier_bpf_client_readdress(nicbarrier_bpf_client_t *c, uint32_t k)
{
    c->request.number = k;
    return c->service >= 0 && order(c, NICBARRIER_BPF_READDRESS);
}

void nicbarrier_bpf_client_stop(nicbarrier_bpf_client_t *c)
{
    if (c->service < 0)
        return;
    /* A service that was killed or hangs removes nothing, and its programs would go on consuming
     * the words that this process waits for. Once the key in the page differs, they leave the group
     * alone. */
    if (c->page != NULL)
        __atomic_store_n(&c->page->key, ~c->page->key, __ATOMIC_SEQ_CST);
    if (!order(c, NICBARRIER_BPF_REMOVE)) {
        /* A program that has read the old key has ended by then. */
        const struct timespec msec = {.tv_nsec = 1000000};
        (void)nanosleep(&msec, NULL);
    }
    hang_up(c);
}

void nicbarrier_bpf_client_close(nicbarrier_bpf_client_t *c)
{
    nicbarrier_bpf_client_stop(c);
    if (c->bell >= 0)
        close(c->bell);
    if (c->page != NULL)
        (void)munmap(c->page, sizeof(*c->page));
    c->bell = -1;
    c->page = NULL;
}

/* ---- orders ---------------------------------------------------------------------------------- */

/** The program runs before this returns, unless the packet has to wait for an address. */
static void ring(const nicbarrier_bpf_client_t *c)
{
    (void)send(c->bell, c->wake, sizeof(c->wake), MSG_NOSIGNAL);
}

/** Raises the word to at least this value. */
static void raise_to(uint64_t *word, uint64_t value)
{
    uint64_t old = __atomic_load_n(word, __ATOMIC_RELAXED);
    while (old < value && !__atomic_compare_exchange_n(word, &old, value, true, __ATOMIC_SEQ_CST,
                                                       __ATOMIC_RELAXED)) {
    }
}

bool nicbarrier_bpf_client_enter(nicbarrier_bpf_client_t *c, uint64_t epoch)
{
    raise_to(&c->page->enter, epoch);
    ring(c);
    return __atomic_load_n(&c->page->entered, __ATOMIC_ACQUIRE) >= epoch;
}

bool nicbarrier_bpf_client_take(nicbarrier_bpf_client_t *c, uint32_t k, uint64_t word)
{
    const uint64_t epoch = word & ~NICBARRIER_WORD_FAILED;
    nicbarrier_rule_t rule;
    raise_to(&c->page->take[k], epoch);
    __atomic_store_n(&c->page->takes, 1, __ATOMIC_SEQ_CST);
    raise_to(&c->page->fail, word >> 63);
    ring(c);
    nicbarrier_bpf_client_snapshot(c, &rule);
    return rule.received[k] >= epoch && (rule.failed || word < NICBARRIER_WORD_FAILED);
}

void nicbarrier_bpf_client_snapshot(const nicbarrier_bpf_client_t *c, nicbarrier_rule_t *rule)
{
    for (;; onic_pause()) {
        const uint64_t before = __atomic_load_n(&c->page->version, __ATOMIC_ACQUIRE);
        *rule = c->page->rule;
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        const uint64_t after = __atomic_load_n(&c->page->version, __ATOMIC_RELAXED);
        if (before == after && before % 2 == 0)
            return;
    }
}
