/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/ompi_compat.h"
#include "common/wire/wire_internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/wire/put.h"
#include "ompi/constants.h"

struct onic_region {
    onic_region_t *next; /**< of those that were left */
    ucp_mem_h memh;
    void *base;
    size_t size;
};

/** Those that peers may still put into; wire lock. */
static onic_region_t *left;

struct onic_remote {
    onic_peer_t *peer;
    ucp_rkey_h rkey;
    uint64_t base;
    uint64_t size;
};

/** What a description begins with; the address record and the key follow. */
typedef struct description {
    uint64_t base;
    uint64_t size;
    uint32_t record_len;
    uint32_t rkey_len;
} description_t;

void onic_wire_want_puts(void)
{
    onic_wire.want_puts = true;
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
    ucs_status_t status = ucp_mem_map(onic_wire.context, &params, &region->memh);
    if (status != UCS_OK) {
        return status;
    }
    ucp_mem_attr_t attr = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
    status = ucp_mem_query(region->memh, &attr);
    if (status != UCS_OK) {
        ucp_mem_unmap(onic_wire.context, region->memh);
        return status;
    }
    region->base = attr.address;
    region->size = bytes;
    if (base == NULL) {
        memset(region->base, 0, bytes);
    }
    return UCS_OK;
}

static onic_region_t *new_region(void *base, size_t bytes)
{
    onic_region_t *region = malloc(sizeof(*region));
    if (region == NULL || !onic_wire.puts) {
        free(region);
        return NULL;
    }
    onic_wire_lock();
    ucs_status_t status = map(region, base, bytes);
    onic_wire_unlock();
    if (status != UCS_OK) {
        free(region);
        region = NULL;
    }
    return region;
}

onic_region_t *onic_region_new(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return new_region(NULL, (bytes + page - 1) / page * page);
}

onic_region_t *onic_region_over(void *base, size_t bytes)
{
    return new_region(base, bytes);
}

void onic_region_free(onic_region_t *region)
{
    onic_wire_lock();
    ucp_mem_unmap(onic_wire.context, region->memh);
    onic_wire_unlock();
    free(region);
}

void onic_region_leave(onic_region_t *region)
{
    onic_wire_lock();
    region->next = left;
    left = region;
    onic_wire_unlock();
}

void onic_regions_stop(void)
{
    while (left != NULL) {
        onic_region_t *region = left;
        left = region->next;
        ucp_mem_unmap(onic_wire.context, region->memh);
        free(region);
    }
}

void *onic_region_base(const onic_region_t *region)
{
    return region->base;
}

/** The parts of a description behind one another; 0 where they do not fit. */
static size_t assemble(const onic_region_t *region, const void *rkey, size_t rkey_len,
                       unsigned char *bytes, size_t cap)
{
    description_t head = {(uint64_t)(uintptr_t)region->base, region->size, 0, (uint32_t)rkey_len};
    if (cap < sizeof(head) + rkey_len) {
        return 0;
    }
    head.record_len = (uint32_t)onic_address_record(bytes + sizeof(head) + rkey_len,
                                                    cap - sizeof(head) - rkey_len);
    memcpy(bytes, &head, sizeof(head));
    memcpy(bytes + sizeof(head), rkey, rkey_len);
    return head.record_len > 0 ? sizeof(head) + rkey_len + head.record_len : 0;
}

size_t onic_region_describe(const onic_region_t *region, void *bytes, size_t cap)
{
    void *rkey;
    size_t rkey_len, len = 0;
    onic_wire_lock();
    if (ucp_rkey_pack(onic_wire.context, region->memh, &rkey, &rkey_len) == UCS_OK) {
        len = assemble(region, rkey, rkey_len, bytes, cap);
        ucp_rkey_buffer_release(rkey);
    }
    onic_wire_unlock();
    return len;
}

/* ---- a peer's memory ------------------------------------------------------------------------ */

static int open_key(onic_remote_t *remote, const unsigned char *rkey)
{
    int rc = OMPI_ERR_UNREACH;
    ucp_ep_h ep = onic_peer_ep(remote->peer, &rc);
    if (ep == NULL) {
        return rc;
    }
    ucs_status_t status = ucp_ep_rkey_unpack(ep, rkey, &remote->rkey);
    return onic_ucs_error(status);
}

