/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/ompi_compat.h"
#include "common/transport/ucx/internal.h"

#include "ompi/constants.h"

onic_ucx_state_t onic_ucx_state;

int onic_ucs_error(ucs_status_t status)
{
    switch (status) {
    case UCS_OK:
        return OMPI_SUCCESS;
    case UCS_ERR_NO_MEMORY:
    case UCS_ERR_NO_RESOURCE:
        return OMPI_ERR_OUT_OF_RESOURCE;
    case UCS_ERR_MESSAGE_TRUNCATED:
        return OMPI_ERR_VALUE_OUT_OF_BOUNDS;
    case UCS_ERR_UNREACHABLE:
    case UCS_ERR_ENDPOINT_TIMEOUT:
    case UCS_ERR_CONNECTION_RESET:
    case UCS_ERR_NOT_CONNECTED:
        return OMPI_ERR_UNREACH;
    case UCS_ERR_INVALID_PARAM:
        return OMPI_ERR_BAD_PARAM;
    default:
        return OMPI_ERROR;
    }
}
