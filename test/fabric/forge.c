/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What somebody can send to a host who has overheard barriers of engine datagram and may send any
 * packet (root on another host): packets like those, but each is wrong in one thing that matters.
 *
 *   forge INTERFACE ADDRESS NUMBER FILE
 *
 * Listens at the interface to packets that go to the address, of IPv4, sends so many like the
 * newest, and then makes the file.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "coll_nicbarrier/engines/datagram/wire/packet.h"

/** Where things stand in a frame. */
enum {
    IP_AT = 14,
    UDP_AT = 34,
    PACKET_AT = 42,
    FRAME = PACKET_AT + NICBARRIER_PACKET_SIZE,
    FRAME_MAX = FRAME + 32,
    HEARD_MAX = 8,
    BATCH = 256
};

typedef struct frame {
    unsigned char bytes[FRAME_MAX];
    size_t len;
} frame_t;

static frame_t heard[HEARD_MAX];
static unsigned long n_heard;

/* ---- numbers --------------------------------------------------------------------------------- */

static uint64_t state = 1;

static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static void put(unsigned char *at, int bytes, uint64_t value)
{
    for (int i = 0; i < bytes; i++)
        at[i] = (unsigned char)(value >> 8 * (bytes - 1 - i));
}

static uint64_t get(const unsigned char *at, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value = value << 8 | at[i];
    return value;
}

/** Another value than it has. */
static void change(unsigned char *at, int bytes)
{
    put(at, bytes, get(at, bytes) + 1 + draw() % ((UINT64_C(1) << (8 * bytes - 1)) - 1));
}

/* ---- what is wrong with it ------------------------------------------------------------------- */

static unsigned char *in(frame_t *f, int at)
{
    return f->bytes + PACKET_AT + at;
}

/** By so many from the epoch that was overheard. */
static void move_epoch(frame_t *f, uint64_t by)
{
    unsigned char *epoch = in(f, NICBARRIER_PACKET_EPOCH_AT);
    put(epoch, 8, get(epoch, 8) + by);
}

/** One that may be waited for: barriers have gone on meanwhile. */
static void next_epoch(frame_t *f)
{
    move_epoch(f, 1 + draw() % 8);
}

static void impossible_epoch(frame_t *f)
{
    move_epoch(f, (UINT64_C(1) << 33) + draw() % (UINT64_C(1) << 61));
}

static void old_epoch(frame_t *f)
{
    unsigned char *epoch = in(f, NICBARRIER_PACKET_EPOCH_AT);
    put(epoch, 8, draw() % (get(epoch, 8) + 1));
}

static void other_key(frame_t *f)
{
    next_epoch(f);
    put(in(f, NICBARRIER_PACKET_KEY_AT), 8, draw());
}

static void near_key(frame_t *f)
{
    next_epoch(f);
    in(f, NICBARRIER_PACKET_KEY_AT)[draw() % 8] ^= (unsigned char)(1U << draw() % 8);
}

static void other_cookie(frame_t *f)
{
    next_epoch(f);
    change(in(f, NICBARRIER_PACKET_COOKIE_AT), 4);
}

static void other_address(frame_t *f)
{
    impossible_epoch(f);
    change(f->bytes + IP_AT + 12, 4);
}

static void other_port(frame_t *f)
{
    impossible_epoch(f);
    change(f->bytes + UDP_AT, 2);
}

static void other_sender(frame_t *f)
{
    next_epoch(f);
    change(in(f, NICBARRIER_PACKET_SENDER_AT), 4);
}

static void other_step(frame_t *f)
{
    next_epoch(f);
    change(in(f, draw() % 2 ? NICBARRIER_PACKET_STEP_AT : NICBARRIER_PACKET_FROM_AT), 1);
}

static void other_zero(frame_t *f)
{
    next_epoch(f);
    change(in(f, NICBARRIER_PACKET_ZERO_AT), 2);
}

static void other_version(frame_t *f)
{
    next_epoch(f);
    change(in(f, (int)(draw() % 3)), 1);
}

static void unknown_kind(frame_t *f)
{
    const uint64_t kinds = NICBARRIER_PACKET_KINDS;
    const uint64_t kind = draw() % (257 - kinds);
    next_epoch(f);
    *in(f, NICBARRIER_PACKET_KIND_AT) = (unsigned char)(kind == 0 ? 0 : kinds + kind - 1);
}

/** Questions, answers and farewells of nobody. */
static void any_kind(frame_t *f)
{
    other_cookie(f);
    *in(f, NICBARRIER_PACKET_KIND_AT) = (unsigned char)(draw() % NICBARRIER_PACKET_KINDS);
}

/** It says nothing but "look". */
static void wake(frame_t *f)
{
    *in(f, NICBARRIER_PACKET_KIND_AT) = NICBARRIER_PACKET_WAKE;
}

static void set_sizes(frame_t *f)
{
    put(f->bytes + IP_AT + 2, 2, f->len - IP_AT);
    put(f->bytes + UDP_AT + 4, 2, f->len - UDP_AT);
}

static void cut_short(frame_t *f)
{
    next_epoch(f);
    f->len = PACKET_AT + draw() % NICBARRIER_PACKET_SIZE;
    set_sizes(f);
}

/** Its headers say that it is whole. */
static void cut_off(frame_t *f)
{
    next_epoch(f);
    f->len = IP_AT + 1 + draw() % (FRAME - IP_AT - 1);
}

static void too_long(frame_t *f)
{
    next_epoch(f);
    f->len += 1 + draw() % (FRAME_MAX - FRAME);
    set_sizes(f);
}

