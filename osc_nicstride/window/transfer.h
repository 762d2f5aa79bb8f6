/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file A communication call: what moves from where to where, and by which paths it can. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/layout/layout.h"
#include "osc_nicstride/protocol/message.h"
#include "osc_nicstride/window/module.h"

struct nicstride_request;

typedef struct nicstride_transfer {
    const char *call; /**< name of the MPI call, for texts */
    nicstride_module_t *m;
    nicstride_peer_t *peer;
    nicstride_msg_type_t type; /**< PUT, GET, ACC, GET_ACC or CAS */
    uint16_t op;               /**< accumulates: predefined operation and element type */
    uint16_t dtype;
    uint32_t granule; /**< bytes of an element that must not be torn; 1 for put and get */
    onic_layout_t origin;
    onic_layout_t target;
    onic_layout_t result; /**< GET, GET_ACC, CAS: where what comes back goes */
    char *origin_base;    /**< may be 0 (MPI_BOTTOM); CAS: the compare value */
    bool has_origin;      /**< data of the origin is sent, or comes there */
    const char *swap;     /**< CAS: the new value */
    char *result_base;
    struct nicstride_request *request; /**< of a request-based call, else NULL */
    onic_learn_cell_t *cell;           /**< where its cost is to be noted; NULL: nowhere */
    int64_t disp;    /**< bytes from the window's base, or an address for dynamic windows */
    bool mapped;     /**< the target's memory is in my address space: */
    char *direct;    /**< disp there; may be 0 (MPI_BOTTOM), so only `mapped` says if it counts */
    uint64_t remote; /**< address of disp in the target's address space, where that is on my node */
} nicstride_transfer_t;

/** Is the memory of a target mapped here, and to be used so? */
static inline bool nicstride_is_mapped(const nicstride_module_t *m, int target)
{
    const int local = onic_node_index(&m->node, target);

    return local >= 0 && m->mapped[local] != NULL && m->flavor != MPI_WIN_FLAVOR_DYNAMIC;
}
