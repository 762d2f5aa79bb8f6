/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What travels in a datagram: one message of a fixed size.
 *
 * A packet carries a number that the receiver drew at random and told its partners when they agreed
 * on the group (cookie). Packets of an earlier owner of the same port, of another job or of a
 * stranger do not know it.
 *
 * Pure. Decoding trusts nothing; what a packet says of a group is checked by the group
 * (nicbarrier_epochs_receive and _answer).
 */
#ifndef NICBARRIER_PACKET_H
#define NICBARRIER_PACKET_H

#include <stddef.h>
#include <stdint.h>

typedef enum nicbarrier_packet_kind {
    NICBARRIER_PACKET_EPOCH = 1, /**< the sender is ready up to the epoch */
    NICBARRIER_PACKET_AGAIN,     /**< the same, in answer to a NACK */
    NICBARRIER_PACKET_NACK,      /**< repeat your message if it says this epoch or more */
    NICBARRIER_PACKET_POKE,      /**< from a process of the same node: look what has been entered;
                                      has neither sender nor step nor epoch */
    NICBARRIER_PACKET_HERE, /**< in answer to a NACK for the first epoch: there is no message yet,
                                 but packets do come through; has the NACK's epoch */
    NICBARRIER_PACKET_KINDS
} nicbarrier_packet_kind_t;

typedef struct nicbarrier_packet {
    uint8_t kind;    /**< nicbarrier_packet_kind_t */
    uint8_t at;      /**< the receiver's step, below NICBARRIER_STEPS_MAX */
    uint8_t from_at; /**< the sender's step, likewise */
    uint32_t sender; /**< its index in the group, below 2^31 */
    uint32_t cookie; /**< the receiver's */
    uint64_t key;    /**< of the group, not 0 */
    uint64_t epoch;  /**< not 0 */
    /** NACK only, 0 otherwise: what who has freed the group has forgotten and needs to answer. */
    uint32_t to;   /**< the receiver's index in the group, below 2^31 */
    uint32_t back; /**< the sender's own cookie */
    uint8_t copy;  /**< 1: of one that went by the transport in use, too */
} nicbarrier_packet_t;

/** Bytes of every packet. All numbers are in network byte order. */
#define NICBARRIER_PACKET_SIZE 40

/** Where the epoch stands, as 8 bytes in network byte order: the rest of a step's message is always
 *  the same and need be encoded only once. */
#define NICBARRIER_PACKET_EPOCH_AT 24

/** The packet's fields must be within their ranges. */
void nicbarrier_packet_encode(const nicbarrier_packet_t *p,
                              unsigned char bytes[NICBARRIER_PACKET_SIZE]);

/** The receiver's cookie in an encoded packet. */
uint32_t nicbarrier_packet_cookie(const unsigned char bytes[NICBARRIER_PACKET_SIZE]);

/** @return NULL, or what is wrong with it (a static English fragment); `*p` is undefined then */
const char *nicbarrier_packet_decode(const void *bytes, size_t len, nicbarrier_packet_t *p);

#endif