/** Kind of Ethernet, version and length of IP, fragments, protocol; sizes. */
static void other_headers(frame_t *f)
{
    static const unsigned char at[] = {12,         13,         IP_AT,      IP_AT + 2,
                                       IP_AT + 3,  IP_AT + 6,  IP_AT + 7,  IP_AT + 9,
                                       UDP_AT + 2, UDP_AT + 3, UDP_AT + 4, UDP_AT + 5};
    const int which = (int)(draw() % sizeof(at));
    next_epoch(f);
    change(f->bytes + at[which], 1);
    /* Never a first fragment: with one of the others it would make a whole packet. */
    if (at[which] == IP_AT + 6)
        f->bytes[IP_AT + 6] = (unsigned char)(1 + draw() % 0x1f);
}

static void (*const ways[])(frame_t *) = {
    other_key, near_key,     other_cookie, other_address, other_port,   impossible_epoch,
    old_epoch, other_sender, other_step,   other_zero,    unknown_kind, other_version,
    any_kind,  wake,         cut_short,    cut_off,       too_long,     other_headers};
enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

/** Of IPv4's header; that of UDP may be left out. */
static void set_checksums(frame_t *f)
{
    uint64_t sum = 0;
    put(f->bytes + UDP_AT + 6, 2, 0);
    put(f->bytes + IP_AT + 10, 2, 0);
    for (int i = 0; i < 20; i += 2)
        sum += get(f->bytes + IP_AT + i, 2);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    put(f->bytes + IP_AT + 10, 2, ~sum & 0xffff);
}

static void forge(frame_t *f, long number)
{
    *f = heard[draw() % (n_heard < HEARD_MAX ? n_heard : HEARD_MAX)];
    ways[number % WAYS](f);
    set_checksums(f);
}

/* ---- the network ----------------------------------------------------------------------------- */

static int open_socket(const char *interface)
{
    const int room = 8 << 20;
    const struct sockaddr_ll at = {.sll_family = AF_PACKET,
                                   .sll_protocol = htons(ETH_P_ALL),
                                   .sll_ifindex = (int)if_nametoindex(interface)};
    const int fd = socket(AF_PACKET, SOCK_RAW, 0);
    if (fd < 0 || at.sll_ifindex == 0 ||
        setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)) != 0 ||
        bind(fd, (const struct sockaddr *)&at, sizeof(at)) != 0)
        return -1;
    return fd;
}

static bool is_word(const frame_t *f, const struct in_addr *to)
{
    nicbarrier_packet_t p;
    return f->len == FRAME && get(f->bytes + 12, 2) == ETHERTYPE_IP &&
           memcmp(f->bytes + IP_AT + 16, to, 4) == 0 &&
           nicbarrier_packet_decode(f->bytes + PACKET_AT, NICBARRIER_PACKET_SIZE, &p) &&
           p.kind <= NICBARRIER_PACKET_REPEAT && p.epoch != 0 && p.epoch >> 63 == 0;
}

/** Takes in all that was overheard; what is older makes room. */
static void listen_to(int fd, const struct in_addr *to)
{
    frame_t f;
    for (ssize_t n; (n = recv(fd, f.bytes, sizeof(f.bytes), MSG_TRUNC | MSG_DONTWAIT)) >= 0;) {
        f.len = (size_t)n;
        if (is_word(&f, to))
            heard[n_heard++ % HEARD_MAX] = f;
    }
}

static void await_some(int fd, const struct in_addr *to)
{
    const time_t end = time(NULL) + 60;
    while (n_heard < HEARD_MAX && time(NULL) < end)
        listen_to(fd, to);
}

/** @return how many were sent, or -1 */
static int send_some(int fd, frame_t *f, int n)
{
    struct mmsghdr message[BATCH];
    struct iovec data[BATCH];
    memset(message, 0, sizeof(message));
    for (int i = 0; i < n; i++) {
        data[i] = (struct iovec){f[i].bytes, f[i].len};
        message[i].msg_hdr.msg_iov = &data[i];
        message[i].msg_hdr.msg_iovlen = 1;
    }
    return sendmmsg(fd, message, (unsigned)n, 0);
}

static int send_all(int fd, const struct in_addr *to, long number)
{
    static frame_t f[BATCH];
    for (long sent = 0; sent < number;) {
        const int n = number - sent < BATCH ? (int)(number - sent) : BATCH;
        listen_to(fd, to);
        for (int i = 0; i < n; i++)
            forge(&f[i], sent + i);
        for (int done = 0; done < n;) {
            const int some = send_some(fd, f + done, n - done);
            if (some < 0 && errno != ENOBUFS && errno != EAGAIN)
                return -1;
            done += some > 0 ? some : 0;
        }
        sent += n;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct in_addr to;
    if (argc != 5 || inet_pton(AF_INET, argv[2], &to) != 1) {
        fputs("usage: forge INTERFACE ADDRESS NUMBER FILE\n", stderr);
        return 2;
    }
    const int fd = open_socket(argv[1]);
    if (fd < 0) {
        perror("forge");
        return 1;
    }
    await_some(fd, &to);
    if (n_heard == 0 || send_all(fd, &to, atol(argv[3])) != 0) {
        fprintf(stderr, "forge: %s\n", n_heard == 0 ? "no barriers are heard" : strerror(errno));
        return 1;
    }
    printf("forge: %s packets like %lu that were overheard\n", argv[3], n_heard);
    fflush(stdout);
    const int file = open(argv[4], O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
    return file < 0 || close(file) != 0;
}
