/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The row of UCX: messages to all that no other row reaches, and data. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/support/export.h"
#include "common/transport/row/requirements.h"

extern const struct onic_row onic_row_ucx;

/** Loads UCX, once and for good (ucx.h). A component that the user has asked for does so while it
 *  is opened, `opening`, in MPI_Init, so that UCX's hooks can be left out: the environment is
 *  changed for that time. Else the transport does when it is opened. OMPI_SUCCESS, or an error
 * after a text. */
ONIC_EXPORT int onic_ucx_load(bool opening);

/** The configured transports as in UCX_TLS: the parameter's or the environment's; NULL for all. */
const char *onic_ucx_tls(const onic_transport_config_t *config);

/** This process's worker address, while the row runs. */
const void *onic_ucx_address(size_t *len_p);
