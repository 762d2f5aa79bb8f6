/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coll_nicbarrier/agree/protocol.h"

#include <string.h>

#include "coll_nicbarrier/agree/protocol_internal.h"

/* ---- words ------------------------------------------------------------------------------------
 */

nicbarrier_topic_t nicbarrier_topic(const nicbarrier_protocol_t *m, nicbarrier_subject_t subject,
                                    int step)
{
    return (nicbarrier_topic_t){(uint8_t)subject, (uint8_t)step, m->attempt, m->setup.number};
}

void nicbarrier_say(const nicbarrier_protocol_t *m, uint32_t rank, nicbarrier_subject_t subject,
                    int step, uint32_t word)
{
    unsigned char bytes[NICBARRIER_MESSAGE_MAX];
    const size_t len = nicbarrier_word_write(bytes, nicbarrier_topic(m, subject, step), word);

    m->host->send(m->arg, (int32_t)rank, bytes, len);
}

static void end(nicbarrier_protocol_t *m, nicbarrier_verdict_t verdict)
{
    m->verdict = verdict;
    m->step = DO_OVER;
}

void nicbarrier_break(nicbarrier_protocol_t *m, const char *what)
{
    nicbarrier_reason(m->why, "%s was broken", what);
    end(m, NICBARRIER_ERROR);
}

/** For what all ranks find by the same numbers. */
static void decline(nicbarrier_protocol_t *m)
{
    m->engine = NICBARRIER_ANY_ENGINE;
    end(m, NICBARRIER_DECLINED);
}

/** splitmix64's finalizer. */
static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint64_t nicbarrier_view_hash(int32_t first, int32_t rank, int32_t n)
{
    return mix(mix((uint64_t)(uint32_t)first << 32 | (uint32_t)rank) + (uint32_t)n);
}

/* ---- sweeps -----------------------------------------------------------------------------------
 */

/** What every record of mine says. */
static nicbarrier_summary_t own_record(const nicbarrier_protocol_t *m)
{
    nicbarrier_summary_t r = {.flags = m->failed ? NICBARRIER_FAILED : 0,
                              .complainer = m->why->text[0] != '\0' ? (uint32_t)m->setup.me
                                                                    : NICBARRIER_NO_RANK,
                              .settings = m->setup.settings,
                              .job = m->setup.job,
                              .first = NICBARRIER_NO_RANK,
                              .last = NICBARRIER_NO_RANK};

    memset(r.score, UINT8_MAX, sizeof(r.score));
    return r;
}

static int children(const nicbarrier_protocol_t *m)
{
    int k = 0;

    while (nicbarrier_child(m->setup.me, m->setup.size, k) >= 0)
        k++;
    return k;
}

static void go_up(nicbarrier_protocol_t *m)
{
    m->step = nicbarrier_child(m->setup.me, m->setup.size, m->k) >= 0 ? DO_CHILD_IN : DO_REPORT;
}

static void begin_sweep(nicbarrier_protocol_t *m, nicbarrier_subject_t sweep,
                        nicbarrier_summary_t own)
{
    m->sweep = (uint8_t)sweep;
    m->record = own;
    m->k = 0;
    go_up(m);
}

static nicbarrier_topic_t sweep_topic(const nicbarrier_protocol_t *m, bool up)
{
    /* Whoever does not lead does not know which attempt it was. */
    return (nicbarrier_topic_t){m->sweep, up ? 0 : 1, 0, m->setup.number};
}

static void send_record(nicbarrier_protocol_t *m, int32_t rank, bool up,
                        const nicbarrier_summary_t *r)
{
    unsigned char bytes[NICBARRIER_MESSAGE_MAX];
    const size_t len = nicbarrier_summary_write(bytes, sweep_topic(m, up), r);

    m->host->send(m->arg, rank, bytes, len);
}

static void answered(nicbarrier_protocol_t *m);

/** The answer to my range is there. */
static void go_down(nicbarrier_protocol_t *m)
{
    m->k = (uint8_t)children(m);
    m->step = DO_SPREAD;
    if (m->k == 0)
        answered(m);
}

static void report(nicbarrier_protocol_t *m)
{
    if (m->setup.me > 0) {
        send_record(m, nicbarrier_parent(m->setup.me), true, &m->record);
        m->step = DO_PARENT_IN;
        return;
    }
    m->record.key = m->setup.key;
    go_down(m);
}

static nicbarrier_span_t own_span(const nicbarrier_protocol_t *m)
{
    const uint32_t me = (uint32_t)m->setup.me;

    return (nicbarrier_span_t){m->leads, me, me};
}

/** The answer's part for a child, or for me alone. */
static nicbarrier_summary_t part(const nicbarrier_protocol_t *m, int k)
{
    return m->sweep == NICBARRIER_LEADERS
               ? nicbarrier_answer_part(&m->record, own_span(m), m->child, children(m), k)
               : m->record;
}

static void spread(nicbarrier_protocol_t *m)
{
    const nicbarrier_summary_t r = part(m, --m->k);

    send_record(m, nicbarrier_child(m->setup.me, m->setup.size, m->k), false, &r);
    if (m->k == 0)
        answered(m);
}

