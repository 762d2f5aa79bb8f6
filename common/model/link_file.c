/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Reading a user's file of link parameters. */
#include <stdio.h>
#include <string.h>

#include "common/model/link.h"

int onic_links_load(onic_links_t *links, const char *path)
{
    char text[65536]; /* far more than all names and some comments take */
    FILE *file = fopen(path, "r");
    const size_t len = file != NULL ? fread(text, 1, sizeof(text), file) : 0;
    const bool whole = file != NULL && !ferror(file) && len < sizeof(text);

    if (file != NULL)
        fclose(file);
    if (!whole || memchr(text, '\0', len) != NULL)
        return -1;
    text[len] = '\0';
    return onic_links_read(links, text);
}
