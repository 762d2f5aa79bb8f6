/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The numbers of the model in this process: where they come from, and what is said of them.
 */
#ifndef NICSTRIDE_COMPONENT_MODEL_H
#define NICSTRIDE_COMPONENT_MODEL_H

#include "osc_nicstride/window/module.h"

/** Takes the numbers that the parameter cost gives; OMPI_SUCCESS, or an error after a text. */
int nicstride_model_init(const char *cost);

/** Prints the numbers in use and the methods that they choose, once, on rank 0. */
void nicstride_model_show(const nicstride_module_t *m);
/** Where that was printed: what was done, and what was learned; at the end of the process. */
void nicstride_model_show_done(void);

#endif
