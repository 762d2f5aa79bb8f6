/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Words between processes without MPI: all are connected to a hub, a thread of one of them.
 */
#include "test/mpi/progress.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 64 };

typedef struct frame {
    int32_t to, from, word, number;
} frame_t;

static struct {
    int me;
    int link;                      /**< to the hub */
    int said[MOST][CONTROL_WORDS]; /**< the number of the last one, by each */
} self = {.link = -1};

static struct {
    int size;
    int listener;
    int links[MOST]; /**< of each process; -1 before it has joined */
    char file[256];  /**< to be removed when all have joined; may be empty */
    pthread_t thread;
    bool runs;
} hub;

static void fail(const char *what)
{
    fprintf(stderr, "progress: control: %s: %s\n", what, strerror(errno));
    abort();
}

/* ---- frames ---- */

static bool whole(int fd, void *data, size_t bytes, bool writes)
{
    size_t done = 0;

    while (done < bytes) {
        ssize_t n = writes ? send(fd, (char *)data + done, bytes - done, MSG_NOSIGNAL)
                           : recv(fd, (char *)data + done, bytes - done, 0);
        if (n == 0 || (n < 0 && errno != EINTR))
            return false;
        done += n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* ---- the hub ---- */

/** A process has come. */
static void admit(int *joined_p)
{
    int fd = accept(hub.listener, NULL, NULL), yes = 1;
    frame_t hello;

    if (fd < 0 || !whole(fd, &hello, sizeof(hello), false) || hello.from < 0 ||
        hello.from >= hub.size) {
        close(fd);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    hub.links[hello.from] = fd;
    if (++*joined_p == hub.size) {
        for (int i = 0; i < hub.size; i++)
            whole(hub.links[i], &hello, sizeof(hello), true);
        if (hub.file[0] != '\0')
            unlink(hub.file);
    }
}

static void *hub_main(void *unused)
{
    struct pollfd polls[MOST + 1];
    int joined = 0, left = 0;

    while (left < hub.size) {
        for (int i = 0; i < hub.size; i++)
            polls[i] = (struct pollfd){hub.links[i], POLLIN, 0};
        polls[hub.size] = (struct pollfd){joined < hub.size ? hub.listener : -1, POLLIN, 0};
        if (poll(polls, (nfds_t)hub.size + 1, -1) < 0)
            continue;
        for (int i = 0; i < hub.size; i++) {
            frame_t f;

            if (polls[i].revents == 0)
                continue;
            if (!whole(hub.links[i], &f, sizeof(f), false)) {
                close(hub.links[i]);
                hub.links[i] = -1;
                left++;
            } else if (f.to >= 0 && f.to < hub.size && hub.links[f.to] >= 0) {
                whole(hub.links[f.to], &f, sizeof(f), true);
            }
        }
        if (polls[hub.size].revents != 0)
            admit(&joined);
    }
    close(hub.listener);
    return unused;
}

/** The port, then all addresses of this host, those that others can reach first. */
static void write_address(char *address, int port)
{
    struct ifaddrs *list;
    size_t n = (size_t)snprintf(address, CONTROL_ADDRESS, "%d", port);

    if (getifaddrs(&list) != 0)
        fail("getifaddrs");
    for (int loopback = 0; loopback < 2; loopback++) {
        for (struct ifaddrs *i = list; i != NULL; i = i->ifa_next) {
            char text[INET_ADDRSTRLEN];

            if (i->ifa_addr != NULL && i->ifa_addr->sa_family == AF_INET &&
                !(i->ifa_flags & IFF_LOOPBACK) == !loopback && (i->ifa_flags & IFF_UP) &&
                n + INET_ADDRSTRLEN + 2 < CONTROL_ADDRESS) {
                inet_ntop(AF_INET, &((struct sockaddr_in *)(void *)i->ifa_addr)->sin_addr, text,
                          sizeof(text));
                n += (size_t)snprintf(address + n, CONTROL_ADDRESS - n, ",%s", text);
            }
        }
    }
    freeifaddrs(list);
}

void control_make(int size, char *address)
{
    struct sockaddr_in any = {.sin_family = AF_INET};
    socklen_t length = sizeof(any);
    sigset_t all, before;

    if (size > MOST)
        tl_skip("made for 64 ranks at most");
    hub.size = size;
    memset(hub.links, -1, sizeof(hub.links));
    hub.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (hub.listener < 0 || bind(hub.listener, (struct sockaddr *)&any, sizeof(any)) != 0 ||
        listen(hub.listener, MOST) != 0 ||
        getsockname(hub.listener, (struct sockaddr *)&any, &length) != 0)
        fail("socket");
    write_address(address, ntohs(any.sin_port));
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&hub.thread, NULL, hub_main, NULL) != 0)
        fail("pthread_create");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    hub.runs = true;
}

/* ---- a process ---- */

/** One connection to what an address says; false where nobody is there. */
static bool reach(const char *address)
{
    char copy[CONTROL_ADDRESS], *rest, *word;
    int port, yes = 1;

    snprintf(copy, sizeof(copy), "%s", address);
    word = strtok_r(copy, ",", &rest);
    port = word != NULL ? atoi(word) : 0;
    while (word != NULL && (word = strtok_r(NULL, ",", &rest)) != NULL) {
        struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

        self.link = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (inet_pton(AF_INET, word, &to.sin_addr) == 1 &&
            connect(self.link, (struct sockaddr *)&to, sizeof(to)) == 0) {
            setsockopt(self.link, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
            return true;
        }
        close(self.link);
    }
    self.link = -1;
    return false;
}

/** Returns when all are there. */
static void greet(int rank)
{
    frame_t hello = {.from = rank};

    self.me = rank;
    memset(self.said, 0, sizeof(self.said));
    if (!whole(self.link, &hello, sizeof(hello), true) ||
        !whole(self.link, &hello, sizeof(hello), false))
        fail("the hub is gone");
}

void control_join(const char *address, int rank)
{
    if (!reach(address))
        fail(address);
    greet(rank);
}

bool control_one_host(void)
{
    const char *ours = getenv("OMPI_COMM_WORLD_LOCAL_SIZE"), *all = getenv("OMPI_COMM_WORLD_SIZE");

    return ours != NULL && all != NULL && strcmp(ours, all) == 0;
}

/** A name that the processes of a job, and no others, have in common, where all of them see it. */
static void file_name(char *name, size_t bytes)
{
    const char *space = getenv("PMIX_NAMESPACE"),
               *random = getenv("OMPI_MCA_orte_precondition_transports");

    snprintf(name, bytes, "%s/progress.%s.%s", control_one_host() ? "/tmp" : ".",
             space != NULL ? space : "alone", random != NULL ? random : "");
    for (char *c = strrchr(name, '/') + 1; *c != '\0'; c++)
        *c = *c == '/' ? '_' : *c;
}

void control_open(int rank, int size)
{
    char name[200], address[CONTROL_ADDRESS] = "";

    file_name(name, sizeof(name));
    if (rank == 0) {
        char draft[220];

        snprintf(hub.file, sizeof(hub.file), "%s", name);
        control_make(size, address);
        snprintf(draft, sizeof(draft), "%s.new", name);
        FILE *f = fopen(draft, "w");
        if (f == NULL || fputs(address, f) < 0 || fclose(f) != 0 || rename(draft, name) != 0)
            fail(draft);
        control_join(address, rank);
        return;
    }
    for (int tries = 0;; tries++) {
        FILE *f = fopen(name, "r");
        bool read = f != NULL && fgets(address, sizeof(address), f) != NULL;

        if (f != NULL)
            fclose(f);
        if (read && reach(address))
            break;
        if (tries == 6000)
            fail(name);
        usleep(10000);
    }
    greet(rank);
}

void control_close(void)
{
    close(self.link);
    self.link = -1;
    if (hub.runs) {
        pthread_join(hub.thread, NULL);
        hub.runs = false;
    }
}

void control_tell(int to, int word, int number)
{
    frame_t f = {to, self.me, word, number};

    if (!whole(self.link, &f, sizeof(f), true))
        fail("the hub is gone");
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool control_told(int from, int word, int number, double seconds)
{
    const double end = now() + seconds;

    for (;;) {
        struct pollfd p = {self.link, POLLIN, 0};
        double left = seconds < 0 ? 1 : seconds > 0 ? end - now() : 0;
        frame_t f;

        if (self.said[from][word] >= number)
            return true;
        if (left < 0)
            return false;
        if (poll(&p, 1, (int)(left * 1000)) > 0) {
            if (!whole(self.link, &f, sizeof(f), false) || f.from < 0 || f.from >= MOST ||
                f.word < 0 || f.word >= CONTROL_WORDS)
                fail("the hub is gone");
            self.said[f.from][f.word] = f.number;
        } else if (seconds == 0) {
            return false;
        }
    }
}
