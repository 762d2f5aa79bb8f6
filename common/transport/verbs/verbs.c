/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/config.h"

#if OMPI_NIC_HAVE_VERBS

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/transport/ucx/adapters.h"
#include "common/transport/verbs/verbs.h"

/** Addresses of a port that are looked at. */
#define GIDS 256

/* ---- which port ------------------------------------------------------------------------------ */

/** Looks at the ports of a device that are active and that the list has, and takes over the best
 *  one, if it is better than the one there is. One device stays open. */
static void look_at(struct ibv_device *device, const char *list, onic_verbs_port_t *port,
                    onic_verbs_seen_t *best)
{
    const char *name = ibv_get_device_name(device);
    struct ibv_context *context = ibv_open_device(device), *other = context;
    struct ibv_device_attr attr;
    struct ibv_port_attr a;
    const int n = context != NULL && ibv_query_device(context, &attr) == 0 ? attr.phys_port_cnt : 0;
    for (int i = 1; i <= n; i++) {
        memset(&a, 0, sizeof(a));
        if (!onic_devices_have_port(list, name, (unsigned)i) ||
            ibv_query_port(context, (uint8_t)i, &a) != 0 || a.state != IBV_PORT_ACTIVE)
            continue;
        const onic_verbs_seen_t seen = {(uint8_t)i, a.link_layer != IBV_LINK_LAYER_ETHERNET,
                                        onic_verbs_rate(a.active_speed, a.active_width)};
        if (port->context != NULL && !onic_verbs_is_better(&seen, best))
            continue;
        if (port->context != context)
            other = port->context;
        port->context = context;
        *best = seen;
    }
    if (other != NULL)
        ibv_close_device(other);
}

/* ---- its address ----------------------------------------------------------------------------- */

/** The address of an Ethernet port: the one that UCX is told to use, or the best. */
static bool find_gid(onic_verbs_port_t *port)
{
    const char *text = getenv("UCX_IB_GID_INDEX");
    const bool given = text != NULL && *text >= '0' && *text <= '9';
    const int first = given ? atoi(text) : 0, end = given ? first + 1 : GIDS;
    static const uint8_t links[] = {
        [IBV_GID_TYPE_ROCE_V1] = ONIC_VERBS_ROCE1, [IBV_GID_TYPE_ROCE_V2] = ONIC_VERBS_ROCE2};
    struct ibv_gid_entry entry;
    int most = 0;
    for (int i = first; i < end; i++) {
        if (ibv_query_gid_ex(port->context, port->number, (uint32_t)i, &entry, 0) != 0 ||
            entry.gid_type >= sizeof(links) || i > UINT8_MAX)
            continue;
        onic_verbs_address_t mine = {.link = links[entry.gid_type]};
        memcpy(mine.gid, entry.gid.raw, sizeof(mine.gid));
        if (onic_verbs_worth(&mine) <= most)
            continue;
        most = onic_verbs_worth(&mine);
        port->gid_index = (uint8_t)i;
        port->mine = mine;
    }
    return most > 0;
}

static bool find_lid(onic_verbs_port_t *port)
{
    struct ibv_context *context = port->context;
    struct ibv_port_attr attr;
    union ibv_gid gid;
    memset(&attr, 0, sizeof(attr));
    if (ibv_query_port(context, port->number, &attr) != 0 ||
        ibv_query_gid(context, port->number, 0, &gid) != 0)
        return false;
    port->mine.link = ONIC_VERBS_INFINIBAND;
    port->mine.lid = attr.lid;
    memcpy(port->mine.gid, gid.raw, sizeof(port->mine.gid));
    return true;
}

/* ---- open, close ----------------------------------------------------------------------------- */

static int say(onic_verbs_reason_t *why, const onic_verbs_port_t *port, const char *what)
{
    snprintf(why->text, sizeof(why->text), "verbs: port %d of device %s has no %s", port->number,
             ibv_get_device_name(port->context->device), what);
    return -1;
}

/** Finds a port, its address and a protection domain. */
static int find(onic_verbs_port_t *port, struct ibv_device **devices, onic_verbs_reason_t *why)
{
    const char *list = getenv("UCX_NET_DEVICES");
    onic_verbs_seen_t best = {0};
    for (int i = 0; devices[i] != NULL; i++)
        if (devices[i]->transport_type == IBV_TRANSPORT_IB)
            look_at(devices[i], list, port, &best);
    if (port->context == NULL) {
        snprintf(why->text, sizeof(why->text), "verbs: no device%s%s has a port that is active",
                 list != NULL ? " of UCX_NET_DEVICES=" : "", list != NULL ? list : "");
        return -1;
    }
    port->number = best.port;
    if (!(best.infiniband ? find_lid(port) : find_gid(port)))
        return say(why, port, "address");
    port->pd = ibv_alloc_pd(port->context);
    return port->pd == NULL ? say(why, port, "protection domain") : 0;
}

int onic_verbs_port_open(onic_verbs_port_t *port, onic_verbs_reason_t *why)
{
    struct ibv_device **devices = ibv_get_device_list(NULL);
    memset(port, 0, sizeof(*port));
    if (devices == NULL) {
        snprintf(why->text, sizeof(why->text), "verbs: no devices: %s",
                 errno == ENOSYS ? "the kernel has no module ib_uverbs loaded" : strerror(errno));
        return -1;
    }
    const int rc = find(port, devices, why);
    ibv_free_device_list(devices);
    if (rc != 0)
        onic_verbs_port_close(port);
    return rc;
}

void onic_verbs_port_close(onic_verbs_port_t *port)
{
    if (port->pd != NULL)
        ibv_dealloc_pd(port->pd);
    if (port->context != NULL)
        ibv_close_device(port->context);
    memset(port, 0, sizeof(*port));
}

struct ibv_ah_attr onic_verbs_route(const onic_verbs_port_t *port, const onic_verbs_address_t *to)
{
    struct ibv_ah_attr attr = {.port_num = port->number, .dlid = to->lid};
    if (to->link != ONIC_VERBS_INFINIBAND) {
        attr.is_global = 1;
        attr.grh.sgid_index = port->gid_index;
        attr.grh.hop_limit = 64;
        memcpy(attr.grh.dgid.raw, to->gid, sizeof(to->gid));
    }
    return attr;
}

#endif
