/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Reading a user's file of link parameters. */
#include <stdio.h>
#include <string.h>

#include "common/model/link.h"

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
