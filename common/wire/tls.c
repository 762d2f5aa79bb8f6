/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/wire/tls.h"

#include <string.h>

/** Transports of verbs, each with all names that a list may give it. */
static const char *const verbs[][5] = {{"rc_verbs", "rc_v", "rc", "ib", NULL},
                                       {"rc_mlx5", "rc_x", "rc", "ib", NULL},
                                       {"dc_mlx5", "dc_x", "dc", "ib", NULL},
                                       {"ud_verbs", "ud_v", "ud", "ib", NULL},
                                       {"ud_mlx5", "ud_x", "ud", "ib", NULL}};
enum { VERBS = sizeof(verbs) / sizeof(verbs[0]), RDMA = 3 /**< the first of them */ };

/** Those of shared memory. */
static const char *const memory[][6] = {{"posix", "sm", "shm", "mm", "shared_memory", NULL},
                                        {"sysv", "sm", "shm", "mm", "shared_memory", NULL},
                                        {"xpmem", "sm", "shm", "mm", "shared_memory", NULL}};
enum { MEMORY = sizeof(memory) / sizeof(memory[0]) };

/** A word of a list, without what UCX decorates names with: "\tcp", "ud_verbs:aux". */
typedef struct word {
    const char *text;
    size_t len;
    const char *decorated; /**< as it stands in the list */
    size_t decorated_len;
} word_t;

/** The next word at *rest; false where there is none. */
static bool next_word(const char **rest, word_t *w)
{
    w->decorated = *rest + strspn(*rest, ",");
    w->decorated_len = strcspn(w->decorated, ",");
    w->text = w->decorated + strspn(w->decorated, "\\");
    w->len = strcspn(w->text, ",:");
    *rest = w->decorated + w->decorated_len;
    return w->decorated_len > 0;
}

static bool is(const word_t *w, const char *name)
{
    return strlen(name) == w->len && memcmp(w->text, name, w->len) == 0;
}

static bool is_one_of(const word_t *w, const char *const *names)
{
    while (*names != NULL && !is(w, *names))
        names++;
    return *names != NULL;
}

static bool list_names(const char *list, const char *const *names)
{
    word_t w;
    bool found = false;

    while (!found && next_word(&list, &w))
        found = is_one_of(&w, names);
    return found;
}

static bool is_all(const char *list)
{
    static const char *const all[] = {"all", NULL};

    return list == NULL || *list == '\0' || (*list != '^' && list_names(list, all));
}

/** A list that grows. */
typedef struct output {
    char *text;
    size_t size, len;
    bool full;
} output_t;

static void append(output_t *o, const char *text, size_t len)
{
    const size_t comma = o->len > 0 ? 1 : 0;

    o->full = o->full || len + comma >= o->size - o->len;
    if (o->full)
        return;
    if (comma == 1)
        o->text[o->len] = ',';
    memcpy(o->text + o->len + comma, text, len);
    o->len += comma + len;
    o->text[o->len] = '\0';
}

static void append_word(output_t *o, const word_t *w)
{
    append(o, w->decorated, w->decorated_len);
}

/** All but one, given as "^name", and but what a list such as "^tcp" excludes already. */
static bool exclude(const char *list, const char *name, output_t *o)
{
    if (is_all(list)) {
        append(o, name, strlen(name));
    } else {
        append(o, list, strlen(list));
        append(o, name + 1, strlen(name + 1));
    }
    return !o->full;
}

/** Does the list allow a transport with these names? */
static bool allows(const char *list, const char *const *names)
{
    const bool all = is_all(list), excludes = !all && *list == '^';

    return all || excludes != list_names(list + (excludes ? 1 : 0), names);
}

bool onic_tls_have_verbs(const char *list)
{
    bool have = false;

    for (size_t i = 0; i < VERBS && !have; i++)
        have = allows(list, verbs[i]);
    return have;
}

bool onic_tls_have_rdma(const char *list)
{
    bool have = false;

    for (size_t i = 0; i < RDMA && !have; i++)
        have = allows(list, verbs[i]);
    return have;
}

bool onic_tls_have_tcp(const char *list)
{
    static const char *const tcp[] = {"tcp", NULL};

    return allows(list, tcp);
}

bool onic_tls_have_shared_memory(const char *list)
{
    bool have = false;

    for (size_t i = 0; i < MEMORY && !have; i++)
        have = allows(list, memory[i]);
    return have;
}

static bool is_verbs(const word_t *w)
{
    bool found = false;

    for (size_t i = 0; i < VERBS && !found; i++)
        found = is_one_of(w, verbs[i]);
    return found;
}

bool onic_devices_have(const char *list, const char *name)
{
    const bool all = is_all(list), excludes = !all && *list == '^';
    const char *rest = excludes ? list + 1 : list;
    bool named = false;
    word_t w;

    /* An excluded port leaves the device's others. */
    while (!all && !named && next_word(&rest, &w))
        named = is(&w, name) && !(excludes && w.decorated_len > w.len);
    return all || named != excludes;
}

bool onic_tls_without_verbs(const char *list, char *out, size_t size)
{
    output_t o = {.text = out, .size = size};
    word_t w;

    if (is_all(list) || *list == '^')
        return exclude(list, "^ib", &o);
    while (next_word(&list, &w)) {
        if (!is_verbs(&w))
            append_word(&o, &w);
    }
    return o.len > 0 && !o.full;
}

bool onic_tls_without_posix(const char *list, char *out, size_t size)
{
    static const char *const posix[] = {"posix", NULL};
    static const char *const groups[] = {"sm", "shm", "mm", "shared_memory", NULL};
    output_t o = {.text = out, .size = size};
    bool dropped = false;
    word_t w;

    if (is_all(list) || *list == '^')
        return (is_all(list) || !list_names(list + 1, posix)) && exclude(list, "^posix", &o);
    while (next_word(&list, &w)) {
        const bool group = is_one_of(&w, groups), gone = is_one_of(&w, posix);

        dropped = dropped || group || gone;
        if (group)
            append(&o, "sysv", strlen("sysv"));
        else if (!gone)
            append_word(&o, &w);
    }
    return dropped && o.len > 0 && !o.full;
}
