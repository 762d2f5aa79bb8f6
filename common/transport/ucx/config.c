/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file UCX's configuration: the user's environment first, then our values where it says nothing.
 *  Keys are set only where their transport is to be had: UCX warns aloud of others. */
#define _GNU_SOURCE
#include "common/transport/ucx/adapters.h"
#include "common/transport/ucx/internal.h"

#include <fnmatch.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucs/sys/string.h>
#include <unistd.h>

/** UCX's own sizes of a fragment, in the versions that we know. */
#define UCX_TCP_SEG_SIZE   8192
#define UCX_TCP_RX_SIZE    65536
#define UCX_OTHER_SEG_SIZE 8192
/** A fragment is shorter. */
#define SIZE_MAX_SENSIBLE ((size_t)1 << 31)
/** Room for the headers that UCX puts before a fragment; more than any transport needs. */
#define UCX_OVERHEAD 64

/** A fragment of 32 KiB in shared memory: with UCX's 8 KiB all moves a third slower and more. */
#define SHM_SEG_SIZE 32832
/** Fragments that UCX allocates at once: UCX's default of 512 would cost 16 MB for each process. */
#define SHM_BUFS_GROW 72

/* ---- what the user says --------------------------------------------------------------------- */

bool onic_user_says(const char *form)
{
    char **e = environ;

    while (*e != NULL && fnmatch(form, *e, FNM_EXTMATCH) != 0)
        e++;
    return *e != NULL;
}

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

/** Keys of a transport carry its prefix from UCX 1.17 on, and go without it before. */
static const char *prefixed_key(const char *key, const char *prefix)
{
    unsigned major, minor, release;
    ucp_get_version(&major, &minor, &release);
    return major > 1 || (major == 1 && minor >= 17) ? key : key + strlen(prefix);
}

static ucs_status_t set_size(ucp_config_t *ucp_config, const char *key, size_t size)
{
    char text[32];
    snprintf(text, sizeof(text), "%zu", size);
    return ucp_config_modify(ucp_config, key, text);
}

static ucs_status_t configure_tcp(const char *tls, size_t seg_size, ucp_config_t *ucp_config)
{
    const char *tx = getenv("UCX_TCP_TX_SEG_SIZE"), *rx = getenv("UCX_TCP_RX_SEG_SIZE");
    if (seg_size == 0 || !onic_tls_have(ONIC_TLS_TCP, tls) ||
        !devices_have_tcp(getenv("UCX_NET_DEVICES"))) {
        seg_size = UCX_TCP_SEG_SIZE;
    } else if (tx == NULL) {
        /* The receiver's segment must hold a sender's: UCX refuses to start otherwise. */
        size_t room = env_size("UCX_TCP_RX_SEG_SIZE", SIZE_MAX);
        seg_size = seg_size < room ? seg_size : room;
        ucs_status_t status =
            set_size(ucp_config, prefixed_key("TCP_TX_SEG_SIZE", "TCP_"), seg_size);
        if (status == UCS_OK && rx == NULL && seg_size > UCX_TCP_RX_SIZE)
            status = set_size(ucp_config, prefixed_key("TCP_RX_SEG_SIZE", "TCP_"), seg_size);
        if (status != UCS_OK)
            return status;
    }
    onic_ucx_state.tcp_seg_size = env_size("UCX_TCP_TX_SEG_SIZE", seg_size);
    return UCS_OK;
}

static ucs_status_t configure_shm(const char *tls, ucp_config_t *ucp_config)
{
    const bool shm = onic_tls_have(ONIC_TLS_MEMORY, tls);
    /* A transport that is not asked for that is not chosen for endpoints that can be closed. */
    onic_ucx_state.closes =
        !shm || (!onic_user_says("UCX_@(MM|POSIX|SYSV)_ERROR_HANDLING=*") &&
                 ucp_config_modify(ucp_config, "MM_ERROR_HANDLING", "y") == UCS_OK);
    if (!shm || onic_user_says("UCX_@(MM|POSIX|SYSV|XPMEM)_SEG_SIZE=*") ||
        onic_user_says("UCX_@(MM_RX_BUFS_GROW|SHM_DEVICES)=*")) {
        onic_ucx_state.shm_seg_size =
            env_size("UCX_MM_SEG_SIZE", UCX_OTHER_SEG_SIZE + UCX_OVERHEAD);
        return UCS_OK;
    }
    onic_ucx_state.shm_seg_size = SHM_SEG_SIZE;
    ucs_status_t status = set_size(ucp_config, "MM_SEG_SIZE", SHM_SEG_SIZE);
    return status == UCS_OK ? set_size(ucp_config, "MM_RX_BUFS_GROW", SHM_BUFS_GROW) : status;
}

const char *onic_ucx_tls(const onic_transport_config_t *config)
{
    return config->tls != NULL && *config->tls != '\0' ? config->tls : getenv("UCX_TLS");
}

ucs_status_t onic_ucx_read_config(const onic_transport_config_t *config,
                                  ucp_config_t **ucp_config_p)
{
    bool given = config->tls != NULL && *config->tls != '\0';
    const char *tls = onic_ucx_tls(config);
    ucs_status_t status = ucp_config_read(NULL, NULL, ucp_config_p);
    if (status != UCS_OK)
        return status;
    if (given)
        status = ucp_config_modify(*ucp_config_p, "TLS", tls);
    if (status == UCS_OK)
        status = configure_tcp(tls, config->tcp_seg_size, *ucp_config_p);
    if (getenv("UCX_FLUSH_WORKER_EPS") == NULL) {
        /* A flush of the worker waits for no answers of others then. */
        (void)ucp_config_modify(*ucp_config_p, "FLUSH_WORKER_EPS", "n");
    }
    if (status == UCS_OK)
        status = configure_shm(tls, *ucp_config_p);
    if (status != UCS_OK)
        ucp_config_release(*ucp_config_p);
    return status;
}

size_t onic_ucx_frag_max(const char *transport)
{
    char env[64];
    size_t size = UCX_OTHER_SEG_SIZE;
    if (strcmp(transport, "tcp") == 0)
        return onic_ucx_state.tcp_seg_size - UCX_OVERHEAD;
    if (*transport != '\0' && onic_tls_have(ONIC_TLS_MEMORY, transport))
        size = onic_ucx_state.shm_seg_size;
    snprintf(env, sizeof(env), "UCX_%s_SEG_SIZE", transport);
    for (char *c = env; *c != '\0'; c++)
        *c = (char)(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
    return env_size(env, size) - UCX_OVERHEAD;
}
