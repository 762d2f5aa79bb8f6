/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file An adapter that steps; see nicbarrier_adapter.h. */
#define _GNU_SOURCE
#include "test/unit/nicbarrier_adapter.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/support/bytes.h"
#include "coll_nicbarrier/engines/datagram/state.h"
#include "test/unit/unit.h"

adapter_config_t adapter_config;

/** From another process of the node, in place of a packet. */
typedef struct command {
    char name[8];
    uint64_t key, epoch;
} command_t;

static const char enter_name[8] = "enter";

/** How another process of the node finds a group. */
typedef struct share {
    pid_t pid;
    int fd;
    uint64_t key;
    nicbarrier_address_t socket;
} share_t;

struct nicbarrier_offload {
    nicbarrier_offload_t *next;
    bool elsewhere; /**< this is another process's access, which has: */
    share_t share;
    int socket;
    nicbarrier_view_t *view;
    int fd; /**< of the view's memory */
    nicbarrier_rule_t rule;
    bool stopped;
    uint64_t key;
    uint32_t drop;
    nicbarrier_address_t to[NICBARRIER_STEPS_MAX], from[NICBARRIER_STEPS_MAX];
    unsigned char packet[NICBARRIER_STEPS_MAX][NICBARRIER_PACKET_SIZE];
    unsigned char expected[NICBARRIER_STEPS_MAX][NICBARRIER_PACKET_SIZE];
};

/** A packet with where it came from. */
typedef struct arrival {
    nicbarrier_address_t from;
    int len; /**< -1: none */
    unsigned char bytes[NICBARRIER_PACKET_SIZE + 1];
} arrival_t;

static struct {
    bool open;
    int up[2]; /**< what is passed up is written to the second */
    pthread_t thread;
    atomic_bool stop;
    pthread_mutex_t mutex; /**< for the socket and all that follows */
    nicbarrier_offload_t *groups;
    unsigned asked;
    unit_random_t random;
    bool holds;
    arrival_t held;
} adapter = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void nap(uint64_t usec)
{
    nanosleep(&(struct timespec){0, (long)usec * 1000}, NULL);
}

static bool chance(uint64_t one_in)
{
    return !adapter_config.calm && unit_once_in(&adapter.random, one_in);
}

static bool is_gone(void)
{
    return adapter_config.dies_at != 0 && adapter.asked >= adapter_config.dies_at;
}

/* The engine's socket itself (udp.h). */
int __real_nicbarrier_udp_open(uint32_t cookie, nicbarrier_reason_t *why);
void __real_nicbarrier_udp_close(void);
bool __real_nicbarrier_udp_send(const nicbarrier_address_t *to, const unsigned char *packet);
int __real_nicbarrier_udp_receive(void *bytes, size_t size, nicbarrier_address_t *from);
bool __real_nicbarrier_udp_refused(unsigned char packet[NICBARRIER_PACKET_SIZE],
                                   nicbarrier_address_t *to);
int __real_nicbarrier_udp_descriptor(void);

