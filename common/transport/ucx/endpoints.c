/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Connections to peers, made on first use. */
#include "common/transport/ucx/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/constants.h"

/** A process that has finalized is gone by right: nothing is said. */
static void connection_lost(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    (void)ep;
    onic_row_calls.lost(arg, onic_ucs_error(status), ucs_status_string(status), true);
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
    ucp_ep_print_info(ep, stream);
    fclose(stream);
    for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
        if (strstr(line, "lane[") != NULL && is_for(line, " am"))
            read_lane(line, name, size);
    free(text);
}

/** True for reliable or dynamic connections of an adapter. */
static bool is_rdma(const char *transport)
{
    return (transport[0] == 'r' || transport[0] == 'd') && transport[1] == 'c';
}

/** UCX does not tell which transport puts, but takes the best that can. */
static void learn_transport(onic_ucx_peer_t *u)
{
    char name[32] = "";
    find_transport(u->ep, name, sizeof(name));
    u->rdma = is_rdma(name);
    u->copies = strcmp(name, "tcp") == 0;
    u->frag_max = onic_ucx_frag_max(name);
}

static ucs_status_t create_ep(onic_peer_t *peer, ucp_err_handling_mode_t err_mode, ucp_ep_h *ep_p)
{
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .address = (const ucp_address_t *)peer->address,
        .err_mode = err_mode,
        .err_handler = {.cb = connection_lost, .arg = peer},
    };
    return ucp_ep_create(onic_ucx_state.worker, &params, ep_p);
}

/** Between processes of a job without UCX's handling of errors, which not all transports have.
 *  Processes of other jobs come and go, and only with it is that no error. Both sides must have it.
 */
static ucs_status_t make_ep(onic_peer_t *peer, ucp_ep_h *ep_p)
{
    ucs_status_t status = UCS_ERR_UNREACHABLE;
    if (peer->foreign && onic_ucx_state.closes)
        status = create_ep(peer, UCP_ERR_HANDLING_MODE_PEER, ep_p);
    if (status == UCS_ERR_UNREACHABLE)
        status = create_ep(peer, UCP_ERR_HANDLING_MODE_NONE, ep_p);
    return status;
}

int onic_ucx_connect(onic_peer_t *peer)
{
    if (peer->ucx != NULL)
        return OMPI_SUCCESS;
    onic_ucx_peer_t *u = calloc(1, sizeof(*u));
    const ucs_status_t status = u != NULL ? make_ep(peer, &u->ep) : UCS_ERR_NO_MEMORY;
    if (status != UCS_OK) {
        free(u);
        peer->why = ucs_status_string(status);
        return onic_ucs_error(status);
    }
    learn_transport(u);
    peer->ucx = u;
    atomic_fetch_add_explicit(&onic_ucx_state.neps, 1, memory_order_relaxed);
    return OMPI_SUCCESS;
}

void onic_ucx_free_peer(onic_peer_t *peer)
{
    free(peer->ucx);
    peer->ucx = NULL;
}

size_t onic_ucx_message_max(onic_peer_t *peer, size_t wanted)
{
    (void)wanted;
    return peer->ucx->frag_max;
}

bool onic_ucx_by_rdma(const onic_peer_t *peer)
{
    return peer->ucx != NULL && peer->ucx->rdma;
}
