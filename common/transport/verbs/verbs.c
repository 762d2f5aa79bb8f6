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

/** Ports, and addresses of a port, that are looked at. */
#define PORTS 64
#define GIDS  256

/* ---- which port ------------------------------------------------------------------------------ */

typedef struct survey {
    struct ibv_context *context[PORTS]; /**< of each port seen; those of a device stand together */
    onic_verbs_seen_t seen[PORTS];
    int n;
} survey_t;

/** All ports of a device that are active and that the list has; where there are any the device
 *  stays open. */
static void survey_ports(survey_t *s, struct ibv_device *device, const char *list)
{
    const char *name = ibv_get_device_name(device);
    struct ibv_context *context = ibv_open_device(device);
    struct ibv_device_attr attr;
    struct ibv_port_attr port;
    const int before = s->n;
    const int n = context != NULL && ibv_query_device(context, &attr) == 0 ? attr.phys_port_cnt : 0;
    for (int i = 1; i <= n && s->n < PORTS; i++) {
        memset(&port, 0, sizeof(port));
        if (!onic_devices_have_port(list, name, (unsigned)i) ||
            ibv_query_port(context, (uint8_t)i, &port) != 0 || port.state != IBV_PORT_ACTIVE)
            continue;
        s->context[s->n] = context;
        s->seen[s->n++] =
            (onic_verbs_seen_t){(uint8_t)i, port.link_layer != IBV_LINK_LAYER_ETHERNET,
                                onic_verbs_rate(port.active_speed, port.active_width)};
    }
    if (context != NULL && s->n == before)
        ibv_close_device(context);
}

/** Closes the devices but the one that is used. */
static void close_others(const survey_t *s, const struct ibv_context *used)
{
    for (int i = 0; i < s->n; i++)
        if (s->context[i] != used && (i == 0 || s->context[i] != s->context[i - 1]))
            ibv_close_device(s->context[i]);
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
    onic_verbs_gid_t gids[GIDS];
    struct ibv_gid_entry entry;
    int n = 0, at[GIDS];
    for (int i = first; i < end; i++) {
        if (ibv_query_gid_ex(port->context, port->number, (uint32_t)i, &entry, 0) == 0 &&
            entry.gid_type < sizeof(links)) {
            gids[n].link = links[entry.gid_type];
            memcpy(gids[n].gid, entry.gid.raw, sizeof(gids[n].gid));
            at[n++] = i;
        }
    }
    const int best = onic_verbs_choose_gid(gids, n);
    if (best < 0 || at[best] > UINT8_MAX)
        return false;
    port->gid_index = (uint8_t)at[best];
    port->mine.link = gids[best].link;
    memcpy(port->mine.gid, gids[best].gid, sizeof(port->mine.gid));
    return true;
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

/** Takes the best of the ports that were seen. */
static int choose_port(onic_verbs_port_t *port, const survey_t *s, const char *list,
                       onic_verbs_reason_t *why)
{
    const int best = onic_verbs_choose(s->seen, s->n);
    if (best < 0) {
        snprintf(why->text, sizeof(why->text), "verbs: no device%s%s has a port that is active",
                 list != NULL ? " of UCX_NET_DEVICES=" : "", list != NULL ? list : "");
        return -1;
    }
    port->context = s->context[best];
    port->number = s->seen[best].port;
    if (!(s->seen[best].infiniband ? find_lid(port) : find_gid(port)))
        return say(why, port, "address");
    port->pd = ibv_alloc_pd(port->context);
    return port->pd == NULL ? say(why, port, "protection domain") : 0;
}

int onic_verbs_port_open(onic_verbs_port_t *port, onic_verbs_reason_t *why)
{
    const char *list = getenv("UCX_NET_DEVICES");
    struct ibv_device **devices = ibv_get_device_list(NULL);
    survey_t s = {.n = 0};
    memset(port, 0, sizeof(*port));
    if (devices == NULL) {
        snprintf(why->text, sizeof(why->text), "verbs: no devices: %s",
                 errno == ENOSYS ? "the kernel has no module ib_uverbs loaded" : strerror(errno));
        return -1;
    }
    for (int i = 0; devices[i] != NULL && s.n < PORTS; i++)
        if (devices[i]->transport_type == IBV_TRANSPORT_IB)
            survey_ports(&s, devices[i], list);
    const int rc = choose_port(port, &s, list, why);
    close_others(&s, port->context);
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
