/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file One transfer between two hosts through buffers of the receiver, by the pipeline's machines
 *  and schedules: which bytes are packed when, what is shown, and what waits for what is decided by
 *  the code that does so in production. Around it stand two processors that copy, an adapter that
 *  sends one chunk after another, and a wire. Beside it what needs no machine: transfers in one
 *  piece. Nanoseconds, bytes, GB/s. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/pipeline/core/chunks.h"

/** "Hardwired C0 = 12 KB and q = 1.5 gives results almost as good as optimal values" (A. Denis
 * 2011, end of section 4). */
#define SIM_C0 12288.0
#define SIM_Q  1.5

/** Levels of caches, with the memory behind them. */
#define SIM_LEVELS 4

/** Two hosts of one kind and what is between them. */
typedef struct sim_machine {
    double latency;  /**< until the first byte is there (lambda_net) */
    double gap;      /**< of the adapter, for each chunk (g) */
    double overhead; /**< of the processor, to have a chunk sent (o) */
    double bnet;
    struct {
        double bytes, speed;
    } copy[SIM_LEVELS];       /**< copies of data of up to so many bytes; the last: any */
    double pin, pin_byte;     /**< registering memory (lambda_reg, 1 / B_reg) */
    double unpin, unpin_byte; /**< giving that up */
    double wake;              /**< until a server that sleeps looks at what has come */
} sim_machine_t;

/** GB/s at which data of so many bytes in all are copied (B_copy(L)). */
double sim_copy_speed(const sim_machine_t *m, double bytes);

typedef struct sim_transfer {
    const sim_machine_t *machine;
    uint64_t bytes; /**< at least 1 */
    onic_schedule_t schedule;
    unsigned buffers; /**< of the receiver, 1 .. 64 */
    uint32_t buffer_bytes;
    uint32_t block;  /**< sub-blocks that the receiver is shown one by one; 0: whole chunks */
    double announce; /**< until a chunk that has come is seen: flags in it: 0 */
    double grant; /**< when the sender may put, counted from the call; meanwhile it packs the first
                       chunk. 0: at once */
    double gather_here, gather_there; /**< for all bytes, beside copying them */
} sim_transfer_t;

typedef struct sim_transferred {
    double time; /**< from the call to the last byte in the receiver's memory; negative: it hangs */
    unsigned chunks;
    unsigned waits;  /**< times the sender waited for a buffer, or for its grant */
    unsigned stalls; /**< times the receiver had taken all that was there and waited for more */
} sim_transferred_t;

sim_transferred_t sim_transfer(const sim_transfer_t *t);

/** Bytes that the adapter takes from registered memory, and puts into such: a raw write. */
double sim_raw(const sim_machine_t *m, double bytes);
/** Both sides register memory, one after the other or both at once, and give it up behind. */
double sim_registered(const sim_machine_t *m, double bytes, bool overlapped);
/** All is copied, then sent, then copied. */
double sim_copied(const sim_machine_t *m, double bytes);
