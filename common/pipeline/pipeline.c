/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Opening and closing the pipeline, and beginning transfers. */
#include "common/pipeline/pipeline.h"

#include <pthread.h>
#include <stdlib.h>

#include "ompi/constants.h"
#include "opal/mca/base/mca_base_pvar.h"
#include "opal/util/proc.h"

#include "common/pipeline/shm/carrier_shm.h"
#include "common/pipeline/rma/carrier_rma.h"
#include "common/pipeline/transfers.h"
#include "common/transport/shm/presence.h"
#include "common/transport/shm/segment.h"
#include "common/transport/ucx/adapters.h"

/** A receive pool smaller than this, for lack of shared memory, is not worth having. */
#define RX_POOL_LEAST ((size_t)64 << 10)

/** Protects the reference count; held while opening and closing. */
static pthread_mutex_t open_mutex = PTHREAD_MUTEX_INITIALIZER;
static int references;

/** Transfers may begin. Protected by the transport lock. */
static bool is_open;

/* ---- opening and closing --------------------------------------------------------------------- */

/** onic_work_fn_t. Runs again as long as there are transfers or requests. */
static int progress(void)
{
    const int n = onic_rma_serve() + onic_transfers_progress();
    if (onic_pipeline_idle() && onic_rma_state.grant_queue.first == NULL)
        return n;
    if (n > 0)
        onic_transport_ask(ONIC_AM_PIPELINE, ONIC_LOCKED);
    return n > 0 ? n : -1;
}

/** Bytes of this process's receive pool; 0: none. */
static size_t rx_pool_bytes(const onic_pipeline_config_t *config)
{
    const unsigned processes = (unsigned)opal_process_info.num_local_peers + 1;
    const size_t bytes = onic_segment_part(
        config->rx_pool > 0 ? config->rx_pool : onic_rx_pool_derived(), processes);
    return bytes < RX_POOL_LEAST && bytes < config->rx_pool ? 0 : bytes;
}

/** Memory for adapters must be allocated completely. */
static bool is_filled(void)
{
    onic_rx_pool_t *rx_pool = &onic_node_state.rx_pool;
    const uint64_t all = onic_pool_all(&rx_pool->pool);
    return onic_rx_pool_have(rx_pool, all, true) == all;
}

static void open_first(const onic_pipeline_config_t *config)
{
    const onic_schedule_choice_t node = {onic_schedule_best(config->schedule, true),
                                         config->links->node},
                                 hosts = {onic_schedule_best(config->schedule, false),
                                          config->links->adapter};
    onic_node_open(rx_pool_bytes(config), config->rx_buffer, &node);
    if (onic_node_state.exists && onic_transport_puts() && is_filled()) {
        onic_rma_open(&onic_node_state.rx_pool.pool, onic_node_state.rx_pool.buffers,
                      onic_node_state.rx_pool.buffer_bytes, &hosts, config->puts_to_all);
    }
    onic_transport_lock();
    is_open = true;
    onic_transport_unlock();
    onic_transport_set_fns(
        ONIC_AM_PIPELINE,
        &(onic_transport_fns_t){.am = onic_rma_on_message, .work[ONIC_LOCKED] = progress});
}

static void close_last(void)
{
    onic_presence_offer(NULL);
    onic_transport_set_fns(ONIC_AM_PIPELINE, ONIC_TRANSPORT_NO_FNS);
    onic_transport_lock();
    is_open = false;
    onic_transfers_end();
    onic_node_forget_all();
    onic_transport_unlock();
    onic_rma_close();
    onic_node_close();
}

void onic_pipeline_open(const onic_pipeline_config_t *config)
{
    pthread_mutex_lock(&open_mutex);
    if (references++ == 0)
        open_first(config);
    pthread_mutex_unlock(&open_mutex);
}

void onic_pipeline_close(void)
{
    pthread_mutex_lock(&open_mutex);
    if (--references == 0)
        close_last();
    pthread_mutex_unlock(&open_mutex);
}

void onic_pipeline_announce(void)
{
    if (onic_rdma_here(ONIC_ADAPTERS, getenv("UCX_TLS"), getenv("UCX_NET_DEVICES")))
        onic_transport_require(&(onic_transport_config_t){.puts = true});
}

size_t onic_pipeline_rx_bytes(void)
{
    const onic_rx_pool_t *rx_pool = &onic_node_state.rx_pool;
    return onic_node_state.exists ? (size_t)rx_pool->pool.nbuffers * rx_pool->buffer_bytes : 0;
}

uint32_t onic_pipeline_rx_buffer(void)
{
    return onic_node_state.exists ? onic_node_state.rx_pool.buffer_bytes : ONIC_PIPELINE_RX_BUFFER;
}

