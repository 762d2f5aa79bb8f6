/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/wire/adapters.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "common/wire/tls.h"

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

unsigned onic_adapters(const char *directory, const char *devices, bool active)
{
    const struct dirent *entry;
    unsigned n = 0;
    DIR *all = opendir(directory);

    while (all != NULL && (entry = readdir(all)) != NULL) {
        n += entry->d_name[0] != '.' && onic_devices_have(devices, entry->d_name) &&
             (!active || has_active_port(directory, entry->d_name));
    }
    if (all != NULL) {
        closedir(all);
    }
    return n;
}

bool onic_rdma_here(const char *directory, const char *tls, const char *devices)
{
    return onic_tls_have_rdma(tls) && onic_adapters(directory, devices, true) > 0;
}
