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
#include "common/support/bytes.h"

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
    return net->chain.depth * nicbarrier_chain_requests(&net->chain, k);
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
                                uint32_t ring)
{
    struct ibv_qp_init_attr attr = {.send_cq = net->completions,
                                    .recv_cq = net->completions,
                                    .qp_type = IBV_QPT_RC,
                                    .cap = {.max_send_wr = WRITES,
                                            .max_recv_wr = 1,
                                            .max_send_sge = 1,
                                            .max_recv_sge = 1,
                                            .max_inline_data = sizeof(uint64_t)}};
    struct ibv_qp *qp = ring > 0 ? nicbarrier_mlx5_pair(port->pd, net->completions, ring)
                                 : ibv_create_qp(port->pd, &attr);

    return onic_rc_pair_ready(port, qp, IBV_ACCESS_REMOTE_WRITE);
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
            net->in[k].qp = make_pair(net, port, 0);
            made = net->in[k].qp != NULL;
        }
    }
    return made;
}

/* ---- endpoints: terms, and for each step the numbers of both ends --------------------------- */

static uint32_t number(const nicbarrier_end_t *end)
{
    return end->qp != NULL ? end->qp->qp_num : 0;
}

static uint32_t write_endpoint(const nicbarrier_net_t *net, const nicbarrier_mlx5_t *m,
                               unsigned char *bytes)
{
    onic_rc_terms_t terms = {.address = m->port.mine,
                             .mtu = m->mtu,
                             .key = net->words->rkey,
                             .addr = (uintptr_t)net->words->addr};
    unsigned char *at = bytes + sizeof(onic_rc_terms_t);

    for (uint32_t k = 0; k < net->rule.nsteps; k++, at += 8) {
        onic_put32(at, number(&net->out[k]));
        onic_put32(at + 4, number(&net->in[k]));
    }
    memcpy(bytes, &terms, sizeof(terms));
    return (uint32_t)(at - bytes);
}

/** Reads a member's endpoint for one end of a connection in step k: the end that waits (`waits`),
 *  or the one that sends. False if there is none. */
static bool read_endpoint(const nicbarrier_endpoints_t *all, int32_t member, uint32_t k, bool waits,
                          onic_rc_terms_t *terms)
{
    const nicbarrier_endpoint_t *e = nicbarrier_endpoint_of(all, member);
    const uint32_t at = sizeof(onic_rc_terms_t) + 8 * k + (waits ? 4 : 0);

    if (e == NULL || e->len < at + 4)
        return false;
    memcpy(terms, e->bytes, sizeof(*terms));
    terms->address.qpn = onic_get32(e->bytes + at);
    return terms->address.qpn != 0;
}

/* ---- making, connecting, freeing ------------------------------------------------------------ */

int nicbarrier_mlx5_make(nicbarrier_net_t *net, const nicbarrier_mlx5_t *m, unsigned char *bytes,
                         uint32_t *len_p, nicbarrier_reason_t *why)
{
    const int n = nicbarrier_schedule((nicbarrier_schedule_kind_t)m->schedule, net->group.me,
                                      net->group.n, net->step);
    nicbarrier_chain_t *c = &net->chain;

    nicbarrier_schedule_bits(net->step, n, &c->sends, &c->waits);
    c->nsteps = (uint32_t)n;
    c->depth = m->depth;
    nicbarrier_rule_init(&net->rule, c->nsteps, c->sends, c->waits);
    if (!make_words(net, m->port.pd) || !make_completions(net, m->port.context) ||
        !make_pairs(net, &m->port))
        return nicbarrier_reason(why,
                                 "verbs: device %s does not give registered memory and queue pairs",
                                 ibv_get_device_name(m->port.context->device));
    c->words = (nicbarrier_wqe_word_t){(uintptr_t)net->words->addr, net->words->lkey};
    *len_p = write_endpoint(net, m, bytes);
    return 0;
}

/** Connects an end to one of the partner's; it writes to the partner's i-th word. */
static bool connect_end(nicbarrier_end_t *end, const nicbarrier_mlx5_t *m,
                        const onic_rc_terms_t *theirs, uint32_t i)
{
    onic_rc_terms_t terms = {.address = m->port.mine, .mtu = m->mtu};

    onic_rc_terms_agree(&terms, theirs);
    end->word = nicbarrier_chain_word((nicbarrier_wqe_word_t){theirs->addr, theirs->key}, i);
    return onic_verbs_obstacle(&m->port.mine, &theirs->address) == NULL &&
           onic_rc_pair_connect(&m->port, end->qp, &terms, &theirs->address, true);
}

int nicbarrier_mlx5_connect(nicbarrier_net_t *net, const nicbarrier_mlx5_t *m,
                            const nicbarrier_endpoints_t *endpoints, nicbarrier_reason_t *why)
{
    onic_rc_terms_t theirs;
    bool done = true;

    for (uint32_t k = 0; k < net->rule.nsteps && done; k++) {
        const nicbarrier_step_t *s = &net->step[k];
        nicbarrier_chain_ring_t *r = &net->chain.ring[k];

        if (net->out[k].qp != NULL) {
            done = read_endpoint(endpoints, s->send_to, s->send_at, true, &theirs) &&
                   connect_end(&net->out[k], m, &theirs, s->send_at);
            r->next.qpn = net->out[k].qp->qp_num;
            r->flag = net->out[k].word;
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
