/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What the files of row ucx share: one context and one worker for the process. */
#pragma once

#include "opal_config.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <ucp/api/ucp.h>

#include "common/transport/ucx/ucx.h"

/** An endpoint. */
typedef struct onic_ucx_peer {
    ucp_ep_h ep;
    size_t frag_max; /**< most bytes of one fragment */
    bool rdma;       /**< an adapter puts and gets */
    bool copies;     /**< its transport copies what it cannot send at once */
} onic_ucx_peer_t;

typedef struct onic_ucx_state {
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_address_t *address;
    size_t address_len;
    size_t tcp_seg_size;
    ucp_datatype_t gather_dt;
    bool pushes;      /**< a flush of all interfaces is under way */
    bool copied;      /**< UCX may hold what it has called complete */
    bool closes;      /**< the other side of an endpoint may end at any time, where it is of another
                         job */
    atomic_uint neps; /**< endpoints that were made; set with the lock held, read without it */
} onic_ucx_state_t;

extern onic_ucx_state_t onic_ucx_state;

/* state.c */
/** An error of UCX as one of Open MPI. */
int onic_ucs_error(ucs_status_t status);

/* config.c */
/** Reads UCX's configuration from the environment and applies ours where the user says nothing, for
 *  transports of that list, as in UCX_TLS. */
ucs_status_t onic_ucx_read_config(const char *tls, ucp_config_t **ucp_config_p);
/** Most bytes of one fragment over a UCX transport; "" where it is not known. */
size_t onic_ucx_frag_max(const char *transport);

/* endpoints.c */
/** Makes the endpoint of a peer if there is none; as onic_row_t's. */
int onic_ucx_connect(onic_peer_t *peer);
void onic_ucx_free_peer(onic_peer_t *peer);
size_t onic_ucx_message_max(onic_peer_t *peer, size_t wanted);

/* messages.c */
int onic_ucx_messages_start(void);
void onic_ucx_messages_stop(void);
bool onic_ucx_send_now(onic_peer_t *peer, unsigned am_id, const void *header, size_t header_len,
                       const onic_payload_t *payload);
int onic_ucx_send(onic_request_t *r, const onic_payload_t *payload, unsigned flags);
/** Hands over what this process has sent to itself; how many. Not within a send. */
int onic_ucx_send_to_self(void);
bool onic_ucx_has_to_self(void);
/** What UCX's answer to a start means: 1 where it is complete, 0 where the callback comes later, or
 *  an error. */
int onic_ucx_started(onic_request_t *r, ucs_status_ptr_t answer);
/** UCX's callback of what was started for a request, and how that is given to UCX. */
void onic_ucx_sent(void *request, ucs_status_t status, void *r);
ucp_request_param_t onic_ucx_param_of(onic_request_t *r);
/** Sees to it that UCX sends all that it has called complete. Not within a callback of UCX's. */
void onic_ucx_push(void);

/* data.c */
/** Gives UCX's keys back. The worker is still there, and nothing is under way any more. */
void onic_ucx_remotes_stop(void);
/** Gives registered memory back. The worker is gone, the context is not. */
void onic_ucx_regions_stop(void);
