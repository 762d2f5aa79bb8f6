/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Hosts with nicbarrier-bpf; see bpf_hosts.h. */
#define _GNU_SOURCE
#include "test/unit/bpf_hosts.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "coll_nicbarrier/engines/datagram/bpf/kernel.h"
#include "coll_nicbarrier/engines/datagram/bpf/local.h"
#include "common/support/clock.h"

enum { NOBODY = 65534, STRANGER = 65533, FIRST_PORT = 7000, SECONDS = 100 };

/** Runs a command; false where it fails. */
__attribute__((format(printf, 1, 2))) static bool shell(const char *format, ...)
{
    char command[512];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(command, sizeof(command), format, arguments);
    va_end(arguments);
    return system(command) == 0;
}

/** Why there can be no hosts; in a process of its own, so that nothing of it is left. */
enum { POSSIBLE, NO_PROGRAMS, NO_NAMESPACES, NO_BRIDGE };
static const char *const obstacles[] = {NULL, "the kernel takes no programs here",
                                        "no namespaces can be made here",
                                        "ip makes no bridge here"};

static int try_to_make(void)
{
    nicbarrier_bpf_kernel_t *k = nicbarrier_bpf_load();
    if (k == NULL && (errno == EPERM || errno == ENOSYS))
        return NO_PROGRAMS;
    if (unshare(CLONE_NEWNET) != 0)
        return NO_NAMESPACES;
    return shell("ip link add name br0 type bridge 2>/dev/null && "
                 "ip link add name v0 type veth peer name v1 2>/dev/null")
               ? POSSIBLE
               : NO_BRIDGE;
}

const char *bpf_hosts_obstacle(void)
{
    int status = 0;
    if (geteuid() != 0)
        return "programs in the kernel are for root";
    const pid_t child = fork();
    if (child == 0)
        _exit(try_to_make());
    (void)waitpid(child, &status, 0);
    return obstacles[WEXITSTATUS(status)];
}

/* ---- a host ---------------------------------------------------------------------------------- */

static nicbarrier_address_t address_of(int i)
{
    return (nicbarrier_address_t){htonl(UINT32_C(0x0a4d0001) + (uint32_t)i),
                                  htons((uint16_t)(FIRST_PORT + i))};
}

static nicbarrier_packet_t packet_of(const nicbarrier_step_t *s, int from, int k)
{
    return (nicbarrier_packet_t){.kind = NICBARRIER_PACKET_REPEAT,
                                 .at = s->send_at,
                                 .from_at = (uint8_t)k,
                                 .sender = (uint32_t)from,
                                 .cookie = 100 + (uint32_t)s->send_to,
                                 .key = 0x0807060504030201,
                                 .back = 100 + (uint32_t)from};
}

static void plan(bpf_host_t *h)
{
    nicbarrier_bpf_request_t *r = &h->plan.request;
    const int n = nicbarrier_schedule(h->all->schedule, h->me, h->all->n, h->step);

    h->plan.by = address_of(h->me == 0 ? 1 : 0);
    (void)snprintf(h->plan.interface, sizeof(h->plan.interface), "eth0");
    r->id = (nicbarrier_bpf_id_t){.key = 0x0807060504030201, .cookie = 100 + (uint32_t)h->me};
    r->nsteps = (uint32_t)n;
    nicbarrier_schedule_bits(h->step, n, &r->sends, &r->waits);
    for (int k = 0; k < n; k++) {
        const nicbarrier_step_t *s = &h->step[k];
        const nicbarrier_step_t theirs = {.send_to = h->me, .send_at = (uint8_t)k};
        unsigned char bytes[NICBARRIER_PACKET_SIZE];
        if (s->wait_for == NICBARRIER_NOBODY)
            continue;
        const nicbarrier_packet_t p = packet_of(&theirs, s->wait_for, s->wait_at);
        nicbarrier_packet_encode(&p, bytes);
        memcpy(&r->named[k], bytes + NICBARRIER_PACKET_SENDER_AT, sizeof(r->named[k]));
    }
}

static int open_socket(int port)
{
    const struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    UNIT_CHECK(bind(fd, (const struct sockaddr *)&at, sizeof(at)) == 0);
    return fd;
}

void bpf_host_meet(bpf_host_t *h)
{
    const uint64_t mine = atomic_fetch_add(&h->shared->step[h->me], 1) + 1;
    const uint64_t limit = onic_now_nsec() + SECONDS * UINT64_C(1000000000);
    for (int i = 0; i < h->all->n; i++) {
        while (atomic_load(&h->shared->step[i]) < mine) {
            if (onic_now_nsec() > limit)
                _exit(7);
            (void)usleep(200);
        }
    }
}

