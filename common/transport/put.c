/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/ompi_compat.h"
#include "common/transport/internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "common/transport/put.h"
#include "ompi/constants.h"

struct onic_region {
    LIST_ENTRY(onic_region) listed;
    ucp_mem_h memh; /**< NULL: the transport has been closed */
    void *base;
    size_t size;
    bool left; /**< peers may still put into it: it is freed with the transport */
};

struct onic_remote {
    LIST_ENTRY(onic_remote) listed;
    onic_peer_t *peer;
    ucp_rkey_h rkey; /**< NULL: the transport has been closed */
    uint64_t base;
    uint64_t size;
};

/** Those that there are; transport lock. */
static LIST_HEAD(, onic_region) regions = LIST_HEAD_INITIALIZER(regions);
static LIST_HEAD(, onic_remote) remotes = LIST_HEAD_INITIALIZER(remotes);

/** What a description begins with; the address record and the key follow. */
typedef struct description {
    uint64_t base;
    uint64_t size;
    uint32_t record_len;
    uint32_t rkey_len;
} description_t;

bool onic_transport_puts(void)
{
    return onic_transport.puts;
}

/* ---- own memory ----------------------------------------------------------------------------- */

/** Where `base` is NULL UCX allocates: so it can take memory that its transports reach best. */
static ucs_status_t map(onic_region_t *region, void *base, size_t bytes)
{
    ucp_mem_map_params_t params = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                      UCP_MEM_MAP_PARAM_FIELD_FLAGS,
        .address = base,
        .length = bytes,
        .flags = base == NULL ? UCP_MEM_MAP_ALLOCATE : 0,
    };
    ucs_status_t status = onic_ucx.mem_map(onic_transport.context, &params, &region->memh);
    if (status != UCS_OK)
        return status;
    region->base = base;
    /* Of memory that it has not allocated UCX may name another address: that of what it had
     * registered before, and found to hold this, too. */
    if (base == NULL) {
        ucp_mem_attr_t attr = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
        status = onic_ucx.mem_query(region->memh, &attr);
        if (status != UCS_OK) {
            onic_ucx.mem_unmap(onic_transport.context, region->memh);
            return status;
        }
        region->base = memset(attr.address, 0, bytes);
    }
    region->size = bytes;
    return UCS_OK;
}

static onic_region_t *new_region(void *base, size_t bytes)
{
    onic_region_t *region = malloc(sizeof(*region));
    if (region == NULL || !onic_transport.puts || map(region, base, bytes) != UCS_OK) {
        free(region);
        return NULL;
    }
    region->left = false;
    LIST_INSERT_HEAD(&regions, region, listed);
    return region;
}

onic_region_t *onic_region_new(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    onic_transport_lock();
    onic_region_t *region = new_region(NULL, (bytes + page - 1) / page * page);
    onic_transport_unlock();
    return region;
}

onic_region_t *onic_region_over_locked(void *base, size_t bytes)
{
    return new_region(base, bytes);
}

