/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file A group in this kernel; see bpf_group.h. */
#define _GNU_SOURCE
#include "test/unit/bpf_group.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/pkt_cls.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test/unit/bpf_frame.h"

/* ---- begin and end --------------------------------------------------------------------------- */

static int open_wire(void)
{
    const int room = 1 << 24;
    struct sockaddr_ll at = {.sll_family = AF_PACKET,
                             .sll_protocol = htons(ETH_P_ALL),
                             .sll_ifindex = (int)if_nametoindex("lo")};
    const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, htons(ETH_P_ALL));
    ck_assert_int_ge(fd, 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    return fd;
}

const char *bpf_group_obstacle(void)
{
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    if (geteuid() != 0)
        return "programs in the kernel are for root";
    if (nicbarrier_bpf_load() != 0) {
        return errno == EPERM || errno == ENOSYS ? "the kernel takes no programs here"
                                                 : "the kernel refuses the programs";
    }
    nicbarrier_bpf_unload();
    if (unshare(CLONE_NEWNET) != 0)
        return "no namespaces can be made here";
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    UNIT_CHECK(ioctl(fd, SIOCSIFFLAGS, &lo) == 0);
    close(fd);
    return NULL;
}

static nicbarrier_packet_t packet_of(const bpf_group_t *g, int32_t from, uint32_t k, uint8_t kind,
                                     uint64_t word)
{
    const nicbarrier_step_t *s = &g->member[from].step[k];
    return (nicbarrier_packet_t){.kind = kind,
                                 .at = s->send_at,
                                 .from_at = (uint8_t)k,
                                 .sender = (uint32_t)from,
                                 .cookie = g->member[s->send_to].id.cookie,
                                 .key = g->key,
                                 .epoch = word,
                                 .back = g->member[from].id.cookie};
}

void bpf_group_begin(bpf_group_t *g, int32_t n, nicbarrier_schedule_kind_t schedule)
{
    memset(g, 0, sizeof(*g));
    ck_assert_int_eq(nicbarrier_bpf_load(), 0);
    const struct rlimit files = {4096, 4096};
    (void)setrlimit(RLIMIT_NOFILE, &files);
    g->wire = open_wire();
    g->n = n;
    g->key = UINT64_C(0x1122334455667788);
    g->member = calloc((size_t)n, sizeof(*g->member));
    ck_assert_ptr_nonnull(g->member);
    for (int32_t i = 0; i < n; i++) {
        bpf_member_t *m = &g->member[i];
        uint64_t sends, waits;
        const int steps = nicbarrier_schedule(schedule, i, n, m->step);
        nicbarrier_schedule_bits(m->step, steps, &sends, &waits);
        nicbarrier_rule_init(&m->rule, (uint32_t)steps, sends, waits);
        m->id = (nicbarrier_bpf_id_t){.key = g->key, .cookie = 1000 + (uint32_t)i};
    }
}

/** As a process does. */
static void fill_page(const bpf_group_t *g, bpf_member_t *m)
{
    m->page->rule = m->rule;
    m->page->port = htons((uint16_t)(2000 + (m - g->member)));
    for (uint32_t k = 0; k < m->rule.nsteps; k++) {
        const nicbarrier_step_t *s = &m->step[k];
        bpf_flight_t f;
        if (s->wait_for == NICBARRIER_NOBODY)
            continue;
        bpf_group_frame(g, s->wait_for, s->wait_at, NICBARRIER_PACKET_EPOCH, 0, &f);
        memcpy(&m->page->named[k], f.bytes + FRAME_PAYLOAD + NICBARRIER_PACKET_SENDER_AT, 8);
    }
    __atomic_store_n(&m->page->key, g->key, __ATOMIC_SEQ_CST);
}

