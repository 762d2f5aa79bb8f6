/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/wire/adapters.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "common/support/peer_file.h"

/* ---- lists --------------------------------------------------------------------------------- */

/** Transports, each with all names that a list may give it. */
static const char *const transports[][6] = {{"rc_verbs", "rc_v", "rc", "ib"},
                                            {"rc_mlx5", "rc_x", "rc", "ib"},
                                            {"dc_mlx5", "dc_x", "dc", "ib"},
                                            {"ud_verbs", "ud_v", "ud", "ib"},
                                            {"ud_mlx5", "ud_x", "ud", "ib"},
                                            {"posix", "sm", "shm", "mm", "shared_memory"},
                                            {"sysv", "sm", "shm", "mm", "shared_memory"},
                                            {"xpmem", "sm", "shm", "mm", "shared_memory"},
                                            {"tcp"}};
/** Where kinds of them begin; the next kind begins where one ends. */
enum { VERBS = 0, VERBS_WITHOUT_RDMA = 3, MEMORY = 5, TCP = 8, END = 9 };

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

bool onic_tls_have(onic_tls_t kind, const char *list)
{
    static const struct {
        int from, to;
    } kinds[] = {[ONIC_TLS_VERBS] = {VERBS, MEMORY},
                 [ONIC_TLS_RDMA] = {VERBS, VERBS_WITHOUT_RDMA},
                 [ONIC_TLS_MEMORY] = {MEMORY, TCP},
                 [ONIC_TLS_TCP] = {TCP, END}};
    const bool all = is_all(list), excludes = !all && *list == '^';
    bool allowed = all;

    for (int i = kinds[kind].from; i < kinds[kind].to && !allowed; i++)
        allowed = excludes != list_names(list + excludes, transports[i]);
    return allowed;
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

/** Writes what a list leaves that excludes `name`, too. */
static bool exclude(const char *list, const char *name, char *out, size_t size)
{
    const int len =
        is_all(list) ? snprintf(out, size, "^%s", name) : snprintf(out, size, "%s,%s", list, name);

    return (size_t)len < size;
}

static bool append(char *out, size_t size, const char *text, size_t len)
{
    const size_t at = strlen(out);

    return (size_t)snprintf(out + at, size - at, "%s%.*s", at > 0 ? "," : "", (int)len, text) <
           size - at;
}

bool onic_tls_without_verbs(const char *list, char *out, size_t size)
{
    bool fits = true;
    word_t w;

    if (is_all(list) || *list == '^')
        return exclude(list, "ib", out, size);
    *out = '\0';
    while (next_word(&list, &w)) {
        bool verbs = false;

        for (int i = VERBS; i < MEMORY; i++)
            verbs = verbs || is_one_of(&w, transports[i]);
        fits = (verbs || append(out, size, w.decorated, w.decorated_len)) && fits;
    }
    return *out != '\0' && fits;
}

bool onic_tls_without_posix(const char *list, char *out, size_t size)
{
    static const char *const posix[] = {"posix", NULL};
    const char *const *groups = transports[MEMORY] + 1;
    bool dropped = false, fits = true;
    word_t w;

    if (is_all(list) || *list == '^')
        return (is_all(list) || !list_names(list + 1, posix)) && exclude(list, "posix", out, size);
    *out = '\0';
    while (next_word(&list, &w)) {
        const bool group = is_one_of(&w, groups), gone = is_one_of(&w, posix);

        dropped = dropped || group || gone;
        if (group)
            fits = append(out, size, "sysv", strlen("sysv")) && fits;
        else if (!gone)
            fits = append(out, size, w.decorated, w.decorated_len) && fits;
    }
    return dropped && *out != '\0' && fits;
}

/* ---- adapters ------------------------------------------------------------------------------ */

static bool is_active(const char *state_file)
{
    char state[32];

    return onic_file_text(state_file, state, sizeof(state)) > 0 && strstr(state, "ACTIVE") != NULL;
}

unsigned onic_adapters(const char *directory, const char *devices, bool active)
{
    char pattern[PATH_MAX], name[NAME_MAX + 1];
    glob_t found;
    unsigned n = 0;

    snprintf(pattern, sizeof(pattern), active ? "%s/*/ports/*/state" : "%s/*", directory);
    if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0)
        return 0;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *path = found.gl_pathv[i], *device = path + strlen(directory) + 1;

        snprintf(name, sizeof(name), "%.*s", (int)strcspn(device, "/"), device);
        n += onic_devices_have(devices, name) && (!active || is_active(path));
    }
    globfree(&found);
    return n;
}

bool onic_rdma_here(const char *directory, const char *tls, const char *devices)
{
    return onic_tls_have(ONIC_TLS_RDMA, tls) && onic_adapters(directory, devices, true) > 0;
}
