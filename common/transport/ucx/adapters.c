/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE
#include "common/transport/ucx/adapters.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "common/support/peer_file.h"

/* ---- lists --------------------------------------------------------------------------------- */

/** True if the list has that word. UCX may write "\\" before a word. */
static bool names(const char *list, const char *name, const char *ends)
{
    const size_t len = strlen(name);
    bool found = false;

    while (!found && *list != '\0') {
        const char *word = list + strspn(list, ",\\");

        found = strcspn(word, ends) == len && memcmp(word, name, len) == 0;
        list = word + strcspn(word, ",");
    }
    return found;
}

bool onic_tls_are_free(const char *list)
{
    return list == NULL || *list == '\0' || (*list != '^' && names(list, "all", ","));
}

bool onic_tls_have(onic_tls_t kind, const char *list)
{
    /* The first part of their names ("rc_verbs", "shared_memory"); `groups` of them are kinds. */
    static const struct {
        const char *name[8];
        unsigned groups;
    } kinds[] = {[ONIC_TLS_VERBS] = {{"ib", "rc", "dc", "ud"}, 1},
                 [ONIC_TLS_RDMA] = {{"ib", "rc", "dc"}, 1},
                 [ONIC_TLS_MEMORY] = {{"sm", "shm", "mm", "shared", "posix", "sysv", "xpmem"}, 4},
                 [ONIC_TLS_TCP] = {{"tcp"}, 1}};
    const bool excludes = list != NULL && *list == '^';
    bool named = false;

    if (onic_tls_are_free(list))
        return true;
    for (unsigned i = 0; kinds[kind].name[i] != NULL && (!excludes || i < kinds[kind].groups); i++)
        named = named || names(list + excludes, kinds[kind].name[i], ",:_");
    return named != excludes;
}

bool onic_devices_have(const char *list, const char *name)
{
    const bool excludes = list != NULL && *list == '^';

    return onic_tls_are_free(list) || names(list + excludes, name, ",:") != excludes;
}

bool onic_devices_have_port(const char *list, const char *device, unsigned port)
{
    const bool excludes = list != NULL && *list == '^';
    char name[NAME_MAX + 16];

    snprintf(name, sizeof(name), "%s:%u", device, port);
    return onic_tls_are_free(list) ||
           (names(list + excludes, device, ",") || names(list + excludes, name, ",")) != excludes;
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

bool onic_can_lock(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (at == MAP_FAILED)
        return false;
    const bool can = mlock2(at, bytes, MLOCK_ONFAULT) == 0;
    munmap(at, bytes);
    return can;
}
