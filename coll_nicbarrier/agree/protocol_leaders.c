/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What the leaders do among themselves: see protocol.h. */
#include "coll_nicbarrier/agree/protocol_internal.h"

static int64_t distance(const nicbarrier_protocol_t *m)
{
    return (int64_t)1 << m->k;
}

/* ---- fingers ----------------------------------------------------------------------------------
 */

static void begin_table(nicbarrier_protocol_t *m);
static void begin_attempt(nicbarrier_protocol_t *m);

static void go_round(nicbarrier_protocol_t *m)
{
    if (2 * distance(m) < m->ring.n)
        m->step = DO_FINGER_DOWN;
    else if (m->setup.schedule == NICBARRIER_GATHER_BROADCAST)
        begin_table(m);
    else
        begin_attempt(m);
}

void nicbarrier_begin_ring(nicbarrier_protocol_t *m)
{
    m->k = 0;
    go_round(m);
}

static void take_finger(nicbarrier_protocol_t *m, const void *bytes, size_t len,
                        nicbarrier_fit_t fit)
{
    uint32_t rank;

    if (fit != NICBARRIER_FITS ||
        !nicbarrier_word_read(bytes, len, 0, (uint32_t)m->setup.size - 1, &rank)) {
        nicbarrier_break(m, "what another leader knows of a third");
    } else if (m->step == DO_FINGER_UP_IN) {
        m->ring.up[m->k + 1] = rank;
        m->step = DO_FINGER_DOWN_IN;
    } else {
        m->ring.down[++m->k] = rank;
        go_round(m);
    }
}

/* ---- all ranks, for a schedule with partners elsewhere ----------------------------------------
 */

/* Bruck's allgather over the fingers: in round k the ranks of 2^k leaders, from me on, go to the
 * one 2^k before me, in pieces; an OR of failures goes with them. */

static int32_t in_round(const nicbarrier_protocol_t *m)
{
    const int64_t left = m->ring.n - distance(m);

    return (int32_t)(left < distance(m) ? left : distance(m));
}

static int in_piece(const nicbarrier_protocol_t *m)
{
    const int32_t left = in_round(m) - m->cursor;

    return left < NICBARRIER_TABLE_RANKS ? left : NICBARRIER_TABLE_RANKS;
}

static void begin_table(nicbarrier_protocol_t *m)
{
    m->table = m->host->table(m->arg, m->ring.n);
    m->unfit = m->table == NULL;
    if (m->table != NULL)
        m->table[0] = (uint32_t)m->setup.me;
    else
        nicbarrier_reason(m->why, "memory is exhausted");
    m->k = 0;
    m->cursor = 0;
    m->step = DO_TABLE;
}

static void send_piece(nicbarrier_protocol_t *m)
{
    unsigned char bytes[NICBARRIER_MESSAGE_MAX];
    const size_t len =
        nicbarrier_table_write(bytes, nicbarrier_topic(m, NICBARRIER_TABLE, m->k), m->unfit,
                               m->table != NULL ? m->table + m->cursor : NULL, in_piece(m));

    m->host->send(m->arg, (int32_t)m->ring.down[m->k], bytes, len);
    m->step = DO_TABLE_IN;
}

static void take_piece(nicbarrier_protocol_t *m, const void *bytes, size_t len,
                       nicbarrier_fit_t fit)
{
    uint32_t *at = m->table != NULL ? m->table + distance(m) + m->cursor : NULL;
    bool failed;

    if (fit != NICBARRIER_FITS ||
        !nicbarrier_table_read(bytes, len, (uint32_t)m->setup.size, &failed, at, in_piece(m))) {
        nicbarrier_break(m, "what another leader knows of the others");
        return;
    }
    m->unfit |= failed;
    m->cursor += in_piece(m);
    m->step = DO_TABLE;
    if (m->cursor < in_round(m))
        return;
    m->cursor = 0;
    m->k++;
    if (distance(m) >= m->ring.n) {
        if (m->unfit)
            m->engine = NICBARRIER_ANY_ENGINE;
        begin_attempt(m);
    }
}

/* ---- endpoints --------------------------------------------------------------------------------
 */

static void begin_attempt(nicbarrier_protocol_t *m)
{
    m->unfit = m->early = false;
    if (m->engine == NICBARRIER_ANY_ENGINE)
        nicbarrier_begin_result(m);
    else
        m->step = DO_PREPARE;
}

