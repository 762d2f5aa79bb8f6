/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file One transfer between two hosts through buffers of the receiver, with the pipeline's
 * machines and schedules: production code decides which bytes are packed when, what is published,
 * and what has to wait. Around it are two processors that copy, an adapter that sends one chunk
 * after another, and a wire. Also transfers in one piece, which need no machine. Nanoseconds,
 * bytes, GB/s. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/pipeline/core/chunks.h"

/** "Hardwired C0 = 12 KB and q = 1.5 gives results almost as good as optimal values" (A. Denis
 * 2011, end of section 4). */
#define SIM_C0 12288.0
#define SIM_Q  1.5

/** Levels of caches, including the memory after them. */
#define SIM_LEVELS 4

/** Two equal hosts and the network between them. */
typedef struct sim_machine {
    double latency;  /**< until the first byte has arrived (lambda_net) */
    double gap;      /**< the adapter's, for each chunk (g) */
    double overhead; /**< the processor's, to have a chunk sent (o) */
    double bnet;
    struct {
        double bytes, speed;
    } copy[SIM_LEVELS];       /**< speeds of copies of up to this many bytes; the last: any */
    double pin, pin_byte;     /**< registering memory (lambda_reg, 1 / B_reg) */
    double unpin, unpin_byte; /**< deregistering it */
    double wake;              /**< until a sleeping server looks at what has come */
} sim_machine_t;

/** GB/s at which this many bytes in all are copied (B_copy(L)). */
double sim_copy_speed(const sim_machine_t *m, double bytes);

typedef struct sim_transfer {
    const sim_machine_t *machine;
    uint64_t bytes; /**< at least 1 */
    onic_schedule_t schedule;
    unsigned buffers; /**< the receiver's, 1 .. 64 */
    uint32_t buffer_bytes;
    uint32_t block;  /**< size of sub-blocks that are published one by one; 0: whole chunks */
    double announce; /**< until a chunk that has come is noticed; 0 with flags in it */
    double grant;    /**< time from the call until the sender may put; meanwhile it packs the first
                        chunk. 0: at once */
    double gather_here, gather_there; /**< for all bytes, in addition to copying them */
} sim_transfer_t;

typedef struct sim_transferred {
    double time; /**< from the call to the last byte in the receiver's memory; negative: it hangs */
    unsigned chunks;
    unsigned waits;  /**< times the sender waited for a buffer, or for its grant */
    unsigned stalls; /**< times the receiver waited for more data */
} sim_transferred_t;

sim_transferred_t sim_transfer(const sim_transfer_t *t);

/** A raw write: the adapter moves bytes between registered memory. */
double sim_raw(const sim_machine_t *m, double bytes);
/** Both sides register memory, in sequence or concurrently, and deregister it afterwards. */
double sim_registered(const sim_machine_t *m, double bytes, bool overlapped);
/** Everything is copied, then sent, then copied. */
double sim_copied(const sim_machine_t *m, double bytes);
