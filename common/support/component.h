/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What every component does when it is opened: it registers its MCA parameters and its MPI_T
 *  performance variables, which belong to the component. One thread. */
#pragma once

#include <stdbool.h>

#include "common/support/export.h"
#include "common/support/param.h"
#include "common/ompi_compat.h"
#include "opal/mca/mca.h"

/** Registers a parameter. A number's range is added to its help. Its default stays where something
 *  is given that is no number of the range; suffixes k, m and g are powers of 1024. */
ONIC_EXPORT void onic_param_register(const mca_base_component_t *c, const onic_param_t *p);

/** True if a word of the list was given, or where there is no list. False after the text "bad-word"
 *  of a help file. */
ONIC_EXPORT bool onic_param_check(const onic_param_t *p, const char *help_file);

/** Checks that each number of the component was given within its range, and each switch as a truth
 *  value. OMPI_SUCCESS, or OMPI_ERR_BAD_PARAM after the text "bad-number" or "bad-switch" of a help
 *  file about each that was not. Also prints which names in the environment, where mpirun puts
 *  those of its command line, are no parameters of the component. */
ONIC_EXPORT int onic_check_given(const mca_base_component_t *c, const char *help_file);

/** Registers `n` performance variables. */
ONIC_EXPORT void onic_register_counters(const mca_base_component_t *c, const onic_counter_t *table,
                                        size_t n);

/** Registers PREFIX_ROW, a counter of a method, protocol or engine, with its name behind `help`. */
ONIC_EXPORT void onic_register_counter_of(const mca_base_component_t *c, const char *prefix,
                                          const char *row, const char *help,
                                          unsigned long long *counter);

/** Says that what a parameter has forced has done nothing, where others have: `counts` of all `n`.
 */
ONIC_EXPORT void onic_say_idle(const char *parameter, const char *value,
                               const unsigned long long *counts, int n, int forced);

/** Prints what a component has counted in this process, at its end, without what is 0. `verbose` is
 *  the parameter of that name: nothing for 0, and for 1 the first process of the job alone. */
ONIC_EXPORT void onic_print_counters(const mca_base_component_t *c, int verbose);
