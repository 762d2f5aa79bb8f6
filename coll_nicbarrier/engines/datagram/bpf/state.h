/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Barriers in the kernel: the data of a group, as shared by the programs (program.c), the service
 * that installs groups (service.h) and the process (client.h). Yu, Buntinas, Graham and Panda 2004,
 * section 3: a queue of its own for each group, packets that are complete except for one number,
 * and no state but the rule's (rule.h).
 *
 * A group is identified by its key and by the cookie in packets to this process. It has two map
 * entries:
 *
 *  - a nicbarrier_bpf_group_t, which only the kernel and the service see, with a packet for each
 *    step that sends, complete but for the word of the step;
 *  - a page, mapped by the process, which is the rule's state and the process's orders.
 *
 * The packets are *learned*: the kernel has made all headers of a packet of kind REPEAT when the
 * program sees it leave the interface, so the program keeps it for that step. The process sends one
 * in each step when it first enters, and later whenever a partner asks. So where a partner, or the
 * way to it, has moved, the first message that is asked for again also corrects the packet. A
 * process has nothing sent that it has not sent itself.
 *
 * The process enters by a store into its page and a packet of kind WAKE that it sends on the
 * interface: there the program finds it, reads the page, and turns it into the first step's
 * message. A forged WAKE does no harm, since it only says "look"; a process that corrupts its page
 * harms no group but its own.
 *
 * Synchronisation. The lock of the group (bpf_spin_lock, in a hash map: programs of TC may take it,
 * and it keeps interrupts out) serialises the programs on all processors. It cannot be in the page,
 * because a map with a lock cannot be mapped; and atomic operations alone are not enough, because
 * one message may advance several steps of the rule. The process never takes it: the page's
 * `version` is odd while a program changes the state, and what the process writes are words that
 * only grow.
 */
#pragma once

#include <stdint.h>

#include "coll_nicbarrier/epoch/rule.h"

/** Identifies a group. */
typedef struct nicbarrier_bpf_id {
    uint64_t key;
    uint32_t cookie; /**< of this process */
    uint32_t zero;
} nicbarrier_bpf_id_t;

/** The page, mapped by the process. The first three words are nicbarrier_view_t (stepper.h). */
typedef struct nicbarrier_bpf_page {
    uint64_t word;    /**< the last complete epoch, and NICBARRIER_WORD_FAILED */
    uint64_t taken;   /**< words received that brought something new */
    uint64_t wanted;  /**< set by the process before it sleeps on its socket. The next packet that
                         changes `word` clears this and is passed to the socket */
    uint64_t entered; /**< as in `rule` */
    uint64_t key;     /**< of the group; the programs ignore a group whose key differs */
    uint64_t version; /**< odd while the state changes; each change of it is a full barrier */
    nicbarrier_rule_t rule;
    /* Orders of the process; a WAKE must follow. */
    uint64_t enter;                       /**< enter epochs up to this one */
    uint64_t fail;                        /**< not 0: the group has failed */
    uint64_t takes;                       /**< not 0: `take` has new words */
    uint64_t take[NICBARRIER_RULE_STEPS]; /**< words that came to the process's own socket */
} nicbarrier_bpf_page_t;

/** Bytes of the packets: Ethernet, IPv4 without options, UDP and an encoded packet (packet.h). */
#define NICBARRIER_BPF_PACKET 82

/** A packet that is complete except for the word of its step. */
typedef struct nicbarrier_bpf_packet {
    uint32_t sum; /**< the UDP checksum without the word: a sum of 16-bit numbers in this machine's
                     byte order, not folded */
    uint32_t known;    /**< 0: none has been learned yet */
    uint8_t bytes[88]; /**< with checksum and word 0 */
} nicbarrier_bpf_packet_t;

/** The group's fields after `lock`, a bpf_spin_lock. */
#define NICBARRIER_BPF_GROUP_FIELDS                                                                \
    /* The process's own, of UDP, in network byte order; learned with the packets, 0 before. */    \
    uint32_t port;                                                                                 \
    uint64_t due;  /**< bit k: the message of step k is to be sent */                              \
    uint64_t drop; /**< for tests: messages dropped of each 1000 */                                \
    /* Of each step that waits, as in its packets: the 8 bytes at NICBARRIER_PACKET_SENDER_AT. */  \
    uint64_t named[NICBARRIER_RULE_STEPS];                                                         \
    nicbarrier_bpf_packet_t packet[NICBARRIER_RULE_STEPS];

typedef struct nicbarrier_bpf_group {
    uint32_t lock;
    NICBARRIER_BPF_GROUP_FIELDS
} nicbarrier_bpf_group_t;

/** Most groups on an interface. */
#define NICBARRIER_BPF_GROUPS 1024
