/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The component in this process: parameters, counters, tables shared by its windows. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/ompi_compat.h"
#include "opal/class/opal_hash_table.h"

#include "common/support/handle.h"
#include "common/support/param.h"
#include "osc_nicstride/protocol/limits.h"
#include "osc_nicstride/protocol/method.h"
#include "osc_nicstride/protocol/peer_layout_cache.h"

/** Values of the MCA parameters (documented in params.c). */
typedef struct nicstride_params {
    size_t priority;
    int method;
    int schedule;
    bool show_plan;
    size_t check;
    size_t verbose;
    bool node;
    bool cma;
    bool server;
    size_t server_idle;
    size_t memory;
    size_t area;
    bool network_slots;
    size_t queues;
} nicstride_params_t;

#define NICSTRIDE_HELP_FILE "help-osc-nicstride.txt"

/** Lower than all osc components that come with Open MPI. */
#define NICSTRIDE_PRIORITY_INITIAL 5

typedef struct nicstride_component {
    nicstride_params_t params;
    nicstride_limits_t limits;         /**< the longest messages of each kind */
    onic_links_t links;                /**< the model's numbers, from which choices are made */
    char links_from[ONIC_LINKS_FROM];  /**< where these numbers come from */
    nicstride_path_t path[ONIC_KINDS]; /**< the numbers of each kind of peer */
    const nicstride_method_row_t *const *methods; /**< the row of each method; NULL: none */
    bool wire_open;
    bool plan_shown; /**< this process has printed the plan */
    bool world_met; /**< all processes of MPI_COMM_WORLD took part in a window, so a fence finds all
                       of them */
    opal_hash_table_t windows; /**< windows by this process's names for them; transport lock */
    onic_handles_t ops;        /**< operations that wait for replies; transport lock */
    /** The last name given to a window; names are never reused; transport lock. */
    uint32_t last_name;
    /** Windows that stay until the process ends, as the user forgot them, or sends did not end. */
    struct nicstride_module *orphans;
} nicstride_component_t;

extern nicstride_component_t nicstride_component;

/** The method that the user has forced, or NICSTRIDE_METHOD_AUTO. */
static inline nicstride_method_t nicstride_forced(void)
{
    return (nicstride_method_t)nicstride_component.params.method;
}

/** Counters. Updated without locks, so they are statistics and not exact, except those of live
 *  objects. */
typedef struct nicstride_counters {
    unsigned long long ops[NICSTRIDE_METHODS_MAX];   /**< of all kinds, by method */
    unsigned long long bytes[NICSTRIDE_METHODS_MAX]; /**< bytes of target memory accessed */
    unsigned long long messages;                     /**< fragments sent */
    unsigned long long locks_together; /**< locks asked for in one message with an operation */
    unsigned long long window_locks;   /**< requests for a window's lock */
    unsigned long long wakeups;        /**< helper threads of others that were woken */
    unsigned long long lookups;        /**< lookups of others' parameters, in Open MPI's exchange */
    unsigned long long keys_asked;     /**< requests for keys of targets' memory */
    unsigned long long keys_refused;   /**< those of them that were refused */
    unsigned long long conflicts;      /**< conflicts found by checks of the program */
    unsigned long long refused; /**< messages refused: malformed, or for a window that is gone */
    unsigned long long lists_named;   /**< messages that name a list */
    unsigned long long live_ops;      /**< operation objects not yet freed */
    unsigned long long live_requests; /**< request objects not yet freed */
} nicstride_counters_t;

extern nicstride_counters_t nicstride_counters;

/** Counts an operation of this method that accesses `bytes` bytes of target memory. Any thread. */
static inline void nicstride_count(nicstride_method_t method, uint64_t bytes)
{
    onic_count(&nicstride_counters.ops[method], 1);
    onic_count(&nicstride_counters.bytes[method], bytes);
}

/** Prints why a window could not be made, and returns `rc`. */
int nicstride_select_error(int rc, const char *reason);