static void take_child(nicbarrier_protocol_t *m, const void *bytes, size_t len,
                       nicbarrier_fit_t fit)
{
    nicbarrier_summary_t r;

    if (fit != NICBARRIER_FITS ||
        !nicbarrier_summary_read(bytes, len, (uint32_t)m->setup.size, &r)) {
        r = own_record(m);
        r.flags |= NICBARRIER_FAILED;
    }
    if (m->sweep == NICBARRIER_LEADERS)
        m->child[m->k] = (nicbarrier_span_t){r.leaders, r.first, r.last};
    nicbarrier_combine(&m->record, &r);
    m->k++;
    go_up(m);
}

static void take_parent(nicbarrier_protocol_t *m, const void *bytes, size_t len,
                        nicbarrier_fit_t fit)
{
    if (fit == NICBARRIER_FITS &&
        nicbarrier_summary_read(bytes, len, (uint32_t)m->setup.size, &m->record))
        go_down(m);
    else
        nicbarrier_break(m, "the answer of a sweep");
}

/* ---- hello ------------------------------------------------------------------------------------
 */

void nicbarrier_protocol_init(nicbarrier_protocol_t *m, const nicbarrier_setup_t *setup,
                              const nicbarrier_host_t *host, void *arg, nicbarrier_reason_t *why)
{
    memset(m, 0, sizeof(*m));
    m->setup = *setup;
    m->host = host;
    m->arg = arg;
    m->why = why;
    m->failed = setup->failed;
    m->engine = NICBARRIER_ANY_ENGINE;
    nicbarrier_summary_t own = own_record(m);
    own.views = nicbarrier_view_hash(setup->first, setup->me, setup->n);
    for (int32_t r = setup->first == setup->me ? setup->me : -1; r >= 0; r = host->member(arg, r))
        own.views -= nicbarrier_view_hash(setup->me, r, setup->n);
    begin_sweep(m, NICBARRIER_HELLO, own);
}

static void hello_answered(nicbarrier_protocol_t *m)
{
    const nicbarrier_summary_t *r = &m->record;

    m->key = r->key;
    m->jobs = (r->flags & NICBARRIER_JOBS) != 0;
    if ((r->flags & NICBARRIER_DIFFERS) != 0)
        nicbarrier_reason(m->why, "ranks have different values of parameters coll_nicbarrier_*");
    else if (r->views != 0 && (r->flags & NICBARRIER_FAILED) == 0)
        nicbarrier_reason(m->why, "ranks do not agree on who shares a node with whom");
    if (r->views != 0 || (r->flags & (NICBARRIER_DIFFERS | NICBARRIER_FAILED)) != 0) {
        decline(m);
        return;
    }
    nicbarrier_begin_node(m);
}

/* ---- leaders ----------------------------------------------------------------------------------
 */

void nicbarrier_begin_leaders(nicbarrier_protocol_t *m)
{
    m->leads = m->alone || m->index % m->limit == 0;
    nicbarrier_summary_t own = own_record(m);
    /* One that leads no others because all are behind leaders of one each is of its node still. */
    const bool apart = m->alone && m->limit > 1;
    own.nodes = apart || m->setup.me == m->setup.first;
    if (m->leads) {
        own.leaders = 1;
        own.first = own.last = (uint32_t)m->setup.me;
        for (int i = 0; i < NICBARRIER_ENGINES_MAX; i++)
            own.score[i] = m->setup.candidate[i].score;
    }
    begin_sweep(m, NICBARRIER_LEADERS, own);
}

static bool serves(const nicbarrier_protocol_t *m, int engine)
{
    const unsigned needs = m->setup.candidate[engine].needs;

    return m->setup.candidate[engine].network &&
           (m->setup.engine == NICBARRIER_ANY_ENGINE || m->setup.engine == engine) &&
           !((needs & NICBARRIER_NEEDS_ONE_NODE) != 0 && m->record.nodes > 1) &&
           !((needs & NICBARRIER_NEEDS_ONE_JOB) != 0 && m->jobs);
}

int8_t nicbarrier_choose(const nicbarrier_protocol_t *m)
{
    int8_t engine = NICBARRIER_ANY_ENGINE;
    uint8_t best = 0;

    for (int i = 0; i < NICBARRIER_ENGINES_MAX; i++) {
        const uint8_t score = m->record.score[i];
        if ((m->tried & 1U << i) == 0 && serves(m, i) && score > best) {
            best = score;
            engine = (int8_t)i;
        }
    }
    return engine;
}

static void ring_of(nicbarrier_protocol_t *m)
{
    const nicbarrier_summary_t mine = part(m, -1);

    m->ring.n = m->leaders;
    m->ring.me = (int32_t)mine.index;
    m->ring.up[0] = mine.first;
    m->ring.down[0] = mine.last;
}

