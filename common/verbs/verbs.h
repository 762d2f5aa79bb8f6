/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Verbs devices, of InfiniBand and RoCE: the port that is used, and queue pairs for
 * datagrams on it. That no device is there is a normal state. What can be decided without a device
 * is in verbs_port.h.
 *
 *      verbs.c        devices and ports
 *      verbs_queue.c  queue pairs with their completion queues and receive buffers
 *
 *  Memory: what is registered and what the adapter needs for its queues has to fit into what
 *  processes may lock, which is 64 KiB by default.
 *
 *  After fork the child has no use for any of it. The buffers are not copied to it, so that on
 *  kernels that would move the parent's pages at the next write they stay where the adapter knows
 *  them; the queues are libibverbs's own, which does the same for them on such kernels where it is
 *  asked to (RDMAV_FORK_SAFE, or UCX). The child never calls libibverbs, not even to give up what
 *  belongs to the parent; that is for the callers to see to.
 *
 *  Threads: one at a time for each port and queue; different ones do not disturb each other.
 *
 *  Only in builds with libibverbs (OMPI_NIC_HAVE_VERBS). */
#pragma once

#include <infiniband/verbs.h>

#include "common/support/export.h"
#include "common/verbs/verbs_port.h"

/** Why something could not be had: one line for the user, without a full stop or a newline. */
typedef struct onic_verbs_reason {
    char text[200];
} onic_verbs_reason_t;

/* ---- ports ----------------------------------------------------------------------------------- */

/** A port that is in use; all zero: none. */
typedef struct onic_verbs_port {
    struct ibv_context *context;
    struct ibv_pd *pd;
    uint8_t number;            /**< of the device's ports */
    uint8_t gid_index;         /**< Ethernet: which of the port's addresses is mine */
    onic_verbs_address_t mine; /**< without a queue pair */
} onic_verbs_port_t;

/** Chooses a port that is active and finds its address.
 *
 *  @param filter  valid (onic_verbs_filter_valid); empty: any
 *  @return 0, or -1 and the reason; then nothing is open */
ONIC_EXPORT int onic_verbs_port_open(onic_verbs_port_t *port, const char *filter,
                                     onic_verbs_reason_t *why);

/** Queues on it are closed already. Does nothing where it is not open. */
ONIC_EXPORT void onic_verbs_port_close(onic_verbs_port_t *port);

/** The way from my port to another one: for an address handle, or for a queue pair that is to be
 *  connected to one there. */
ONIC_EXPORT struct ibv_ah_attr onic_verbs_route(const onic_verbs_port_t *port,
                                                const onic_verbs_address_t *to);

/* ---- queue pairs ----------------------------------------------------------------------------- */

/** What a queue pair for datagrams is to be like. */
typedef struct onic_verbs_queue_spec {
    uint32_t qkey;
    unsigned sends;         /**< work requests to send that may be under way, at least 1 */
    unsigned send_bytes;    /**< of each of as many buffers to send from; the adapter takes so much
                                 inline where it can */
    unsigned receives;      /**< receive buffers, all of them posted: so many, or half of that, and
                                 so on down to receives_min, as there is memory */
    unsigned receives_min;  /**< at least 1 */
    unsigned receive_bytes; /**< of each; the global route included, ONIC_VERBS_GRH */
} onic_verbs_queue_spec_t;

/** All zero: closed. Read by its owner, which posts to `qp` and polls `received` and `sent`. */
typedef struct onic_verbs_queue {
    const onic_verbs_port_t *port;
    onic_verbs_queue_spec_t spec;
    struct ibv_comp_channel *channel; /**< of `received`; its descriptor does not block */
    struct ibv_cq *received, *sent;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    unsigned char *memory; /**< receive buffers, then those to send from */
    size_t bytes;
    unsigned receives;         /**< receive buffers there are */
    bool sends_inline;         /**< the adapter takes the bytes themselves, not their address */
    onic_verbs_address_t mine; /**< what partners must know */
    bool broken;               /**< the owner sets it: the queue pair is in an error state, or would
                                    not take something */
    uint64_t mended;           /**< when that was tried last */
} onic_verbs_queue_t;

/** Opens a queue on the port, which stays where it is as long. 0, or -1 and the reason; then
 *  nothing is open. */
ONIC_EXPORT int onic_verbs_queue_open(onic_verbs_queue_t *q, const onic_verbs_port_t *port,
                                      const onic_verbs_queue_spec_t *spec,
                                      onic_verbs_reason_t *why);

/** Close, in two parts, because address handles must be given up in between; stop may be left out.
 *  Both do nothing where it is closed. */
ONIC_EXPORT void onic_verbs_queue_stop(onic_verbs_queue_t *q);
ONIC_EXPORT void onic_verbs_queue_close(onic_verbs_queue_t *q);

/** Brings a queue pair back that is broken; its number and key stay what partners know. What was
 *  under way is lost, which is what datagrams are. Does not try too often.
 *
 *  @return true where all that was posted to send or has been received is gone, and all receive
 *          buffers are posted, unless q->broken says that it did not come up again */
ONIC_EXPORT bool onic_verbs_queue_mend(onic_verbs_queue_t *q);

/** Receive buffer i, and buffer i to send from. */
static inline unsigned char *onic_verbs_receive_buffer(const onic_verbs_queue_t *q, uint64_t i)
{
    return q->memory + i * q->spec.receive_bytes;
}

static inline unsigned char *onic_verbs_send_buffer(const onic_verbs_queue_t *q, uint64_t i)
{
    return q->memory + (size_t)q->receives * q->spec.receive_bytes + i * q->spec.send_bytes;
}

/** Posts receive buffer i, which its completion names again (wr_id). */
static inline bool onic_verbs_queue_post(onic_verbs_queue_t *q, uint64_t i)
{
    struct ibv_sge piece = {.addr = (uintptr_t)onic_verbs_receive_buffer(q, i),
                            .length = q->spec.receive_bytes,
                            .lkey = q->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &piece, .num_sge = 1}, *bad;
    return ibv_post_recv(q->qp, &wr, &bad) == 0;
}
