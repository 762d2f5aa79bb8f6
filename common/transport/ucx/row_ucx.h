/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The row of UCX: messages to all that no other row reaches, and data. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/transport/row/requirements.h"

extern const struct onic_row onic_row_ucx;

/** The configured transports as in UCX_TLS: the parameter's or the environment's; NULL for all. */
const char *onic_ucx_tls(const onic_transport_config_t *config);