/** The partner of a slot: each step of the schedule has two, first those I send to. -1: there is
 *  none, or it was in a slot before. -2: there are no more slots. */
static int32_t partner_in(const nicbarrier_step_t *steps, int n, int slot)
{
    if (slot >= 2 * n)
        return -2;
    const int32_t partner = slot % 2 == 0 ? steps[slot / 2].send_to : steps[slot / 2].wait_for;
    for (int i = 0; i < slot && partner >= 0; i++)
        if ((i % 2 == 0 ? steps[i / 2].send_to : steps[i / 2].wait_for) == partner)
            return -1;
    return partner;
}

/** What is done in turn k, four to each step of the schedule: my endpoint goes to both partners,
 *  and theirs come. Returns the partner, as partner_in. */
static int32_t partner_of(const nicbarrier_protocol_t *m, int k)
{
    static const int slot[4] = {0, 1, 1, 0};
    nicbarrier_step_t steps[NICBARRIER_STEPS_MAX];
    const int n = nicbarrier_schedule((nicbarrier_schedule_kind_t)m->setup.schedule,
                                      NICBARRIER_DEGREE, m->ring.me, m->ring.n, steps);

    return partner_in(steps, n, k / 4 * 2 + slot[k % 4]);
}

static uint32_t rank_of(const nicbarrier_protocol_t *m, int32_t leader)
{
    const int32_t from_me = (leader - m->ring.me + m->ring.n) % m->ring.n;

    return m->table != NULL ? m->table[from_me] : nicbarrier_ring_rank(&m->ring, leader);
}

/** The next turn in which there is something to do. */
static void go_endpoint(nicbarrier_protocol_t *m)
{
    int32_t partner = partner_of(m, m->k);

    while (partner == -1)
        partner = partner_of(m, ++m->k);
    m->step = partner < 0 ? DO_CONNECT : m->k % 4 < 2 ? DO_ENDPOINT : DO_ENDPOINT_IN;
}

static void prepare(nicbarrier_protocol_t *m)
{
    /* Of two attempts the words must not be taken for each other's. */
    const uint64_t key = m->key + 0x9e3779b97f4a7c15u * m->attempt;
    const nicbarrier_group_t group = {key != 0 ? key : 1, m->ring.n, m->ring.me};

    m->unfit = !m->host->prepare(m->arg, m->engine, &group);
    m->k = 0;
    go_endpoint(m);
}

static void send_endpoint(nicbarrier_protocol_t *m)
{
    m->host->send_endpoint(m->arg, (int32_t)rank_of(m, partner_of(m, m->k)),
                           nicbarrier_topic(m, NICBARRIER_ENDPOINT, 0));
    m->k++;
    go_endpoint(m);
}

static void take_endpoint(nicbarrier_protocol_t *m, const void *bytes, size_t len,
                          nicbarrier_fit_t fit)
{
    const int32_t partner = partner_of(m, m->k);

    /* Without bytes: it cannot. */
    if (fit != NICBARRIER_FITS || len == NICBARRIER_TOPIC_SIZE ||
        len > NICBARRIER_TOPIC_SIZE + NICBARRIER_ENDPOINT_MAX ||
        !m->host->keep(m->arg, partner, (const unsigned char *)bytes + NICBARRIER_TOPIC_SIZE,
                       len - NICBARRIER_TOPIC_SIZE))
        m->unfit = true;
    m->k++;
    go_endpoint(m);
}

/* ---- connected, and the trial -----------------------------------------------------------------
 */

static void connect(nicbarrier_protocol_t *m)
{
    if (!m->unfit)
        m->unfit = !m->host->connect(m->arg);
    m->k = 0;
    m->step = DO_CONNECTED;
}

static void next_attempt(nicbarrier_protocol_t *m)
{
    m->host->drop(m->arg);
    m->tried |= (uint8_t)(1U << m->engine);
    m->attempt++;
    m->engine = nicbarrier_choose(m);
    begin_attempt(m);
}

static nicbarrier_subject_t subject(const nicbarrier_protocol_t *m)
{
    return m->step == DO_CONNECTED || m->step == DO_CONNECTED_IN ? NICBARRIER_CONNECTED
                                                                 : NICBARRIER_TRIAL;
}

/** All leaders have said the same. */
static void all_have_said(nicbarrier_protocol_t *m)
{
    if (m->unfit) {
        next_attempt(m);
    } else if (subject(m) == NICBARRIER_CONNECTED) {
        m->host->expect(m->arg);
        m->k = 0;
        m->step = DO_TRIAL;
    } else {
        nicbarrier_begin_result(m);
    }
}

