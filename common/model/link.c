/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/model/link.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODE(name, node, net, adapter)    .name = node,
#define NET(name, node, net, adapter)     .name = net,
#define ADAPTER(name, node, net, adapter) .name = adapter,

static const onic_links_t numbers = {.node = {ONIC_LINK_NUMBERS(NODE)},
                                     .net = {ONIC_LINK_NUMBERS(NET)},
                                     .adapter = {ONIC_LINK_NUMBERS(ADAPTER)}};

/** The texts of share/processors. */
static const struct {
    const char *name, *text;
} processors[] = {
#include "common/model/processors.inc"
};

#define N_PROCESSORS (sizeof(processors) / sizeof(processors[0]))

/** The text of that processor, or of "other" if there is none. */
static const char *text_of(const char *processor)
{
    size_t i = 0;

    while (i < N_PROCESSORS && strcmp(processors[i].name, processor) != 0)
        i++;
    return i < N_PROCESSORS ? processors[i].text : text_of("other");
}

onic_links_t onic_links_default(const char *processor)
{
    onic_links_t links = numbers;

    (void)onic_links_read(&links, text_of(processor));
    return links;
}

const char *onic_links_basis(const char *processor)
{
    const char *text = text_of(processor), *end = strchr(text, '\n');
    const char *measured = strstr(text, ", measured on "), *derived = strstr(text, ", derived ");

    if (measured != NULL && measured < end)
        return "measured on such a processor";
    if (derived != NULL && derived < end)
        return "derived from other measurements, not measured on such a processor";
    return "of the order of other processors, not measured on such a one";
}

const char *onic_processor_name(const char *vendor, int family, int model)
{
    static const struct {
        const char *vendor;
        int family, first, last;
        const char *name;
    } models[] = {
        {"AuthenticAMD", 25, 0x00, 0x0f, "zen3"}, /* Milan */
        {"AuthenticAMD", 25, 0x20, 0x5f, "zen3"}, /* Vermeer, Rembrandt, Cezanne */
        {"AuthenticAMD", 25, 0x10, 0x1f, "zen4"}, /* Genoa */
        {"AuthenticAMD", 25, 0x60, 0xaf, "zen4"}, /* Raphael, Phoenix, Bergamo */
        {"AuthenticAMD", 26, 0x00, 0x2f, "zen5"}, /* Turin, Strix Point */
        {"AuthenticAMD", 26, 0x40, 0x4f, "zen5"}, /* Granite Ridge */
        {"AuthenticAMD", 26, 0x60, 0x7f, "zen5"}, /* Krackan Point, Strix Halo */
        {"GenuineIntel", 6, 0x55, 0x55, "xeon"},  /* Skylake, Cascade Lake, Cooper Lake */
        {"GenuineIntel", 6, 0x6a, 0x6a, "xeon"},  /* Ice Lake */
        {"GenuineIntel", 6, 0x6c, 0x6c, "xeon"},  /* Ice Lake D */
        {"GenuineIntel", 6, 0x8f, 0x8f, "xeon"},  /* Sapphire Rapids */
        {"GenuineIntel", 6, 0xad, 0xae, "xeon"},  /* Granite Rapids */
        {"GenuineIntel", 6, 0xcf, 0xcf, "xeon"},  /* Emerald Rapids */
    };

    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++)
        if (strcmp(vendor, models[i].vendor) == 0 && family == models[i].family &&
            model >= models[i].first && model <= models[i].last)
            return models[i].name;
    return "other";
}

/** The cost of a further piece of `block` bytes. */
static double piece_cost(const onic_cost_t *cost, double block)
{
    const int last = ONIC_COST_BLOCKS - 1;
    int i = 0;

    while (i < last && block > (double)ONIC_COST_BLOCK(i + 1))
        i++;
    const double from = (double)ONIC_COST_BLOCK(i), to = (double)ONIC_COST_BLOCK(i + 1);

    if (i == last)
        return cost->piece[i] * block / from;
    if (block <= from)
        return cost->piece[i];
    return cost->piece[i] + (cost->piece[i + 1] - cost->piece[i]) * (block - from) / (to - from);
}

double onic_cost(const onic_cost_t *cost, double pieces, double block, double bytes)
{
    const double near = bytes < ONIC_COST_NEAR ? bytes : ONIC_COST_NEAR;
    const double others = pieces > 1 ? (pieces - 1) * piece_cost(cost, block) : 0;

    return cost->start + others + near * cost->byte + (bytes - near) * cost->beyond;
}

double onic_link_packed(const onic_link_t *link, double bytes)
{
    return link->message + bytes * link->byte;
}

double onic_link_requests(const onic_link_t *link, bool read, double requests, double entries,
                          double bytes)
{
    const double round = 2 * link->latency, places = read ? link->reads : link->window;
    const double first = link->request + link->doorbell;
    const double others = (requests - 1) * link->request + (entries - requests) * link->entry +
                          (ceil(requests / link->batch) - 1) * link->doorbell;
    const double waiting = fmax(requests / places - 1, 0) * round;

    return first + fmax(bytes / link->bnet, fmax(others, waiting)) + round;
}

/** The distance from block to block of a layout; for a list the mean. */
static uint64_t distance(const onic_layout_t *l)
{
    if (l->nruns > 0)
        return (uint64_t)(l->ub - l->lb) / onic_layout_blocks(l);
    return onic_magnitude(l->level[0].stride);
}

