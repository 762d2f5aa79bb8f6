/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Reads a user's file of costs. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/model/link.h"

int onic_links_load(onic_links_t *links, const char *path)
{
    char text[65536]; /* far more than all names and some comments need */
    FILE *file = fopen(path, "r");

    if (file == NULL)
        return -errno;
    const size_t len = fread(text, 1, sizeof(text), file);
    const int error = ferror(file) ? errno : len == sizeof(text) ? EFBIG : 0;
    fclose(file);
    if (error != 0 || memchr(text, '\0', len) != NULL)
        return error != 0 ? -error : -EILSEQ;
    text[len] = '\0';
    return onic_links_read(links, text);
}
