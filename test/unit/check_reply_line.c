/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Slots of answers: what the target leaves there is what the origin takes, once each. */
#include "osc_nicstride/protocol/reply_line.h"

#include "osc_nicstride/protocol/completion.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "common/support/handle.h"
#include "test/unit/unit.h"

/* What answer number n is made of. */
typedef struct said {
    uint64_t applied;
    uint32_t handle;
    size_t len;
    unsigned char data[NICSTRIDE_REPLY_LINE_DATA];
} said_t;

static void next_answer(unit_random_t *r, said_t *a)
{
    const bool data = unit_once_in(r, 2);

    a->applied += 1 + unit_below(r, 3);
    a->handle = data ? 1 + (uint32_t)unit_below(r, UINT32_MAX) : 0;
    a->len = !data ? 0 : unit_once_in(r, 2) ? 8 : unit_below(r, NICSTRIDE_REPLY_LINE_DATA + 1);
    for (size_t i = 0; i < a->len; i++)
        a->data[i] = (unsigned char)unit_random64(r);
}

static void check_answer(const nicstride_reply_line_t *s, uint64_t seen, const said_t *a)
{
    uint32_t handle;
    size_t len;
    const void *data = nicstride_reply_line_data(s, &handle, &len);

    UNIT_CHECK(seen == a->applied && handle == a->handle && len == a->len);
    UNIT_CHECK((data != NULL) == (a->handle != 0));
    UNIT_CHECK(data == NULL || memcmp(data, a->data, len) == 0);
}

/* Handles that have a word come back from it; others say that they have none. */
START_TEST(handle_words)
{
    unit_random_t r = {unit_seed()};

    for (int i = 0; i < 30000; i++) {
        const uint64_t handle = (1 + unit_below(&r, ONIC_GENERATION_MAX)) << 32 |
                                (uint32_t)(unit_random64(&r) >> (54 + unit_below(&r, 4)));
        const bool has = onic_handle_has_word(handle);

        UNIT_CHECK(has == ((uint32_t)handle < ONIC_HANDLE_WORD_SLOTS));
        UNIT_CHECK(!has || onic_handle_of_word(onic_handle_word(handle)) == handle);
    }
}
END_TEST

enum { EXCHANGES = 20000 };

static nicstride_reply_line_t shared;
static uint64_t questions; /* so far; atomic */

/* The target: answers each question, and has done something before that the origin then sees. */
static uint64_t effect;

static void *target_main(void *arg)
{
    unit_random_t r = {unit_seed()};
    said_t a = {0};

    (void)arg;
    for (uint64_t n = 1; n <= EXCHANGES; n++) {
        while (__atomic_load_n(&questions, __ATOMIC_ACQUIRE) != n)
            sched_yield();
        next_answer(&r, &a);
        effect = a.applied;
        nicstride_reply_line_answer(&shared, a.applied, a.handle, a.data, a.len);
    }
    return NULL;
}

START_TEST(between_two_threads)
{
    unit_random_t r = {unit_seed()};
    said_t a = {0};
    uint64_t seen = 0;
    pthread_t target;

    UNIT_CHECK(pthread_create(&target, NULL, target_main, NULL) == 0);
    for (uint64_t n = 1; n <= EXCHANGES; n++) {
        next_answer(&r, &a);
        __atomic_store_n(&questions, n, __ATOMIC_RELEASE);
        while (!nicstride_reply_line_look(&shared, &seen))
            sched_yield();
        check_answer(&shared, seen, &a);
        UNIT_CHECK(effect == a.applied);
    }
    UNIT_CHECK(pthread_join(target, NULL) == 0);
}
END_TEST

/* An origin and a target with flow control. The origin's message asks for its answer itself where
 * all before it is acknowledged, as completion.h and the small operations have it; the target
 * handles messages late and in any order. A flush now and then is answered by message, which may be
 * late as well, and the origin looks when it likes, but always before it sends. No answer may be
 * written over another that has not been taken, and in the end all is acknowledged. */
enum { MESSAGES = 40 };

typedef struct model {
    nicstride_tx_t tx;
    nicstride_rx_t rx;
    nicstride_reply_line_t slot;
    uint64_t seen;
    uint64_t waiting[MESSAGES]; /* counts of the messages that the target has not handled */
    unsigned waits;
    uint64_t told; /* by the last acknowledgement by message; the origin has not heard of it */
    unsigned in_slot;
} model_t;

