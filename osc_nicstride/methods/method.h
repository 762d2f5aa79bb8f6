/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What a method is: a row that says what it can do, what that costs by the model, and how it is
 * started. Whoever chooses compares rows and knows no method by name.
 *
 * Pure, and so are can and cost of each row (estimates.c); start is not (methods.h).
 */
#ifndef NICSTRIDE_METHODS_METHOD_H
#define NICSTRIDE_METHODS_METHOD_H

#include <stdbool.h>

#include "common/layout/layout.h"
#include "common/model/learn.h"
#include "osc_nicstride/protocol/method.h"

struct nicstride_transfer;

/** What can be done with a peer. Messages always can be sent. */
typedef struct nicstride_caps {
    bool direct;        /**< its memory is mapped here, or is this process's */
    bool single_copy;   /**< the kernel copies to and from its memory */
    bool torn;          /**< but elements of these layouts it may tear (whole_words.h) */
    bool mover;         /**< data can go through slots of a landing area */
    bool no_rendezvous; /**< the memory for it may not be registered */
    bool together;      /**< messages of transfers like this one travel together */
    nicstride_presence_t presence;
} nicstride_caps_t;

typedef struct nicstride_method_row nicstride_method_row_t;

/** What a plan is made from. */
typedef struct nicstride_case {
    const nicstride_method_row_t *rows; /**< of all methods, by number */
    nicstride_method_t forced;          /**< NICSTRIDE_METHOD_AUTO: none is */
    nicstride_direction_t dir;
    const onic_layout_t *origin; /**< of the same size as the target's */
    const onic_layout_t *target;
    nicstride_caps_t caps;
    const nicstride_path_t *path;
    onic_learned_t learned; /**< its choices are the numbers of methods */
} nicstride_case_t;

/** Can the method do this transfer with such a peer? */
typedef bool nicstride_can_t(const nicstride_case_t *c);

/** What that takes by the model, nanoseconds, with a target that is present. Meaningful where it
 *  can be done. */
typedef double nicstride_cost_t(const nicstride_case_t *c);

/**
 * Does a put or a get, or begins it: what is needed longer is taken over from `t`. `*done_p` says
 * whether it is locally complete; else the transfer's request, if any, will be completed.
 * OMPI_SUCCESS, or an error after a text. OMPI_ERR_NOT_SUPPORTED and OMPI_ERR_OUT_OF_RESOURCE,
 * without one, of a method that does not need the target: another method must do it.
 */
typedef int nicstride_start_t(struct nicstride_transfer *t, bool *done_p);

struct nicstride_method_row {
    const char *name;
    bool needs_target; /**< the target takes part: it has to be there */
    nicstride_can_t *can;
    nicstride_cost_t *cost;
    nicstride_start_t *start;
};

/* estimates.c */
nicstride_can_t nicstride_direct_can, nicstride_cma_can, nicstride_sieve_can, nicstride_pack_can,
    nicstride_mover_can, nicstride_zcopy_can;
nicstride_cost_t nicstride_direct_cost, nicstride_cma_cost, nicstride_sieve_cost,
    nicstride_pack_cost, nicstride_mover_cost, nicstride_zcopy_cost;

#endif
