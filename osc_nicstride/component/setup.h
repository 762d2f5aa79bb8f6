/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What the files of the component share. */
#pragma once

#include "ompi/info/info.h"
#include "ompi/win/win.h"
#include "osc_nicstride/check/rule.h"
#include "osc_nicstride/window/module.h"

/** Registers parameters and counters. */
void nicstride_params_register(const mca_base_component_t *component);
/** Checks the values after all sources were read: range errors get a text and an error. */
int nicstride_params_check(const mca_base_component_t *component);

/** Opens the transport, unless it is open. Any MPI thread. OMPI_SUCCESS or an error. */
int nicstride_open_wire(void);
/** Closes it. False where another component keeps it open, and it may still end sends. */
bool nicstride_close_wire(void);

/** Makes a window, and frees it: Open MPI's functions. Collective; MPI threads. */
int nicstride_win_select(ompi_win_t *win, void **base, size_t size, onic_disp_unit_t disp_unit,
                         ompi_communicator_t *comm, opal_info_t *info, int flavor, int *model);
int nicstride_win_free(ompi_win_t *win);

/** Nothing that comes finds the window any more. */
void nicstride_window_delist(nicstride_module_t *m);
/** Frees all of it; nothing of it is under way. */
void nicstride_window_destroy(nicstride_module_t *m);
/** Frees the windows that the user forgot, or whose sends had not ended. Not while the transport,
 * kept open by another component, may still end sends of theirs: false where some had to stay. */
bool nicstride_free_orphans(bool wire_closed);

/* ---- the model (params.c) ---- */

/** Prints the numbers in use and the methods that they choose, once, on rank 0. */
void nicstride_plan_show(const nicstride_module_t *m);
/** At the end of the process: says so where the method that is forced has moved nothing. */
void nicstride_say_idle(void);
/** Says that a window is in use, and how its processes reach each other's memory. */
void nicstride_window_show(const nicstride_module_t *m);

/* ---- agreement on the component, before a window is made (agreement.c) ---- */

/** Publishes what this process has; once, when the component is opened. */
int nicstride_agreement_init(void);
void nicstride_agreement_fini(void);

/** Do all members of `comm` have the same of this component? By all members that have it, which get
 *  the same answer. A text names the host that differs, once on each host. Any MPI thread. */
bool nicstride_all_agree(ompi_communicator_t *comm);

/** Has the user asked for this component? With the initial priority another one is chosen as long
 *  as there is one, and nothing has to be exchanged. */
bool nicstride_wanted(void);

/** What the addresses of the members take up at most, in bytes, if they are to be exchanged; 0
 *  where all members know all. Behind nicstride_all_agree for the same window, by the same thread
 *  of all members, which get the same. */
int nicstride_addresses(ompi_communicator_t *comm, size_t *most_p);

/* ---- making windows (window.c, memory.c) ----------------------------------------------------- */

/** What each rank sends the others when a window is made, all at once. No gaps. */
typedef struct nicstride_facts {
    int32_t rc;      /**< why it cannot take part, or OMPI_SUCCESS */
    int32_t leader;  /**< of its node (onic_node_leader); itself, where it is to be alone */
    int32_t address; /**< bytes of its own address, where that is sent */
    int32_t wishes;  /**< how its memory shall lie: a set of NICSTRIDE_WANTS_... */
    nicstride_rank_info_t info;
} nicstride_facts_t;

enum {
    NICSTRIDE_WANTS_CONTIGUOUS = 1, /**< the parts of a shared window one behind another */
    NICSTRIDE_WANTS_PAGES = 2       /**< memory from the begin of a page */
};

/** The value of a boolean key, false where it is not given. `info` may be NULL. */
bool nicstride_info_bool(opal_info_t *info, const char *key);
/** The text of a key, empty where it is not given: false then. `room` bytes, with the end. */
bool nicstride_info_text(opal_info_t *info, const char *key, char *value, size_t room);
/** What mpi_accumulate_granularity says, in bytes; 0: nothing, or no number. */
uint32_t nicstride_info_granularity(opal_info_t *info);
/** What a window is promised by accumulate_ops and accumulate_ordering. */
nicstride_promises_t nicstride_info_promises(opal_info_t *info);
/** Subscribes to the keys that MPI_Win_get_info shall show. */
int nicstride_subscribe_info(ompi_win_t *win);

/** How this process's memory shall lie. */
int32_t nicstride_memory_wants(const nicstride_module_t *m, opal_info_t *info);
/** Makes the control blocks, which must be had, and the memory of the window, private where it
 *  cannot be shared, unless it must be. Collective over `m->node`, which may become smaller. The
 *  code may differ between ranks. `facts` are those of all ranks; `*base` is the user's memory for
 *  MPI_Win_create. */
int nicstride_make_memory(nicstride_module_t *m, void **base, size_t size,
                          const nicstride_facts_t *facts);
