/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The numbers of a link as text. */
#include "common/model/link.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    size_t at;
} names[] = {
#define NAME(n)                                                                                    \
    {                                                                                              \
#n, offsetof(onic_link_t, n)                                                               \
    }
    NAME(call),       NAME(piece),     NAME(copy),    NAME(block),    NAME(line),
    NAME(page),       NAME(message),   NAME(byte),    NAME(fragment), NAME(grant),
    NAME(rendezvous), NAME(rndv_byte), NAME(pin),     NAME(pin_byte), NAME(wake),
    NAME(absence),    NAME(gap),       NAME(latency), NAME(bcopy),    NAME(bnet),
    NAME(request),    NAME(doorbell),  NAME(batch),   NAME(entry),    NAME(entries),
    NAME(window),     NAME(reads),
#undef NAME
};

#define N_NAMES (sizeof(names) / sizeof(names[0]))
_Static_assert(N_NAMES * sizeof(double) == sizeof(onic_link_t), "all of them have names");

static const struct {
    const char *name;
    size_t at;
} kinds[] = {{"node", offsetof(onic_links_t, node)},
             {"net", offsetof(onic_links_t, net)},
             {"adapter", offsetof(onic_links_t, adapter)}};

#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

static onic_link_t *kind(const onic_links_t *links, size_t k)
{
    return (onic_link_t *)((char *)(uintptr_t)links + kinds[k].at);
}

static double *number(const onic_link_t *link, size_t i)
{
    return (double *)((char *)(uintptr_t)link + names[i].at);
}

/* ---- reading --------------------------------------------------------------------------------- */

/** Longest line without what follows a #. */
#define LINE 2048

/** Reads "name=value". */
static bool read_one(onic_link_t *link, const char *one)
{
    char name[16];
    double value;
    int end = 0;
    size_t i = 0;

    if (sscanf(one, " %15[a-z_] =%lf %n", name, &value, &end) != 2 || end == 0 || one[end] != '\0')
        return false;
    while (i < N_NAMES && strcmp(name, names[i].name) != 0)
        i++;
    if (i == N_NAMES || !isfinite(value) || value <= 0)
        return false;
    *number(link, i) = value;
    return true;
}

/** Reads "kind: name=value,...". */
static bool read_line(onic_links_t *links, char *line)
{
    onic_link_t *link = &links->node;
    char name[8] = "";
    int end = 0;
    size_t k = 0;

    if (strchr(line, ':') != NULL) {
        (void)sscanf(line, " %7[a-z] :%n", name, &end);
        while (k < N_KINDS && strcmp(name, kinds[k].name) != 0)
            k++;
        if (end == 0 || k == N_KINDS)
            return false;
        link = kind(links, k);
    }
    line += end;
    for (char *one; (one = strsep(&line, ",")) != NULL;)
        if (!read_one(link, one))
            return false;
    return true;
}

int onic_links_read(onic_links_t *links, const char *text)
{
    onic_links_t all = *links;
    char line[LINE];
    bool any = false;
    int n = 1;

    for (; *text != '\0'; n++) {
        const size_t len = strcspn(text, "\n"), used = strcspn(text, "#\n");
        if (used >= sizeof(line))
            return n;
        memcpy(line, text, used);
        line[used] = '\0';
        text += len + (text[len] == '\n');
        if (line[strspn(line, " \t\r")] == '\0')
            continue;
        any = true;
        if (!read_line(&all, line))
            return n;
    }
    if (any)
        *links = all;
    return any ? 0 : n;
}

/* ---- writing --------------------------------------------------------------------------------- */

void onic_links_write(const onic_links_t *links, char *buf, size_t cap)
{
    size_t len = 0;

    /* Four digits: more are never known. */
    for (size_t k = 0; k < N_KINDS; k++)
        for (size_t i = 0; i < N_NAMES && len < cap; i++)
            len += (size_t)snprintf(buf + len, cap - len, "%s%s%s=%.4g%s",
                                    i == 0 ? kinds[k].name : "", i == 0 ? ": " : "", names[i].name,
                                    *number(kind(links, k), i), i == N_NAMES - 1 ? "\n" : ",");
}
