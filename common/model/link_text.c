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
    NAME(call),    NAME(piece),   NAME(copy),       NAME(block),     NAME(line),  NAME(page),
    NAME(message), NAME(byte),    NAME(rendezvous), NAME(rndv_byte), NAME(pin),   NAME(pin_byte),
    NAME(wake),    NAME(absence), NAME(gap),        NAME(latency),   NAME(bcopy), NAME(bnet),
#undef NAME
};

#define N_NAMES (sizeof(names) / sizeof(names[0]))
_Static_assert(N_NAMES * sizeof(double) == sizeof(onic_link_t), "all of them have names");

static const char *const kinds[] = {"node", "net"};

#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

/** A part of a text. */
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
    while (p.len > 0 && is_blank(p.at[0])) {
        p.at++;
        p.len--;
    }
    while (p.len > 0 && is_blank(p.at[p.len - 1]))
        p.len--;
    return p;
}

/** What comes before the first `mark`, and is taken off `rest` with it; all where there is none. */
static part_t before(part_t *rest, char mark)
{
    const char *found = rest->len > 0 ? memchr(rest->at, mark, rest->len) : NULL;
    part_t first = *rest;

    if (found == NULL) {
        *rest = (part_t){rest->at + rest->len, 0};
    } else {
        first.len = (size_t)(found - rest->at);
        *rest = (part_t){found + 1, rest->len - first.len - 1};
    }
    return first;
}

static bool is(part_t p, const char *word)
{
    return strlen(word) == p.len && memcmp(word, p.at, p.len) == 0;
}

static void note(char *buf, size_t cap, part_t p)
{
    snprintf(buf, cap, "%.*s", (int)(p.len < cap ? p.len : cap - 1), p.at);
}

/** Fills an error, but for its line; false. */
static bool wrong(onic_link_error_t *error, part_t name, part_t value, const char *why)
{
    note(error->name, sizeof(error->name), name);
    note(error->value, sizeof(error->value), value);
    error->why = why;
    return false;
}

static double *number(onic_link_t *link, part_t name)
{
    for (size_t i = 0; i < N_NAMES; i++) {
        if (is(name, names[i].name))
            return (double *)((char *)link + names[i].at);
    }
    return NULL;
}

/** The value of a part that is nothing but a number. */
static bool is_number(part_t p, double *value)
{
    char text[32], *end;

    if (p.len == 0 || p.len >= sizeof(text) || is_blank(p.at[0]))
        return false;
    memcpy(text, p.at, p.len);
    text[p.len] = '\0';
    *value = strtod(text, &end);
    return end == text + p.len;
}

static bool read_one(onic_link_t *link, part_t one, onic_link_error_t *error)
{
    part_t value = one;
    const part_t name = trimmed(before(&value, '='));
    double *at = number(link, name), read;

    if (at == NULL)
        return wrong(error, name, trimmed(value), "unknown name");
    value = trimmed(value);
    if (!is_number(value, &read))
        return wrong(error, name, value, "the value is not a number");
    if (!isfinite(read) || read <= 0)
        return wrong(error, name, value, "the value must be positive and finite");
    *at = read;
    return true;
}

/** Reads "name=value,..." into `link`, which on an error may have some of them. */
static bool read_all(onic_link_t *link, part_t rest, onic_link_error_t *error)
{
    bool more;

    do {
        const char *end = rest.at + rest.len;
        const part_t one = before(&rest, ',');

        /* A comma has something behind it. */
        more = one.at + one.len < end;
        if (!read_one(link, one, error))
            return false;
    } while (more);
    return true;
}

bool onic_link_read(onic_link_t *link, const char *text, onic_link_error_t *error)
{
    onic_link_t all = *link;

    error->line = 1;
    if (!read_all(&all, (part_t){text, strlen(text)}, error))
        return false;
    *link = all;
    return true;
}

static bool read_line(onic_links_t *links, part_t line, onic_link_error_t *error)
{
    part_t rest = line;
    const part_t kind = trimmed(before(&rest, ':'));

    if (kind.len == line.len)
        return wrong(error, kind, (part_t){"", 0}, "no colon behind the kind of peer");
    if (is(kind, kinds[0]))
        return read_all(&links->node, rest, error);
    if (is(kind, kinds[1]))
        return read_all(&links->net, rest, error);
    return wrong(error, kind, (part_t){"", 0}, "unknown kind of peer");
}

bool onic_links_read(onic_links_t *links, const char *text, onic_link_error_t *error)
{
    part_t rest = {text, strlen(text)};
    onic_links_t all = *links;
    bool any = false;

    for (error->line = 1; rest.len > 0; error->line++) {
        part_t line = before(&rest, '\n');

        line = trimmed(before(&line, '#'));
        if (line.len == 0)
            continue;
        if (!read_line(&all, line, error))
            return false;
        any = true;
    }
    if (!any) {
        error->line = 0;
        return wrong(error, (part_t){"", 0}, (part_t){"", 0}, "nothing is in it");
    }
    *links = all;
    return true;
}

/** Adds to what stands in `buf`, as far as there is room. */
static void add(char *buf, size_t cap, const char *before_it, const char *name, const char *mark,
                const char *value)
{
    const size_t len = strlen(buf);

    snprintf(buf + len, cap - len, "%s%s%s%s", before_it, name, mark, value);
}

/** Four digits: more are never known. */
static void add_link(const onic_link_t *link, char *buf, size_t cap)
{
    for (size_t i = 0; i < N_NAMES; i++) {
        char text[32];
        double value;

        memcpy(&value, (const char *)link + names[i].at, sizeof(value));
        snprintf(text, sizeof(text), "%.4g", value);
        add(buf, cap, i > 0 ? "," : "", names[i].name, "=", text);
    }
}

void onic_link_write(const onic_link_t *link, char *buf, size_t cap)
{
    buf[0] = '\0';
    add_link(link, buf, cap);
}

void onic_links_write(const onic_links_t *links, char *buf, size_t cap)
{
    buf[0] = '\0';
    for (size_t i = 0; i < N_KINDS; i++) {
        add(buf, cap, "", kinds[i], ": ", "");
        add_link(i == 0 ? &links->node : &links->net, buf, cap);
        add(buf, cap, "\n", "", "", "");
    }
}
