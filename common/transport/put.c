/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/ompi_compat.h"
#include "common/transport/internal.h"

#include <string.h>
#include <unistd.h>

#include "common/transport/put.h"
#include "common/transport/ucx/ucx.h"
#include "ompi/constants.h"

/** What a description begins with; the row's key and the address record follow. */
typedef struct description {
    uint64_t base;
    uint64_t size;
    uint32_t record_len;
    uint32_t key_len;
} description_t;

bool onic_transport_puts(void)
{
    return onic_transport.puts;
}

/* ---- own memory ----------------------------------------------------------------------------- */

onic_region_t *onic_region_over_locked(void *base, size_t bytes)
{
    return onic_transport.puts ? onic_ucx_map(base, bytes) : NULL;
}

onic_region_t *onic_region_new(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    onic_transport_lock();
    onic_region_t *region = onic_region_over_locked(NULL, (bytes + page - 1) / page * page);
    onic_transport_unlock();
    return region;
}

void onic_region_free_locked(onic_region_t *region)
{
    onic_ucx_unmap(region);
}

void onic_region_free(onic_region_t *region)
{
    onic_transport_lock();
    onic_region_free_locked(region);
    onic_transport_unlock();
}

void onic_region_leave(onic_region_t *region)
{
    onic_transport_lock();
    region->left = true;
    onic_transport_unlock();
}

void *onic_region_base(const onic_region_t *region)
{
    return region->base;
}

/** Writes the description, with the address record if wanted. 0 where it does not fit. */
static size_t describe(const onic_region_t *region, bool with_record, unsigned char *bytes,
                       size_t cap)
{
    description_t head = {.base = (uint64_t)(uintptr_t)region->base, .size = region->size};
    if (cap < sizeof(head))
        return 0;
    const size_t key_len = onic_ucx_pack(region, bytes + sizeof(head), cap - sizeof(head));
    const size_t key_end = sizeof(head) + key_len;
    if (key_len == 0)
        return 0;
    head.key_len = (uint32_t)key_len;
    if (with_record)
        head.record_len = (uint32_t)onic_address_record(bytes + key_end, cap - key_end);
    memcpy(bytes, &head, sizeof(head));
    return head.record_len > 0 || !with_record ? key_end + head.record_len : 0;
}

size_t onic_region_describe(const onic_region_t *region, void *bytes, size_t cap)
{
    onic_transport_lock();
    const size_t len = describe(region, true, bytes, cap);
    onic_transport_unlock();
    return len;
}

size_t onic_region_key_locked(const onic_region_t *region, void *bytes, size_t cap)
{
    return describe(region, false, bytes, cap);
}

/* ---- a peer's memory ------------------------------------------------------------------------ */

onic_remote_t *onic_remote_open(onic_peer_t *peer, const void *bytes, size_t len, int *rc_p)
{
    description_t head;
    const unsigned char *key = (const unsigned char *)bytes + sizeof(head);
    *rc_p = OMPI_ERR_BAD_PARAM;
    if (len < sizeof(head))
        return NULL;
    memcpy(&head, bytes, sizeof(head));
    if (head.key_len == 0 || (uint64_t)head.key_len + head.record_len != len - sizeof(head))
        return NULL;
    if (peer == NULL)
        peer = onic_learn_peer(key + head.key_len, head.record_len);
    if (peer == NULL)
        return NULL;
    *rc_p = onic_peer_reach(peer, &onic_row_ucx);
    onic_remote_t *remote = *rc_p == OMPI_SUCCESS ? onic_ucx_open(peer, key, rc_p) : NULL;
    if (remote != NULL) {
        remote->base = head.base;
        remote->size = head.size;
    }
    return remote;
}

void onic_remote_close(onic_remote_t *remote)
{
    onic_ucx_close(remote);
}

onic_peer_t *onic_remote_peer(const onic_remote_t *remote)
{
    return remote->peer;
}

/* ---- puts and gets --------------------------------------------------------------------------- */

/** Connects the peer and makes a request for an operation with it. NULL, and the error. */
static onic_request_t *begin(onic_peer_t *peer, onic_send_cb_t cb, void *arg, int *rc_p)
{
    *rc_p = onic_peer_reach(peer, &onic_row_ucx);
    onic_request_t *r = *rc_p == OMPI_SUCCESS ? onic_request_get(peer, cb, arg, 0) : NULL;
    if (r == NULL && *rc_p == OMPI_SUCCESS)
        *rc_p = OMPI_ERR_OUT_OF_RESOURCE;
    return r;
}

/** The same for an operation on bytes of the peer's region. */
static onic_request_t *begin_there(const onic_remote_t *remote, size_t offset, size_t len,
                                   onic_send_cb_t cb, void *arg, int *rc_p)
{
    *rc_p = OMPI_ERR_BAD_PARAM;
    return len <= remote->size && offset <= remote->size - len ? begin(remote->peer, cb, arg, rc_p)
                                                               : NULL;
}

int onic_remote_put(onic_remote_t *remote, size_t offset, const void *data, size_t len,
                    const onic_region_t *from, onic_send_cb_t cb, void *arg)
{
    int rc;
    onic_request_t *r = begin_there(remote, offset, len, cb, arg, &rc);
    return r == NULL ? rc
                     : onic_request_begun(
                           r, onic_ucx_put(r, remote, remote->base + offset, data, len, from));
}

int onic_remote_get(onic_remote_t *remote, size_t offset, void *data, size_t len, onic_send_cb_t cb,
                    void *arg)
{
    int rc;
    onic_request_t *r = begin_there(remote, offset, len, cb, arg, &rc);
    return r == NULL
               ? rc
               : onic_request_begun(r, onic_ucx_get(r, remote, remote->base + offset, data, len));
}

int onic_peer_flush(onic_peer_t *peer, onic_send_cb_t cb, void *arg)
{
    int rc;
    onic_request_t *r = begin(peer, cb, arg, &rc);
    return r != NULL ? onic_request_begun(r, onic_ucx_flush(r)) : rc;
}

bool onic_peer_puts_by_rdma(onic_peer_t *peer)
{
    if (!peer->self && !onic_peer_is_lost(peer))
        (void)onic_peer_reach(peer, &onic_row_ucx);
    return onic_ucx_by_rdma(peer);
}
