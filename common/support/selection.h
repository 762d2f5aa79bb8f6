/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What a user lets Open MPI choose from, as the parameters osc, pml and coll have it: names
 *  with commas between them, or those not to be used, behind a ^. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/** True if the list, NULL where there is none, names the component. */
static inline bool onic_selects(const char *list, const char *name)
{
    const size_t len = strlen(name);

    if (list == NULL || list[0] == '^')
        return false;
    for (const char *at = list; (at = strstr(at, name)) != NULL; at++)
        if ((at == list || at[-1] == ',') && (at[len] == ',' || at[len] == '\0'))
            return true;
    return false;
}