int bpf_host_install(bpf_host_t *h, nicbarrier_bpf_client_t *c, nicbarrier_reason_t *why)
{
    *c = h->plan;
    return nicbarrier_bpf_client_install(c, why);
}

static void send_repeats(const bpf_host_t *h)
{
    for (uint32_t k = 0; k < h->plan.request.nsteps; k++) {
        const nicbarrier_step_t *s = &h->step[k];
        unsigned char bytes[NICBARRIER_PACKET_SIZE];
        if (s->send_to == NICBARRIER_NOBODY)
            continue;
        const nicbarrier_address_t a = address_of(s->send_to);
        const struct sockaddr_in to = {
            .sin_family = AF_INET, .sin_addr.s_addr = a.ip, .sin_port = a.port};
        const nicbarrier_packet_t p = packet_of(s, h->me, (int)k);
        nicbarrier_packet_encode(&p, bytes);
        (void)sendto(h->socket, bytes, sizeof(bytes), 0, (const struct sockaddr *)&to, sizeof(to));
    }
}

/** Those of the others come to the socket: they have been seen by the programs there. */
static uint64_t received(const bpf_host_t *h)
{
    unsigned char bytes[NICBARRIER_PACKET_SIZE];
    nicbarrier_packet_t p;
    uint64_t steps = 0;
    while (recv(h->socket, bytes, sizeof(bytes), MSG_DONTWAIT) == sizeof(bytes))
        if (nicbarrier_packet_decode(bytes, sizeof(bytes), &p) == NULL)
            steps |= UINT64_C(1) << p.at;
    return steps;
}

bool bpf_host_teach(bpf_host_t *h)
{
    uint64_t missing = h->plan.request.waits;
    for (int i = 0; i < 100 && missing != 0; i++) {
        send_repeats(h);
        for (int k = 0; k < 50 && missing != 0; k++) {
            (void)usleep(2000);
            missing &= ~received(h);
        }
    }
    bpf_host_meet(h);
    (void)received(h);
    bpf_host_meet(h);
    return missing == 0;
}

