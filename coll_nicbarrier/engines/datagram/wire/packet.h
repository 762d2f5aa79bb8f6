/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What travels in engine datagram: packets of a fixed size.
 *
 * A packet carries a number that the receiver drew at random and put into its endpoint (cookie).
 * Packets for an earlier owner of the same port, of another job or of a stranger do not have it.
 *
 * Pure. Decoding trusts nothing; what a packet means for a group is checked by the group
 * (rule.h, nack.h).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* ---- packets -------------------------------------------------------------------------------- */

/** All but WAKE are between two steps of members of a group. */
typedef enum nicbarrier_packet_kind {
    NICBARRIER_PACKET_EPOCH = 1, /**< the word of the step (rule.h) */
    NICBARRIER_PACKET_REPEAT,    /**< the same, in answer to a NACK */
    NICBARRIER_PACKET_NACK,      /**< repeat your message if it is of this epoch or more */
    NICBARRIER_PACKET_LATE,      /**< in answer to a NACK, with its epoch: not sent yet */
    NICBARRIER_PACKET_WAKE,      /**< from a process of the same node: look what has been entered */
    NICBARRIER_PACKET_KINDS
} nicbarrier_packet_kind_t;

typedef struct nicbarrier_packet {
    uint8_t kind;    /**< nicbarrier_packet_kind_t */
    uint8_t at;      /**< the receiver's step, below NICBARRIER_STEPS_MAX */
    uint8_t from_at; /**< the sender's step, likewise */
    uint32_t sender; /**< its index in the group, below 2^31 */
    uint32_t cookie; /**< the receiver's */
    uint64_t key;    /**< of the group */
    uint64_t epoch;  /**< a word (EPOCH, REPEAT) or an epoch */
    /** What a receiver that has freed the group needs for its answer. */
    uint32_t to;   /**< NACK: the receiver's index in the group, below 2^31 */
    uint32_t back; /**< NACK: the sender's own cookie */
} nicbarrier_packet_t;

/** Bytes of every packet. All numbers are in network byte order. */
#define NICBARRIER_PACKET_SIZE 40

/** The first bytes of each. */
#define NICBARRIER_PACKET_MAGIC   0x4e42
#define NICBARRIER_PACKET_VERSION 5

/** Where things stand, for what takes packets apart without this file's functions: filters and
 *  programs in the kernel. Of a step's message everything but the epoch is always the same. */
enum {
    NICBARRIER_PACKET_VERSION_AT = 2,
    NICBARRIER_PACKET_KIND_AT = 3,
    NICBARRIER_PACKET_COOKIE_AT = 4,
    NICBARRIER_PACKET_KEY_AT = 8,
    NICBARRIER_PACKET_SENDER_AT = 16,
    NICBARRIER_PACKET_STEP_AT = 20,
    NICBARRIER_PACKET_FROM_AT = 21,
    NICBARRIER_PACKET_ZERO_AT = 22,
    NICBARRIER_PACKET_EPOCH_AT = 24,
    NICBARRIER_PACKET_TO_AT = 32,
    NICBARRIER_PACKET_BACK_AT = 36
};

/** The packet's fields must be within their ranges. */
void nicbarrier_packet_encode(const nicbarrier_packet_t *p,
                              unsigned char bytes[NICBARRIER_PACKET_SIZE]);

/** @return NULL, or what is wrong with it (a static English fragment); `*p` is undefined then */
const char *nicbarrier_packet_decode(const void *bytes, size_t len, nicbarrier_packet_t *p);
