/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Engine datagram: its parameters and counters, and what a transport is. A new one is a file
 *  and a row here. */
#pragma once

#include <net/if.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coll_nicbarrier/engines/datagram/wire/packet.h"
#include "coll_nicbarrier/engines/datagram/reach.h"
#include "coll_nicbarrier/engines/engine.h"

/* ---- parameters and counters: params.c ------------------------------------------------------ */

/** When datagrams go by verbs and not by UDP. */
typedef enum nicbarrier_verbs_use {
    NICBARRIER_VERBS_AUTO, /**< between all that have a device and can reach each other by it */
    NICBARRIER_VERBS_NEVER,
    NICBARRIER_VERBS_ALWAYS /**< a process that cannot does not use this engine */
} nicbarrier_verbs_use_t;

/** The values of the engine's parameters, checked already. */
typedef struct nicbarrier_datagram_config {
    const char *interface; /**< udp_address.h: nicbarrier_ip_wanted; NULL: choose */
    int verbs;             /**< nicbarrier_verbs_use_t; the same on all members */
    const char *device;    /**< verbs devices (common/verbs/verbs_port.h); NULL: choose */
    const char *stepper;   /**< the name of one (stepper.h); NULL or "auto": the first that can */
    int nack_usec;         /**< silence after which a NACK is sent; 10 .. 1000000 */
    int silence;           /**< seconds of a partner after which a group has failed; 0: never */
    int drop;              /**< for tests: of 1000 packets to send so many are dropped */
} nicbarrier_datagram_config_t;

extern nicbarrier_datagram_config_t nicbarrier_datagram_config;
extern const nicbarrier_param_t nicbarrier_datagram_params[];

/** What the engine has done in this process since it was started. May be read at any time. */
typedef struct nicbarrier_datagram_counters {
    _Atomic uint64_t nacks;       /**< sent */
    _Atomic uint64_t retransmits; /**< messages repeated because a NACK asked for them */
    _Atomic uint64_t refused;     /**< received that were not understood, or not from a partner */
    _Atomic uint64_t verbs_sent;  /**< packets of all kinds that went by verbs */
    _Atomic uint64_t fallbacks;   /**< from verbs to UDP, because nothing came by verbs */
    _Atomic uint64_t completed;   /**< barriers, though several at once count as one */
    _Atomic uint64_t thread_completed;  /**< of these, by the helper thread */
    _Atomic uint64_t handovers;         /**< times that the helper thread took over at once */
    _Atomic uint64_t stepper_taken;     /**< words that a stepper has taken in by itself */
    _Atomic uint64_t stepper_fallbacks; /**< groups that the process took over */
} nicbarrier_datagram_counters_t;

extern nicbarrier_datagram_counters_t nicbarrier_datagram_counters;
extern const nicbarrier_counter_t nicbarrier_datagram_counter_table[];

/** Adds one. The lock is held, so no other thread counts: cheaper than an atomic addition. */
static inline void nicbarrier_count(_Atomic uint64_t *counter)
{
    const uint64_t n = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, n + 1, memory_order_relaxed);
}

/* ---- transports ----------------------------------------------------------------------------- */

/** All functions but open, describe and close are called with the engine's lock held. */
typedef struct nicbarrier_transport {
    /** `cookie`: what packets to this process must carry. 0, or -1 and the reason. */
    int (*open)(uint32_t cookie, nicbarrier_reason_t *why);
    void (*close)(void);
    /** What partners must know; some hundred bytes at most. Returns its length. */
    uint32_t (*describe)(void *bytes);
    /** Understands a partner's description: adds candidates, UDP also the cookie. Where it cannot
     *  be reached it adds none and gives the reason; -1 where the description is malformed. */
    int (*resolve)(nicbarrier_partner_t *p, const void *bytes, uint32_t len,
                   nicbarrier_reason_t *why);
    /** A packet that the host to which it was sent has refused, because the port is closed; false
     *  where there is none. NULL: that cannot be known. */
    bool (*refused)(unsigned char packet[NICBARRIER_PACKET_SIZE], nicbarrier_address_t *to);
    /** Since it was called last, had this host no way to where a packet was to go? NULL: that
     * cannot be known. */
    bool (*no_way)(void);
    /** One packet; false where it could not be sent, which is as if it were lost. */
    bool (*send)(const nicbarrier_address_t *to, const unsigned char *packet);
    /** One packet of up to `size` bytes; its length (0 .. size; size where it is longer), or -1
     *  where there is none. Never waits. */
    int (*receive)(void *bytes, size_t size, nicbarrier_address_t *from);
    /** Becomes readable when something comes, once `arm` was called and nothing had come yet.
     *  Without the lock. */
    int (*descriptor)(void);
    /** False where something has come. NULL: it is always armed. */
    bool (*arm)(void);
} nicbarrier_transport_t;

extern const nicbarrier_transport_t nicbarrier_udp;   /* udp.c */
extern const nicbarrier_transport_t nicbarrier_verbs; /* verbs_ud.c */

/** Sends one packet by UDP from a socket of its own: for processes that have not opened the engine.
 *  Errors are ignored. Any thread. */
void nicbarrier_udp_send_once(const nicbarrier_address_t *to, const unsigned char *packet);
/** How processes of this node reach my socket of UDP, which is open. */
void nicbarrier_udp_local(nicbarrier_address_t *a);

/** How the kernel sends to an address of UDP. */
typedef struct nicbarrier_way {
    nicbarrier_ip_t theirs;      /**< without its prefix; of IPv4 mapped */
    uint16_t their_port;         /**< in the host's byte order */
    char interface[IF_NAMESIZE]; /**< empty: none that is up */
} nicbarrier_way_t;

/** 0, or -1 and the reason: the address is of another transport, or there is no route. The socket
 *  is open. Some system calls. */
int nicbarrier_udp_way(const nicbarrier_address_t *to, nicbarrier_way_t *way,
                       nicbarrier_reason_t *why);
/** Is there certainly no route to an address of UDP? Some system calls. */
bool nicbarrier_udp_has_no_way(const nicbarrier_address_t *to);
