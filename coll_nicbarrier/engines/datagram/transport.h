/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Engine datagram: what a transport is. A new one is a file and a row here. */
#ifndef NICBARRIER_TRANSPORT_H
#define NICBARRIER_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coll_nicbarrier/engines/datagram/packet.h"
#include "coll_nicbarrier/engines/datagram/params.h"
#include "coll_nicbarrier/engines/datagram/reach.h"
#include "coll_nicbarrier/engines/engine.h"

/** All functions but open, describe and close are called with the engine's lock held. */
typedef struct nicbarrier_transport {
    /** `cookie`: what packets to this process must carry. 0, or -1 and the reason. */
    int (*open)(const nicbarrier_datagram_config_t *config, uint32_t cookie,
                nicbarrier_reason_t *why);
    void (*close)(void);
    /** What partners must know; at most NICBARRIER_ENDPOINT_PART_MAX bytes. Returns its length. */
    uint32_t (*describe)(void *bytes);
    /** Understands a partner's description: adds candidates, UDP also the cookie. Where it cannot
     *  be reached it adds none and gives the reason; -1 where the description is malformed. */
    int (*resolve)(nicbarrier_partner_t *p, const void *bytes, uint32_t len,
                   nicbarrier_reason_t *why);
    /** A packet that its receiver's host has refused, because the port is closed; false where there
     *  is none. NULL: that cannot be known. */
    bool (*refused)(unsigned char packet[NICBARRIER_PACKET_SIZE]);
    /** One packet; false where it could not be sent, which is as if it were lost. `fast`: in the
     *  quickest way, though the receiver may then see a source that takes no answers. */
    bool (*send)(const nicbarrier_address_t *to, const unsigned char *packet, bool fast);
    nicbarrier_adopt_t *adopt; /**< to an address of its own */
    /** One packet of up to `size` bytes; its length (0 .. size; size where it is longer), or -1
     *  where there is none. Never waits. */
    int (*receive)(void *bytes, size_t size, nicbarrier_address_t *from);
    /** Becomes readable when something comes, once `arm` was called and nothing had come yet.
     *  Without the lock. */
    int (*descriptor)(void);
    /** False where something has come. */
    bool (*arm)(void);
} nicbarrier_transport_t;

extern const nicbarrier_transport_t nicbarrier_udp;   /* udp.c */
extern const nicbarrier_transport_t nicbarrier_verbs; /* verbs_ud.c */

/** Sends one packet by UDP from a socket of its own: for processes that have not opened the engine.
 *  Errors are ignored. Any thread. */
void nicbarrier_udp_send_once(const nicbarrier_address_t *to, const unsigned char *packet);
/** How processes of this node reach my socket of UDP, which is open. */
void nicbarrier_udp_local(nicbarrier_address_t *a);

#endif