static bool is_same(const nicbarrier_address_t *a, const nicbarrier_address_t *b)
{
    return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

/* ---- steps ---------------------------------------------------------------------------------- */

static nicbarrier_offload_t *find(uint64_t key)
{
    nicbarrier_offload_t *s = adapter.groups;

    while (s != NULL && s->key != key)
        s = s->next;
    return s;
}

/** @return true where something has become complete */
static bool advance(nicbarrier_offload_t *s)
{
    const uint64_t before = s->rule.completed, out = nicbarrier_rule_advance(&s->rule);

    for (uint32_t k = 0; out >> k != 0; k++) {
        if (!(out >> k & 1))
            continue;
        onic_put64(s->packet[k] + NICBARRIER_PACKET_EPOCH_AT, nicbarrier_rule_word(&s->rule, k));
        if (unit_below(&adapter.random, 1000) >= s->drop)
            (void)__real_nicbarrier_udp_send(&s->to[k], s->packet[k]);
    }
    atomic_store(&s->view->entered, s->rule.entered);
    atomic_store(&s->view->word, s->rule.completed | (s->rule.failed ? NICBARRIER_WORD_FAILED : 0));
    return s->rule.completed > before;
}

static void pass_up(const arrival_t *a)
{
    (void)send(adapter.up[1], a, sizeof(*a), MSG_DONTWAIT);
}

/** Is it a word that this adapter may keep? Then it takes it in. */
static bool takes(const arrival_t *a)
{
    nicbarrier_packet_t p;

    if (is_gone() || nicbarrier_packet_decode(a->bytes, (size_t)a->len, &p) != NULL ||
        (p.kind != NICBARRIER_PACKET_EPOCH && p.kind != NICBARRIER_PACKET_REPEAT))
        return false;
    nicbarrier_offload_t *s = find(p.key);
    if (s == NULL || s->stopped || !is_same(&s->from[p.at], &a->from) ||
        p.epoch >= NICBARRIER_WORD_FAILED || chance(16))
        return false;
    unsigned char head[NICBARRIER_PACKET_EPOCH_AT];
    memcpy(head, s->expected[p.at], sizeof(head));
    head[3] = p.kind;
    if (memcmp(head, a->bytes, sizeof(head)) != 0)
        return false;
    const nicbarrier_word_t verdict = nicbarrier_rule_receive(&s->rule, p.at, p.epoch);
    if (verdict == NICBARRIER_WORD_WRONG)
        return false;
    atomic_fetch_add(&s->view->taken, 1);
    const bool complete = verdict == NICBARRIER_WORD_NEW && advance(s);
    return !(complete && atomic_exchange(&s->view->wanted, 0) != 0) && !chance(32);
}

static void obey(const command_t *c)
{
    nicbarrier_offload_t *s = find(c->key);

    if (is_gone() || s == NULL || s->stopped || memcmp(c->name, enter_name, 8) != 0)
        return;
    nicbarrier_rule_enter(&s->rule, c->epoch);
    (void)advance(s);
}

static void handle(const arrival_t *a)
{
    command_t c;

    if (a->len == sizeof(c)) {
        memcpy(&c, a->bytes, sizeof(c));
        obey(&c);
    } else if (!takes(a)) {
        pass_up(a);
    }
}

static void handle_some(const arrival_t *a)
{
    if (a->len >= 0 && !adapter.holds && chance(8)) {
        adapter.held = *a;
        adapter.holds = true;
    } else {
        if (a->len >= 0)
            handle(a);
        if (adapter.holds)
            handle(&adapter.held);
        if (a->len >= 0 && chance(16))
            handle(a);
        adapter.holds = false;
    }
}

static void *work(void *arg)
{
    unit_random_t random = {adapter_config.seed};
    struct pollfd socket = {.fd = __real_nicbarrier_udp_descriptor(), .events = POLLIN};

    (void)arg;
    while (!atomic_load(&adapter.stop)) {
        arrival_t a;
        (void)poll(&socket, 1, 1);
        if (!adapter_config.calm && unit_once_in(&random, 64))
            nap(300);
        pthread_mutex_lock(&adapter.mutex);
        a.len = __real_nicbarrier_udp_receive(a.bytes, sizeof(a.bytes), &a.from);
        handle_some(&a);
        pthread_mutex_unlock(&adapter.mutex);
    }
    return NULL;
}

/* ---- the socket, as the engine sees it ------------------------------------------------------- */

int __wrap_nicbarrier_udp_open(uint32_t cookie, nicbarrier_reason_t *why);
int __wrap_nicbarrier_udp_open(uint32_t cookie, nicbarrier_reason_t *why)
{
    const int rc = __real_nicbarrier_udp_open(cookie, why);

    adapter.open = rc == 0 && !adapter_config.absent;
    if (adapter.open) {
        adapter.random.state = adapter_config.seed + cookie;
        UNIT_CHECK(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, adapter.up) == 0);
        atomic_store(&adapter.stop, false);
        UNIT_CHECK(pthread_create(&adapter.thread, NULL, work, NULL) == 0);
    }
    return rc;
}

void __wrap_nicbarrier_udp_close(void);
void __wrap_nicbarrier_udp_close(void)
{
    if (adapter.open) {
        atomic_store(&adapter.stop, true);
        pthread_join(adapter.thread, NULL);
        close(adapter.up[0]);
        close(adapter.up[1]);
        UNIT_CHECK(adapter.groups == NULL);
    }
    adapter.open = false;
    __real_nicbarrier_udp_close();
}

bool __wrap_nicbarrier_udp_send(const nicbarrier_address_t *to, const unsigned char *packet);
bool __wrap_nicbarrier_udp_send(const nicbarrier_address_t *to, const unsigned char *packet)
{
    pthread_mutex_lock(&adapter.mutex);
    const bool sent = __real_nicbarrier_udp_send(to, packet);
    pthread_mutex_unlock(&adapter.mutex);
    return sent;
}

