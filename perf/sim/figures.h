/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The figures of the papers as tables: a line of names, then lines of numbers. */
#pragma once

#include <stdint.h>
#include <stdio.h>

/** Options for all figures. */
typedef struct sim_options {
    uint64_t seed;
    int32_t members; /**< most members of a barrier */
} sim_options_t;

typedef struct sim_figure {
    const char *name;
    void (*print)(FILE *to, const sim_options_t *options);
} sim_figure_t;

/** Each ends with an entry whose name is NULL. */
extern const sim_figure_t sim_figures_superpipeline[], sim_figures_strided[], sim_figures_barrier[],
    sim_figures_armci[];

/** The ratio from one size to the next. */
#define SIM_SIZE_STEP 1.189207115002721