onic_remote_t *onic_remote_open(const void *bytes, size_t len, int *rc_p)
{
    description_t head;
    const unsigned char *rkey = (const unsigned char *)bytes + sizeof(head);
    *rc_p = OMPI_ERR_BAD_PARAM;
    if (len < sizeof(head)) {
        return NULL;
    }
    memcpy(&head, bytes, sizeof(head));
    if (head.rkey_len == 0 || (uint64_t)head.rkey_len + head.record_len != len - sizeof(head)) {
        return NULL;
    }
    onic_remote_t *remote = calloc(1, sizeof(*remote));
    if (remote == NULL) {
        *rc_p = OMPI_ERR_OUT_OF_RESOURCE;
        return NULL;
    }
    remote->base = head.base;
    remote->size = head.size;
    remote->peer = onic_learn_peer(rkey + head.rkey_len, head.record_len);
    *rc_p = remote->peer != NULL ? open_key(remote, rkey) : OMPI_ERR_BAD_PARAM;
    if (*rc_p != OMPI_SUCCESS) {
        free(remote);
        return NULL;
    }
    return remote;
}

void onic_remote_close(onic_remote_t *remote)
{
    ucp_rkey_destroy(remote->rkey);
    free(remote);
}

onic_peer_t *onic_remote_peer(const onic_remote_t *remote)
{
    return remote->peer;
}

bool onic_remote_lost(onic_remote_t *remote)
{
    return onic_peer_lost(remote->peer);
}

bool onic_remote_is_lost(const onic_remote_t *remote)
{
    return onic_peer_is_lost(remote->peer);
}

static void put_done(void *request, ucs_status_t status, void *user_data)
{
    const onic_put_t *put = user_data;
    put->cb(put->arg, onic_ucs_error(status));
    ucp_request_free(request);
}

static int put_started(ucs_status_ptr_t request)
{
    if (UCS_PTR_IS_PTR(request)) {
        return 0;
    }
    return UCS_PTR_IS_ERR(request) ? onic_ucs_error(UCS_PTR_STATUS(request)) : 1;
}

/** `from` NULL: of memory that is not registered, or too short for that to matter. */
static int start_put(onic_remote_t *remote, size_t offset, const void *data, size_t len,
                     const onic_region_t *from, onic_put_t *put)
{
    int rc = OMPI_ERR_UNREACH;
    if (remote->size < len || offset > remote->size - len) {
        return OMPI_ERR_BAD_PARAM;
    }
    ucp_ep_h ep = onic_peer_ep(remote->peer, &rc);
    if (ep == NULL) {
        return rc;
    }
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb = {.send = put_done},
        .user_data = put,
    };
    if (from != NULL) {
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
        param.memh = from->memh;
    }
    return put_started(ucp_put_nbx(ep, data, len, remote->base + offset, remote->rkey, &param));
}

int onic_remote_put(onic_remote_t *remote, size_t offset, onic_put_t *put)
{
    return start_put(remote, offset, put->word, sizeof(*put->word), NULL, put);
}

int onic_remote_write(onic_remote_t *remote, size_t offset, const void *data, size_t len,
                      const onic_region_t *from, onic_put_t *put)
{
    return start_put(remote, offset, data, len, from, put);
}

int onic_remote_settle(onic_remote_t *remote, onic_put_t *put)
{
    int rc = OMPI_ERR_UNREACH;
    ucp_ep_h ep = onic_peer_ep(remote->peer, &rc);
    if (ep == NULL) {
        return rc;
    }
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb = {.send = put_done},
        .user_data = put,
    };
    return put_started(ucp_ep_flush_nbx(ep, &param));
}

/* ---- order ---------------------------------------------------------------------------------- */

static const char *setting(const char *name, const char *otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? text : otherwise;
}

/** UCX's rule for "auto": not on processors of Intel. Of others we do not know which it takes. */
static bool is_intel(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    return __builtin_cpu_is("intel");
#else
    return false;
#endif
}

bool onic_puts_in_order(void)
{
    const char *relaxed = setting("UCX_IB_PCI_RELAXED_ORDERING", "auto");
    const bool strict = *relaxed == 'n' || *relaxed == 'N' || strcmp(relaxed, "off") == 0 ||
                        (strcmp(relaxed, "auto") == 0 && is_intel());
    return strict && strcmp(setting("UCX_MAX_RMA_LANES", "1"), "1") == 0 &&
           strcmp(setting("UCX_MAX_RMA_RAILS", "1"), "1") == 0;
}
