/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The numbers that hold here: measured, built in, or as a parameter gives them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/model/link.h"
#include "common/node/node.h"
#include "common/support/help.h"

/** Reads the file of costs of this processor in a folder, where there is one: as onic_links_load.
 */
static int load_measured(onic_links_t *links, const char *dir, const char *below,
                         const onic_processor_t *here, char from[ONIC_LINKS_FROM])
{
    char path[ONIC_LINKS_FROM];
    const int len = snprintf(path, sizeof(path), "%s/%s/%s-%d-%d.txt", dir, below, here->vendor,
                             here->family, here->model);

    if (len < 0 || (size_t)len >= sizeof(path) || access(path, F_OK) != 0)
        return 0;
    memcpy(from, path, sizeof(path));
    return onic_links_load(links, path);
}

/** What holds for this processor; as onic_links_load. */
static int load_default(onic_links_t *links, char from[ONIC_LINKS_FROM])
{
    const onic_processor_t here = onic_processor();
    const char *name = onic_processor_name(here.vendor, here.family, here.model);
    const char *home = getenv("HOME");
    char dir[ONIC_LINKS_FROM];
    int wrong = 0;

    *links = onic_links_default(name);
    from[0] = '\0';
    if (home != NULL)
        wrong = load_measured(links, home, ".openmpi/ompi-nic", &here, from);
    if (from[0] == '\0' && onic_component_dir(dir, sizeof(dir)))
        wrong = load_measured(links, dir, "costs", &here, from);
    if (from[0] == '\0')
        snprintf(from, ONIC_LINKS_FROM, "built in for processors of the kind %s", name);
    return wrong;
}

bool onic_links_given(onic_links_t *links, const char *cost, char from[ONIC_LINKS_FROM],
                      const char *help_file)
{
    const char *file = from;
    char what[128];
    int wrong = load_default(links, from);

    if (wrong == 0 && strcmp(cost, "default") != 0) {
        file = cost;
        wrong = cost[0] == '@' ? onic_links_load(links, cost + 1) : onic_links_read(links, cost);
        snprintf(from, ONIC_LINKS_FROM, "given by parameter");
    }
    if (wrong > 0)
        snprintf(what, sizeof(what), "line %d of that is wrong", wrong);
    else if (wrong == -EFBIG || wrong == -EILSEQ)
        snprintf(what, sizeof(what), "the file is no text of less than 64 KiB");
    else
        snprintf(what, sizeof(what), "the file cannot be opened: %s", strerror(-wrong));
    if (wrong != 0)
        onic_help(help_file, "bad-cost", file, what);
    return wrong == 0;
}
