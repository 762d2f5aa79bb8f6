/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/model/link.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODE(name, node, net, adapter)    .name = node,
#define NET(name, node, net, adapter)     .name = net,
#define ADAPTER(name, node, net, adapter) .name = adapter,

const onic_links_t onic_links_default = {.node = {ONIC_LINK_NUMBERS(NODE)},
                                         .net = {ONIC_LINK_NUMBERS(NET)},
                                         .adapter = {ONIC_LINK_NUMBERS(ADAPTER)}};

double onic_link_strided(const onic_link_t *link, double pieces, double bytes)
{
    return link->call + (pieces - 1) * link->piece + bytes * link->copy;
}

double onic_link_packed(const onic_link_t *link, double bytes)
{
    return link->message + bytes * link->byte;
}

static double greater(double a, double b)
{
    return a > b ? a : b;
}

double onic_link_requests(const onic_link_t *link, bool read, double requests, double entries,
                          double bytes)
{
    const double round = 2 * link->latency, places = read ? link->reads : link->window;
    const double first = link->request + link->doorbell;
    const double others = (requests - 1) * link->request + (entries - requests) * link->entry +
                          (ceil(requests / link->batch) - 1) * link->doorbell;
    const double waiting = greater(requests / places - 1, 0) * round;

    return first + greater(bytes / link->bnet, greater(others, waiting)) + round;
}

/** How far the blocks of a layout are from each other: of a list, on average. */
static uint64_t distance(const onic_layout_t *l)
{
    const int64_t stride = l->nlevels > 0 ? l->level[0].stride : 0;

    if (l->nruns > 0)
        return (uint64_t)(l->ub - l->lb) / onic_layout_blocks(l);
    return stride < 0 ? -(uint64_t)stride : (uint64_t)stride;
}

/** One block, so far from the next. Between the distances that are known it is in proportion: of
 *  blocks that share a line or a page each has its part of what that costs. */
static double block_cost(double apart, const onic_link_t *link)
{
    const double line = ONIC_LINK_LINE, page = ONIC_LINK_PAGE;

    if (apart >= page)
        return link->page;
    if (apart >= line)
        return link->line + (link->page - link->line) * (apart - line) / (page - line);
    return greater(link->block, link->line * apart / line);
}

double onic_link_gather(const onic_link_t *link, const onic_layout_t *l)
{
    if (onic_layout_is_contig(l))
        return 0;
    return (double)onic_layout_blocks(l) * block_cost((double)distance(l), link);
}

/* ---- as text ------------------------------------------------------------------------------------
 *
 * The numbers of a link as text. */

#define NAME(name, node, net, adapter) #name,
static const char *const names[] = {ONIC_LINK_NUMBERS(NAME)};

#define N_NAMES (sizeof(names) / sizeof(names[0]))

static const char *const kinds[] = {"node", "net", "adapter"};

#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))
_Static_assert(N_KINDS *N_NAMES * sizeof(double) == sizeof(onic_links_t), "all of them have names");

static onic_link_t *kind(const onic_links_t *links, size_t k)
{
    return (onic_link_t *)(uintptr_t)links + k;
}

static double *number(const onic_link_t *link, size_t i)
{
    return (double *)(uintptr_t)link + i;
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
    while (i < N_NAMES && strcmp(name, names[i]) != 0)
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
        while (k < N_KINDS && strcmp(name, kinds[k]) != 0)
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
            len += (size_t)snprintf(buf + len, cap - len, "%s%s%s=%.4g%s", i == 0 ? kinds[k] : "",
                                    i == 0 ? ": " : "", names[i], *number(kind(links, k), i),
                                    i == N_NAMES - 1 ? "\n" : ",");
}
