/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Barriers by messages; see messages.h. */
#include "coll_nicbarrier/component/messages.h"

#include <stdlib.h>

#include "common/support/bytes.h"

/** A step: where its word goes, and where the other comes from. */
typedef struct step {
    int to;
    int from;
    bool due; /**< the word has grown since it was sent */
    void *sending;
    void *receiving;
    unsigned char out[NICBARRIER_MESSAGE_BYTES];
    unsigned char in[NICBARRIER_MESSAGE_BYTES];
} step_t;

struct nicbarrier_messages {
    const nicbarrier_messages_ops_t *ops;
    void *arg;
    int failed;    /**< the code for what others say */
    int failure;   /**< what has failed, or 0 */
    unsigned busy; /**< requests under way */
    nicbarrier_rule_t rule;
    step_t step[];
};

static uint32_t steps_of(int n)
{
    uint32_t k = 0;

    while (k < NICBARRIER_RULE_STEPS && INT64_C(1) << k < n)
        k++;
    return k;
}

nicbarrier_messages_t *nicbarrier_messages_new(int n, int me, int failed,
                                               const nicbarrier_messages_ops_t *ops, void *arg)
{
    const uint32_t nsteps = steps_of(n);
    const uint64_t all = (UINT64_C(1) << nsteps) - 1;
    nicbarrier_messages_t *m = calloc(1, sizeof(*m) + nsteps * sizeof(m->step[0]));

    if (m == NULL)
        return NULL;
    m->ops = ops;
    m->arg = arg;
    m->failed = failed;
    nicbarrier_rule_init(&m->rule, nsteps, all, all);
    for (uint32_t k = 0; k < nsteps; k++) {
        m->step[k].to = (int)((me + (INT64_C(1) << k)) % n);
        m->step[k].from = (int)((me + n - (INT64_C(1) << k)) % n);
    }
    return m;
}

void nicbarrier_messages_free(nicbarrier_messages_t *m)
{
    if (m != NULL && m->busy == 0)
        free(m);
}

static void fail(nicbarrier_messages_t *m, int code)
{
    if (m->failure == 0)
        m->failure = code;
    nicbarrier_rule_fail(&m->rule);
}

/** Starts what is due, unless the word before it is still on its way: then the next word says both.
 */
static void send_due(nicbarrier_messages_t *m, uint32_t k)
{
    step_t *s = &m->step[k];

    if (!s->due || s->sending != NULL)
        return;
    s->due = false;
    onic_put64(s->out, nicbarrier_rule_word(&m->rule, k));
    const int rc = m->ops->send(m->arg, s->to, s->out, &s->sending);
    if (rc != 0)
        fail(m, rc);
    else
        m->busy++;
}

static void post_receive(nicbarrier_messages_t *m, uint32_t k)
{
    step_t *s = &m->step[k];

    if (!(m->rule.blocked >> k & 1) || s->receiving != NULL || m->failure != 0)
        return;
    const int rc = m->ops->receive(m->arg, s->from, s->in, &s->receiving);
    if (rc != 0)
        fail(m, rc);
    else
        m->busy++;
}

/** Goes as far as it gets, and starts what follows from that. */
static void advance(nicbarrier_messages_t *m)
{
    const uint64_t out = nicbarrier_rule_advance(&m->rule);

    for (uint32_t k = 0; k < m->rule.nsteps; k++) {
        m->step[k].due = m->step[k].due || (out >> k & 1) != 0;
        send_due(m, k);
        post_receive(m, k);
    }
}

void nicbarrier_messages_enter(nicbarrier_messages_t *m, uint64_t epoch)
{
    nicbarrier_rule_enter(&m->rule, epoch);
    advance(m);
}

/** 1 where it was under way and is not any more. */
static int take_in(nicbarrier_messages_t *m, void **request)
{
    if (*request == NULL)
        return 0;
    const int rc = m->ops->test(m->arg, request);
    if (rc == 0)
        return 0;
    m->busy--;
    if (rc != 1)
        fail(m, rc);
    return rc == 1;
}

static void hear(nicbarrier_messages_t *m, uint32_t k)
{
    const uint64_t word = onic_get64(m->step[k].in);

    if (nicbarrier_rule_receive(&m->rule, k, word) == NICBARRIER_WORD_WRONG ||
        (word & NICBARRIER_WORD_FAILED) != 0)
        fail(m, m->failed);
}

int nicbarrier_messages_progress(nicbarrier_messages_t *m)
{
    int came = 0;

    if (m->busy == 0)
        return 0;
    for (uint32_t k = 0; k < m->rule.nsteps; k++) {
        if (take_in(m, &m->step[k].sending) != 0)
            send_due(m, k);
        if (take_in(m, &m->step[k].receiving) != 0) {
            hear(m, k);
            came++;
        }
    }
    if (came > 0 || m->failure != 0)
        advance(m);
    return came;
}

bool nicbarrier_messages_done(const nicbarrier_messages_t *m, uint64_t epoch)
{
    return m->rule.completed >= epoch && (epoch < m->rule.entered || m->busy == 0);
}

int nicbarrier_messages_failure(const nicbarrier_messages_t *m)
{
    return m->failure;
}
