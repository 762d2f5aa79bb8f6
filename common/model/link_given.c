/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file A user's numbers, as a parameter gives them. */
#include <stdio.h>
#include <string.h>

#include "common/model/link.h"
#include "common/support/help.h"

bool onic_links_given(onic_links_t *links, const char *cost, const char *help_file)
{
    onic_link_error_t e;
    char where[32] = "";

    *links = onic_links_default;
    if (strcmp(cost, "default") == 0 || (cost[0] == '@' ? onic_links_load(links, cost + 1, &e)
                                                        : onic_links_read(links, cost, &e))) {
        return true;
    }
    if (e.line > 0 && cost[0] == '@') {
        snprintf(where, sizeof(where), " in line %u", e.line);
    }
    onic_help(help_file, "bad-cost", cost, e.why, where, e.what[0] != '\0' ? ": " : "", e.what);
    return false;
}
