/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Would UCX put by an RDMA adapter? See rdma.h. */
#include "common/wire/rdma.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "common/wire/tls.h"

static bool has_prefix(const char *word, size_t len, const char *prefix)
{
    return len >= strlen(prefix) && strncmp(word, prefix, strlen(prefix)) == 0;
}

/** Is this word of UCX_TLS a transport with RDMA? "\rc" is "rc" and nothing else. */
static bool is_rdma(const char *word, size_t len)
{
    if (len > 0 && *word == '\\') {
        word++;
        len--;
    }
    return has_prefix(word, len, "rc") || has_prefix(word, len, "dc") ||
           has_prefix(word, len, "ib") || has_prefix(word, len, "all");
}

bool onic_rdma_tls(const char *tls)
{
    if (tls == NULL || tls[0] == '\0') {
        return true;
    }
    const bool all_but = tls[0] == '^';
    const char *word = all_but ? tls + 1 : tls;
    bool named = false, ib = false, rc = false, dc = false;
    while (*word != '\0') {
        const size_t len = strcspn(word, ",");
        named |= is_rdma(word, len);
        ib |= has_prefix(word, len, "ib");
        rc |= len == 2 && has_prefix(word, len, "rc");
        dc |= len == 2 && has_prefix(word, len, "dc");
        word += len + (word[len] == ',');
    }
    /* Of all but "rc" the others are left, likewise of all but "rc_verbs". */
    return all_but ? !ib && !(rc && dc) : named;
}

static bool is_active(const char *directory, const char *device, const char *port)
{
    char path[512], state[32] = "";
    if (snprintf(path, sizeof(path), "%s/%s/ports/%s/state", directory, device, port) >=
        (int)sizeof(path)) {
        return false;
    }
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        (void)!fgets(state, sizeof(state), file);
        fclose(file);
    }
    return strstr(state, "ACTIVE") != NULL;
}

static bool has_active_port(const char *directory, const char *device)
{
    char path[512];
    const struct dirent *entry;
    bool active = false;
    if (snprintf(path, sizeof(path), "%s/%s/ports", directory, device) >= (int)sizeof(path)) {
        return false;
    }
    DIR *ports = opendir(path);
    while (ports != NULL && !active && (entry = readdir(ports)) != NULL) {
        active = entry->d_name[0] != '.' && is_active(directory, device, entry->d_name);
    }
    if (ports != NULL) {
        closedir(ports);
    }
    return active;
}

bool onic_rdma_here(const char *directory, const char *tls, const char *devices)
{
    const struct dirent *entry;
    bool here = false;
    DIR *all = onic_rdma_tls(tls) ? opendir(directory) : NULL;
    while (all != NULL && !here && (entry = readdir(all)) != NULL) {
        here = entry->d_name[0] != '.' && onic_devices_have(devices, entry->d_name) &&
               has_active_port(directory, entry->d_name);
    }
    if (all != NULL) {
        closedir(all);
    }
    return here;
}