void onic_pipeline_register_counters(const mca_base_component_t *c)
{
    static const onic_counter_t counters[] = {
        {"chunks", "Chunks packed into buffers of receivers", &onic_pipeline_counters.chunks, 0},
        {"refused_leases", "Buffers that were asked for and not to be had at once",
         &onic_pipeline_counters.refused, 0},
        {"slots_in_use", "Most receive buffers of this process that were in use at a time",
         &onic_pipeline_counters.buffers, MCA_BASE_PVAR_CLASS_HIGHWATERMARK},
    };

    onic_register_counters(c, counters, sizeof(counters) / sizeof(counters[0]));
}

/* ---- beginning ------------------------------------------------------------------------------- */

/** The carrier that reaches a peer; NULL if none does. The transport lock is held. */
static const onic_carrier_t *carrier_of(onic_peer_t *peer, void **record_p)
{
    const onic_carrier_t *const carriers[] = {&onic_carrier_node, &onic_carrier_rma};
    *record_p = NULL;
    for (unsigned i = onic_rma_state.all; i < 2 && is_open; i++) {
        *record_p = carriers[i]->reach(peer);
        if (*record_p != NULL)
            return carriers[i];
    }
    return NULL;
}

bool onic_pipeline_reaches_locked(onic_peer_t *peer)
{
    void *record;
    return carrier_of(peer, &record) != NULL;
}

static bool is_source(const onic_pipeline_end_t *end, uint64_t len)
{
    return end->len == len && len > 0 && end->at <= end->layout.size &&
           len <= end->layout.size - end->at;
}

static bool is_sink(const onic_pipeline_end_t *end, uint64_t len)
{
    return end->take != NULL ? end->len == len && len > 0 : is_source(end, len);
}

/** A transfer has begun, or its carrier could not start it. */
static int begun(onic_transfer_t *t, onic_pipeline_end_t *end, int rc)
{
    if (rc == OMPI_SUCCESS)
        onic_transfer_begun(t, end);
    else
        free(t);
    return rc;
}

/** Begins a transfer here. */
static onic_transfer_t *lease(onic_role_t role, onic_peer_t *peer, onic_pipeline_end_t *end,
                              onic_ticket_t *ticket)
{
    void *record;
    const onic_carrier_t *c = carrier_of(peer, &record);
    if (c == NULL || !(role == ONIC_SENDS ? is_source(end, end->len) : is_sink(end, end->len)))
        return NULL;
    onic_transfer_t *t = onic_transfer_new(role, c, peer, end);
    if (t != NULL && begun(t, end, c->lease(t, record, ticket)) != OMPI_SUCCESS)
        t = NULL;
    onic_pipeline_counters.refused += t == NULL;
    return t;
}

/** Begins one as the other side's ticket says. */
static int follow(const onic_carrier_t *c, void *record, onic_role_t role, onic_peer_t *peer,
                  onic_pipeline_end_t *end, const onic_ticket_t *ticket)
{
    onic_transfer_t *t = onic_transfer_new(role, c, peer, end);
    return t != NULL ? begun(t, end, c->follow(t, record, ticket)) : OMPI_ERR_OUT_OF_RESOURCE;
}

onic_transfer_t *onic_pipeline_send_locked(onic_peer_t *to, onic_pipeline_end_t *source,
                                           onic_ticket_t *ticket)
{
    return lease(ONIC_SENDS, to, source, ticket);
}

onic_transfer_t *onic_pipeline_expect_locked(onic_peer_t *from, onic_pipeline_end_t *sink,
                                             onic_ticket_t *ticket)
{
    return lease(ONIC_RECEIVES, from, sink, ticket);
}

int onic_pipeline_receive_locked(onic_peer_t *from, const onic_ticket_t *ticket,
                                 onic_pipeline_end_t *sink)
{
    void *record;
    const onic_carrier_t *c = carrier_of(from, &record);
    if (!is_open || (sink != NULL && !is_sink(sink, ticket->len)))
        return OMPI_ERR_BAD_PARAM;
    /* A peer whose receive pool cannot be mapped here may nevertheless have mapped mine. */
    c = c != NULL ? c : &onic_carrier_node;
    return follow(c, record, ONIC_RECEIVES, from, sink, ticket);
}

int onic_pipeline_answer_locked(onic_peer_t *to, const onic_ticket_t *ticket,
                                onic_pipeline_end_t *source)
{
    void *record;
    const onic_carrier_t *c = carrier_of(to, &record);
    if (c == NULL)
        return OMPI_ERR_UNREACH;
    if (!is_source(source, ticket->len))
        return OMPI_ERR_BAD_PARAM;
    return follow(c, record, ONIC_SENDS, to, source, ticket);
}