static void leaders_answered(nicbarrier_protocol_t *m)
{
    m->leaders = (int32_t)m->record.leaders;
    if ((m->record.flags & NICBARRIER_FAILED) != 0) {
        decline(m);
        return;
    }
    if (m->leaders == 1) {
        m->engine = NICBARRIER_NODE_ENGINE;
        end(m, NICBARRIER_AGREED);
        return;
    }
    m->engine = nicbarrier_choose(m);
    if (m->engine == NICBARRIER_ANY_ENGINE) {
        if (m->why->text[0] == '\0')
            nicbarrier_reason(m->why, "no engine serves these processes: %u nodes%s",
                              (unsigned)m->record.nodes, m->jobs ? ", several jobs" : "");
        decline(m);
        return;
    }
    if (m->leads) {
        ring_of(m);
        nicbarrier_begin_ring(m);
    } else {
        nicbarrier_begin_result(m);
    }
}

/* ---- result -----------------------------------------------------------------------------------
 */

void nicbarrier_begin_result(nicbarrier_protocol_t *m)
{
    if (m->leads && m->engine == NICBARRIER_ANY_ENGINE)
        m->failed = true;
    nicbarrier_summary_t own = own_record(m);
    own.engine = m->leads ? (uint8_t)(m->engine + 1) : 0;
    begin_sweep(m, NICBARRIER_RESULT, own);
}

static void result_answered(nicbarrier_protocol_t *m)
{
    if ((m->record.flags & NICBARRIER_FAILED) != 0 || m->record.engine == 0) {
        decline(m);
        return;
    }
    m->engine = (int8_t)(m->record.engine - 1);
    end(m, NICBARRIER_AGREED);
}

static void answered(nicbarrier_protocol_t *m)
{
    if (m->sweep == NICBARRIER_HELLO)
        hello_answered(m);
    else if (m->sweep == NICBARRIER_LEADERS)
        leaders_answered(m);
    else
        result_answered(m);
}

/* ---- the whole --------------------------------------------------------------------------------
 */

nicbarrier_turn_t nicbarrier_protocol_turn(const nicbarrier_protocol_t *m)
{
    switch (m->step) {
    case DO_CHILD_IN:
    case DO_PARENT_IN:
    case DO_ANSWER_IN:
    case DO_NODE_IN:
    case DO_FINGER_UP_IN:
    case DO_FINGER_DOWN_IN:
    case DO_TABLE_IN:
    case DO_ENDPOINT_IN:
    case DO_CONNECTED_IN:
    case DO_TRIED_IN:
        return NICBARRIER_AWAIT;
    case DO_TRIAL:
        return NICBARRIER_WATCH;
    case DO_OVER:
        return NICBARRIER_OVER;
    default:
        return NICBARRIER_GO;
    }
}

void nicbarrier_protocol_go(nicbarrier_protocol_t *m)
{
    switch (m->step) {
    case DO_REPORT:
        report(m);
        break;
    case DO_SPREAD:
        spread(m);
        break;
    case DO_MAKE:
    case DO_TELL:
    case DO_ANSWER:
        nicbarrier_node_go(m);
        break;
    default:
        nicbarrier_leaders_go(m);
    }
}

int32_t nicbarrier_protocol_source(const nicbarrier_protocol_t *m)
{
    switch (m->step) {
    case DO_CHILD_IN:
        return nicbarrier_child(m->setup.me, m->setup.size, m->k);
    case DO_PARENT_IN:
        return nicbarrier_parent(m->setup.me);
    case DO_ANSWER_IN:
        return m->cursor;
    case DO_NODE_IN:
        return m->setup.first;
    default:
        return nicbarrier_leaders_source(m);
    }
}

bool nicbarrier_protocol_is_long(const nicbarrier_protocol_t *m)
{
    return m->step == DO_ENDPOINT_IN;
}

static nicbarrier_topic_t expected(const nicbarrier_protocol_t *m)
{
    switch (m->step) {
    case DO_CHILD_IN:
    case DO_PARENT_IN:
        return sweep_topic(m, m->step == DO_CHILD_IN);
    case DO_ANSWER_IN:
        return nicbarrier_topic(m, NICBARRIER_ANSWER, m->words);
    case DO_NODE_IN:
        return nicbarrier_topic(m, NICBARRIER_NODE, m->words);
    default:
        return nicbarrier_leaders_topic(m);
    }
}

void nicbarrier_protocol_take(nicbarrier_protocol_t *m, const void *bytes, size_t len)
{
    const nicbarrier_fit_t fit = nicbarrier_topic_check(bytes, len, expected(m));

    if (fit == NICBARRIER_STALE)
        return;
    switch (m->step) {
    case DO_CHILD_IN:
        take_child(m, bytes, len, fit);
        break;
    case DO_PARENT_IN:
        take_parent(m, bytes, len, fit);
        break;
    case DO_ANSWER_IN:
    case DO_NODE_IN:
        nicbarrier_node_take(m, bytes, len, fit);
        break;
    default:
        nicbarrier_leaders_take(m, bytes, len, fit);
    }
}

int32_t nicbarrier_protocol_speaker(const nicbarrier_protocol_t *m)
{
    if (m->verdict == NICBARRIER_ERROR)
        return m->setup.me;
    return m->record.complainer != NICBARRIER_NO_RANK ? (int32_t)m->record.complainer : 0;
}
