/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The endpoint record of engine datagram: what partners must know of each of the transports, one
 * after the other.
 *
 * Pure. Decoding trusts nothing.
 */
#ifndef NICBARRIER_ENDPOINT_H
#define NICBARRIER_ENDPOINT_H

#include <stddef.h>
#include <stdint.h>

/** The transports. */
typedef enum nicbarrier_via {
    NICBARRIER_VIA_UDP,
    NICBARRIER_VIA_VERBS, /**< absent (of length 0) where there is no device */
    NICBARRIER_VIAS
} nicbarrier_via_t;

/** Bytes before the first part; at most this many in each part. */
#define NICBARRIER_ENDPOINT_HEAD     4
#define NICBARRIER_ENDPOINT_PART_MAX 1024

typedef struct nicbarrier_parts {
    const unsigned char *bytes[NICBARRIER_VIAS]; /**< in the record */
    uint32_t len[NICBARRIER_VIAS];
} nicbarrier_parts_t;

/** Writes the head of a record whose parts, of these lengths, follow it.
 *  @return the length of the whole */
uint32_t nicbarrier_endpoint_head(const uint32_t len[NICBARRIER_VIAS],
                                  unsigned char bytes[NICBARRIER_ENDPOINT_HEAD]);

/** Finds the parts. @return NULL, or what is wrong with it (a static English fragment) */
const char *nicbarrier_endpoint_split(const void *bytes, size_t len, nicbarrier_parts_t *parts);

#endif
