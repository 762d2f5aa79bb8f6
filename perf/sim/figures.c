/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file usage: perf/sim/figures [--seed N] [--members N] [FIGURE]
 *
 *  Prints the table of a figure, or without a name the names. --members: most members of a barrier.
 * The same seed gives the same tables. */
#include "perf/sim/figures.h"

#include <stdlib.h>
#include <string.h>

static const sim_figure_t *const all[] = {sim_figures_superpipeline, sim_figures_strided,
                                          sim_figures_barrier, sim_figures_armci};

static int print(const char *name, const sim_options_t *options)
{
    int found = 0;

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        for (const sim_figure_t *f = all[i]; f->name != NULL; f++) {
            if (name == NULL)
                puts(f->name);
            else if (strcmp(f->name, name) == 0) {
                f->print(stdout, options);
                found = 1;
            }
        }
    if (name != NULL && !found)
        fprintf(stderr, "figures: there is no figure %s\n", name);
    return name == NULL || found ? EXIT_SUCCESS : 2;
}

int main(int argc, char **argv)
{
    sim_options_t options = {.seed = 1, .members = 1 << 20};
    const char *name = NULL;

    for (int i = 1; i < argc; i++) {
        char *end = NULL;
        const int has_value = i + 1 < argc;

        if (has_value && strcmp(argv[i], "--seed") == 0) {
            options.seed = strtoull(argv[++i], &end, 0);
        } else if (has_value && strcmp(argv[i], "--members") == 0) {
            options.members = (int32_t)strtol(argv[++i], &end, 0);
        } else if (argv[i][0] != '-' && name == NULL) {
            name = argv[i];
            continue;
        }
        if (end == NULL || *end != '\0' || options.members < 2) {
            fprintf(stderr, "usage: figures [--seed N] [--members N, at least 2] [FIGURE]\n");
            return 2;
        }
    }
    return print(name, &options);
}