void bpf_group_install(bpf_group_t *g, int32_t i)
{
    bpf_member_t *m = &g->member[i];
    m->fd = nicbarrier_bpf_install(&m->id);
    ck_assert_int_ge(m->fd, 0);
    m->page = mmap(NULL, sizeof(*m->page), PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
    ck_assert_ptr_ne(m->page, MAP_FAILED);
    fill_page(g, m);
    for (uint32_t k = 0; k < m->rule.nsteps; k++) {
        bpf_flight_t f;
        if (m->step[k].send_to == NICBARRIER_NOBODY)
            continue;
        bpf_group_frame(g, i, k, NICBARRIER_PACKET_REPEAT, k, &f);
        bpf_group_leave(&f);
    }
}

void bpf_group_remove(bpf_group_t *g, int32_t i)
{
    bpf_member_t *m = &g->member[i];
    if (m->page != NULL) {
        nicbarrier_bpf_remove(&m->id);
        munmap(m->page, sizeof(*m->page));
        close(m->fd);
        m->page = NULL;
    }
}

void bpf_group_end(bpf_group_t *g)
{
    for (int32_t i = 0; i < g->n; i++) {
        if (g->member[i].page != NULL) {
            munmap(g->member[i].page, sizeof(*g->member[i].page));
            close(g->member[i].fd);
        }
    }
    close(g->wire);
    nicbarrier_bpf_unload();
    free(g->member);
}

/* ---- packets --------------------------------------------------------------------------------- */

void bpf_group_frame(const bpf_group_t *g, int32_t i, uint32_t k, uint8_t kind, uint64_t word,
                     bpf_flight_t *f)
{
    const nicbarrier_packet_t p = packet_of(g, i, k, kind, word);
    frame_make(f->bytes, (uint32_t)i, (uint32_t)g->member[i].step[k].send_to, &p);
}

nicbarrier_packet_t bpf_group_read(const bpf_flight_t *f)
{
    nicbarrier_packet_t p;
    UNIT_CHECK(nicbarrier_packet_decode(f->bytes + FRAME_PAYLOAD, NICBARRIER_PACKET_SIZE, &p));
    UNIT_CHECK(frame_udp_sum(f->bytes) == 0xffff && onic_get16(f->bytes + FRAME_PAYLOAD - 2) != 0);
    UNIT_CHECK(frame_sum(0, f->bytes + FRAME_IP, 20) == 0xffff);
    return p;
}

static void launch(bpf_group_t *g, const unsigned char *bytes, size_t len)
{
    UNIT_CHECK(g->flights < BPF_FLIGHTS_MAX && len == NICBARRIER_BPF_PACKET);
    memcpy(g->flight[g->flights++].bytes, bytes, len);
}

/** Clones that were sent. */
static void gather(bpf_group_t *g)
{
    unsigned char bytes[256];
    struct sockaddr_ll from;
    socklen_t size = sizeof(from);
    ssize_t n;
    while ((n = recvfrom(g->wire, bytes, sizeof(bytes), 0, (struct sockaddr *)&from, &size)) >= 0) {
        if (from.sll_pkttype == PACKET_OUTGOING)
            launch(g, bytes, (size_t)n);
        size = sizeof(from);
    }
}

/** Runs a program on a packet, which gets what the program leaves of it. */
static uint32_t run(int program, bpf_flight_t *f)
{
    unsigned char out[256];
    LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = f->bytes, .data_size_in = sizeof(f->bytes),
                .data_out = out, .data_size_out = sizeof(out), .repeat = 1);
    ck_assert_int_eq(bpf_prog_test_run_opts(program, &opts), 0);
    UNIT_CHECK(opts.data_size_out == sizeof(f->bytes));
    memcpy(f->bytes, out, sizeof(f->bytes));
    return opts.retval;
}

bool bpf_group_come(bpf_group_t *g, const bpf_flight_t *f)
{
    const nicbarrier_bpf_programs_t programs = nicbarrier_bpf_programs();
    bpf_flight_t packet = *f;
    const uint32_t verdict = run(programs.in, &packet);
    gather(g);
    if (verdict == TC_ACT_REDIRECT)
        launch(g, packet.bytes, sizeof(packet.bytes));
    UNIT_CHECK(verdict != (uint32_t)TC_ACT_UNSPEC ||
               memcmp(packet.bytes, f->bytes, sizeof(f->bytes)) == 0);
    return verdict == (uint32_t)TC_ACT_UNSPEC;
}

void bpf_group_leave(const bpf_flight_t *f)
{
    bpf_flight_t packet = *f;
    UNIT_CHECK(run(nicbarrier_bpf_programs().out, &packet) == (uint32_t)TC_ACT_UNSPEC);
    UNIT_CHECK(memcmp(packet.bytes, f->bytes, sizeof(f->bytes)) == 0);
}

void bpf_group_wake(bpf_group_t *g, int32_t i)
{
    const nicbarrier_packet_t p = {
        .kind = NICBARRIER_PACKET_WAKE, .cookie = g->member[i].id.cookie, .key = g->key};
    bpf_flight_t packet;
    frame_make(packet.bytes, (uint32_t)i, (uint32_t)((i + 1) % g->n), &p);
    const uint32_t verdict = run(nicbarrier_bpf_programs().out, &packet);
    gather(g);
    if (verdict == (uint32_t)TC_ACT_UNSPEC)
        launch(g, packet.bytes, sizeof(packet.bytes));
    else
        UNIT_CHECK(verdict == TC_ACT_STOLEN);
}