bool bpf_host_wait(const bpf_host_t *h, uint64_t epoch)
{
    const uint64_t end = onic_now_nsec() + SECONDS * UINT64_C(1000000000);
    while ((__atomic_load_n(&h->client.page->word, __ATOMIC_ACQUIRE) & ~NICBARRIER_WORD_FAILED) <
           epoch) {
        if (onic_now_nsec() > end)
            return false;
        sched_yield();
    }
    return true;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static bool configure(int me)
{
    return shell("ip link set lo up && ip addr add 10.77.0.%d/24 dev eth0 && ip link set eth0 up",
                 me + 1);
}

static void become(uid_t user)
{
    if (setgroups(0, NULL) != 0 || setgid(user) != 0 || setuid(user) != 0 ||
        prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
        _exit(4);
}

/** In the foreground, so that it ends with this process in any case. */
static bool load(const bpf_hosts_t *all)
{
    if (!all->load)
        return true;
    const pid_t child = fork();
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
        (void)close(STDOUT_FILENO);
        (void)execl("tools/nicbarrier-bpf", "nicbarrier-bpf", "load", "--foreground", "--users",
                    "all", "--groups", "3", "eth0", NULL);
        _exit(127);
    }
    /* The kernel checks the programs first. */
    for (int i = 0; i < 60000; i++) {
        const int fd = nicbarrier_bpf_local_connect("eth0");
        if (fd >= 0)
            return close(fd) == 0;
        (void)usleep(1000);
    }
    return false;
}

/** The host's process. `ready` tells that there is a namespace, `go` that it has an interface. */
static int host_main(const bpf_hosts_t *all, bpf_hosts_shared_t *shared, int me,
                     int (*function)(bpf_host_t *))
{
    static bpf_host_t h;
    h = (bpf_host_t){.all = all, .shared = shared, .me = me};
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (unshare(CLONE_NEWNET) != 0)
        return 2;
    bpf_host_meet(&h);
    while (atomic_load(&shared->begun) == 0)
        (void)usleep(1000);
    if (!configure(me) || !load(all))
        return 3;
    /* Those that work have no privilege, and this one takes down what they need. */
    pid_t stranger = all->stranger != NULL && me == 0 ? fork() : -1;
    if (stranger == 0) {
        become(STRANGER);
        plan(&h);
        h.socket = open_socket(0);
        _exit(all->stranger(&h));
    }
    const pid_t child = fork();
    if (child == 0) {
        become(NOBODY);
        plan(&h);
        h.socket = open_socket(FIRST_PORT + me);
        bpf_host_meet(&h);
        _exit(function(&h));
    }
    int status = 0, strange = 0;
    (void)waitpid(child, &status, 0);
    if (stranger > 0)
        (void)waitpid(stranger, &strange, 0);
    /* What is unloaded leaves nothing. */
    if (all->load && (!shell("tools/nicbarrier-bpf status eth0 >/dev/null") ||
                      !shell("tools/nicbarrier-bpf unload eth0 && "
                             "! tc filter show dev eth0 egress | grep -q nicbarrier")))
        return 6;
    /* With a host the wire of the other one goes, too. */
    bpf_host_meet(&h);
    return strange != 0 ? 8 : WIFEXITED(status) ? WEXITSTATUS(status) : 5;
}

static bool join(int me, pid_t host)
{
    char name[16];
    (void)snprintf(name, sizeof(name), "p%d", me);
    return shell("ip link add name %s type veth peer name eth0 netns %d && "
                 "ip link set %s master br0 up",
                 name, (int)host, name);
}

void bpf_hosts_run(const bpf_hosts_t *hosts, int (*function)(bpf_host_t *h))
{
    pid_t host[BPF_HOSTS_MAX];
    bpf_hosts_shared_t *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    UNIT_CHECK(shared != MAP_FAILED);
    UNIT_CHECK(unshare(CLONE_NEWNET) == 0);
    UNIT_CHECK(shell("ip link add name br0 type bridge stp_state 0 forward_delay 0 "
                     "mcast_snooping 0 && "
                     "ip link set br0 up"));
    for (int i = 0; i < hosts->n; i++) {
        host[i] = fork();
        if (host[i] == 0)
            _exit(host_main(hosts, shared, i, function));
    }
    bool joined = true;
    for (int i = 0; i < hosts->n; i++) {
        while (atomic_load(&shared->step[i]) == 0)
            (void)usleep(1000);
        joined = joined && join(i, host[i]);
    }
    UNIT_CHECK(joined);
    atomic_store(&shared->begun, 1);
    for (int i = 0; i < hosts->n; i++) {
        int status = 0;
        (void)waitpid(host[i], &status, 0);
        if (status != 0)
            ck_abort_msg("host %d ends with %d", i, status);
    }
    munmap(shared, sizeof(*shared));
}

/* ---- hosts that stay ------------------------------------------------------------------------- */

static struct {
    pid_t keeper;
    int n, end;          /**< closed, it tells them to end */
    int wait;            /**< their side of it */
    volatile pid_t *pid; /**< of the members, as all processes see them */
    int network[BPF_HOSTS_MAX];
} kept;

static int stay(bpf_host_t *h)
{
    char byte;
    kept.pid[h->me] = getpid();
    return read(kept.wait, &byte, 1) == 0 ? 0 : 1;
}

static void keep(const bpf_hosts_t *hosts)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(kept.end);
    bpf_hosts_run(hosts, stay);
    _exit(0);
}

static bool open_network(int i)
{
    char name[64];
    while (kept.pid[i] == 0) {
        if (waitpid(kept.keeper, NULL, WNOHANG) != 0)
            return false;
        (void)usleep(1000);
    }
    (void)snprintf(name, sizeof(name), "/proc/%d/ns/net", (int)kept.pid[i]);
    kept.network[i] = open(name, O_RDONLY | O_CLOEXEC);
    return kept.network[i] >= 0;
}

bool bpf_hosts_keep(const bpf_hosts_t *hosts)
{
    int ends[2];
    bool there = pipe2(ends, O_CLOEXEC) == 0;
    kept.pid = mmap(NULL, BPF_HOSTS_MAX * sizeof(*kept.pid), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    kept.wait = ends[0];
    kept.end = ends[1];
    kept.keeper = there ? fork() : -1;
    if (kept.keeper == 0)
        keep(hosts);
    for (kept.n = 0; there && kept.n < hosts->n; kept.n++)
        there = open_network(kept.n);
    return there;
}

void bpf_hosts_go(int host)
{
    if (setns(kept.network[host], CLONE_NEWNET) != 0)
        _exit(4);
    become(NOBODY);
}

bool bpf_hosts_release(void)
{
    int status = -1;
    close(kept.end);
    return waitpid(kept.keeper, &status, 0) == kept.keeper && status == 0;
}
