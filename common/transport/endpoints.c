/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Connections to peers, made on first use. */
#include "common/support/help.h"
#include "common/support/spare.h"
#include "common/transport/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Says nothing: a process that has finalized is gone by right. */
static void connection_lost(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    onic_peer_t *peer = arg;
    (void)ep;
    peer->failed = status;
    onic_transport_count_loss();
    /* Of a process of this machine it is seen whether it is dead, and not just this way to it. */
    if (!peer->watched)
        onic_peer_gone(peer);
}

/** Does a line such as
 *  "lane[0]: 3:sysv/memory.0 md[2] -> md[2]/sysv/sysdev[255] amo#0 am am_bw#0" say that its
 *  transport is for `use`, a whole word but for what follows `#`? */
static bool is_for(const char *line, const char *use)
{
    const size_t len = strlen(use);
    const char *at = strstr(line, use);
    while (at != NULL && strchr(" #", at[len]) == NULL)
        at = strstr(at + 1, use);
    return at != NULL;
}

static void read_lane(const char *line, char *name, size_t size)
{
    const char *colon = strstr(line, "]:");
    colon = colon != NULL ? strchr(colon + 2, ':') : NULL;
    if (colon != NULL)
        snprintf(name, size, "%.*s", (int)strcspn(colon + 1, "/"), colon + 1);
}

/** The transport that carries active messages. UCX tells it in words only. */
static void find_transport(ucp_ep_h ep, char *name, size_t size)
{
    char *text = NULL, *rest = NULL;
    size_t len = 0;
    FILE *stream = open_memstream(&text, &len);
    if (stream == NULL)
        return;
    onic_ucx.ep_print_info(ep, stream);
    fclose(stream);
    for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
        if (strstr(line, "lane[") != NULL && is_for(line, " am"))
            read_lane(line, name, size);
    free(text);
}

/** Reliable or dynamic connections of an adapter? */
static bool is_rdma(const char *transport)
{
    return (transport[0] == 'r' || transport[0] == 'd') && transport[1] == 'c';
}

/** UCX does not tell which transport puts, but takes the best that can. */
static void learn_transport(onic_peer_t *peer)
{
    char name[32] = "";
    find_transport(peer->ep, name, sizeof(name));
    peer->rdma = is_rdma(name);
    peer->copies = strcmp(name, "tcp") == 0;
    peer->frag_max = onic_transport_frag_max(name);
}

static ucs_status_t create_ep(onic_peer_t *peer, ucp_err_handling_mode_t err_mode)
{
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .address = (const ucp_address_t *)peer->address,
        .err_mode = err_mode,
        .err_handler = {.cb = connection_lost, .arg = peer},
    };
    return onic_ucx.ep_create(onic_transport.worker, &params, &peer->ep);
}

/** Between processes of a job without UCX's handling of errors, which not all transports have.
 *  Processes of other jobs come and go, and only with it does UCX give back what it
 *  has for one of them. Both sides must have it. */
ucs_status_t onic_make_ep(onic_peer_t *peer)
{
    const bool foreign = peer->name >> 32 != onic_transport.job;
    ucs_status_t status = UCS_ERR_UNREACHABLE;
    onic_spare_look();
    if (foreign && onic_transport.closes)
        status = create_ep(peer, UCP_ERR_HANDLING_MODE_PEER);
    if (status == UCS_ERR_UNREACHABLE)
        status = create_ep(peer, UCP_ERR_HANDLING_MODE_NONE);
    if (status != UCS_OK) {
        peer->ep = NULL;
    } else {
        learn_transport(peer);
        atomic_fetch_add_explicit(&onic_transport.neps, 1, memory_order_relaxed);
    }
    return status;
}

ucp_ep_h onic_peer_ep(onic_peer_t *peer, int *rc_p)
{
    if (onic_peer_lost(peer)) {
        /* The loss has been counted, but what is started just now is to end, too. */
        onic_transport_count_loss();
        *rc_p = onic_ucs_error(peer->failed);
        return NULL;
    }
    ucs_status_t status = peer->ep == NULL ? onic_make_ep(peer) : UCS_OK;
    if (status != UCS_OK) {
        peer->failed = status;
        onic_transport_count_loss();
        onic_peer_print_lost(peer, "no UCX transport reaches", onic_ucx.status_string(status));
        *rc_p = onic_ucs_error(status);
        return NULL;
    }
    return peer->ep;
}
