/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The calls of one process in one window that MPI does not know to be complete yet, with the
 *  bytes that they are about: at their targets, and in buffers of the process. A new one is
 * compared with them, byte for byte: what is strided is kept as runs of blocks.
 *
 *  Pure. The caller serialises. Memory follows what is under way, up to a bound. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/layout/layout.h"
#include "osc_nicstride/check/rule.h"

/** The place of the process's own buffers, where offsets are addresses; others are target ranks. */
#define NICSTRIDE_HERE UINT32_MAX

/** A call. */
typedef struct nicstride_noted {
    const char *name;    /**< of the MPI call; stays valid */
    uint64_t number;     /**< from 1 on, in the order of the calls */
    int64_t from, to;    /**< what it covers at the target: first byte, and one behind the last */
    uint32_t target;     /**< its rank */
    nicstride_use_t use; /**< of the target's bytes */
    bool has_request;    /**< it completes by itself, too */
    bool returned;       /**< its request is complete; set here, as is: */
    uint32_t pieces;     /**< that are kept for it */
} nicstride_noted_t;

typedef struct nicstride_piece nicstride_piece_t;

/** Made by nicstride_under_way_init. */
typedef struct nicstride_under_way {
    nicstride_promises_t promises;
    uint32_t targets;
    uint32_t most;   /**< pieces that are kept */
    uint32_t n, cap; /**< of pieces; the first is none */
    uint32_t ncalls, calls_cap;
    uint32_t busy;   /**< targets to which something is under way */
    uint32_t passed; /**< pieces that were met although they are over */
    bool full;       /**< there is no room: nothing is entered or compared */
    uint64_t last;   /**< number of the last call */
    nicstride_piece_t *piece;
    nicstride_noted_t *call; /**< in the order of their numbers */
    uint32_t *root;          /**< for each target its pieces, then those of buffers here */
    struct nicstride_over {
        uint64_t last;  /**< of its calls; those up to these are */
        uint64_t here;  /**< locally complete */
        uint64_t there; /**< complete at the target */
    } * over;           /**< for each target */
} nicstride_under_way_t;

/** What a new access has met first. */
typedef struct nicstride_clash {
    bool found;
    bool itself;            /**< the call names these bytes twice */
    nicstride_noted_t with; /**< else: the call under way */
    int64_t at;             /**< one of the bytes, as offsets count there */
} nicstride_clash_t;

/** False where memory is exhausted. At most `most` > 0 runs of blocks are kept. */
bool nicstride_under_way_init(nicstride_under_way_t *w, uint32_t targets, uint32_t most);
void nicstride_under_way_fini(nicstride_under_way_t *w);

/** Enters a call, whose number is set here; then its accesses follow. Returns the number. */
uint64_t nicstride_under_way_call(nicstride_under_way_t *w, const nicstride_noted_t *call);

/** Enters an access of the last call: the layout's bytes from `base` on, at `place`. False where
 * not all could be entered. What reaches below 0 or beyond INT64_MAX is left out. */
bool nicstride_under_way_add(nicstride_under_way_t *w, uint32_t place, int64_t base,
                             const onic_layout_t *l, nicstride_use_t use,
                             nicstride_clash_t *clash_p);

/** All calls to a target are complete there, or, with `here`, locally; UINT32_MAX: to all. */
void nicstride_under_way_over(nicstride_under_way_t *w, uint32_t target, bool here);
/** The request of a call is complete. */
void nicstride_under_way_returned(nicstride_under_way_t *w, uint64_t number);
