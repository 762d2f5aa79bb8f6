/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What others must know of a process before they can send to it. The same bytes are
 *  exchanged by a communicator, published for all, sent to processes that are to answer, and stand
 *  beside memory keys. Pure. In the form of this machine and version; another one is refused. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/support/life.h"
#include "common/support/peer_file.h"

/** What finds a segment, and tells it from another; travels between processes. */
typedef struct onic_segment_key {
    onic_file_key_t file; /**< a file without a name, open at the maker; or none: */
    char name[32];        /**< a name */
    uint64_t size;        /**< 0: there is no segment */
    uint64_t nonce;
    uint64_t shares; /**< equal shares, each of which one process reserves */
} onic_segment_key_t;

/** What a process of the machine needs to copy from it, wake it, and see whether it is dead. */
typedef struct onic_cma_id {
    char host[40];        /**< the kernel's boot identifier, zero-padded; empty where unknown */
    uint64_t nonce_at;    /**< address of a random number in that process */
    uint64_t nonce;       /**< and its value */
    onic_file_key_t wake; /**< the pipe that wakes its server thread */
    onic_life_t life;     /**< the process itself, in its pid namespace */
} onic_cma_id_t;

/** Most bytes of a UCX address. One of a host with many adapters has some thousands. */
#define ONIC_ADDRESS_MAX 65536

typedef struct onic_address {
    uint64_t name;   /**< job and number in the job, see onic_name */
    uint64_t credit; /**< bytes that it takes from each process before any grant */
    onic_cma_id_t cma_id;
    onic_segment_key_t queues; /**< its inbox: its signs of life, and what processes of its job and
                                  node put messages into */
    const void *ucx;           /**< its UCX worker's address, 1 .. ONIC_ADDRESS_MAX bytes */
    size_t ucx_len;
} onic_address_t;

/** Bytes that it takes. */
size_t onic_address_size(const onic_address_t *a);

/** A process's record as it stands behind those of others, each in as many bytes (addresses.c). */
typedef struct onic_address_row {
    uint64_t name; /**< first */
    uint64_t len;
    unsigned char record[];
} onic_address_row_t;

/** Bytes of a row that has room for such a record. */
static inline size_t onic_address_row_bytes(size_t record)
{
    return sizeof(onic_address_row_t) + (record + 7) / 8 * 8;
}

/** The order of two rows, by name. */
static inline int onic_address_row_compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/** Writes it. Its size, or 0 where `cap` is not enough or UCX's address is too long. */
size_t onic_address_write(const onic_address_t *a, void *bytes, size_t cap);

/** Reads it; `a->ucx` then points into `bytes`. False where these are not, exactly, what
 *  onic_address_write of this version writes. */
bool onic_address_read(const void *bytes, size_t len, onic_address_t *a);
