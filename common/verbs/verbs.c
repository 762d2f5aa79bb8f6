/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Verbs: devices and ports; see verbs.h. */
#include "common/config.h"

#if OMPI_NIC_HAVE_VERBS

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/verbs/verbs.h"

/** Ports, and addresses of a port, that are looked at. */
#define PORTS 64
#define GIDS  256

/* ---- devices --------------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static onic_verbs_device_t *devices; /**< that are open; the lock */

/** One more user of it; NULL where it cannot be opened. The lock is held. */
static onic_verbs_device_t *take_device(struct ibv_device *named)
{
    onic_verbs_device_t *d = devices;
    while (d != NULL &&
           strcmp(ibv_get_device_name(d->context->device), ibv_get_device_name(named)) != 0)
        d = d->next;
    if (d == NULL) {
        d = calloc(1, sizeof(*d));
        if (d == NULL)
            return NULL;
        d->context = ibv_open_device(named);
        if (d->context == NULL) {
            free(d);
            return NULL;
        }
        d->next = devices;
        devices = d;
    }
    d->users++;
    return d;
}

/** One user less. The lock is held. */
static void drop_device(onic_verbs_device_t *device)
{
    onic_verbs_device_t **at = &devices;
    if (--device->users > 0)
        return;
    while (*at != device)
        at = &(*at)->next;
    *at = device->next;
    if (device->pd != NULL)
        ibv_dealloc_pd(device->pd);
    ibv_close_device(device->context);
    free(device);
}

/* ---- which port ------------------------------------------------------------------------------ */

typedef struct survey {
    struct ibv_device **devices;
    onic_verbs_device_t *device[PORTS]; /**< by port seen; each has taken it */
    onic_verbs_seen_t seen[PORTS];
    int n;
} survey_t;

/** All its ports that are active. */
static void survey_ports(survey_t *s, struct ibv_device *named, struct ibv_context *context)
{
    struct ibv_device_attr attr;
    struct ibv_port_attr port;
    const int n = ibv_query_device(context, &attr) == 0 ? attr.phys_port_cnt : 0;
    for (int i = 1; i <= n && s->n < PORTS; i++) {
        memset(&port, 0, sizeof(port));
        if (ibv_query_port(context, (uint8_t)i, &port) != 0 || port.state != IBV_PORT_ACTIVE)
            continue;
        onic_verbs_device_t *device = take_device(named);
        if (device != NULL) {
            s->device[s->n] = device;
            s->seen[s->n++] = (onic_verbs_seen_t){
                ibv_get_device_name(named), (uint8_t)i, port.link_layer != IBV_LINK_LAYER_ETHERNET,
                onic_verbs_rate(port.active_speed, port.active_width)};
        }
    }
}

/** Opens all devices that are wanted and have a port that is active. */
static void survey_devices(survey_t *s, const char *filter)
{
    for (int i = 0; s->devices[i] != NULL && s->n < PORTS; i++) {
        if (s->devices[i]->transport_type != IBV_TRANSPORT_IB ||
            !onic_verbs_device_wanted(filter, ibv_get_device_name(s->devices[i])))
            continue;
        onic_verbs_device_t *device = take_device(s->devices[i]);
        if (device != NULL) {
            survey_ports(s, s->devices[i], device->context);
            drop_device(device);
        }
    }
}

/* ---- its address ----------------------------------------------------------------------------- */

/** The address of an Ethernet port. */
static bool find_gid(onic_verbs_port_t *port, int index)
{
    static const uint8_t links[] = {
        [IBV_GID_TYPE_ROCE_V1] = ONIC_VERBS_ROCE1, [IBV_GID_TYPE_ROCE_V2] = ONIC_VERBS_ROCE2};
    onic_verbs_gid_t gids[GIDS];
    struct ibv_gid_entry entry;
    const int first = index < 0 ? 0 : index, end = index < 0 ? GIDS : index + 1;
    int n = 0, at[GIDS];
    for (int i = first; i < end; i++) {
        if (ibv_query_gid_ex(port->device->context, port->number, (uint32_t)i, &entry, 0) == 0 &&
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
    struct ibv_context *context = port->device->context;
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
             ibv_get_device_name(port->device->context->device), what);
    return -1;
}

/** Takes the best, of which `survey_devices` has found some. The lock is held. */
static int choose_port(onic_verbs_port_t *port, const survey_t *s, const char *filter,
                       onic_verbs_reason_t *why)
{
    int index;
    const int best = onic_verbs_choose(s->seen, s->n, filter, &index);
    if (best < 0) {
        snprintf(why->text, sizeof(why->text), "verbs: no device%s%s has a port that is active",
                 *filter != '\0' ? " that fits " : "", filter);
        return -1;
    }
    port->device = s->device[best];
    port->number = s->seen[best].port;
    port->device->users++;
    if (!(s->seen[best].infiniband ? find_lid(port) : find_gid(port, index)))
        return say(why, port, "address");
    if (port->device->pd == NULL)
        port->device->pd = ibv_alloc_pd(port->device->context);
    return port->device->pd == NULL ? say(why, port, "protection domain") : 0;
}

int onic_verbs_port_open(onic_verbs_port_t *port, const char *filter, onic_verbs_reason_t *why)
{
    survey_t s = {.devices = ibv_get_device_list(NULL)};
    memset(port, 0, sizeof(*port));
    if (s.devices == NULL) {
        snprintf(why->text, sizeof(why->text), "verbs: no devices: %s", strerror(errno));
        return -1;
    }
    pthread_mutex_lock(&lock);
    survey_devices(&s, filter);
    const int rc = choose_port(port, &s, filter, why);
    for (int i = 0; i < s.n; i++)
        drop_device(s.device[i]);
    pthread_mutex_unlock(&lock);
    ibv_free_device_list(s.devices);
    if (rc != 0)
        onic_verbs_port_close(port);
    return rc;
}

void onic_verbs_port_close(onic_verbs_port_t *port)
{
    if (port->device != NULL) {
        pthread_mutex_lock(&lock);
        drop_device(port->device);
        pthread_mutex_unlock(&lock);
    }
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
