/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file A user's numbers, as a parameter gives them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/model/link.h"
#include "common/support/help.h"

bool onic_links_given(onic_links_t *links, const char *cost, const char *help_file)
{
    char what[128];
    int wrong = 0;

    *links = onic_links_default;
    if (strcmp(cost, "default") != 0)
        wrong = cost[0] == '@' ? onic_links_load(links, cost + 1) : onic_links_read(links, cost);
    if (wrong > 0)
        snprintf(what, sizeof(what), "line %d of that is wrong", wrong);
    else if (wrong == -EFBIG || wrong == -EILSEQ)
        snprintf(what, sizeof(what), "the file is no text of less than 64 KiB");
    else
        snprintf(what, sizeof(what), "the file cannot be opened: %s", strerror(-wrong));
    if (wrong != 0)
        onic_help(help_file, "bad-cost", cost, what);
    return wrong == 0;
}
