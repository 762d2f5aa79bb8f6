/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Transport verbs UD, inside: one queue pair for datagrams on one port of one device, of InfiniBand
 * or RoCE, with a ring of posted receive buffers. That no device is there is a normal state.
 *
 *     verbs.c           device, port, queue pair
 *     datagram_verbs.c  the transport: partners, packets
 *
 * Memory: what is registered and what the adapter needs for its queues is to fit into the 64 KiB
 * that processes may lock by default. What overflows the ring is lost, and asked for again.
 *
 * After fork the child has no use for any of it. The buffers are not copied to it, so that on
 * kernels that would move the parent's pages at the next write they stay where the adapter knows
 * them; the queues are libibverbs's own, which does the same for them on such kernels where it is
 * asked to (RDMAV_FORK_SAFE, or UCX). The child never calls libibverbs, not even to give up what
 * belongs to the parent.
 *
 * Threads: as for the transport, the lock of the engine is held.
 */
#ifndef NICBARRIER_VERBS_H
#define NICBARRIER_VERBS_H

#include <infiniband/verbs.h>

#include "coll_nicbarrier/engines/datagram/datagram.h"
#include "coll_nicbarrier/engines/datagram/port.h"

/** Packets to send that may be under way. */
#define NICBARRIER_VERBS_SENDS 64
/** Bytes of a receive buffer: the global route, a packet, and room to see that one is longer. */
#define NICBARRIER_VERBS_BUFFER 128
/** Completions that are fetched at once. */
#define NICBARRIER_VERBS_BATCH 16

_Static_assert(NICBARRIER_VERBS_BUFFER > NICBARRIER_PORT_GRH + NICBARRIER_PACKET_SIZE,
               "a packet fits");

/** All zero: closed. */
typedef struct nicbarrier_verbs_queue {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel; /**< of `received` */
    struct ibv_cq *received, *sent;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    unsigned char *memory; /**< receive buffers, then those to send from */
    size_t bytes;
    unsigned ring;     /**< receive buffers */
    bool sends_inline; /**< the adapter takes the packet itself, not its address */
    uint8_t port;      /**< of the device */
    uint8_t gid_index; /**< Ethernet: which of the port's addresses is mine */
    uint32_t qkey;
    nicbarrier_port_address_t mine;
    uint64_t posted, done;                       /**< packets; `done` may be late */
    struct ibv_wc batch[NICBARRIER_VERBS_BATCH]; /**< of `received`: of so many, so many taken */
    int batched, taken;
    bool broken; /**< the queue pair is in an error state, or would not take something */
    uint64_t mended;
} nicbarrier_verbs_queue_t;

/** Opens a device that fits the filter (port.h), with that key. 0, or -1 and the reason; then
 *  nothing is open. */
int nicbarrier_verbs_queue_open(nicbarrier_verbs_queue_t *q, const char *filter, uint32_t qkey,
                                nicbarrier_reason_t *why);
/** In two parts, because address handles must go in between. */
void nicbarrier_verbs_queue_stop(nicbarrier_verbs_queue_t *q);
void nicbarrier_verbs_queue_close(nicbarrier_verbs_queue_t *q);

/** Posts receive buffer i. */
bool nicbarrier_verbs_queue_post(nicbarrier_verbs_queue_t *q, uint64_t i);

/** Brings a queue pair back that is broken; its number and key stay what partners know. What was
 *  under way is lost, which is what datagrams are. Does not try too often. */
void nicbarrier_verbs_queue_mend(nicbarrier_verbs_queue_t *q);

#endif
