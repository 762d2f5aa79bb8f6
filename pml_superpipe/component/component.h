/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Parameters and performance variables of the component. One thread. */
#ifndef SUPERPIPE_COMPONENT_H
#define SUPERPIPE_COMPONENT_H

#include "common/support/variables.h"

/** It is selected by name (pml=superpipe): Open MPI looks at no others but its own. */
#define SUPERPIPE_PRIORITY 10

int superpipe_params_register(const mca_base_component_t *c);
/** OMPI_SUCCESS, or OMPI_ERR_BAD_PARAM after a text. */
int superpipe_params_check(void);
int superpipe_pvars_register(const mca_base_component_t *c);

#endif
