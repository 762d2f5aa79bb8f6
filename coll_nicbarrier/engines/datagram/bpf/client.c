/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Barriers in the kernel: a process's side; see client.h. */
#include "coll_nicbarrier/engines/datagram/bpf/client.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "coll_nicbarrier/engines/datagram/bpf/local.h"
#include "common/support/pause.h"

/* ---- the group ------------------------------------------------------------------------------- */

/** A socket whose packets are seen by the program at the interface's egress. They have no checksum:
 *  the adapter would compute it over the packet that the program makes of them. */
static int open_bell(nicbarrier_address_t by)
{
    const int yes = 1;
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_addr.s_addr = by.ip, .sin_port = by.port};
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_NO_CHECK, &yes, sizeof(yes)) == 0 &&
        connect(fd, (const struct sockaddr *)&to, sizeof(to)) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/** Milliseconds that the kernel may take to find the Ethernet address of a partner. It repeats its
 *  own question, which may be lost, after a second. */
#define TRIES 2500

/** The program runs before this returns, unless the packet has to wait for an address. */
static void ring(const nicbarrier_bpf_client_t *c)
{
    (void)send(c->bell, c->wake, sizeof(c->wake), MSG_NOSIGNAL);
}

/** Rings until a program has looked at the page. False if none does. */
static bool is_heard(const nicbarrier_bpf_client_t *c)
{
    const struct timespec msec = {.tv_nsec = 1000000};
    for (int i = 0; i < TRIES; i++) {
        ring(c);
        if (__atomic_load_n(&c->page->version, __ATOMIC_ACQUIRE) != 0)
            return true;
        (void)nanosleep(&msec, NULL);
    }
    return false;
}

/** Has the service install the group, and maps and fills its page. */
static int get_page(nicbarrier_bpf_client_t *c, const nicbarrier_bpf_id_t *id,
                    const nicbarrier_bpf_page_t *first, nicbarrier_reason_t *why)
{
    const int fd = nicbarrier_bpf_ask(c->service, id, why);
    if (fd < 0)
        return -1;
    void *at = mmap(NULL, sizeof(*c->page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (at == MAP_FAILED)
        return nicbarrier_reason(why, "its page cannot be mapped");
    c->page = at;
    *c->page = *first;
    __atomic_store_n(&c->page->key, id->key, __ATOMIC_SEQ_CST);
    return 0;
}

int nicbarrier_bpf_client_install(nicbarrier_bpf_client_t *c, const nicbarrier_bpf_id_t *id,
                                  const nicbarrier_bpf_page_t *first, const char *interface,
                                  nicbarrier_address_t by, nicbarrier_reason_t *why)
{
    const nicbarrier_packet_t p = {
        .kind = NICBARRIER_PACKET_WAKE, .cookie = id->cookie, .key = id->key};
    nicbarrier_packet_encode(&p, c->wake);
    c->page = NULL;
    c->bell = -1;
    c->service = nicbarrier_bpf_local_connect(interface);
    if (c->service < 0 && errno == ECONNREFUSED)
        nicbarrier_reason(why, "nicbarrier-bpf is not loaded on %s", interface);
    else if (c->service < 0)
        nicbarrier_reason(why, "the service of nicbarrier-bpf on %s cannot be asked: %s", interface,
                          strerror(errno));
    else if ((c->bell = open_bell(by)) < 0)
        nicbarrier_reason(why, "no socket for entering: %s", strerror(errno));
    else if (get_page(c, id, first, why) == 0) {
        if (is_heard(c))
            return 0;
        nicbarrier_reason(why, "no packet leaves %s for a partner", interface);
    }
    nicbarrier_bpf_client_close(c);
    return -1;
}

void nicbarrier_bpf_client_stop(nicbarrier_bpf_client_t *c)
{
    const struct timespec msec = {.tv_nsec = 1000000};
    if (c->service < 0)
        return;
    /* The service removes the group when the connection is closed, but one that was killed or hangs
     * removes nothing, and its programs would go on consuming the words that this process waits
     * for. Once the key in the page differs, they leave the group alone; one that has read the old
     * key has ended a millisecond later. */
    if (c->page != NULL) {
        __atomic_store_n(&c->page->key, ~c->page->key, __ATOMIC_SEQ_CST);
        (void)nanosleep(&msec, NULL);
    }
    close(c->service);
    c->service = -1;
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

bool nicbarrier_bpf_client_enter(nicbarrier_bpf_client_t *c, uint64_t epoch)
{
    __atomic_store_n(&c->page->enter, epoch, __ATOMIC_SEQ_CST);
    ring(c);
    return __atomic_load_n(&c->page->rule.entered, __ATOMIC_ACQUIRE) >= epoch;
}

bool nicbarrier_bpf_client_take(nicbarrier_bpf_client_t *c, uint32_t k, uint64_t word)
{
    const uint64_t epoch = word & ~NICBARRIER_WORD_FAILED, before = c->page->take[k];
    const uint64_t last = before & ~NICBARRIER_WORD_FAILED;
    nicbarrier_rule_t rule;
    __atomic_store_n(&c->page->take[k],
                     (epoch > last ? epoch : last) | ((word | before) & NICBARRIER_WORD_FAILED),
                     __ATOMIC_SEQ_CST);
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