int __wrap_nicbarrier_udp_receive(void *bytes, size_t size, nicbarrier_address_t *from);
int __wrap_nicbarrier_udp_receive(void *bytes, size_t size, nicbarrier_address_t *from)
{
    arrival_t a;

    if (!adapter.open)
        return __real_nicbarrier_udp_receive(bytes, size, from);
    if (recv(adapter.up[0], &a, sizeof(a), MSG_DONTWAIT) != sizeof(a))
        return -1;
    const size_t len = (size_t)a.len < size ? (size_t)a.len : size;
    memcpy(bytes, a.bytes, len);
    *from = a.from;
    return (int)len;
}

bool __wrap_nicbarrier_udp_refused(unsigned char packet[NICBARRIER_PACKET_SIZE],
                                   nicbarrier_address_t *to);
bool __wrap_nicbarrier_udp_refused(unsigned char packet[NICBARRIER_PACKET_SIZE],
                                   nicbarrier_address_t *to)
{
    pthread_mutex_lock(&adapter.mutex);
    const bool refused = __real_nicbarrier_udp_refused(packet, to);
    pthread_mutex_unlock(&adapter.mutex);
    return refused;
}

int __wrap_nicbarrier_udp_descriptor(void);
int __wrap_nicbarrier_udp_descriptor(void)
{
    return adapter.open ? adapter.up[0] : __real_nicbarrier_udp_descriptor();
}

/* ---- the stepper ---------------------------------------------------------------------------- */

/** Of step k. */
static void set_addresses(nicbarrier_offload_t *s, const nicbarrier_net_t *net, uint32_t k)
{
    if (net->to[k] != NULL)
        s->to[k] = net->to[k]->at;
    if (net->from[k] != NULL)
        s->from[k] = net->from[k]->at;
}

/** What goes out in step k, and what is waited for. */
static void encode(nicbarrier_offload_t *s, const nicbarrier_net_t *net, uint32_t k)
{
    const nicbarrier_step_t *step = &net->step[k];
    nicbarrier_packet_t p = {.kind = NICBARRIER_PACKET_EPOCH,
                             .at = step->send_at,
                             .from_at = (uint8_t)k,
                             .sender = (uint32_t)net->group.me,
                             .cookie = net->to[k] != NULL ? net->to[k]->cookie : 0,
                             .key = net->group.key};

    nicbarrier_packet_encode(&p, s->packet[k]);
    p.at = (uint8_t)k;
    p.from_at = step->wait_at;
    p.sender = (uint32_t)step->wait_for;
    p.cookie = nicbarrier_datagram.cookie;
    nicbarrier_packet_encode(&p, s->expected[k]);
}

/** While a group is installed others need the engine. */
static bool engine_is_free(void)
{
    for (int i = 0; i < 10000; i++) {
        if (nicbarrier_datagram_trylock()) {
            nicbarrier_datagram_unlock();
            return true;
        }
        nap(1000);
    }
    return false;
}

