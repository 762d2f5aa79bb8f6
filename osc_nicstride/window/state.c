/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/window/state.h"

#include "common/support/help.h"

nicstride_component_t nicstride_component;
nicstride_counters_t nicstride_counters;

int nicstride_select_error(int rc, const char *reason)
{
    onic_help(NICSTRIDE_HELP_FILE, "select-error", reason);
    return rc;
}
