/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Reading a user's file of link parameters. */
#include <stdio.h>
#include <string.h>

#include "common/model/link.h"

bool onic_links_load(onic_links_t *links, const char *path, onic_link_error_t *error)
{
    char text[65536]; /* far more than all names and some comments take */
    FILE *file = fopen(path, "r");
    const size_t len = file != NULL ? fread(text, 1, sizeof(text), file) : 0;
    const bool whole = file != NULL && !ferror(file) && len < sizeof(text);

    if (file != NULL) {
        fclose(file);
    }
    if (!whole || memchr(text, '\0', len) != NULL) {
        *error = (onic_link_error_t){.why = "it cannot be read as a text of less than 64 KiB"};
        return false;
    }
    text[len] = '\0';
    return onic_links_read(links, text, error);
}
