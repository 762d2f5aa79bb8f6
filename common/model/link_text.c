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

/** Part of a text. */
typedef struct part {
    const char *at;
    size_t len;
} part_t;

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static part_t trimmed(part_t p)
{
    for (; p.len > 0 && is_blank(p.at[0]); p.len--)
        p.at++;
    while (p.len > 0 && is_blank(p.at[p.len - 1]))
        p.len--;
    return p;
}

/** Is there such a character? Then `first` is what stands before it, and `p` what comes behind. */
static bool split(part_t *p, char mark, part_t *first)
{
    const char *found = p->len > 0 ? memchr(p->at, mark, p->len) : NULL;

    *first = *p;
    if (found == NULL)
        return false;
    first->len = (size_t)(found - p->at);
    *p = (part_t){found + 1, p->len - first->len - 1};
    return true;
}

static bool is(part_t p, const char *word)
{
    return strlen(word) == p.len && memcmp(word, p.at, p.len) == 0;
}

static bool wrong(onic_link_error_t *error, part_t what, const char *why)
{
    const size_t most = sizeof(error->what) - 1;

    snprintf(error->what, sizeof(error->what), "%.*s", (int)(what.len < most ? what.len : most),
             what.at);
    error->why = why;
    return false;
}

/** Is the part a number and nothing else? */
static bool is_number(part_t p, double *value)
{
    char text[32], *end;

    if (p.len == 0 || p.len >= sizeof(text))
        return false;
    memcpy(text, p.at, p.len);
    text[p.len] = '\0';
    *value = strtod(text, &end);
    return end == text + p.len;
}

/** Reads "name=value". */
static bool read_one(onic_link_t *link, part_t one, onic_link_error_t *error)
{
    part_t value = one, name;
    double read;
    size_t i = 0;

    if (!split(&value, '=', &name))
        return wrong(error, one, "there is no value");
    while (i < N_NAMES && !is(trimmed(name), names[i].name))
        i++;
    if (i == N_NAMES)
        return wrong(error, one, "the name is unknown");
    if (!is_number(trimmed(value), &read) || !isfinite(read) || read <= 0)
        return wrong(error, one, "the value is not a positive finite number");
    *number(link, i) = read;
    return true;
}

static onic_link_t *kind_of(onic_links_t *links, part_t name)
{
    size_t k = 0;

    while (k < N_KINDS && !is(name, kinds[k].name))
        k++;
    return k < N_KINDS ? kind(links, k) : NULL;
}

/** Reads "kind: name=value,...". */
static bool read_line(onic_links_t *links, part_t line, onic_link_error_t *error)
{
    onic_link_t *link = &links->node;
    part_t first;
    bool more;

    if (split(&line, ':', &first)) {
        first = trimmed(first);
        link = kind_of(links, first);
        if (link == NULL)
            return wrong(error, first, "the kind of peer is unknown");
    }
    do {
        more = split(&line, ',', &first);
        if (!read_one(link, trimmed(first), error))
            return false;
    } while (more);
    return true;
}

bool onic_links_read(onic_links_t *links, const char *text, onic_link_error_t *error)
{
    part_t left = {text, strlen(text)}, line, used;
    onic_links_t all = *links;
    bool any = false;

    for (error->line = 1; left.len > 0; error->line++) {
        if (!split(&left, '\n', &line))
            left.len = 0;
        (void)split(&line, '#', &used);
        used = trimmed(used);
        if (used.len > 0 && !read_line(&all, used, error))
            return false;
        any = any || used.len > 0;
    }
    if (!any) {
        error->line = 0;
        return wrong(error, (part_t){"", 0}, "nothing is in it");
    }
    *links = all;
    return true;
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
