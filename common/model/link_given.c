/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The numbers in use: measured, built in, or given by a parameter. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/model/link.h"
#include "common/transport/shm/node.h"
#include "common/support/help.h"

/** Describes the fault, from the code of onic_links_read or onic_links_load. */
static void say_wrong(int wrong, char *what, size_t cap)
{
    if (wrong > 0)
        snprintf(what, cap, "line %d of that is wrong", wrong);
    else if (wrong == -EFBIG || wrong == -EILSEQ)
        snprintf(what, cap, "the file is no text of less than 64 KiB");
    else
        snprintf(what, cap, "the file cannot be opened: %s", strerror(-wrong));
}

/** Reads the file of costs of this processor in a folder; false if there is none. A malformed file
 *  is reported in a line and changes nothing: jobs run without it, too. */
static bool load_measured(onic_links_t *links, const char *dir, const char *below,
                          const onic_processor_t *here, char from[ONIC_LINKS_FROM])
{
    char path[ONIC_LINKS_FROM], what[128];
    const int len = snprintf(path, sizeof(path), "%s/%s/%s-%d-%d.txt", dir, below, here->vendor,
                             here->family, here->model);

    if (len < 0 || (size_t)len >= sizeof(path) || access(path, F_OK) != 0)
        return false;
    const int wrong = onic_links_load(links, path);
    if (wrong == 0) {
        memcpy(from, path, sizeof(path));
        return true;
    }
    say_wrong(wrong, what, sizeof(what));
    onic_say_once("ompi-nic: %s is not used, and what is built in holds: %s", path, what);
    return true;
}

/** The default numbers for this processor. */
static void load_default(onic_links_t *links, char from[ONIC_LINKS_FROM])
{
    const onic_processor_t here = onic_processor();
    const char *name = onic_processor_name(here.vendor, here.family, here.model);
    const char *home = getenv("HOME");
    char dir[ONIC_LINKS_FROM];

    *links = onic_links_default(name);
    snprintf(from, ONIC_LINKS_FROM, "built in for processors of the kind %s, %s", name,
             onic_links_basis(name));
    if (home != NULL && load_measured(links, home, ".openmpi/ompi-nic", &here, from))
        return;
    if (onic_component_dir(dir, sizeof(dir)))
        (void)load_measured(links, dir, "costs", &here, from);
}

bool onic_links_given(onic_links_t *links, const char *cost, char from[ONIC_LINKS_FROM],
                      const char *help_file)
{
    char what[128];

    load_default(links, from);
    if (strcmp(cost, "default") == 0)
        return true;
    snprintf(from, ONIC_LINKS_FROM, "given by parameter");
    const int wrong =
        cost[0] == '@' ? onic_links_load(links, cost + 1) : onic_links_read(links, cost);
    if (wrong == 0)
        return true;
    say_wrong(wrong, what, sizeof(what));
    onic_help(help_file, "bad-cost", cost, what);
    return false;
}
