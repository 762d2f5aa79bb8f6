/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What users say of links: a parameter, or a file. */
#include <stdio.h>
#include <string.h>

#include "common/model/link.h"
#include "common/support/help.h"

/** Far more than all names and some comments take. */
#define FILE_MAX 65536

static bool unreadable(onic_link_error_t *error, const char *why)
{
    *error = (onic_link_error_t){.why = why};
    return false;
}

bool onic_links_load(onic_links_t *links, const char *path, onic_link_error_t *error)
{
    char text[FILE_MAX];
    FILE *file = fopen(path, "r");
    bool whole;
    size_t len;

    if (file == NULL) {
        return unreadable(error, "it cannot be opened");
    }
    len = fread(text, 1, sizeof(text) - 1, file);
    whole = !ferror(file) && feof(file) != 0;
    fclose(file);
    if (!whole) {
        return unreadable(error, "it cannot be read, or is longer than 65535 bytes");
    }
    if (memchr(text, '\0', len) != NULL) {
        return unreadable(error, "it is not a text");
    }
    text[len] = '\0';
    return onic_links_read(links, text, error);
}

static void refuse(const char *cost, const char *help_file, const onic_link_error_t *e)
{
    char where[32] = "";

    if (e->line > 0 && cost[0] == '@') {
        snprintf(where, sizeof(where), " in line %u", e->line);
    }
    onic_help(help_file, "bad-cost", cost, e->why, where, e->name[0] != '\0' ? ": " : "", e->name,
              e->value[0] != '\0' ? "=" : "", e->value);
}

bool onic_links_given(onic_links_t *links, const char *cost, const char *help_file,
                      const char **source_p)
{
    onic_link_error_t error;
    bool good = true;

    *source_p = "the default";
    if (cost[0] == '@') {
        *source_p = "from the user's file";
        good = onic_links_load(links, cost + 1, &error);
    } else if (strcmp(cost, "measure") != 0 && strcmp(cost, "default") != 0) {
        *source_p = "given for the node";
        good = onic_link_read(&links->node, cost, &error);
    }
    if (!good) {
        refuse(cost, help_file, &error);
    }
    return good;
}
