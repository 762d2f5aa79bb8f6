/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What the files of the component share. */
#ifndef NICSTRIDE_SETUP_H
#define NICSTRIDE_SETUP_H

#include "ompi/info/info.h"
#include "ompi/win/win.h"
#include "osc_nicstride/window/module.h"

/** Registers parameters; returns OMPI_SUCCESS or an error after a text. */
int nicstride_params_register(const mca_base_component_t *component);
/** Checks the values after all sources were read: range errors get a text and an error. */
int nicstride_params_check(void);
int nicstride_pvars_register(const mca_base_component_t *component);

/** Opens the wire, unless it is open. Any MPI thread. OMPI_SUCCESS or an error. */
int nicstride_open_wire(void);
/** Closes it. False where another component keeps it open, and it may still end sends. */
bool nicstride_close_wire(void);

/** Makes a window, and frees it: Open MPI's functions. Collective; MPI threads. */
int nicstride_win_select(ompi_win_t *win, void **base, size_t size, int disp_unit,
                         ompi_communicator_t *comm, opal_info_t *info, int flavor, int *model);
int nicstride_win_free(ompi_win_t *win);

/** Nothing that comes finds the window any more. */
void nicstride_window_delist(nicstride_module_t *m);
/** Frees all of it; nothing of it is under way. */
void nicstride_window_destroy(nicstride_module_t *m);
/** Frees the windows that the user forgot, or whose sends had not ended. Not while the wire, kept
 *  open by another component, may still end sends of theirs: false where some had to stay. */
bool nicstride_free_orphans(bool wire_closed);

#endif
