/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Functions that the files of the component share. */
#pragma once

#include "ompi/info/info.h"
#include "ompi/win/win.h"
#include "osc_nicstride/check/rule.h"
#include "osc_nicstride/window/module.h"

/** Registers parameters and counters. */
void nicstride_params_register(const mca_base_component_t *component);
/** Checks the values after all sources were read. Values out of range get a text and an error. */
int nicstride_params_check(const mca_base_component_t *component);

/** Opens the transport, unless it is open. Any MPI thread. OMPI_SUCCESS or an error. */
int nicstride_open_wire(void);
/** Closes the transport. False if another component keeps it open, which may then still end
 *  sends. */
bool nicstride_close_wire(void);

/** Open MPI's functions that make and free a window. Collective; MPI threads. */
int nicstride_win_select(ompi_win_t *win, void **base, size_t size, onic_disp_unit_t disp_unit,
                         ompi_communicator_t *comm, opal_info_t *info, int flavor, int *model);
int nicstride_win_free(ompi_win_t *win);

/** Removes the window from the table: messages that arrive later do not find it. */
void nicstride_window_delist(nicstride_module_t *m);
/** Frees the whole window. Nothing of it may be under way. */
void nicstride_window_destroy(nicstride_module_t *m);

/* ---- the model (params.c) -------------------------------------------------------------------- */

/** Prints the numbers in use and the methods that they choose, once, on rank 0. */
void nicstride_plan_show(const nicstride_module_t *m);
/** At the end of the process: tells the user if a forced method has moved nothing. */
void nicstride_say_idle(void);
/** Tells the user that a window is in use, and how its processes reach each other's memory. */
void nicstride_window_show(const nicstride_module_t *m);

/* ---- agreement on the component, before a window is made (agreement.c) ----------------------- */

/** Publishes what this process has. Called once, when the component is opened. */
int nicstride_agreement_init(void);
void nicstride_agreement_fini(void);

/** True if all members of `comm` have the same version and parameters of this component. Called by
 *  all members that have it, which get the same answer. A text names the host that differs, once
 *  per host. Any MPI thread. */
bool nicstride_all_agree(ompi_communicator_t *comm);

/* ---- making windows (window.c, memory.c) ----------------------------------------------------- */

/** What each rank sends all others when a window is made. No padding. */
typedef struct nicstride_facts {
    int32_t rc;      /**< why the rank cannot take part, or OMPI_SUCCESS */
    int32_t leader;  /**< leader of its node (onic_node_leader); itself, if it must be alone */
    int32_t address; /**< bytes of its own address */
    int32_t wishes;  /**< a set of NICSTRIDE_WANTS_... */
    nicstride_rank_info_t info;
} nicstride_facts_t;

enum {
    NICSTRIDE_WANTS_CONTIGUOUS = 1, /**< the parts of a shared window lie one behind another */
    NICSTRIDE_WANTS_PAGES = 2,      /**< memory begins at a page */
    NICSTRIDE_WANTS_ADDRESSES = 4   /**< the rank does not know the addresses of all */
};

/** The value of a boolean key; false if it is not given. `info` may be NULL. */
bool nicstride_info_bool(opal_info_t *info, const char *key);
/** The bytes that mpi_accumulate_granularity gives; 0: it is not given, or no number. */
uint32_t nicstride_info_granularity(opal_info_t *info);
/** What the program promises by accumulate_ops and accumulate_ordering. */
nicstride_promises_t nicstride_info_promises(opal_info_t *info);
/** Subscribes to the keys that MPI_Win_get_info returns. */
int nicstride_subscribe_info(ompi_win_t *win);

/** How this process's memory must lie: a set of NICSTRIDE_WANTS_... */
int32_t nicstride_memory_wants(const nicstride_module_t *m, opal_info_t *info);
/** Makes the control blocks, which are indispensable, and the memory of the window. The memory is
 *  private if it cannot be shared, unless it must be shared. Collective over `m->node`, which may
 *  shrink. The result may differ between ranks. `facts` are those of all ranks; `*base` is the
 *  user's memory for MPI_Win_create. */
int nicstride_make_memory(nicstride_module_t *m, void **base, size_t size,
                          const nicstride_facts_t *facts);
