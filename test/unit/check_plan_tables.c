/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What is chosen by the numbers that come along, those of share/ and the defaults: the
 *  tables of both components against files, so that a change of a number or an equation shows what
 *  it changes. `check_plan_tables write` makes the files again. */
#include <stdio.h>
#include <string.h>

#include "pml_superpipe/protocols/choice.h"
#include "test/unit/method_rows.h"
#include "test/unit/protocol_rows.h"
#include "test/unit/unit.h"

/** Of processors the lines of a node count, of links those of networks: the others are the same for
 *  all. */
static const struct {
    const char *name;
    bool network;
} all[] = {{"default", true},  {"infiniband-hdr", true}, {"quadrics-elan4", true},
           {"roce-100", true}, {"slingshot-11", true},   {"tcp-10g", true},
           {"tcp-25g", true},  {"other", false},         {"xeon", false},
           {"zen3", false},    {"zen4", false},          {"zen5", false}};

#define N_ALL ((int)(sizeof(all) / sizeof(all[0])))

/** The defaults, and what the file says. Those of processors are the files that are built in. */
static onic_links_t load(int i)
{
    onic_links_t links = onic_links_default("other");
    char path[512];

    if (strcmp(all[i].name, "default") != 0) {
        snprintf(path, sizeof(path), SHARE "/%s/%s.txt", all[i].network ? "links" : "processors",
                 all[i].name);
        ck_assert_msg(onic_links_load(&links, path) == 0, "%s", path);
    }
    return links;
}

/** The lines of a table that count. */
static void print(FILE *to, char *text, bool network)
{
    for (char *line; (line = strsep(&text, "\n")) != NULL && *line != '\0';) {
        const bool heading = strncmp(line, "  peer", 6) == 0;
        const bool is_network =
            strncmp(line, "  network", 9) == 0 || strncmp(line, "  adapter", 9) == 0;

        if (heading || is_network == network)
            fprintf(to, "%s\n", line);
    }
}

static FILE *open_text(char *text, size_t size)
{
    FILE *to = fmemopen(text, size, "w");

    ck_assert_ptr_nonnull(to);
    return to;
}

/** Of a process whose messages are short up to 8192 bytes. */
static void write_tables(int i, FILE *to)
{
    static nicstride_path_t methods[ONIC_KINDS];
    static superpipe_table_t protocols;
    static char text[65536];
    const onic_links_t links = load(i);
    FILE *all_lines = open_text(text, sizeof(text));

    nicstride_paths_set(methods, &links);
    nicstride_plan_table(all_lines, rows, methods, NICSTRIDE_METHOD_AUTO);
    fclose(all_lines);
    fprintf(to, "osc_nicstride\n");
    print(to, text, all[i].network);
    reach_all();
    protocols = (superpipe_table_t){.links = links};
    all_lines = open_text(text, sizeof(text));
    superpipe_plan_table(all_lines, &protocols, SUPERPIPE_AUTO, 8192);
    fclose(all_lines);
    fprintf(to, "\npml_superpipe\n");
    print(to, text, all[i].network);
}

static FILE *open_file(int i, const char *mode)
{
    char path[512];

    snprintf(path, sizeof(path), PLANS "/%s.txt", all[i].name);
    FILE *file = fopen(path, mode);
    ck_assert_msg(file != NULL, "%s", path);
    return file;
}

START_TEST(as_committed)
{
    static char now[65536];
    char line[256];
    FILE *to = open_text(now, sizeof(now)), *file = open_file(_i, "r");
    char *rest = now;
    int n = 0;

    write_tables(_i, to);
    fclose(to);
    while (fgets(line, sizeof(line), file) != NULL) {
        const char *mine = strsep(&rest, "\n");

        n++;
        line[strcspn(line, "\n")] = '\0';
        ck_assert_msg(mine != NULL && strcmp(mine, line) == 0, "%s.txt, line %d: is\n%s\nnot\n%s\n",
                      all[_i].name, n, mine != NULL ? mine : "", line);
    }
    fclose(file);
    ck_assert_int_gt(n, 10);
    ck_assert_msg(rest != NULL && *rest == '\0', "%s.txt has no more lines", all[_i].name);
}
END_TEST

START_TEST(write_file)
{
    FILE *file = open_file(_i, "w");

    write_tables(_i, file);
    ck_assert_int_eq(fclose(file), 0);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "write") == 0)
        return UNIT_RUN("plan tables are written", UNIT_LOOP(write_file, 0, N_ALL));
    return UNIT_RUN("plan tables", UNIT_LOOP(as_committed, 0, N_ALL));
}
