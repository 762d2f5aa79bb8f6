/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Hosts with nicbarrier-bpf; see bpf_hosts.h. */
#define _GNU_SOURCE
#include "test/unit/bpf_hosts.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "coll_nicbarrier/engines/datagram/bpf/kernel.h"
#include "coll_nicbarrier/engines/datagram/bpf/local.h"

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
    if (nicbarrier_bpf_load() != 0 && (errno == EPERM || errno == ENOSYS))
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

/** What all processes see, zeroed at first. */
typedef struct shared {
    _Atomic pid_t host[BPF_HOSTS_MAX]; /**< that has its namespace */
    atomic_bool joined;                /**< the bridge is there */
    atomic_int loaded, unloaded;       /**< numbers of hosts */
} shared_t;

static struct {
    int n;
    pid_t keeper;
    int end;  /**< closed, it tells the hosts to end */
    int wait; /**< their side of it */
    int network[BPF_HOSTS_MAX];
    shared_t *shared;
} hosts;

/* ---- a host ---------------------------------------------------------------------------------- */

/** In the foreground, so that it ends with this process in any case. */
static bool load(void)
{
    const pid_t child = fork();
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
        (void)close(STDOUT_FILENO);
        (void)execl("tools/nicbarrier-bpf", "nicbarrier-bpf", "load", "--foreground", "--users",
                    "all", "eth0", NULL);
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

static int host_main(int me)
{
    shared_t *s = hosts.shared;
    char byte;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (unshare(CLONE_NEWNET) != 0)
        return 2;
    atomic_store(&s->host[me], getpid());
    while (!atomic_load(&s->joined))
        (void)usleep(1000);
    if (!shell("ip link set lo up && ip addr add 10.77.0.%d/24 dev eth0 && ip link set eth0 up",
               me + 1) ||
        !load())
        return 3;
    (void)atomic_fetch_add(&s->loaded, 1);
    while (read(hosts.wait, &byte, 1) > 0) {
    }
    /* What is unloaded leaves nothing. */
    const bool clean = shell("tools/nicbarrier-bpf status eth0 >/dev/null") &&
                       shell("tools/nicbarrier-bpf unload eth0 && "
                             "! tc filter show dev eth0 egress | grep -q nicbarrier");
    /* With a host the wire of the other one goes, too. */
    (void)atomic_fetch_add(&s->unloaded, 1);
    while (atomic_load(&s->unloaded) < hosts.n)
        (void)usleep(1000);
    return clean ? 0 : 6;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static int keeper_main(void)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(hosts.end);
    bool joined = unshare(CLONE_NEWNET) == 0 &&
                  shell("ip link add name br0 type bridge stp_state 0 forward_delay 0 "
                        "mcast_snooping 0 && ip link set br0 up");
    for (int i = 0; joined && i < hosts.n; i++) {
        const pid_t host = fork();
        if (host == 0)
            _exit(host_main(i));
        while (atomic_load(&hosts.shared->host[i]) == 0 && waitpid(host, NULL, WNOHANG) == 0)
            (void)usleep(1000);
        joined = shell("ip link add name p%d type veth peer name eth0 netns %d && "
                       "ip link set p%d master br0 up",
                       i, (int)host, i);
    }
    if (!joined)
        return 1;
    atomic_store(&hosts.shared->joined, true);
    /* The others end with this process. */
    for (int i = 0; i < hosts.n; i++) {
        int status = 0;
        (void)wait(&status);
        if (status != 0) {
            fprintf(stderr, "a host ends with status %x\n", (unsigned)status);
            return 1;
        }
    }
    return 0;
}

static bool open_network(int i)
{
    char name[64];
    (void)snprintf(name, sizeof(name), "/proc/%d/ns/net", (int)hosts.shared->host[i]);
    hosts.network[i] = open(name, O_RDONLY | O_CLOEXEC);
    return hosts.network[i] >= 0;
}

bool bpf_hosts_make(int n)
{
    int ends[2];
    hosts.n = n;
    hosts.shared = mmap(NULL, sizeof(*hosts.shared), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (hosts.shared == MAP_FAILED || pipe2(ends, O_CLOEXEC) != 0)
        return false;
    hosts.wait = ends[0];
    hosts.end = ends[1];
    hosts.keeper = fork();
    if (hosts.keeper == 0)
        _exit(keeper_main());
    while (atomic_load(&hosts.shared->loaded) < n) {
        if (waitpid(hosts.keeper, NULL, WNOHANG) != 0)
            return false;
        (void)usleep(1000);
    }
    bool there = true;
    for (int i = 0; i < n; i++)
        there = there && open_network(i);
    return there;
}

void bpf_hosts_go(int host, uid_t user)
{
    if (setns(hosts.network[host], CLONE_NEWNET) != 0 || setgroups(0, NULL) != 0 ||
        setgid(user) != 0 || setuid(user) != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
        _exit(4);
}

bool bpf_hosts_remove(void)
{
    int status = -1;
    close(hosts.end);
    return waitpid(hosts.keeper, &status, 0) == hosts.keeper && status == 0;
}
