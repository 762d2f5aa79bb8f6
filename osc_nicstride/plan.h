/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The plan of a transfer: which method moves these bytes from this layout to that one.
 *
 * Every method states its cost by the linear model of the strided-RMA paper (section 4): equation
 * (1), T = k ts + tn N, for methods that move each of k contiguous pieces by itself, and equation
 * (2), T = ts + tn N + 2 tm N, for the one that packs. The chooser takes the cheapest that the
 * peer supports. Planning reads two layouts and a few numbers, allocates nothing and is done anew
 * for each call.
 *
 * Pure.
 */
#ifndef NICSTRIDE_PLAN_H
#define NICSTRIDE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/layout.h"
#include "osc_nicstride/cost.h"

typedef enum nicstride_method {
    NICSTRIDE_METHOD_AUTO = 0, /**< not a method: let the chooser choose */
    NICSTRIDE_METHOD_DIRECT,   /**< load and store: the target is mapped, or is this process */
    NICSTRIDE_METHOD_CMA,      /**< process_vm_readv/writev of the pieces: private, same node */
    NICSTRIDE_METHOD_SIEVE,    /**< get: process_vm_readv of the covering extent, then gather */
    NICSTRIDE_METHOD_PACK,     /**< packed fragments by active messages: everywhere */
    NICSTRIDE_METHOD_ZCOPY,    /**< contiguous on both sides: rendezvous into place */
    NICSTRIDE_METHOD_LAST
} nicstride_method_t;

typedef enum nicstride_direction { NICSTRIDE_PUT, NICSTRIDE_GET } nicstride_direction_t;

/** Who would answer a message now? */
typedef enum nicstride_presence {
    NICSTRIDE_PRESENT = 0, /**< an MPI thread of the target, as far as is known */
    NICSTRIDE_SERVED,      /**< its server thread, which has to be woken and can be */
    NICSTRIDE_ABSENT       /**< nobody, until the server thread takes over */
} nicstride_presence_t;

/** What can be done with a peer. `pack` always can. */
typedef struct nicstride_caps {
    bool direct;
    bool cma;
    nicstride_presence_t presence;
    bool no_rendezvous; /**< the memory for it may not be registered */
    bool together;      /**< messages of transfers like this one travel together */
} nicstride_caps_t;

/** Can this method do this transfer with such a peer? */
bool nicstride_method_can(nicstride_method_t m, nicstride_direction_t dir,
                          const onic_layout_t *origin, const onic_layout_t *target,
                          nicstride_caps_t caps);

/** The model's estimate, nanoseconds. Meaningful where nicstride_method_can holds. */
double nicstride_method_cost(nicstride_method_t m, const onic_layout_t *origin,
                             const onic_layout_t *target, const nicstride_cost_t *cost);

/** What is known of the methods' real cost; see tune.h. */
typedef struct nicstride_tune_cell nicstride_tune_cell_t;
typedef struct nicstride_budget nicstride_budget_t;

/** What was learned of transfers of a kind. */
typedef struct nicstride_learned {
    nicstride_tune_cell_t *cell; /**< NULL: nothing */
    nicstride_budget_t *budget;  /**< for trials; NULL: nothing is tried */
} nicstride_learned_t;

/**
 * The method to use. `forced` is taken where it can do the transfer; where it cannot, the chooser
 * decides among the others, so that every program runs whatever is forced. What was learned stands
 * for the model's estimates where it is known and, with a budget, takes note of the choice, which
 * may be a trial. The model sees single transfers: those that travel together are packed where
 * nothing was learned and the target is present.
 *
 * In active target epochs every target counts as present: what it is sent must be there when it
 * comes to the end of its epoch, and is unpacked then, while what the origin would do instead it
 * does while nobody waits for the target but itself.
 */
nicstride_method_t nicstride_plan(nicstride_method_t forced, nicstride_direction_t dir,
                                  const onic_layout_t *origin, const onic_layout_t *target,
                                  nicstride_caps_t caps, const nicstride_cost_t *cost,
                                  nicstride_learned_t learned);

/** Nothing was learned. */
#define NICSTRIDE_MODEL_ALONE ((nicstride_learned_t){.cell = NULL})

/** Does the target take part in this method? */
bool nicstride_method_needs_target(nicstride_method_t m);

/** The constants for peers on the node and across a network. */
typedef struct nicstride_costs {
    const nicstride_cost_t *node;
    const nicstride_cost_t *net;
} nicstride_costs_t;

/**
 * Writes the table of what is used for which kind of peer, direction, block and size where nothing
 * was learned yet, as text, into `buf` (at most `cap` bytes with the closing 0). Returns the length
 * written. Peers with private memory on the node come twice: as in active target and wherever they
 * are in MPI, and as in passive target while their server thread has to be woken.
 */
size_t nicstride_plan_table(nicstride_method_t forced, nicstride_costs_t costs, char *buf,
                            size_t cap);

/** Writes why a transfer goes as it does, for one line: the model's estimates of what can be done,
 *  and what was learned. As above. */
size_t nicstride_plan_reason(nicstride_direction_t dir, const onic_layout_t *origin,
                             const onic_layout_t *target, nicstride_caps_t caps,
                             const nicstride_cost_t *cost, nicstride_learned_t learned, char *buf,
                             size_t cap);

/** Name of a method ("auto", "direct", ...), never NULL. */
const char *nicstride_method_name(nicstride_method_t m);

#endif
