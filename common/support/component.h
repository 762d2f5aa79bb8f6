/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What every component does when it is opened: the version check, then it registers its MCA
 *  parameters and its MPI_T performance variables, which belong to the component. The functions
 *  return what Open MPI's do: an index, or a negative error code. One thread. */
#pragma once

#include <stdbool.h>

#include "common/support/export.h"
#include "common/ompi_compat.h"
#include "opal/mca/mca.h"

/** False, after a text, where the running series is another one or the running library has another
 *  size for a structure that a component reads: by how Open MPI was configured, or where a shim
 *  stands in for a header that it does not install (common/shim). */
ONIC_EXPORT bool onic_series_matches(const char *component);

/** A number with its range; the text and the check come from one place. */
typedef struct onic_ranged {
    const char *name;
    const char *help; /**< without a full stop; the range is added */
    int value;        /**< the default, then what was set */
    int min;
    int max;
} onic_ranged_t;

/** `*value` is the default, and stays where something is given that is no number of the range,
 * which is added to the help. Suffixes k, m and g are powers of 1024. */
ONIC_EXPORT int onic_register_int(const mca_base_component_t *c, const char *name, const char *help,
                                  int min, int max, int *value);
ONIC_EXPORT int onic_register_ranged(const mca_base_component_t *c, onic_ranged_t *p);
ONIC_EXPORT int onic_register_bool(const mca_base_component_t *c, const char *name, bool initial,
                                   bool *value, const char *help);
/** `initial`, which may be NULL, is the default. */
ONIC_EXPORT int onic_register_string(const mca_base_component_t *c, const char *name,
                                     const char *initial, const char **value, const char *help);

/** Was each number of the component given within its range? OMPI_SUCCESS, or OMPI_ERR_BAD_PARAM
 *  after the text "bad-number" of a help file about each that was not. */
ONIC_EXPORT int onic_check_numbers(const mca_base_component_t *c, const char *help_file);

/** A performance variable that is read from `*counter`; `class` is one of MCA_BASE_PVAR_CLASS_*. */
ONIC_EXPORT int onic_register_counter(const mca_base_component_t *c, const char *name,
                                      const char *help, int class, unsigned long long *counter);

/** Some of them. */
typedef struct onic_counter {
    const char *name, *help;
    unsigned long long *counter;
    int class; /**< MCA_BASE_PVAR_CLASS_*; 0: a counter */
} onic_counter_t;
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