/** The cost of a block at this distance from the next. Between the known distances it is
 *  interpolated in proportion: blocks that share a line or a page share its cost. */
static double block_cost(double apart, const onic_link_t *link)
{
    const double line = ONIC_LINK_LINE, page = ONIC_LINK_PAGE;

    if (apart >= page)
        return link->page;
    if (apart >= line)
        return link->line + (link->page - link->line) * (apart - line) / (page - line);
    return fmax(link->block, link->line * apart / line);
}

double onic_link_gather(const onic_link_t *link, const onic_layout_t *l)
{
    if (onic_layout_is_contig(l))
        return 0;
    return (double)onic_layout_blocks(l) * block_cost((double)distance(l), link);
}

/* ---- as text ------------------------------------------------------------------------------------
 *
 * A link has one number for each name; a way has the members of two costs. */

#define NAME(name, node, net, adapter) #name,
static const char *const names[] = {ONIC_LINK_NUMBERS(NAME)};
#define WAY(name) #name,
static const char *const ways[] = {ONIC_WAYS(WAY)};
static const char *const kinds[] = {"node", "net", "adapter", "near", "far"};

#define LETTERS "abcdefghijklmnopqrstuvwxyz_"
/** Longest line, without a comment. */
#define LINE 2048

#define N_NAMES (sizeof(names) / sizeof(names[0]))
#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))
/** The first N_LINKS kinds are links, the others distances. */
#define N_LINKS 3
#define N_COSTS (sizeof(onic_cost_t) / sizeof(double))

_Static_assert(N_KINDS == N_LINKS + ONIC_DISTANCES &&
                   N_LINKS * N_NAMES * sizeof(double) == offsetof(onic_links_t, costs),
               "all of them have names");

/** The names of a kind: how many there are, and how many numbers each has. */
static size_t names_of(size_t kind, const char *const **names_p, size_t *numbers_p)
{
    *names_p = kind < N_LINKS ? names : ways;
    *numbers_p = kind < N_LINKS ? 1 : 2 * N_COSTS;
    return kind < N_LINKS ? N_NAMES : ONIC_N_WAYS;
}

/** Where the numbers of one name of a kind are stored. */
static double *place(onic_links_t *links, size_t kind, size_t name)
{
    return kind < N_LINKS ? (double *)links + kind * N_NAMES + name
                          : (double *)&links->costs[kind - N_LINKS].of[name];
}

/** The index of `len` characters among words; `n` if they are none of these. */
static size_t find(const char *const *among, size_t n, const char *name, size_t len)
{
    size_t i = 0;

    while (i < n && (strncmp(among[i], name, len) != 0 || among[i][len] != '\0'))
        i++;
    return i;
}

static const char *skip(const char *at)
{
    return at + strspn(at, " \t\r");
}

/** Reads a word and the `end` that follows, and moves past that. Returns as find. */
static size_t read_word(const char **at_p, const char *const *among, size_t n, char end)
{
    const char *word = skip(*at_p), *behind = word + strspn(word, LETTERS);
    const size_t i = find(among, n, word, (size_t)(behind - word));

    *at_p = skip(behind) + 1;
    return skip(behind)[0] == end ? i : n;
}

/** Reads "name=number", or for ways "name=number/...:number/...", up to a comma or the end. */
static bool read_item(onic_links_t *links, size_t kind, const char **at_p)
{
    const char *const *among;
    size_t count;
    const size_t n = names_of(kind, &among, &count), name = read_word(at_p, among, n, '=');
    double *to = name < n ? place(links, kind, name) : NULL;
    char *end;

    for (size_t i = 0; i < count && to != NULL; i++) {
        if (i > 0 && *(*at_p)++ != (i == count / 2 ? ':' : '/'))
            return false;
        to[i] = strtod(*at_p, &end);
        if (end == *at_p || !isfinite(to[i]) || to[i] < 0 || (count == 1 && to[i] == 0))
            return false;
        *at_p = skip(end);
    }
    return to != NULL && (**at_p == ',' || **at_p == '\0');
}

/** Reads "kind: item,..."; without a kind the items belong to node. */
static bool read_line(onic_links_t *links, const char *line)
{
    size_t kind = 0;
    bool good = true;

    if (strcspn(line, ":") < strcspn(line, "="))
        kind = read_word(&line, kinds, N_KINDS, ':');
    do
        good = kind < N_KINDS && read_item(links, kind, &line);
    while (good && *line++ == ',');
    return good;
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
        if (*skip(line) == '\0')
            continue;
        any = true;
        if (!read_line(&all, line))
            return n;
    }
    if (any)
        *links = all;
    return any ? 0 : n;
}

/** Writes four digits: more are never known. */
void onic_links_write(const onic_links_t *links, char *buf, size_t cap)
{
    onic_links_t all = *links;
    FILE *to = fmemopen(buf, cap, "w");

    for (size_t kind = 0; kind < N_KINDS && to != NULL; kind++) {
        const char *const *among;
        size_t count;
        const size_t n = names_of(kind, &among, &count);

        for (size_t name = 0; name < n; name++) {
            fprintf(to, "%s: %s", kinds[kind], among[name]);
            for (size_t i = 0; i < count; i++)
                fprintf(to, "%c%.4g",
                        i == 0           ? '='
                        : i == count / 2 ? ':'
                                         : '/',
                        place(&all, kind, name)[i]);
            fprintf(to, "\n");
        }
    }
    if (to != NULL)
        fclose(to);
    buf[to != NULL ? cap - 1 : 0] = '\0';
}
