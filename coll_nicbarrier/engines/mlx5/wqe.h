/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The bytes of the work requests that engine mlx5 gives to an adapter, as the adapter reads them
 * from its send queue. Pure.
 *
 * A request is made of segments of 16 bytes, all numbers in network byte order, and takes a block
 * of 64 bytes of the queue. That of a write is in mlx5dv.h (mlx5_wqe_ctrl_seg, _raddr_seg,
 * _inl_data_seg). That of a wait for memory ("wait on data", ConnectX-7) is not; public programs
 * for these adapters (DPDK, UCC) have it.
 */
#pragma once

#include <stdint.h>

#define NICBARRIER_WQE_BYTES 64

typedef struct nicbarrier_wqe {
    _Alignas(16) unsigned char bytes[NICBARRIER_WQE_BYTES];
} nicbarrier_wqe_t;

/** Where a request stands. */
typedef struct nicbarrier_wqe_place {
    uint32_t qpn;   /**< of the queue pair, 24 bits */
    uint16_t index; /**< requests that were ever put into its queue before, modulo 2^16 */
} nicbarrier_wqe_place_t;

/** An aligned word of 8 bytes in registered memory, in network byte order. */
typedef struct nicbarrier_wqe_word {
    uint64_t addr;
    uint32_t key;
} nicbarrier_wqe_word_t;

/** What stands behind it in the queue is not begun before the process's own word is `least` or
 *  more. "More" is meant cyclically: by less than 2^63. */
void nicbarrier_wqe_wait(nicbarrier_wqe_t *w, nicbarrier_wqe_place_t place,
                         nicbarrier_wqe_word_t mine, uint64_t least);

/** Writes a value, which it carries itself, to a word of another process, and shows its end, and so
 *  that of all before it, in the completion queue. */
void nicbarrier_wqe_write(nicbarrier_wqe_t *w, nicbarrier_wqe_place_t place,
                          nicbarrier_wqe_word_t theirs, uint64_t value);
