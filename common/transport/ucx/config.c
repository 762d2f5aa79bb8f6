/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file UCX's configuration: the user's environment first, then our values where it says nothing.
 *  Keys are set only where their transport is to be had: UCX warns aloud of others. */
#include "common/transport/ucx/adapters.h"
#include "common/transport/ucx/internal.h"

#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucs/sys/string.h>

/** UCX's own size of a fragment, in the versions that we know. */
#define UCX_SEG_SIZE 8192
/** A fragment is shorter. */
#define SIZE_MAX_SENSIBLE ((size_t)1 << 31)
/** Room for the headers that UCX puts before a fragment; more than any transport needs. */
#define UCX_OVERHEAD 64

/** A fragment of TCP: with UCX's 8 KiB long transfers take twice as long. */
#define TCP_SEG_SIZE "262144"
/** Fragments that UCX allocates at once in shared memory: of its own 512 each process would have
 *  some MB, and on a node nearly nothing goes by UCX. */
#define SHM_BUFS_GROW "72"

/* ---- what the user says --------------------------------------------------------------------- */

/** A size as UCX writes them, or `fallback` where it is anything else. */
static size_t env_size(const char *name, size_t fallback)
{
    const char *text = getenv(name);
    size_t size;

    return text != NULL && ucs_str_to_memunits(text, &size) == UCS_OK && size < SIZE_MAX_SENSIBLE
               ? size
               : fallback;
}

/** True if UCX_NET_DEVICES names an interface of the kernel. Verbs devices have other names. */
static bool devices_have_tcp(const char *devices)
{
    struct if_nameindex *all = if_nameindex();
    bool have = false;

    for (struct if_nameindex *i = all; i != NULL && i->if_index != 0 && !have; i++)
        have = onic_devices_have(devices, i->if_name);
    if (all != NULL)
        if_freenameindex(all);
    return have;
}

/* ---- what we say ---------------------------------------------------------------------------- */

/** Sets a key of UCX's. */
static bool set(ucp_config_t *config, const char *key, const char *value)
{
    return ucp_config_modify(config, key, value) == UCS_OK;
}

/** Keys of a transport carry its prefix from UCX 1.17 on, and go without it before. */
static const char *prefixed_key(const char *key, const char *prefix)
{
    unsigned major, minor, release;
    ucp_get_version(&major, &minor, &release);
    return major > 1 || (major == 1 && minor >= 17) ? key : key + strlen(prefix);
}

/** Both sizes together: a receiver's segment must hold a sender's. */
static void configure_tcp(const char *tls, ucp_config_t *config)
{
    const char *tx = getenv("UCX_TCP_TX_SEG_SIZE"), *rx = getenv("UCX_TCP_RX_SEG_SIZE");
    onic_ucx_state.tcp_seg_size = env_size("UCX_TCP_TX_SEG_SIZE", UCX_SEG_SIZE);
    if (tx == NULL && rx == NULL && onic_tls_have(ONIC_TLS_TCP, tls) &&
        devices_have_tcp(getenv("UCX_NET_DEVICES")) &&
        set(config, prefixed_key("TCP_RX_SEG_SIZE", "TCP_"), TCP_SEG_SIZE) &&
        set(config, prefixed_key("TCP_TX_SEG_SIZE", "TCP_"), TCP_SEG_SIZE))
        onic_ucx_state.tcp_seg_size = strtoul(TCP_SEG_SIZE, NULL, 10);
}

/** A transport that is not asked for that is not chosen for endpoints that can be closed. */
static void configure_shm(const char *tls, ucp_config_t *config)
{
    const bool shm = onic_tls_have(ONIC_TLS_MEMORY, tls);
    onic_ucx_state.closes =
        !shm || (getenv("UCX_MM_ERROR_HANDLING") == NULL && set(config, "MM_ERROR_HANDLING", "y"));
    if (shm && getenv("UCX_MM_RX_BUFS_GROW") == NULL)
        (void)set(config, "MM_RX_BUFS_GROW", SHM_BUFS_GROW);
}

ucs_status_t onic_ucx_read_config(const char *tls, ucp_config_t **config_p)
{
    ucs_status_t status = ucp_config_read(NULL, NULL, config_p);
    if (status != UCS_OK)
        return status;
    status = ucp_config_modify(*config_p, "TLS", tls);
    if (status != UCS_OK) {
        ucp_config_release(*config_p);
        return status;
    }
    configure_tcp(tls, *config_p);
    configure_shm(tls, *config_p);
    /* A flush of the worker waits for no answers of others then. */
    if (getenv("UCX_FLUSH_WORKER_EPS") == NULL)
        (void)set(*config_p, "FLUSH_WORKER_EPS", "n");
    return UCS_OK;
}

size_t onic_ucx_frag_max(const char *transport)
{
    char env[64];
    size_t size = UCX_SEG_SIZE;
    if (strcmp(transport, "tcp") == 0)
        return onic_ucx_state.tcp_seg_size - UCX_OVERHEAD;
    if (*transport != '\0' && onic_tls_have(ONIC_TLS_MEMORY, transport))
        size = env_size("UCX_MM_SEG_SIZE", size + UCX_OVERHEAD);
    snprintf(env, sizeof(env), "UCX_%s_SEG_SIZE", transport);
    for (char *c = env; *c != '\0'; c++)
        *c = (char)(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
    return env_size(env, size) - UCX_OVERHEAD;
}
