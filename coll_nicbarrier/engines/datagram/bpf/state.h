/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Barriers in the kernel: what a group has there, as the programs (program.c), the service that
 * installs groups (service.h) and the process (client.h) see it. Yu, Buntinas, Graham and Panda
 * 2004, section 3: a queue of its own for each group, packets that are ready but for one number,
 * and no state but the rule's (rule.h).
 *
 * A group is known by its key and by the cookie that packets to this process carry, and has in maps
 *
 *  - a nicbarrier_bpf_group_t, which only the kernel and the service see, with a packet for each
 *    step that sends, complete but for the word of the step;
 *  - a page, mapped by the process, which is the rule's state and the process's orders.
 *
 * The process enters by a store into its page and a packet of kind WAKE that it sends on the
 * interface: there the program finds it, reads the page, and turns it into the first step's
 * message. A forged WAKE does nothing, since it says nothing but "look"; what the process may do to
 * its page harms no group but its own.
 *
 * Order. The lock of the group (bpf_spin_lock, in a hash map: programs of TC may take it,
 * and it keeps interrupts out) serialises the programs on all processors. It cannot stand in the
 * page, because a map with a lock cannot be mapped; and atomic operations alone do not do, because
 * one message may move several steps of the rule. The process never takes it: the page's `version`
 * is odd while a program changes the state, and what the process writes are words that only grow.
 */
#pragma once

#include <stdint.h>

#include "coll_nicbarrier/epoch/rule.h"

/** Names a group. */
typedef struct nicbarrier_bpf_id {
    uint64_t key;
    uint32_t cookie; /**< of this process */
    uint32_t zero;
} nicbarrier_bpf_id_t;

/** What the process maps, and the others of its node. The first four words are
 *  nicbarrier_view_t (stepper.h). */
typedef struct nicbarrier_bpf_page {
    uint64_t word;    /**< the last epoch that is complete, and NICBARRIER_WORD_FAILED */
    uint64_t entered; /**< as in `rule` */
    uint64_t taken;   /**< words that brought something new */
    uint64_t wanted;  /**< set by the process before it sleeps on its socket. The next packet that
                           changes `word` makes this 0 and goes on to the socket */
    uint64_t key;     /**< of the group; with another one the programs leave the group alone */
    uint64_t version; /**< odd while the state changes; both its changes are full barriers */
    nicbarrier_rule_t rule;
    /* Orders of processes, which a WAKE must follow. */
    uint64_t enter;                       /**< the last epoch */
    uint64_t fail;                        /**< not 0: the group has failed */
    uint64_t takes;                       /**< not 0: there are words below */
    uint64_t take[NICBARRIER_RULE_STEPS]; /**< words that came to the process itself */
} nicbarrier_bpf_page_t;

/** Bytes of the packets: Ethernet, IPv4 or IPv6, UDP, and what packet.h says. */
#define NICBARRIER_BPF_PACKET_V4 82
#define NICBARRIER_BPF_PACKET_V6 102

/** A packet that is ready but for the word of its step. */
typedef struct nicbarrier_bpf_packet {
    uint32_t sum;       /**< what UDP's checksum is taken over but for the word, as 16-bit words in
                             the order of this machine, not folded */
    uint32_t len;       /**< one of the two */
    uint8_t bytes[104]; /**< both checksum and word are 0 */
} nicbarrier_bpf_packet_t;

/** Who may send the word of a step, as it stands in its packets. */
typedef struct nicbarrier_bpf_sender {
    uint64_t ip[2];   /**< of IPv4 the first 4 bytes */
    uint64_t named;   /**< the 8 bytes at NICBARRIER_PACKET_SENDER_AT: its number and both steps */
    uint16_t port[2]; /**< its port, and the process's own */
    uint32_t zero;
} nicbarrier_bpf_sender_t;

/** What is counted in a group. */
typedef enum nicbarrier_bpf_counter {
    NICBARRIER_BPF_WORDS, /**< that brought something new */
    NICBARRIER_BPF_WAKES, /**< of processes of this node */
    NICBARRIER_BPF_SENT,  /**< messages that became due */
    NICBARRIER_BPF_UP,    /**< packets that were left to the process */
    NICBARRIER_BPF_COUNTERS
} nicbarrier_bpf_counter_t;

/** What a group has besides; `lock` is a bpf_spin_lock. */
#define NICBARRIER_BPF_GROUP_FIELDS                                                                \
    uint32_t zero;                                                                                 \
    uint64_t due;  /**< bit k: the message of step k is to be sent */                              \
    uint64_t drop; /**< for tests: of 1000 messages so many are not sent */                        \
    uint64_t count[NICBARRIER_BPF_COUNTERS];                                                       \
    nicbarrier_bpf_sender_t sender[NICBARRIER_RULE_STEPS];                                         \
    nicbarrier_bpf_packet_t packet[NICBARRIER_RULE_STEPS];

typedef struct nicbarrier_bpf_group {
    uint32_t lock;
    NICBARRIER_BPF_GROUP_FIELDS
} nicbarrier_bpf_group_t;

/** Groups that an interface has room for at most. */
#define NICBARRIER_BPF_GROUPS 1024