static void go_or(nicbarrier_protocol_t *m)
{
    m->k++;
    m->step = subject(m) == NICBARRIER_CONNECTED ? DO_CONNECTED : DO_TRIED;
    if (distance(m) >= m->ring.n)
        all_have_said(m);
}

/** Dissemination of an OR: in round k to the one 2^k behind me, from the one 2^k before me. */
static void say_or(nicbarrier_protocol_t *m)
{
    nicbarrier_say(m, m->ring.up[m->k], subject(m), m->k, m->unfit);
    if (m->step == DO_TRIED && m->k == 0 && m->early)
        go_or(m);
    else
        m->step = m->step == DO_CONNECTED ? DO_CONNECTED_IN : DO_TRIED_IN;
}

static void take_or(nicbarrier_protocol_t *m, const void *bytes, size_t len, nicbarrier_fit_t fit)
{
    uint32_t failed;

    if (fit != NICBARRIER_FITS || !nicbarrier_word_read(bytes, len, 0, 1, &failed)) {
        nicbarrier_break(m, "a word between leaders");
        return;
    }
    m->unfit |= failed == 1;
    if (m->step != DO_TRIAL) {
        go_or(m);
        return;
    }
    /* Somebody has given up while my trial runs: it need not run any longer. */
    m->early = true;
    if (m->unfit)
        m->step = DO_TRIED;
}

static void look_at_trial(nicbarrier_protocol_t *m)
{
    const int rc = m->host->trial(m->arg);

    if (rc != 0) {
        m->unfit |= rc < 0;
        m->step = DO_TRIED;
    }
}

/* ---- the whole --------------------------------------------------------------------------------
 */

void nicbarrier_leaders_go(nicbarrier_protocol_t *m)
{
    switch (m->step) {
    case DO_FINGER_DOWN:
        nicbarrier_say(m, m->ring.down[m->k], NICBARRIER_FINGER, m->k, m->ring.up[m->k]);
        m->step = DO_FINGER_UP;
        break;
    case DO_FINGER_UP:
        nicbarrier_say(m, m->ring.up[m->k], NICBARRIER_FINGER, m->k, m->ring.down[m->k]);
        m->step = DO_FINGER_UP_IN;
        break;
    case DO_TABLE:
        send_piece(m);
        break;
    case DO_PREPARE:
        prepare(m);
        break;
    case DO_ENDPOINT:
        send_endpoint(m);
        break;
    case DO_CONNECT:
        connect(m);
        break;
    case DO_TRIAL:
        look_at_trial(m);
        break;
    default:
        say_or(m);
    }
}

int32_t nicbarrier_leaders_source(const nicbarrier_protocol_t *m)
{
    switch (m->step) {
    case DO_FINGER_UP_IN:
    case DO_TABLE_IN:
        return (int32_t)m->ring.up[m->k];
    case DO_ENDPOINT_IN:
        return (int32_t)rank_of(m, partner_of(m, m->k));
    case DO_TRIAL:
        return m->early ? -1 : (int32_t)m->ring.down[0];
    default:
        return (int32_t)m->ring.down[m->k];
    }
}

nicbarrier_topic_t nicbarrier_leaders_topic(const nicbarrier_protocol_t *m)
{
    switch (m->step) {
    case DO_FINGER_UP_IN:
    case DO_FINGER_DOWN_IN:
        return nicbarrier_topic(m, NICBARRIER_FINGER, m->k);
    case DO_TABLE_IN:
        return nicbarrier_topic(m, NICBARRIER_TABLE, m->k);
    case DO_ENDPOINT_IN:
        return nicbarrier_topic(m, NICBARRIER_ENDPOINT, 0);
    default:
        return nicbarrier_topic(m, subject(m), m->k);
    }
}

void nicbarrier_leaders_take(nicbarrier_protocol_t *m, const void *bytes, size_t len,
                             nicbarrier_fit_t fit)
{
    switch (m->step) {
    case DO_FINGER_UP_IN:
    case DO_FINGER_DOWN_IN:
        take_finger(m, bytes, len, fit);
        break;
    case DO_TABLE_IN:
        take_piece(m, bytes, len, fit);
        break;
    case DO_ENDPOINT_IN:
        take_endpoint(m, bytes, len, fit);
        break;
    default:
        take_or(m, bytes, len, fit);
    }
}
