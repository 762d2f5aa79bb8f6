/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What the files that make windows share. */
#ifndef NICSTRIDE_WINDOW_H
#define NICSTRIDE_WINDOW_H

#include "osc_nicstride/window/module.h"

#define NICSTRIDE_HELP_FILE "help-osc-nicstride.txt"

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
    NICSTRIDE_WANTS_PAGES = 2,      /**< memory from the begin of a page */
    NICSTRIDE_WANTS_ADAPTER = 4     /**< accumulates by an adapter, if all want that */
};

/** Info key: the program's accumulates are of one element of a predefined type each. Components of
 *  Open MPI have it. */
#define NICSTRIDE_SINGLE_INTRINSIC "acc_single_intrinsic"

/** Says why a window could not be made, and returns `rc`. */
int nicstride_select_error(int rc, const char *reason);

/** The value of a boolean key, false where it is not given. `info` may be NULL. */
bool nicstride_info_bool(opal_info_t *info, const char *key);
/** Is memory wanted that is aligned to more than a cache line? */
bool nicstride_info_pages(opal_info_t *info);
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

#endif
