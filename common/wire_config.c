/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * UCX's configuration: the user's environment first, then our values where it says nothing.
 */
#include "common/wire_internal.h"

#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** UCX's own default for a TCP fragment, in the versions that we know. */
#define UCX_TCP_SEG_SIZE 8192
#define UCX_TCP_RX_SIZE  65536
/** UCX's own default for a fragment in shared memory. */
#define UCX_SHM_SEG_SIZE 8256
/** Room for the headers that UCX puts before a fragment; more than any transport needs. */
#define UCX_OVERHEAD 64

/** A size as UCX writes them ("8256", "8kb", "1M"), or `fallback` where it is anything else. */
static size_t parse_size(const char *text, size_t fallback)
{
    static const char units[] = "kmg";
    char *end;
    unsigned long long n = strtoull(text, &end, 10);
    unsigned shift = 0;
    if (end == text) {
        return fallback;
    }
    if (*end != '\0' && *end != 'b' && *end != 'B') {
        const char *unit = strchr(units, *end | 0x20);
        if (unit == NULL) {
            return fallback;
        }
        shift = 10U * (unsigned)(unit - units + 1);
    }
    return n < (1ULL << 31) ? (size_t)(n << shift) : fallback;
}

static size_t env_size(const char *name, size_t fallback)
{
    const char *text = getenv(name);
    return text != NULL ? parse_size(text, fallback) : fallback;
}

/** Does a list such as UCX_TLS ("all", "tcp,self", "^tcp") let TCP be used? */
static bool tls_have_tcp(const char *tls)
{
    if (tls == NULL || *tls == '\0') {
        return true;
    }
    bool named = strstr(tls, "tcp") != NULL;
    return *tls == '^' ? !named : named || strstr(tls, "all") != NULL;
}

/** Does UCX_NET_DEVICES hold an interface of the kernel? Devices of verbs have other names. */
static bool devices_have_tcp(const char *devices)
{
    char copy[1024];
    if (devices == NULL || *devices == '\0' || *devices == '^' || strcmp(devices, "all") == 0) {
        return true;
    }
    snprintf(copy, sizeof(copy), "%s", devices);
    char *rest = NULL;
    for (char *name = strtok_r(copy, ",", &rest); name != NULL; name = strtok_r(NULL, ",", &rest)) {
        if (if_nametoindex(name) != 0) {
            return true;
        }
    }
    return false;
}

/** Keys of a transport carry its prefix from UCX 1.17 on, and go without it before. */
static const char *tcp_key(const char *key)
{
    unsigned major, minor, release;
    ucp_get_version(&major, &minor, &release);
    return major > 1 || (major == 1 && minor >= 17) ? key : key + strlen("TCP_");
}

/** Sets a key of TCP unless the user has set it in the environment. */
static ucs_status_t set_tcp(ucp_config_t *ucp_config, const char *key, size_t size)
{
    char text[64];
    snprintf(text, sizeof(text), "UCX_%s", key);
    if (getenv(text) != NULL) {
        return UCS_OK;
    }
    snprintf(text, sizeof(text), "%zu", size);
    return ucp_config_modify(ucp_config, tcp_key(key), text);
}

/** UCX warns of keys that no transport takes, so TCP's are set only where TCP is to be had. */
static ucs_status_t configure_tcp(const onic_wire_config_t *config, const char *tls,
                                  ucp_config_t *ucp_config)
{
    bool set = config->tcp_seg_size != 0 && tls_have_tcp(tls) &&
               devices_have_tcp(getenv("UCX_NET_DEVICES"));
    size_t tx = env_size("UCX_TCP_TX_SEG_SIZE", set ? config->tcp_seg_size : UCX_TCP_SEG_SIZE);
    ucs_status_t status = UCS_OK;
    if (set) {
        status = set_tcp(ucp_config, "TCP_TX_SEG_SIZE", tx);
    }
    /* The receiver's segment must hold a sender's. */
    if (set && status == UCS_OK && tx > UCX_TCP_RX_SIZE) {
        status = set_tcp(ucp_config, "TCP_RX_SEG_SIZE", tx);
    }
    onic_wire.tcp_frag_max = tx - UCX_OVERHEAD;
    return status;
}

ucs_status_t onic_wire_read_config(const onic_wire_config_t *config, ucp_config_t **ucp_config_p)
{
    bool given = config->tls != NULL && *config->tls != '\0';
    const char *tls = given ? config->tls : getenv("UCX_TLS");
    ucs_status_t status = ucp_config_read(NULL, NULL, ucp_config_p);
    if (status != UCS_OK) {
        return status;
    }
    if (given) {
        status = ucp_config_modify(*ucp_config_p, "TLS", config->tls);
    }
    if (status == UCS_OK) {
        status = configure_tcp(config, tls, *ucp_config_p);
    }
    onic_wire.shm_frag_max =
        env_size("UCX_POSIX_SEG_SIZE", env_size("UCX_MM_SEG_SIZE", UCX_SHM_SEG_SIZE)) -
        UCX_OVERHEAD;
    if (status != UCS_OK) {
        ucp_config_release(*ucp_config_p);
    }
    return status;
}