static nicbarrier_offload_t *step_install(const nicbarrier_net_t *net, nicbarrier_view_t **view_p,
                                          nicbarrier_reason_t *why)
{
    if (adapter_config.absent) {
        nicbarrier_reason(why, "there is no adapter");
        return NULL;
    }
    nicbarrier_offload_t *s = calloc(1, sizeof(*s));
    UNIT_CHECK(s != NULL && net->rule.entered == 0);
    UNIT_CHECK(engine_is_free());
    for (uint32_t k = 0; k < net->rule.nsteps; k++) {
        set_addresses(s, net, k);
        encode(s, net, k);
    }
    s->key = net->group.key;
    s->drop = (uint32_t)nicbarrier_datagram_config.drop;
    s->rule = net->rule;
    s->fd = memfd_create("view", MFD_CLOEXEC);
    UNIT_CHECK(ftruncate(s->fd, sizeof(*s->view)) == 0);
    s->view = mmap(NULL, sizeof(*s->view), PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
    UNIT_CHECK(s->view != MAP_FAILED);
    pthread_mutex_lock(&adapter.mutex);
    s->next = adapter.groups;
    adapter.groups = s;
    pthread_mutex_unlock(&adapter.mutex);
    *view_p = s->view;
    return s;
}

/** Locks, and counts one thing more that it is asked for; false where it does not answer. */
static bool begin(const nicbarrier_offload_t *s)
{
    pthread_mutex_lock(&adapter.mutex);
    UNIT_CHECK(!s->stopped);
    adapter.asked++;
    return !is_gone();
}

static bool end(bool done)
{
    pthread_mutex_unlock(&adapter.mutex);
    return done;
}

/** The adapter is asked from another process. */
static bool enter_from_elsewhere(nicbarrier_offload_t *a, uint64_t epoch)
{
    const nicbarrier_address_t *to = &a->share.socket;
    command_t c = {.key = a->share.key, .epoch = epoch};

    memcpy(c.name, enter_name, sizeof(c.name));
    (void)sendto(a->socket, &c, sizeof(c), 0, (const struct sockaddr *)(const void *)to->bytes,
                 to->len);
    for (int i = 0; i < 100 && atomic_load(&a->view->entered) < epoch; i++)
        nap(1000);
    return atomic_load(&a->view->entered) >= epoch;
}

static bool step_enter(nicbarrier_offload_t *s, uint64_t epoch)
{
    if (s->elsewhere)
        return enter_from_elsewhere(s, epoch);
    const bool can = begin(s);

    if (can) {
        nicbarrier_rule_enter(&s->rule, epoch);
        (void)advance(s);
    }
    return end(can);
}

static bool step_take(nicbarrier_offload_t *s, uint32_t k, uint64_t word)
{
    const bool can = begin(s);

    if (can) {
        (void)nicbarrier_rule_receive(&s->rule, k, word);
        (void)advance(s);
    }
    return end(can);
}

static bool step_readdress(nicbarrier_offload_t *s, const nicbarrier_net_t *net, uint32_t k)
{
    const bool can = begin(s);

    if (can)
        set_addresses(s, net, k);
    return end(can);
}

static void step_snapshot(const nicbarrier_offload_t *s, nicbarrier_rule_t *state)
{
    pthread_mutex_lock(&adapter.mutex);
    *state = s->rule;
    pthread_mutex_unlock(&adapter.mutex);
}

static void step_stop(nicbarrier_offload_t *s)
{
    pthread_mutex_lock(&adapter.mutex);
    s->stopped = true;
    pthread_mutex_unlock(&adapter.mutex);
}

static void step_remove(nicbarrier_offload_t *s)
{
    pthread_mutex_lock(&adapter.mutex);
    nicbarrier_offload_t **at = &adapter.groups;
    while (!s->elsewhere && *at != s)
        at = &(*at)->next;
    if (!s->elsewhere)
        *at = s->next;
    pthread_mutex_unlock(&adapter.mutex);
    munmap(s->view, sizeof(*s->view));
    close(s->elsewhere ? s->socket : s->fd);
    free(s);
}

/* ---- other processes ------------------------------------------------------------------------ */

static uint32_t step_share(const nicbarrier_offload_t *s, void *record)
{
    share_t share = {.pid = getpid(), .fd = s->fd, .key = s->key};

    nicbarrier_udp_local(&share.socket);
    memcpy(record, &share, sizeof(share));
    return sizeof(share);
}

static nicbarrier_offload_t *step_attach(const void *record, uint32_t len,
                                         const nicbarrier_view_t **view_p)
{
    nicbarrier_offload_t *a = calloc(1, sizeof(*a));
    char path[64];

    UNIT_CHECK(a != NULL && len == sizeof(a->share));
    a->elsewhere = true;
    memcpy(&a->share, record, len);
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)a->share.pid, a->share.fd);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    UNIT_CHECK(fd >= 0);
    a->view = mmap(NULL, sizeof(*a->view), PROT_READ, MAP_SHARED, fd, 0);
    UNIT_CHECK(a->view != MAP_FAILED);
    close(fd);
    a->socket = socket(((const struct sockaddr *)(const void *)a->share.socket.bytes)->sa_family,
                       SOCK_DGRAM | SOCK_CLOEXEC, 0);
    *view_p = a->view;
    return a;
}

static const nicbarrier_stepper_t stepper = {
    .name = "adapter",
    .install = step_install,
    .enter = step_enter,
    .take = step_take,
    .readdress = step_readdress,
    .snapshot = step_snapshot,
    .remove = step_remove,
    .stop = step_stop,
    .share = step_share,
    .attach = step_attach,
};

const nicbarrier_stepper_t *const nicbarrier_steppers[] = {&stepper, &nicbarrier_stepper_bpf, NULL};
