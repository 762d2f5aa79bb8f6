/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Engine mlx5: the steps of a group; see state.h. */
#include "common/config.h"

#if OMPI_NIC_HAVE_MLX5DV

#include "coll_nicbarrier/engines/mlx5/state.h"
#include "coll_nicbarrier/engines/shm/shm.h"
#include "common/support/bytes.h"

/** Completions fetched at once. */
#define BATCH 16
/** The partners' adapters are checked after this many calls of progress without news. */
#define PATIENCE 4096U

static _Atomic uint64_t *word(const nicbarrier_net_t *net, uint32_t i)
{
    return (_Atomic uint64_t *)((char *)net->words->addr + (size_t)i * NICBARRIER_CHAIN_STRIDE);
}

/** Words are in network byte order, since the adapter reads them so. */
static uint64_t read_word(const nicbarrier_net_t *net, uint32_t i)
{
    return be64toh(atomic_load_explicit(word(net, i), memory_order_acquire));
}

/* ---- sending -------------------------------------------------------------------------------- */

/** Writes a value to the end's remote word. With NULL it writes nothing, which only shows whether
 *  the partner's adapter answers. */
static bool write_word(nicbarrier_end_t *end, uint64_t id, const uint64_t *value)
{
    uint64_t carried = value != NULL ? htobe64(*value) : 0;
    struct ibv_sge sge = {.addr = (uintptr_t)&carried, .length = sizeof(carried)};
    struct ibv_send_wr *bad, wr = {.wr_id = id,
                                   .sg_list = &sge,
                                   .num_sge = value != NULL,
                                   .opcode = IBV_WR_RDMA_WRITE,
                                   .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE,
                                   .wr.rdma = {end->word.addr, end->word.key}};

    if (ibv_post_send(end->qp, &wr, &bad) != 0)
        return false;
    end->under_way++;
    return true;
}

/** The last epoch that all sending steps have written. If no step sends, the last one posted. */
static uint64_t written(const nicbarrier_net_t *net)
{
    uint64_t least = net->posted;

    for (uint32_t k = 0; k < net->rule.nsteps; k++)
        if (net->out[k].qp != NULL && net->out[k].written < least)
            least = net->out[k].written;
    return least;
}

/** Refills the adapter's rings once they are half empty. */
static void fill_rings(nicbarrier_net_t *net)
{
    const uint64_t shown = written(net), last = shown + net->depth;

    if (net->broken || net->posted - shown > net->depth / 2)
        return;
    for (uint32_t k = 0; k < net->rule.nsteps; k++)
        if (net->out[k].qp != NULL)
            net->broken |= !nicbarrier_mlx5_fill(net, k, last);
    net->posted = last;
}

/* ---- failure -------------------------------------------------------------------------------- */

void nicbarrier_mlx5_fail(nicbarrier_net_t *net)
{
    static const uint64_t yes = 1;

    if (atomic_exchange_explicit(&net->failed, true, memory_order_acq_rel))
        return;
    for (uint32_t k = 0; k < net->rule.nsteps; k++)
        if (net->in[k].qp != NULL)
            (void)write_word(&net->in[k], NICBARRIER_MLX5_IN | k, &yes);
}

/** The process of a dead partner says nothing, but its adapter does not answer any more either. */
static void ask_for_life(nicbarrier_net_t *net)
{
    for (uint32_t k = 0; k < net->rule.nsteps; k++)
        if ((net->rule.blocked >> k & 1) != 0 && net->in[k].under_way == 0)
            net->broken |= !write_word(&net->in[k], NICBARRIER_MLX5_IN | k, NULL);
}

/** If nothing is awaited, a partner may have left in good order; that is no failure before another
 *  barrier is entered. */
static void look_for_failure(nicbarrier_net_t *net)
{
    const uint64_t completed = atomic_load_explicit(&net->completed, memory_order_relaxed);

    if ((net->broken && completed < net->rule.entered) ||
        read_word(net, NICBARRIER_CHAIN_FAILED) != 0)
        nicbarrier_mlx5_fail(net);
}

/* ---- moving on ------------------------------------------------------------------------------ */

static void take_completions(nicbarrier_net_t *net)
{
    struct ibv_wc wc[BATCH];
    int n;

    while ((n = ibv_poll_cq(net->completions, BATCH, wc)) > 0) {
        for (int i = 0; i < n; i++) {
            const uint32_t k = (uint32_t)wc[i].wr_id & NICBARRIER_MLX5_STEP;

            net->broken |= wc[i].status != IBV_WC_SUCCESS;
            if ((wc[i].wr_id & NICBARRIER_MLX5_IN) != 0)
                net->in[k].under_way--;
            else
                net->out[k].written = wc[i].wr_id >> NICBARRIER_MLX5_EPOCH_SHIFT;
        }
    }
}

static int read_flags(nicbarrier_net_t *net)
{
    int events = 0;

    for (uint32_t k = 0; k < net->rule.nsteps; k++)
        if ((net->rule.waits >> k & 1) != 0)
            events +=
                nicbarrier_rule_receive(&net->rule, k, read_word(net, k)) == NICBARRIER_WORD_NEW;
    return events;
}

/** The last epoch that is complete and whose remaining messages have been posted to the adapter:
 *  the process may do without the network up to it. */
static uint64_t done(const nicbarrier_net_t *net)
{
    return net->rule.completed < net->posted ? net->rule.completed : net->posted;
}

static void advance(nicbarrier_net_t *net)
{
    (void)nicbarrier_rule_advance(&net->rule);
    fill_rings(net);
    const uint64_t completed = done(net);
    if (completed > atomic_load_explicit(&net->completed, memory_order_relaxed)) {
        atomic_store_explicit(&net->completed, completed, memory_order_release);
        if (net->node != NULL)
            nicbarrier_shm_release(net->node, completed);
    }
}

static void enter(nicbarrier_net_t *net, uint64_t epoch)
{
    if (epoch <= net->rule.entered)
        return;
    nicbarrier_rule_enter(&net->rule, epoch);
    /* From now on the adapter advances by itself. */
    atomic_store_explicit(word(net, NICBARRIER_CHAIN_ENTERED), htobe64(epoch),
                          memory_order_release);
}

int nicbarrier_mlx5_progress(nicbarrier_net_t *net, uint64_t epoch)
{
    take_completions(net);
    enter(net, epoch);
    if (net->node != NULL)
        enter(net, nicbarrier_shm_arrived(net->node));
    const int events = read_flags(net);
    advance(net);
    net->waits = events > 0 ? 0 : net->waits + 1;
    if (net->waits % PATIENCE == PATIENCE - 1 && !net->broken)
        ask_for_life(net);
    look_for_failure(net);
    return events;
}

bool nicbarrier_mlx5_is_done(const nicbarrier_net_t *net)
{
    const bool sent = written(net) >= net->rule.entered;
    bool notified = true;

    for (uint32_t k = 0; k < net->rule.nsteps; k++)
        notified &= net->in[k].under_way == 0;
    return notified && (net->broken || atomic_load_explicit(&net->failed, memory_order_relaxed) ||
                        (sent && net->rule.completed == net->rule.entered));
}

#endif
