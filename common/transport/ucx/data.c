/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Data by UCX: registered memory, keys, puts, gets and flushes. */
#include "common/ompi_compat.h"
#include "common/transport/ucx/internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "ompi/constants.h"

/** All regions and remotes that are open. */
static LIST_HEAD(, onic_region) regions = LIST_HEAD_INITIALIZER(regions);
static LIST_HEAD(, onic_remote) remotes = LIST_HEAD_INITIALIZER(remotes);

/* ---- own memory ------------------------------------------------------------------------------ */

/** Of memory that it has not allocated UCX may name another address: that of what it had registered
 *  before, and found to hold this, too. */
static ucs_status_t map(onic_region_t *region, void *base, size_t bytes)
{
    ucp_mem_map_params_t params = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                      UCP_MEM_MAP_PARAM_FIELD_FLAGS,
        .address = base,
        .length = bytes,
        .flags = base == NULL ? UCP_MEM_MAP_ALLOCATE : 0,
    };
    ucs_status_t status = ucp_mem_map(onic_ucx_state.context, &params, &region->memh);
    if (status != UCS_OK || base != NULL)
        return status;
    ucp_mem_attr_t attr = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
    status = ucp_mem_query(region->memh, &attr);
    if (status != UCS_OK)
        ucp_mem_unmap(onic_ucx_state.context, region->memh);
    else
        region->base = memset(attr.address, 0, bytes);
    return status;
}

onic_region_t *onic_ucx_map(void *base, size_t bytes)
{
    onic_region_t *region = malloc(sizeof(*region));
    if (region == NULL)
        return NULL;
    *region = (onic_region_t){.base = base, .size = bytes};
    if (map(region, base, bytes) != UCS_OK) {
        free(region);
        return NULL;
    }
    LIST_INSERT_HEAD(&regions, region, listed);
    return region;
}

void onic_ucx_unmap(onic_region_t *region)
{
    if (region->memh != NULL) {
        ucp_mem_unmap(onic_ucx_state.context, region->memh);
        LIST_REMOVE(region, listed);
    }
    free(region);
}

void onic_ucx_regions_stop(void)
{
    for (onic_region_t *region; (region = LIST_FIRST(&regions)) != NULL;) {
        LIST_REMOVE(region, listed);
        ucp_mem_unmap(onic_ucx_state.context, region->memh);
        region->memh = NULL;
        if (region->left)
            free(region);
    }
}

size_t onic_ucx_pack(const onic_region_t *region, void *bytes, size_t cap)
{
    void *key;
    size_t len;
    if (ucp_rkey_pack(onic_ucx_state.context, region->memh, &key, &len) != UCS_OK)
        return 0;
    const bool fits = len <= cap;
    if (fits)
        memcpy(bytes, key, len);
    ucp_rkey_buffer_release(key);
    return fits ? len : 0;
}

/* ---- a peer's memory ------------------------------------------------------------------------- */

/* UCX is not told the length of a key, and reads as far as lengths in it say. */
onic_remote_t *onic_ucx_open(onic_peer_t *peer, const void *key, int *rc_p)
{
    onic_remote_t *remote = calloc(1, sizeof(*remote));
    *rc_p = remote != NULL ? onic_ucs_error(ucp_ep_rkey_unpack(peer->ucx->ep, key, &remote->rkey))
                           : OMPI_ERR_OUT_OF_RESOURCE;
    if (*rc_p != OMPI_SUCCESS) {
        free(remote);
        return NULL;
    }
    remote->peer = peer;
    LIST_INSERT_HEAD(&remotes, remote, listed);
    return remote;
}

/** UCX's key is given back, which needs the worker. */
static void close_key(onic_remote_t *remote)
{
    if (remote->rkey == NULL)
        return;
    ucp_rkey_destroy(remote->rkey);
    remote->rkey = NULL;
    LIST_REMOVE(remote, listed);
}

void onic_ucx_close(onic_remote_t *remote)
{
    close_key(remote);
    free(remote);
}

void onic_ucx_remotes_stop(void)
{
    while (!LIST_EMPTY(&remotes))
        close_key(LIST_FIRST(&remotes));
}

/* ---- puts and gets --------------------------------------------------------------------------- */

int onic_ucx_put(onic_request_t *r, const onic_remote_t *remote, uint64_t there, const void *data,
                 size_t len, const onic_region_t *from)
{
    ucp_request_param_t param = onic_ucx_param_of(r);
    if (from != NULL) {
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
        param.memh = from->memh;
    }
    return onic_ucx_started(r,
                            ucp_put_nbx(r->peer->ucx->ep, data, len, there, remote->rkey, &param));
}

int onic_ucx_get(onic_request_t *r, const onic_remote_t *remote, uint64_t there, void *data,
                 size_t len)
{
    const ucp_request_param_t param = onic_ucx_param_of(r);
    return onic_ucx_started(r,
                            ucp_get_nbx(r->peer->ucx->ep, data, len, there, remote->rkey, &param));
}

int onic_ucx_flush(onic_request_t *r)
{
    if (r->peer->ucx == NULL)
        return 1;
    const ucp_request_param_t param = onic_ucx_param_of(r);
    return onic_ucx_started(r, ucp_ep_flush_nbx(r->peer->ucx->ep, &param));
}