static void model_look(model_t *m)
{
    if (nicstride_reply_line_look(&m->slot, &m->seen))
        nicstride_tx_ack(&m->tx, m->seen, 0);
}

static void model_hear(model_t *m)
{
    nicstride_tx_ack(&m->tx, m->told, 0);
}

static void model_send(model_t *m)
{
    uint64_t asked = 0;

    model_look(m);
    if (m->waits == MESSAGES)
        return;
    if (nicstride_tx_idle(&m->tx))
        asked = m->tx.asked = m->tx.sent + 1;
    nicstride_tx_send(&m->tx);
    m->waiting[m->waits++] = asked;
}

static void model_handle(model_t *m, unit_random_t *r)
{
    const unsigned which = (unsigned)unit_below(r, m->waits);
    const uint64_t asked = m->waiting[which];
    uint64_t applied = 0;
    int error;

    m->waiting[which] = m->waiting[--m->waits];
    /* Others that overtook it may have brought the count there already. */
    if (asked != 0 && nicstride_rx_flush(&m->rx, asked))
        nicstride_rx_ack(&m->rx, &m->told, &error);
    if (nicstride_rx_applied(&m->rx, 0))
        nicstride_rx_ack(&m->rx, &applied, &error);
    if (nicstride_reply_line_takes(asked, applied, 0)) {
        UNIT_CHECK(m->slot.applied == m->seen);
        nicstride_reply_line_answer(&m->slot, applied, 0, NULL, 0);
        m->in_slot++;
    } else if (applied != 0) {
        m->told = applied;
    }
}

static void model_flush(model_t *m)
{
    uint64_t upto;
    int error;

    if (!nicstride_tx_ask(&m->tx, &upto))
        return;
    UNIT_CHECK(nicstride_rx_flush(&m->rx, upto));
    nicstride_rx_ack(&m->rx, &m->told, &error);
    model_hear(m);
}

START_TEST(one_under_way)
{
    unit_random_t r = {unit_seed()};
    unsigned in_slots = 0;

    for (int round = 0; round < 2000; round++) {
        model_t m = {.waits = 0};

        for (int step = 0; step < 300; step++) {
            switch (unit_below(&r, 6)) {
            case 0:
            case 1:
                model_send(&m);
                break;
            case 2:
                model_hear(&m);
                break;
            case 3:
                model_look(&m);
                if (m.waits == 0 && unit_once_in(&r, 4))
                    model_flush(&m);
                break;
            default:
                if (m.waits > 0)
                    model_handle(&m, &r);
            }
        }
        while (m.waits > 0)
            model_handle(&m, &r);
        model_hear(&m);
        model_look(&m);
        /* What is left is for a flush to ask for. */
        UNIT_CHECK(m.rx.applied == m.tx.sent);
        model_flush(&m);
        UNIT_CHECK(nicstride_tx_idle(&m.tx));
        in_slots += m.in_slot;
    }
    ck_assert_uint_gt(in_slots, 2000);
}
END_TEST

START_TEST(what_it_takes)
{
    ck_assert(nicstride_reply_line_takes(1, 1, 0));
    ck_assert(nicstride_reply_line_takes(5, 7, NICSTRIDE_REPLY_LINE_DATA));
    ck_assert(!nicstride_reply_line_takes(5, 7, NICSTRIDE_REPLY_LINE_DATA + 1));
    ck_assert(!nicstride_reply_line_takes(0, 7, 8));
    ck_assert(!nicstride_reply_line_takes(5, 0, 8));
    ck_assert_int_eq(nicstride_reply_line_count(1), 0);
    ck_assert_int_eq(nicstride_reply_line_count(2), 2);
    ck_assert_int_eq(nicstride_reply_line_count(NICSTRIDE_REPLY_LINE_PROCESSES),
                     NICSTRIDE_REPLY_LINE_PROCESSES);
    ck_assert_int_eq(nicstride_reply_line_count(NICSTRIDE_REPLY_LINE_PROCESSES + 1), 0);
}
END_TEST

int main(void)
{
    return UNIT_RUN("slot", UNIT_ONCE(handle_words), UNIT_ONCE(between_two_threads),
                    UNIT_ONCE(one_under_way), UNIT_ONCE(what_it_takes));
}
