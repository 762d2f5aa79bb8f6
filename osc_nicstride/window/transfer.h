/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file A communication call: what it moves from where to where, and which paths it can take. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/layout/layout.h"
#include "osc_nicstride/protocol/message.h"

struct nicstride_module;
struct nicstride_peer;
struct nicstride_request;

typedef struct nicstride_transfer {
    const char *call; /**< name of the MPI call, for texts */
    struct nicstride_module *m;
    struct nicstride_peer *peer;
    nicstride_msg_type_t type; /**< PUT, GET, ACC, GET_ACC or CAS */
    uint16_t op;               /**< accumulates: predefined operation and element type */
    uint16_t dtype;
    uint32_t granule; /**< bytes of an element that must not be torn; 1 for puts and gets */
    onic_layout_t origin;
    onic_layout_t target;
    onic_layout_t result; /**< GET, GET_ACC, CAS: where the returned data goes */
    char *origin_base;    /**< may be 0 (MPI_BOTTOM); CAS: the compare value */
    bool has_origin;      /**< data is sent from the origin, or put there */
    const char *swap;     /**< CAS: the new value */
    char *result_base;
    struct nicstride_request *request; /**< the request of a request-based call, else NULL */
    int64_t disp; /**< bytes from the window's base, or an address for dynamic windows */
    bool mapped;  /**< the target's memory is mapped in this process */
    char *direct; /**< the address of `disp` there; may be 0 (MPI_BOTTOM), so only `mapped` tells if
                     it is valid */
    uint64_t remote; /**< address of `disp` in the target's address space, if the target is on this
                        node */
    unsigned way;    /**< the way that it takes (protocol/order.h) */
    uint64_t from;   /**< the bytes that it accesses: from here to `to`; from the window's base, or
                        addresses */
    uint64_t to;
} nicstride_transfer_t;

/** True if the transfer changes bytes of the target. */
static inline bool nicstride_writes(const nicstride_transfer_t *t)
{
    return t->type != NICSTRIDE_MSG_GET && t->has_origin;
}
