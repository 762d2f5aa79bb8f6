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
 *  - one that only the programs see, with a packet for each step that sends, complete but for the
 *    word of the step;
 *  - a page, mapped by the process, which is the rule's state and the process's orders. The service
 *    makes it empty, and the process fills it.
 *
 * The packets are *learned*: the kernel has made all headers of a packet of kind REPEAT when the
 * program sees it leave the interface, so the program keeps it for that step, if it comes from the
 * process's own port. The process sends one in each step when it connects, and later whenever a
 * partner asks. So where a partner, or the way to it, has moved, the first message that is asked
 * for again also corrects the packet. A process has nothing sent that it has not sent itself.
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
 *
 * Sleep. A process that sleeps on its socket, or is about to, has set `wanted`. The program that
 * takes in a word and by it stores a new `word` clears `wanted` and lets the packet through to the
 * socket. If an entry and not a packet leads to the new word, `wanted` stays as it is: the thread
 * that has entered sees both.
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

/** The page, mapped by the process. */
typedef struct nicbarrier_bpf_page {
    uint64_t word;   /**< the last complete epoch, and NICBARRIER_WORD_FAILED */
    uint64_t taken;  /**< words received that brought something new */
    uint64_t wanted; /**< not 0: a thread of the process sleeps */
    uint64_t key; /**< of the group, stored last; the programs ignore a group whose key differs */
    uint64_t version; /**< odd while the state changes; each change of it is a full barrier */
    nicbarrier_rule_t rule;
    uint64_t drop; /**< for tests: messages dropped of each 1000 */
    uint64_t port; /**< of UDP, from which the process sends; network byte order */
    /** Who sends the word of each step that waits: the 8 bytes of its packets at
     *  NICBARRIER_PACKET_SENDER_AT. */
    uint64_t named[NICBARRIER_RULE_STEPS];
    /* Orders of the process; a WAKE must follow. */
    uint64_t enter;                       /**< enter epochs up to this one */
    uint64_t take[NICBARRIER_RULE_STEPS]; /**< words that came to the process's own socket */
} nicbarrier_bpf_page_t;

/** Bytes of the packets: Ethernet, IPv4 without options, UDP and an encoded packet (packet.h). */
#define NICBARRIER_BPF_PACKET 82

/** Most groups on an interface. */
#define NICBARRIER_BPF_GROUPS 1024