void onic_region_free_locked(onic_region_t *region)
{
    if (region->memh != NULL) {
        onic_ucx.mem_unmap(onic_transport.context, region->memh);
        LIST_REMOVE(region, listed);
    }
    free(region);
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

void onic_regions_stop(void)
{
    for (onic_region_t *region; (region = LIST_FIRST(&regions)) != NULL;) {
        LIST_REMOVE(region, listed);
        onic_ucx.mem_unmap(onic_transport.context, region->memh);
        region->memh = NULL;
        if (region->left)
            free(region);
    }
}

void *onic_region_base(const onic_region_t *region)
{
    return region->base;
}

/** The parts of a description, with the address record if wanted; 0 where they do not fit. */
static size_t assemble(const onic_region_t *region, const void *rkey, size_t rkey_len,
                       bool with_record, unsigned char *bytes, size_t cap)
{
    description_t head = {(uint64_t)(uintptr_t)region->base, region->size, 0, (uint32_t)rkey_len};
    const size_t key_end = sizeof(head) + rkey_len;
    if (cap < key_end)
        return 0;
    if (with_record)
        head.record_len = (uint32_t)onic_address_record(bytes + key_end, cap - key_end);
    memcpy(bytes, &head, sizeof(head));
    memcpy(bytes + sizeof(head), rkey, rkey_len);
    return head.record_len > 0 || !with_record ? key_end + head.record_len : 0;
}

static size_t describe(const onic_region_t *region, bool with_record, void *bytes, size_t cap)
{
    void *rkey;
    size_t rkey_len, len = 0;
    if (onic_ucx.rkey_pack(onic_transport.context, region->memh, &rkey, &rkey_len) == UCS_OK) {
        len = assemble(region, rkey, rkey_len, with_record, bytes, cap);
        onic_ucx.rkey_buffer_release(rkey);
    }
    return len;
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

/** UCX is not told how long a key is, and reads as far as lengths in it say: one byte for each
 *  memory domain, of which it knows 64, and some words before them. */
#define KEY_READ (64 * 256 + 64)

/** Behind its own bytes UCX reads zeros. */
static int open_key(onic_remote_t *remote, const unsigned char *rkey, size_t len)
{
    unsigned char *copy = len <= KEY_READ ? calloc(1, KEY_READ) : NULL;
    int rc = OMPI_ERR_UNREACH;
    ucp_ep_h ep = onic_peer_ep(remote->peer, &rc);
    if (ep != NULL && copy != NULL) {
        memcpy(copy, rkey, len);
        rc = onic_ucs_error(onic_ucx.ep_rkey_unpack(ep, copy, &remote->rkey));
    }
    free(copy);
    return ep != NULL && copy == NULL ? OMPI_ERR_OUT_OF_RESOURCE : rc;
}

onic_remote_t *onic_remote_open(onic_peer_t *peer, const void *bytes, size_t len, int *rc_p)
{
    description_t head;
    const unsigned char *rkey = (const unsigned char *)bytes + sizeof(head);
    *rc_p = OMPI_ERR_BAD_PARAM;
    if (len < sizeof(head))
        return NULL;
    memcpy(&head, bytes, sizeof(head));
    if (head.rkey_len == 0 || (uint64_t)head.rkey_len + head.record_len != len - sizeof(head))
        return NULL;
    onic_remote_t *remote = calloc(1, sizeof(*remote));
    if (remote == NULL) {
        *rc_p = OMPI_ERR_OUT_OF_RESOURCE;
        return NULL;
    }
    remote->base = head.base;
    remote->size = head.size;
    remote->peer = peer != NULL ? peer : onic_learn_peer(rkey + head.rkey_len, head.record_len);
    *rc_p = remote->peer != NULL ? open_key(remote, rkey, head.rkey_len) : OMPI_ERR_BAD_PARAM;
    if (*rc_p != OMPI_SUCCESS) {
        free(remote);
        return NULL;
    }
    LIST_INSERT_HEAD(&remotes, remote, listed);
    return remote;
}

/** UCX's key is given back, which needs the worker. */
static void close_key(onic_remote_t *remote)
{
    if (remote->rkey == NULL)
        return;
    onic_ucx.rkey_destroy(remote->rkey);
    remote->rkey = NULL;
    LIST_REMOVE(remote, listed);
}

void onic_remote_close(onic_remote_t *remote)
{
    close_key(remote);
    free(remote);
}

void onic_remotes_stop(void)
{
    while (!LIST_EMPTY(&remotes))
        close_key(LIST_FIRST(&remotes));
}

onic_peer_t *onic_remote_peer(const onic_remote_t *remote)
{
    return remote->peer;
}

/* ---- puts and gets --------------------------------------------------------------------------- */

/** A record for something begun with the peer, which has an endpoint then; NULL, and why. */
static onic_send_t *begin(onic_peer_t *peer, onic_send_cb_t cb, void *arg,
                          ucp_request_param_t *param, ucp_ep_h *ep_p, int *rc_p)
{
    *rc_p = OMPI_ERR_UNREACH;
    *ep_p = onic_peer_ep(peer, rc_p);
    onic_send_t *s = *ep_p != NULL ? onic_send_get(cb, arg, 0) : NULL;
    if (s == NULL) {
        *rc_p = *ep_p != NULL ? OMPI_ERR_OUT_OF_RESOURCE : *rc_p;
        return NULL;
    }
    s->peer = peer;
    *param = (ucp_request_param_t){
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb = {.send = onic_send_sent},
        .user_data = s,
    };
    return s;
}

/** The same with bytes of a region that the peer has. */
static onic_send_t *begin_there(const onic_remote_t *remote, size_t offset, size_t len,
                                onic_send_cb_t cb, void *arg, ucp_request_param_t *param,
                                ucp_ep_h *ep_p, int *rc_p)
{
    *rc_p = OMPI_ERR_BAD_PARAM;
    return len <= remote->size && offset <= remote->size - len
               ? begin(remote->peer, cb, arg, param, ep_p, rc_p)
               : NULL;
}

int onic_remote_put(onic_remote_t *remote, size_t offset, const void *data, size_t len,
                    const onic_region_t *from, onic_send_cb_t cb, void *arg)
{
    ucp_request_param_t param;
    ucp_ep_h ep;
    int rc;
    onic_send_t *s = begin_there(remote, offset, len, cb, arg, &param, &ep, &rc);
    if (s == NULL)
        return rc;
    if (from != NULL) {
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
        param.memh = from->memh;
    }
    return onic_send_begun(
        s, onic_ucx.put_nbx(ep, data, len, remote->base + offset, remote->rkey, &param));
}

int onic_remote_get(onic_remote_t *remote, size_t offset, void *data, size_t len, onic_send_cb_t cb,
                    void *arg)
{
    ucp_request_param_t param;
    ucp_ep_h ep;
    int rc;
    onic_send_t *s = begin_there(remote, offset, len, cb, arg, &param, &ep, &rc);
    if (s == NULL)
        return rc;
    return onic_send_begun(
        s, onic_ucx.get_nbx(ep, data, len, remote->base + offset, remote->rkey, &param));
}

int onic_peer_flush(onic_peer_t *peer, onic_send_cb_t cb, void *arg)
{
    ucp_request_param_t param;
    ucp_ep_h ep;
    int rc;
    onic_send_t *s = begin(peer, cb, arg, &param, &ep, &rc);
    return s != NULL ? onic_send_begun(s, onic_ucx.ep_flush_nbx(ep, &param)) : rc;
}
