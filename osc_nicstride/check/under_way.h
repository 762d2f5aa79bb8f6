/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The calls of one process in one window that may not be complete yet, with the bytes that
 *  they access: at their targets and in local buffers. A new call is compared with them block by
 *  block.
 *
 *  Pure. The caller serialises. Memory grows with what is under way, up to a bound. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/layout/layout.h"
#include "osc_nicstride/check/rule.h"

/** The place of local buffers, in which offsets are addresses. Other places are target ranks. */
#define NICSTRIDE_HERE UINT32_MAX

/** A call. */
typedef struct nicstride_noted {
    const char *name;    /**< name of the MPI call; must stay valid */
    uint64_t number;     /**< from 1 on, in the order of the calls; set here */
    int64_t from, to;    /**< the range at the target: its first byte, and the one after its last */
    uint32_t target;     /**< its rank */
    nicstride_use_t use; /**< of the target's bytes */
    bool has_request;    /**< the call may also complete through its request */
    bool returned;       /**< its request is complete; set here */
    bool refused;        /**< it was not made; set here */
    uint64_t before;     /**< the call to this target before it; set here */
    uint32_t pieces;     /**< pieces kept for this call; set here */
} nicstride_noted_t;

typedef struct nicstride_piece nicstride_piece_t;

/** Made by nicstride_under_way_init. */
typedef struct nicstride_under_way {
    nicstride_promises_t promises;
    uint32_t targets;
    uint32_t most;   /**< limit on the pieces that are kept */
    uint32_t n, cap; /**< pieces, of which the first is unused */
    uint32_t ncalls, calls_cap;
    uint32_t busy;   /**< targets with something under way */
    uint32_t passed; /**< pieces that were skipped because they are over */
    bool full;       /**< there is no room: nothing more is entered or compared */
    uint64_t last;   /**< number of the last call */
    nicstride_piece_t *piece;
    nicstride_noted_t *call; /**< in the order of the calls' numbers */
    uint32_t *root;          /**< per target its pieces, then those of local buffers */
    struct nicstride_over {
        uint64_t last;  /**< the last call to the target */
        uint64_t here;  /**< calls up to this number are locally complete */
        uint64_t there; /**< calls up to this number are complete at the target */
    } * over;           /**< per target */
} nicstride_under_way_t;

/** The first conflict of a new access. */
typedef struct nicstride_clash {
    bool found;
    bool itself;            /**< the call names these bytes twice */
    nicstride_noted_t with; /**< otherwise the call under way that it conflicts with */
    int64_t at;             /**< one of the shared bytes, as offsets count at that place */
} nicstride_clash_t;

/** False if memory is exhausted. At most `most` > 0 blocks are kept. */
bool nicstride_under_way_init(nicstride_under_way_t *w, uint32_t targets, uint32_t most);
void nicstride_under_way_fini(nicstride_under_way_t *w);

/** Enters a call and sets its number. Its accesses follow. Returns the number. */
uint64_t nicstride_under_way_call(nicstride_under_way_t *w, const nicstride_noted_t *call);

/** Enters an access of the last call: the layout's bytes from `base` on, at `place`. False if not
 *  all could be entered. Bytes below 0 or beyond INT64_MAX are left out. */
bool nicstride_under_way_add(nicstride_under_way_t *w, uint32_t place, int64_t base,
                             const onic_layout_t *l, nicstride_use_t use,
                             nicstride_clash_t *clash_p);

/** Notes that all calls to a target (UINT32_MAX: to all targets) are complete there, or, with
 *  `here`, locally. */
void nicstride_under_way_over(nicstride_under_way_t *w, uint32_t target, bool here);
/** Notes that the request of a call is complete. */
void nicstride_under_way_returned(nicstride_under_way_t *w, uint64_t number);
/** Notes that a call is not made. */
void nicstride_under_way_refused(nicstride_under_way_t *w, uint64_t number);
