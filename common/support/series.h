/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Whether this is the Open MPI that a component was built for, and whether anybody has asked
 *  for the component. One thread, once the component's framework has registered its own parameter.
 */
#pragma once

#include <stdbool.h>

#include "common/support/export.h"
#include "common/ompi_compat.h"
#include "opal/mca/mca.h"

/** False where the running series is another one or the running library has another size for a
 *  structure that a component reads: by how Open MPI was configured, or where a shim stands in for
 *  a header that it does not install (common/shim). After a text, if the component was named or its
 *  priority given. */
ONIC_EXPORT bool onic_series_matches(const mca_base_component_t *c);
