/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Engine put: the steps of a group; see put.h. Failures travel in the same puts as epochs.
 */
#include "coll_nicbarrier/engines/put/put.h"

#include "coll_nicbarrier/engines/shm/shm.h"

/* ---- failure --------------------------------------------------------------------------------- */

static void fail(nicbarrier_net_t *net)
{
    atomic_store_explicit(&net->failed, true, memory_order_release);
    nicbarrier_rule_fail(&net->rule);
}

/** Puts of a lost partner may be missing even if all puts to it have completed. If nothing is
 * awaited, it may have left in good order, which is no failure before another barrier is entered. A
 *  leaving group does not wait for puts to a lost partner. */
static void look_for_losses(nicbarrier_net_t *net)
{
    const unsigned losses = onic_transport_losses();
    const bool idle =
        net->rule.completed == net->rule.entered && net->state == NICBARRIER_PUT_CONNECTED;
    if (idle || net->losses == losses)
        return;
    net->losses = losses;
    for (uint32_t k = 0; k < net->rule.nsteps; k++) {
        nicbarrier_outlet_t *out = &net->outlet[k];
        if (out->remote != NULL && onic_peer_lost(onic_remote_peer(out->remote))) {
            out->lost = true;
            fail(net);
        }
    }
}

/* ---- sending --------------------------------------------------------------------------------- */

/** The completion of a put, also called within UCX's progress. After an error, which the transport
 *  has reported to the user, nothing more is put there. Later words are sent by the transport's
 *  deferred function. */
static void end_put(void *arg, int status)
{
    nicbarrier_outlet_t *out = arg;
    out->busy = false;
    out->net->in_flight--;
    if (status < 0) {
        out->lost = true;
        fail(out->net);
    }
}

static void send(nicbarrier_outlet_t *out)
{
    /* If connecting has failed half way, some partners have no connection. */
    while (out->remote != NULL && !out->busy && !out->lost && out->word < out->wanted) {
        out->word = out->wanted;
        out->busy = true;
        out->net->in_flight++;
        int rc = onic_remote_put(out->remote, out->offset, &out->word, sizeof(out->word), NULL,
                                 end_put, out);
        if (rc == 0)
            return;
        end_put(out, rc);
    }
}

void nicbarrier_put_send(nicbarrier_net_t *net)
{
    if (net->state == NICBARRIER_PUT_LEAVING)
        look_for_losses(net);
    for (uint32_t k = 0; k < net->rule.nsteps; k++)
        send(&net->outlet[k]);
}

bool nicbarrier_put_sends(const nicbarrier_net_t *net)
{
    bool sends = false;
    for (uint32_t k = 0; k < net->rule.nsteps; k++) {
        const nicbarrier_outlet_t *out = &net->outlet[k];
        sends |= out->remote != NULL && !out->lost && (out->busy || out->word < out->wanted);
    }
    return sends;
}

bool nicbarrier_put_waits(const nicbarrier_net_t *net)
{
    const uint64_t begun = net->node != NULL ? nicbarrier_shm_begun(net->node) : 0;
    return !net->rule.failed &&
           (net->rule.entered > net->rule.completed || begun > net->rule.completed);
}

/** Sends the words of these steps, a bit mask. */
static void post(nicbarrier_net_t *net, uint64_t steps)
{
    for (uint32_t k = 0; k < net->rule.nsteps; k++) {
        nicbarrier_outlet_t *out = &net->outlet[k];
        if (steps >> k & 1) {
            out->wanted = nicbarrier_rule_word(&net->rule, k);
            send(out);
        }
    }
}

/* ---- moving on ------------------------------------------------------------------------------ */

/** Passes the flags to the rule. */
static int read_flags(nicbarrier_net_t *net)
{
    nicbarrier_rule_t *r = &net->rule;
    int events = 0;
    for (uint32_t k = 0; k < r->nsteps; k++) {
        const uint64_t word = atomic_load_explicit(&net->flag[k].word, memory_order_acquire);
        if ((r->waits >> k & 1) != 0)
            events += nicbarrier_rule_receive(r, k, word) == NICBARRIER_WORD_NEW;
    }
    if (r->failed)
        fail(net);
    return events;
}

static void advance(nicbarrier_net_t *net)
{
    const uint64_t before = net->rule.completed;
    uint64_t steps;
    /* Repeated, since a put may fail at once. */
    while ((steps = nicbarrier_rule_advance(&net->rule)) != 0)
        post(net, steps);
    if (net->rule.completed > before) {
        atomic_store_explicit(&net->completed, net->rule.completed, memory_order_release);
        if (net->node != NULL)
            nicbarrier_shm_release(net->node, net->rule.completed);
    }
}

int nicbarrier_put_progress(nicbarrier_net_t *net, uint64_t epoch)
{
    const uint64_t behind = net->node != NULL ? nicbarrier_shm_arrived(net->node) : 0;
    const uint64_t entered = epoch > behind ? epoch : behind;
    int events = entered > net->rule.entered;
    nicbarrier_rule_enter(&net->rule, entered);
    events += read_flags(net);
    look_for_losses(net);
    advance(net);
    nicbarrier_put_send(net);
    return events;
}

void nicbarrier_put_fail(nicbarrier_net_t *net)
{
    fail(net);
    advance(net);
}
