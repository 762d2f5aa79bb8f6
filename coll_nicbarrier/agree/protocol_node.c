/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What the processes of a node do among themselves: see protocol.h. */
#include "coll_nicbarrier/agree/protocol_internal.h"

#include <string.h>

int32_t nicbarrier_protocol_limit(const nicbarrier_setup_t *s)
{
    const bool by_network = s->engine >= 0 && s->candidate[s->engine].network;

    if (!by_network && (s->n == s->size || s->engine >= 0))
        return s->n;
    if (s->ppn > 0)
        return s->ppn < s->n ? s->ppn : s->n;
    /* A network engine that was asked for on a single node works between its processes. */
    return by_network && s->n == s->size ? 1 : s->n;
}

void nicbarrier_begin_node(nicbarrier_protocol_t *m)
{
    m->n = m->setup.n;
    m->limit = nicbarrier_protocol_limit(&m->setup);
    m->alone = m->limit == 1;
    if (m->limit == 1)
        nicbarrier_begin_leaders(m);
    else
        m->step = m->setup.first == m->setup.me ? DO_MAKE : DO_NODE_IN;
}

/* ---- node: the first of it --------------------------------------------------------------------
 */

static void tell_all(nicbarrier_protocol_t *m, nicbarrier_word_t word)
{
    m->word = (uint8_t)word;
    m->cursor = m->host->member(m->arg, m->setup.me);
    m->count = 1;
    m->step = DO_TELL;
}

static void make(nicbarrier_protocol_t *m)
{
    m->made = m->host->make(m->arg, m->n, m->limit, m->words > 0, m->segment);
    m->worst = NICBARRIER_MAPPED;
    tell_all(m, NICBARRIER_MAP);
}

/** The node is as it will be. */
static void settle(nicbarrier_protocol_t *m, bool shared)
{
    m->alone = !shared;
    /* Does anybody share the barriers with those behind my leader, without being among them? */
    const int32_t before = m->index / m->limit * m->limit;
    const int32_t left = m->n - before;
    const bool others = (left < m->limit ? left : m->limit) < m->setup.size;
    if (!m->host->settle(m->arg, shared, others))
        m->failed = true;
}

static void tell(nicbarrier_protocol_t *m)
{
    nicbarrier_node_word_t word = {m->word, (uint32_t)m->count, (uint32_t)m->n, {0}};
    unsigned char bytes[NICBARRIER_MESSAGE_MAX];

    if (m->word == NICBARRIER_MAP)
        memcpy(word.key, m->segment, sizeof(word.key));
    const size_t len =
        nicbarrier_node_write(bytes, nicbarrier_topic(m, NICBARRIER_NODE, m->words), &word);
    m->host->send(m->arg, m->cursor, bytes, len);
    m->count++;
    m->cursor = m->host->member(m->arg, m->cursor);
    if (m->cursor >= 0)
        return;
    if (m->word != NICBARRIER_MAP) {
        nicbarrier_begin_leaders(m);
        return;
    }
    m->cursor = m->host->member(m->arg, m->setup.me);
    m->step = DO_ANSWER_IN;
}

static void all_answered(nicbarrier_protocol_t *m)
{
    const bool shared = m->made && m->worst == NICBARRIER_MAPPED;

    m->words++;
    if (m->worst == NICBARRIER_UNNAMED && m->words == 1) {
        m->step = DO_MAKE;
        return;
    }
    settle(m, shared);
    tell_all(m, shared ? NICBARRIER_SHARED : NICBARRIER_APART);
}

static void take_answer(nicbarrier_protocol_t *m, const void *bytes, size_t len,
                        nicbarrier_fit_t fit)
{
    uint32_t word;

    if (fit != NICBARRIER_FITS ||
        !nicbarrier_word_read(bytes, len, NICBARRIER_MAPPED, NICBARRIER_UNMAPPED, &word))
        word = NICBARRIER_UNMAPPED;
    m->worst = word > m->worst ? (uint8_t)word : m->worst;
    m->cursor = m->host->member(m->arg, m->cursor);
    if (m->cursor < 0)
        all_answered(m);
}

/* ---- node: the others -------------------------------------------------------------------------
 */

static void take_node(nicbarrier_protocol_t *m, const void *bytes, size_t len, nicbarrier_fit_t fit)
{
    nicbarrier_node_word_t word;

    if (fit != NICBARRIER_FITS ||
        !nicbarrier_node_read(bytes, len, (uint32_t)m->setup.size, &word) ||
        word.n != (uint32_t)m->n) {
        nicbarrier_break(m, "a word of my node's first process");
        return;
    }
    m->index = (int32_t)word.index;
    if (word.word == NICBARRIER_MAP) {
        m->worst = (uint8_t)m->host->map(m->arg, word.key, m->index, m->n, m->limit);
        m->step = DO_ANSWER;
        return;
    }
    settle(m, word.word == NICBARRIER_SHARED);
    nicbarrier_begin_leaders(m);
}

static void answer(nicbarrier_protocol_t *m)
{
    nicbarrier_say(m, (uint32_t)m->setup.first, NICBARRIER_ANSWER, m->words, m->worst);
    m->words++;
    m->step = DO_NODE_IN;
}

/* ---- the whole --------------------------------------------------------------------------------
 */

void nicbarrier_node_go(nicbarrier_protocol_t *m)
{
    if (m->step == DO_MAKE)
        make(m);
    else if (m->step == DO_TELL)
        tell(m);
    else
        answer(m);
}

void nicbarrier_node_take(nicbarrier_protocol_t *m, const void *bytes, size_t len,
                          nicbarrier_fit_t fit)
{
    if (m->step == DO_ANSWER_IN)
        take_answer(m, bytes, len, fit);
    else
        take_node(m, bytes, len, fit);
}
