/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Engine mlx5: the memory and the queue pairs of a group; see state.h. */
#include "common/config.h"

#if OMPI_NIC_HAVE_MLX5DV

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "coll_nicbarrier/engines/mlx5/state.h"

/** Most writes by the process in flight on a connection. */
#define WRITES 4U

/* ---- what is needed ------------------------------------------------------------------------- */

static bool make_words(nicbarrier_net_t *net, struct ibv_pd *pd)
{
    void *at = mmap(NULL, NICBARRIER_CHAIN_BYTES, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (at == MAP_FAILED)
        return false;
    (void)madvise(at, NICBARRIER_CHAIN_BYTES, MADV_DONTFORK);
    net->words = ibv_reg_mr(pd, at, NICBARRIER_CHAIN_BYTES,
                            IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    if (net->words == NULL)
        munmap(at, NICBARRIER_CHAIN_BYTES);
    return net->words != NULL;
}

/** The number of requests in the ring of step k. */
static uint32_t room(const nicbarrier_net_t *net, uint32_t k)
{
    return net->depth * nicbarrier_chain_requests(net->rule.waits, k);
}

static bool has(uint64_t steps, uint32_t k)
{
    return (steps >> k & 1) != 0;
}

/** After an error each request makes a completion. */
static bool make_completions(nicbarrier_net_t *net, struct ibv_context *context)
{
    uint32_t n = 0;

    for (uint32_t k = 0; k < net->rule.nsteps; k++)
        n += (has(net->rule.sends, k) ? room(net, k) : 0) + (has(net->rule.waits, k) ? WRITES : 0);
    net->completions = ibv_create_cq(context, (int)n, NULL, NULL, 0);
    return net->completions != NULL;
}

static struct ibv_qp *make_pair(const nicbarrier_net_t *net, const onic_verbs_port_t *port,
                                uint32_t sends)
{
    return onic_rc_pair_ready(port, nicbarrier_mlx5_pair(port->pd, net->completions, sends),
                              IBV_ACCESS_REMOTE_WRITE);
}

static bool make_pairs(nicbarrier_net_t *net, const onic_verbs_port_t *port)
{
    bool made = true;

    for (uint32_t k = 0; k < net->rule.nsteps && made; k++) {
        if (has(net->rule.sends, k)) {
            net->out[k].qp = make_pair(net, port, room(net, k));
            made = net->out[k].qp != NULL;
        }
        if (has(net->rule.waits, k) && made) {
            net->in[k].qp = make_pair(net, port, WRITES);
            made = net->in[k].qp != NULL;
        }
    }
    return made;
}

/* ---- endpoints ------------------------------------------------------------------------------ */

typedef struct mlx5_endpoint {
    onic_rc_terms_t terms;
    uint32_t out[NICBARRIER_RULE_STEPS], in[NICBARRIER_RULE_STEPS]; /**< numbers of queue pairs */
} mlx5_endpoint_t;

_Static_assert(sizeof(mlx5_endpoint_t) <= NICBARRIER_ENDPOINT_MAX, "an endpoint is carried whole");

static void write_endpoint(const nicbarrier_net_t *net, const nicbarrier_mlx5_t *m,
                           nicbarrier_endpoint_t *to)
{
    mlx5_endpoint_t mine = {.terms = {.address = m->port.mine,
                                      .mtu = m->mtu,
                                      .key = net->words->rkey,
                                      .addr = (uintptr_t)net->words->addr}};

    for (uint32_t k = 0; k < net->rule.nsteps; k++) {
        mine.out[k] = net->out[k].qp != NULL ? net->out[k].qp->qp_num : 0;
        mine.in[k] = net->in[k].qp != NULL ? net->in[k].qp->qp_num : 0;
    }
    memcpy(to->bytes, &mine, sizeof(mine));
    to->len = sizeof(mine);
}

/** Reads a member's endpoint for one end of a connection in step k: the end that waits (`waits`),
 *  or the one that sends. False if there is none. */
static bool read_endpoint(const nicbarrier_endpoints_t *all, int32_t member, uint32_t k, bool waits,
                          onic_rc_terms_t *terms)
{
    const nicbarrier_endpoint_t *e = nicbarrier_endpoint_of(all, member);
    mlx5_endpoint_t theirs;

    if (e == NULL || e->len != sizeof(theirs))
        return false;
    memcpy(&theirs, e->bytes, sizeof(theirs));
    *terms = theirs.terms;
    terms->address.qpn = waits ? theirs.in[k] : theirs.out[k];
    return terms->address.qpn != 0;
}

/* ---- making, connecting, freeing ------------------------------------------------------------ */

int nicbarrier_mlx5_make(nicbarrier_net_t *net, const nicbarrier_mlx5_t *m,
                         const nicbarrier_group_t *group, nicbarrier_endpoint_t *mine,
                         nicbarrier_reason_t *why)
{
    net->group = *group;
    nicbarrier_group_begin(group, &net->rule);
    net->depth = m->depth;
    if (!make_words(net, m->port.pd) || !make_completions(net, m->port.context) ||
        !make_pairs(net, &m->port))
        return nicbarrier_reason(why,
                                 "verbs: device %s does not give registered memory and queue pairs",
                                 ibv_get_device_name(m->port.context->device));
    write_endpoint(net, m, mine);
    return 0;
}

/** Connects an end to one of the partner's; it writes to the partner's i-th word. */
static bool connect_end(nicbarrier_end_t *end, const nicbarrier_mlx5_t *m,
                        const onic_rc_terms_t *theirs, uint32_t i)
{
    onic_rc_terms_t terms = {.address = m->port.mine, .mtu = m->mtu};

    onic_rc_terms_agree(&terms, theirs);
    end->word = nicbarrier_chain_word((nicbarrier_wqe_word_t){theirs->addr, theirs->key}, i);
    return onic_verbs_reaches(&m->port.mine, &theirs->address) &&
           onic_rc_pair_connect(&m->port, end->qp, &terms, &theirs->address, true);
}

int nicbarrier_mlx5_connect(nicbarrier_net_t *net, const nicbarrier_mlx5_t *m,
                            const nicbarrier_endpoints_t *endpoints, nicbarrier_reason_t *why)
{
    onic_rc_terms_t theirs;
    bool done = true;

    for (uint32_t k = 0; k < net->rule.nsteps && done; k++) {
        const nicbarrier_step_t *s = &net->group.step[k];

        if (net->out[k].qp != NULL) {
            done = read_endpoint(endpoints, s->send_to, s->send_at, true, &theirs) &&
                   connect_end(&net->out[k], m, &theirs, s->send_at);
            net->out[k].next.qpn = net->out[k].qp->qp_num;
        }
        if (net->in[k].qp != NULL && done)
            done = read_endpoint(endpoints, s->wait_for, s->wait_at, false, &theirs) &&
                   connect_end(&net->in[k], m, &theirs, NICBARRIER_CHAIN_FAILED);
    }
    if (!done)
        nicbarrier_reason(why, "verbs: device %s cannot be connected with those of all partners",
                          ibv_get_device_name(m->port.context->device));
    return done ? 0 : -1;
}

void nicbarrier_mlx5_free(nicbarrier_net_t *net)
{
    for (uint32_t k = 0; k < net->rule.nsteps; k++) {
        if (net->out[k].qp != NULL)
            ibv_destroy_qp(net->out[k].qp);
        if (net->in[k].qp != NULL)
            ibv_destroy_qp(net->in[k].qp);
    }
    if (net->completions != NULL)
        ibv_destroy_cq(net->completions);
    if (net->words != NULL) {
        void *at = net->words->addr;

        ibv_dereg_mr(net->words);
        munmap(at, NICBARRIER_CHAIN_BYTES);
    }
    free(net);
}

#endif
