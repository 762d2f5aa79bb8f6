/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The wire format of engine datagram: packets of a fixed size.
 *
 * A packet carries a number that the receiver drew at random and put into its endpoint (cookie).
 * Packets for an earlier owner of the same port, of another job or of a stranger do not have it.
 *
 * Pure. Input to be decoded is not trusted; the group checks what a packet means for it (rule.h,
 * nack.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- packets -------------------------------------------------------------------------------- */

/** All but WAKE go from a step of one member to a step of another. */
typedef enum nicbarrier_packet_kind {
    NICBARRIER_PACKET_EPOCH = 1, /**< the word of the step (rule.h) */
    NICBARRIER_PACKET_REPEAT,    /**< the same word, in answer to a NACK */
    NICBARRIER_PACKET_NACK, /**< asks for the step's message if that is of this epoch or more */
    NICBARRIER_PACKET_WAKE, /**< to the program in the kernel: look what has been entered */
    NICBARRIER_PACKET_KINDS
} nicbarrier_packet_kind_t;

typedef struct nicbarrier_packet {
    uint8_t kind;    /**< nicbarrier_packet_kind_t */
    uint8_t at;      /**< the receiver's step, below NICBARRIER_STEPS_MAX */
    uint8_t from_at; /**< the sender's step, likewise */
    uint32_t sender; /**< index in the group, below 2^31 */
    uint32_t cookie; /**< the receiver's */
    uint64_t key;    /**< the group's */
    uint64_t epoch;  /**< a word (EPOCH, REPEAT) or an epoch */
    /** Needed for an answer by a receiver that has freed the group. */
    uint32_t to;   /**< NACK: the receiver's index in the group, below 2^31 */
    uint32_t back; /**< the sender's own cookie */
} nicbarrier_packet_t;

/** Bytes of every packet. All numbers are in network byte order. */
#define NICBARRIER_PACKET_SIZE 40

/** The first bytes of every packet. */
#define NICBARRIER_PACKET_MAGIC   0x4e42
#define NICBARRIER_PACKET_VERSION 6

/** Offsets of fields, for code that takes packets apart without this file's functions: filters and
 *  programs in the kernel. In a step's messages only the epoch changes. */
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

/** Where a process is: an address of IPv4. Both in network byte order. */
typedef struct nicbarrier_address {
    uint32_t ip;
    uint16_t port; /**< of UDP */
} nicbarrier_address_t;

/** The packet's fields must be within their ranges. */
void nicbarrier_packet_encode(const nicbarrier_packet_t *p,
                              unsigned char bytes[NICBARRIER_PACKET_SIZE]);

/** @return false if it is no such packet; `*p` is undefined then */
bool nicbarrier_packet_decode(const void *bytes, size_t len, nicbarrier_packet_t *p);
