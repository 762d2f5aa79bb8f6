/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Runs the cells of the matrix of progress. */
#include "test/mpi/progress_sides.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

progress_context_t progress_context = {.ours_rma = true, .server = true};

static struct {
    bool list, all, has_only;
    regex_t only;
    const char *after; /**< NULL: no cell is to be skipped any more */
    int cells;
} self;

int progress_digit(int *index_p, int n)
{
    int digit = *index_p % n;

    *index_p /= n;
    return digit;
}

/* ---- cells ---- */

static void choose_ranks(progress_cell_t *cell, int a, int b)
{
    int k = cell->number - 1, pairs = progress_sides.size * (progress_sides.size - 1);

    if (a == PROGRESS_ALL) {
        cell->first = k % progress_sides.size;
        cell->other = -1;
    } else if (a != PROGRESS_ANY) {
        cell->first = k % 2 == 0 ? a : b;
        cell->other = k % 2 == 0 ? b : a;
    } else {
        /* The first of all cells are what their ranks have to do with each other for the first
           time; later all cells come to all pairs. */
        k = (k + k / pairs) % pairs;
        cell->first = k / (progress_sides.size - 1);
        cell->other = k % (progress_sides.size - 1);
        cell->other += cell->other >= cell->first;
    }
}

/** Of a text, the same on all machines. */
static uint64_t hash(uint64_t h, const char *text)
{
    for (; text != NULL && *text != '\0'; text++)
        h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return h;
}

/** The first cells are those with which processes meet for the first time. */
static bool is_meeting(void)
{
    return self.cells < progress_sides.size * (progress_sides.size - 1);
}

/** Is it among the cells that are run? Another part of them with each layer, method and so on. */
static bool drawn(const progress_family_t *family, const progress_cell_t *cell)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325) + tl_seed();

    h = hash(h, cell->name) + (uint64_t)progress_sides.size;
    h = hash(h, getenv("OMPI_MCA_pml"));
    h = hash(h, getenv("OMPI_MCA_pml_superpipe_protocol"));
    h = hash(h, getenv("OMPI_MCA_pml_superpipe_buffered"));
    h = hash(h, getenv("OMPI_MCA_osc_nicstride_method"));
    h = hash(h, getenv("OMPI_MCA_osc_nicstride_server"));
    h = hash(h, getenv("OMPI_MCA_osc_nicstride_node"));
    h = hash(h, getenv("OMPI_MCA_coll_nicbarrier_engine"));
    return self.all || self.has_only || is_meeting() ||
           (h >> 20) % ((uint64_t)family->one_in * (tl_slow() ? 2 : 1)) == 0;
}

/** False where it is not to be run. */
static bool describe(const progress_family_t *family, const char *label, int index,
                     progress_cell_t *cell)
{
    char name[128] = "";

    *cell = (progress_cell_t){.index = index, .why = ""};
    progress_context.meets = is_meeting() && (self.list || !tl_launched_here());
    family->describe(cell, &progress_context);
    if (cell->rule == PROGRESS_NEVER)
        return false;
    snprintf(name, sizeof(name), "%s%s%s/%.90s", family->name, label[0] != '\0' ? "_" : "", label,
             cell->name);
    memcpy(cell->name, name, sizeof(name));
    if (self.after != NULL) {
        self.after = strcmp(self.after, cell->name) == 0 ? NULL : self.after;
        return false;
    }
    return drawn(family, cell) &&
           (!self.has_only || regexec(&self.only, cell->name, 0, NULL, 0) == 0);
}

void progress_run(const progress_family_t *family, const char *label, int a, int b)
{
    for (int i = 0; i < family->cells; i++) {
        progress_cell_t cell;

        if (!describe(family, label, i, &cell))
            continue;
        cell.number = ++self.cells;
        choose_ranks(&cell, a, b);
        if (cell.first == progress_sides.me) {
            progress_sides_begin(&cell);
            family->first(&cell);
        } else if (cell.other < 0 || cell.other == progress_sides.me) {
            progress_sides_begin(&cell);
            family->others(&cell);
        }
    }
}

/* ---- a program ---- */

static void list(const progress_family_t *families, int n)
{
    /* As of a run of four ranks over hosts, where most may wait. */
    progress_sides.size = 4;
    for (int f = 0; f < n; f++) {
        for (int i = 0; i < families[f].cells; i++) {
            progress_cell_t cell;

            if (describe(&families[f], "", i, &cell)) {
                self.cells++;
                printf("%s %s%s%s\n", cell.rule == PROGRESS_MUST ? "must" : "may", cell.name,
                       cell.rule == PROGRESS_MAY ? ": " : "", cell.why);
            }
        }
    }
    exit(TL_EXIT_OK);
}

static void options(int *argc, char **argv)
{
    int kept = 1;

    for (int i = 1; i < *argc; i++) {
        const char *value = i + 1 < *argc ? argv[i + 1] : "";

        if (strcmp(argv[i], "--list") == 0) {
            self.list = self.all = true;
        } else if (strcmp(argv[i], "--all") == 0) {
            self.all = true;
        } else if (strcmp(argv[i], "--show") == 0) {
            progress_sides.show = true;
        } else if (strcmp(argv[i], "--only") == 0) {
            self.has_only = regcomp(&self.only, value, REG_EXTENDED | REG_NOSUB) == 0;
            i++;
        } else if (strcmp(argv[i], "--after") == 0) {
            self.after = value;
            i++;
        } else if (strcmp(argv[i], "--patience") == 0) {
            progress_sides.patience = atof(value);
            i++;
        } else {
            argv[kept++] = argv[i];
        }
    }
    argv[kept] = NULL;
    *argc = kept;
}

static bool selected(const char *variable, const char *name)
{
    const char *value = getenv(variable);

    return value != NULL && strcmp(value, name) == 0;
}

void progress_begin(int argc, char **argv, const progress_family_t *families, int n)
{
    const char *protocol = getenv("OMPI_MCA_pml_superpipe_protocol");
    char window[] = "-w", create[] = "create";
    char **arguments = calloc((size_t)argc + 3, sizeof(*arguments));

    if (arguments == NULL)
        exit(TL_EXIT_FAILED);
    /* To ask for no shared windows, since it takes messages to know whether there can be any, and
       some cells are to be the first. What is asked for later counts, too. */
    memcpy(arguments, argv, (size_t)argc * sizeof(*arguments));
    options(&argc, arguments);
    if (argc == 1 || strcmp(arguments[1], "-w") != 0) {
        arguments[argc++] = window;
        arguments[argc++] = create;
    }
    progress_context.server = !selected("OMPI_MCA_osc_nicstride_server", "0");
    if (self.list)
        list(families, n);
    tl_init(&argc, &arguments, MPI_THREAD_SINGLE);
    progress_context.ours_rma = selected("OMPI_MCA_osc", "nicstride");
    progress_context.forced =
        protocol != NULL && strcmp(protocol, "auto") != 0 && strcmp(protocol, "eager") != 0;
    free(arguments);
}

void progress_over(MPI_Comm base)
{
    progress_sides_open(base);
}

void progress_world(void)
{
    control_open(tl_rank(), tl_size());
    progress_over(MPI_COMM_WORLD);
}

void progress_part(void)
{
    progress_sides_close();
    if (progress_sides.me == 0) {
        printf("progress: %d cells\n", self.cells);
        fflush(stdout);
    }
}

int progress_finish(void)
{
    progress_part();
    /* So that a mistyped --only is no success. */
    TL_CHECK(self.cells > 0, "no cell was run");
    control_close();
    return tl_finish();
}
