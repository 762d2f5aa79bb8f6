/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * A group whose members are all in this kernel, in the maps of one set of programs, each at an
 * address of its own. Packets do not travel: the programs are run by hand (BPF_PROG_TEST_RUN), and
 * what they send is put into a list. It needs root and a network namespace of its own, where clones
 * of packets go over the loopback interface, to be seen on their way.
 */
#pragma once

#include "coll_nicbarrier/engines/datagram/bpf/kernel.h"
#include "coll_nicbarrier/engines/datagram/wire/packet.h"
#include "coll_nicbarrier/schedule/schedule.h"
#include "test/unit/unit.h"

enum { BPF_MEMBERS_MAX = NICBARRIER_BPF_GROUPS, BPF_FLIGHTS_MAX = 8192 };

typedef struct bpf_member {
    nicbarrier_bpf_id_t id;
    nicbarrier_rule_t rule; /**< as it begins */
    nicbarrier_step_t step[NICBARRIER_STEPS_MAX];
    int fd;                      /**< of its page */
    nicbarrier_bpf_page_t *page; /**< NULL: not installed */
} bpf_member_t;

/** A packet on its way. */
typedef struct bpf_flight {
    unsigned char bytes[NICBARRIER_BPF_PACKET];
} bpf_flight_t;

typedef struct bpf_group {
    int wire; /**< sees clones */
    int32_t n;
    uint64_t key;
    bpf_member_t *member;
    bpf_flight_t flight[BPF_FLIGHTS_MAX];
    int flights;
} bpf_group_t;

/** Makes the namespace, once for a process. @return NULL, or why there can be no such group here */
const char *bpf_group_obstacle(void);
void bpf_group_begin(bpf_group_t *g, int32_t n, nicbarrier_schedule_kind_t schedule);
void bpf_group_end(bpf_group_t *g);
/** Likewise shows the programs the member's packets. */
void bpf_group_install(bpf_group_t *g, int32_t i);
void bpf_group_remove(bpf_group_t *g, int32_t i);

/** The message of step k of member i, or another kind with that word. */
void bpf_group_frame(const bpf_group_t *g, int32_t i, uint32_t k, uint8_t kind, uint64_t word,
                     bpf_flight_t *f);
/** The packet comes to this host: what follows is added to the flights. @return whether it goes on
 *  to the process */
bool bpf_group_come(bpf_group_t *g, const bpf_flight_t *f);
/** The process of a member sends a packet, which goes on as it is. */
void bpf_group_leave(const bpf_flight_t *f);
/** Member i orders the programs to look at its page. */
void bpf_group_wake(bpf_group_t *g, int32_t i);
/** The packet of a flight, which must be well-formed to the last checksum. */
nicbarrier_packet_t bpf_group_read(const bpf_flight_t *f);
