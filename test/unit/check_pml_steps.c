/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The work of matching when very much waits: counted in steps, which must be few for each message,
 * whatever the order.
 */
#include "pml_superpipe/matching/comm.h"
#include "common/transport/row/credit.h"

#include <stdlib.h>
#include <string.h>

#include "test/unit/unit.h"

enum {
    MANY = 100000,
    /* For each message or receive: put in and found in up to four places, tables that grow. */
    STEPS = 16,
    PAYLOAD = 1000,
    WINDOW = 1 << 20
};

static superpipe_match_t match;
static superpipe_message_t message[MANY];
static superpipe_receive_t receive[MANY];

static uint64_t steps(void)
{
    return match.posted.steps + match.unexpected.steps;
}

static void begin(void)
{
    superpipe_match_init(&match);
    memset(message, 0, sizeof(message));
    memset(receive, 0, sizeof(receive));
}

static void end(void)
{
    ck_assert_uint_lt(steps(), (uint64_t)STEPS * MANY);
    ck_assert_uint_eq(match.nunexpected, 0);
    ck_assert_uint_eq(match.posted.keys + match.unexpected.keys, 0);
    superpipe_match_fini(&match);
}

/** Makes message i and hands it over; returns its receive, or NULL where it is kept. */
static superpipe_receive_t *arrive(uint32_t i, int32_t source, int32_t tag)
{
    superpipe_receive_t *got = superpipe_match_message(&match, source, tag);

    message[i].source = source;
    message[i].tag = tag;
    if (got == NULL)
        superpipe_match_keep(&match, &message[i]);
    return got;
}

/* ---- one message after another --------------------------------------------------------------- */

/** Everything that needs more than a source and a tag, once. */
static void use_wildcards(void)
{
    for (int way = 0; way < 4; way++) {
        UNIT_CHECK(superpipe_match_post(&match, &receive[0], way & 1 ? 0 : -1, way & 2 ? 0 : -1) ==
                   NULL);
        UNIT_CHECK(superpipe_match_cancel(&match, &receive[0]));
    }
    for (uint32_t i = 0; i < 3; i++)
        UNIT_CHECK(!arrive(i, (int32_t)i, (int32_t)i));
    UNIT_CHECK(superpipe_match_post(&match, receive, SUPERPIPE_ANY_SOURCE, 2) == &message[2]);
    UNIT_CHECK(superpipe_match_post(&match, receive, 1, SUPERPIPE_ANY_TAG) == &message[1]);
    UNIT_CHECK(superpipe_match_post(&match, receive, 0, 0) == &message[0]);
}

/* The common case looks in one place to enter, in one to find; wildcards that are over leave no
 * trace. */
START_TEST(common_case)
{
    begin();
    use_wildcards();
    const uint64_t before = steps();
    for (uint32_t i = 0; i < MANY / 2; i++) {
        UNIT_CHECK(superpipe_match_post(&match, &receive[i], 3, (int32_t)i) == NULL);
        UNIT_CHECK(arrive(i, 3, (int32_t)i) == &receive[i]);
    }
    ck_assert_uint_le(steps() - before, 3 * (MANY / 2));
    for (uint32_t i = MANY / 2; i < MANY; i++) {
        UNIT_CHECK(!arrive(i, 3, (int32_t)i));
        UNIT_CHECK(superpipe_match_post(&match, &receive[i], 3, (int32_t)i) == &message[i]);
    }
    ck_assert_uint_le(steps() - before, 3 * (MANY / 2) + MANY / 2);
    end();
}
END_TEST

/* ---- messages wait, receives come in reverse order ------------------------------------------- */

enum { WAYS = 4 };

/** By source and tag, by tag, by source (each message has its own), by anything. */
static void post_for(int way, uint32_t i)
{
    const superpipe_message_t *m = &message[i];
    const superpipe_message_t *got = superpipe_match_post(
        &match, &receive[i], way == 1 || way == 3 ? SUPERPIPE_ANY_SOURCE : m->source,
        way == 2 || way == 3 ? SUPERPIPE_ANY_TAG : m->tag);

    UNIT_CHECK(way == 3 ? got == &message[MANY - 1 - i] : got == m);
}

/* From one source with a tag each, or from a source each. */
START_TEST(unexpected_in_reverse)
{
    const bool by_source = _i == 2;

    begin();
    for (uint32_t i = 0; i < MANY; i++)
        UNIT_CHECK(!arrive(i, by_source ? (int32_t)i : 0, (int32_t)i));
    for (uint32_t i = MANY; i-- > 0;)
        post_for(_i, i);
    end();
}
END_TEST

/* Receives of every kind in turn over messages that wait: the indices are kept up. */
START_TEST(unexpected_by_turns)
{
    begin();
    for (uint32_t i = 0; i < MANY; i++)
        UNIT_CHECK(!arrive(i, (int32_t)i, (int32_t)i));
    for (uint32_t i = MANY; i-- > 0;)
        post_for((int)(i % 3), i);
    end();
}
END_TEST

/* ---- receives wait, messages come in reverse order ------------------------------------------- */

START_TEST(posted_in_reverse)
{
    begin();
    for (uint32_t i = 0; i < MANY; i++) {
        const int32_t source = _i == 1 ? SUPERPIPE_ANY_SOURCE : (int32_t)i;
        const int32_t tag = _i == 2 ? SUPERPIPE_ANY_TAG : (int32_t)i;
        UNIT_CHECK(superpipe_match_post(&match, &receive[i], source, tag) == NULL);
    }
    for (uint32_t i = MANY; i-- > 0;)
        UNIT_CHECK(arrive(i, (int32_t)i, (int32_t)i) == &receive[i]);
    end();
}
END_TEST

/* All of the same source and tag, and taken back in an order of no kind. */
START_TEST(cancelled)
{
    uint32_t i = 0;

    begin();
    for (uint32_t k = 0; k < MANY; k++)
        UNIT_CHECK(superpipe_match_post(&match, &receive[k], 0, 5) == NULL);
    const uint64_t before = steps();
    for (uint32_t k = 0; k < MANY; k++) {
        UNIT_CHECK(superpipe_match_cancel(&match, &receive[i]));
        i = (i + 61803) % MANY;
    }
    ck_assert_uint_eq(steps(), before);
    end();
}
END_TEST

/* Before the communicator exists; then it is removed with all of them. */
START_TEST(parked_and_discarded)
{
    superpipe_comms_t comms = {.n = 0};
    superpipe_message_t *m, *from;
    uint32_t n = 0;

    begin();
    TAILQ_INIT(&comms.parked);
    for (uint32_t i = 0; i < MANY; i++) {
        message[i].context = i % 2;
        message[i].tag = i % 3 == 0 ? -7 : 7;
        TAILQ_INSERT_TAIL(&comms.parked, &message[i], of_list);
    }
    from = TAILQ_FIRST(&comms.parked);
    for (; (m = superpipe_comms_unpark(&comms, 1, &from)) != NULL; n++) {
        UNIT_CHECK(m == &message[2 * n + 1]);
        superpipe_match_keep(&match, m);
    }
    ck_assert_uint_eq(n, MANY / 2);
    for (; (m = superpipe_match_discard(&match)) != NULL; n--)
        UNIT_CHECK(m->context == 1);
    ck_assert_uint_eq(n, 0);
    TAILQ_FOREACH(m, &comms.parked, of_list)
        UNIT_CHECK(m == &message[2 * n++]);
    ck_assert_uint_eq(n, MANY / 2);
    end();
}
END_TEST

/* Many communicators are found, each by its context. */
START_TEST(communicators)
{
    enum { COMMS = 14000 };
    superpipe_comm_t *all = calloc(COMMS, sizeof(*all)), *c = NULL;
    superpipe_comms_t comms = {.n = 0};
    uint32_t n = 0;

    UNIT_CHECK(all != NULL);
    for (uint32_t i = 0; i < COMMS; i++) {
        all[i].context = i;
        UNIT_CHECK(superpipe_comms_add(&comms, &all[i]) == 0);
    }
    while ((c = superpipe_comms_next(&comms, c)) != NULL)
        n++;
    ck_assert_uint_eq(n, COMMS);
    for (uint32_t i = 0; i < COMMS; i++)
        UNIT_CHECK(superpipe_comms_find(&comms, i) == &all[i]);
    UNIT_CHECK(superpipe_comms_find(&comms, UINT32_MAX) == NULL);
    free(comms.known);
    free(all);
}
END_TEST

/* A communicator that goes takes its receives with it. */
START_TEST(abandoned)
{
    size_t cursor = 0;
    uint32_t n = 0;

    begin();
    for (uint32_t i = 0; i < MANY; i++)
        UNIT_CHECK(!superpipe_match_post(&match, &receive[i], (int32_t)(i / 2), (int32_t)i));
    while (superpipe_match_abandon(&match, SUPERPIPE_ALL_RECEIVES, &cursor) != NULL)
        n++;
    ck_assert_uint_eq(n, MANY);
    end();
}
END_TEST

/* ---- with credit ----------------------------------------------------------------------------- */

static bool has_payload[MANY];

/** A message that the sender has credit for takes its payload along. */
static void send_one(onic_credit_t *credit, onic_credit_user_t *sender, uint32_t i, int32_t tag)
{
    has_payload[i] = onic_credit_take(credit, PAYLOAD, ONIC_CREDIT_FLOOR);
    UNIT_CHECK(!arrive(i, 0, tag));
    sender->arrived += has_payload[i] ? PAYLOAD : 0;
}

/* Isends of one process, all of them before the first receive, which are in reverse order: bounded
 * payload, every header, few steps, and afterwards there is credit again. */
START_TEST(sends_in_reverse)
{
    onic_credit_t credit = {.limit = WINDOW};
    onic_credit_user_t sender = {.window = WINDOW, .told = WINDOW};
    uint64_t with_payload = 0;

    begin();
    for (uint32_t i = 0; i < MANY; i++) {
        send_one(&credit, &sender, i, i % 10 == 9 ? -(int32_t)i : (int32_t)i);
        with_payload += has_payload[i];
    }
    ck_assert_uint_eq(with_payload, (WINDOW - ONIC_CREDIT_FLOOR) / PAYLOAD);
    for (uint32_t i = MANY; i-- > 0;) {
        post_for(0, i);
        if (has_payload[i] && onic_credit_freed(&sender, PAYLOAD))
            onic_credit_raise(&credit, onic_credit_limit(&sender));
    }
    UNIT_CHECK(onic_credit_take(&credit, (WINDOW - ONIC_CREDIT_FLOOR) / 2, ONIC_CREDIT_FLOOR));
    end();
}
END_TEST

int main(void)
{
    return UNIT_RUN("pml steps", UNIT_LOOP(unexpected_in_reverse, 0, WAYS),
                    UNIT_LOOP(posted_in_reverse, 0, 3), UNIT_ONCE(communicators),
                    UNIT_ONCE(common_case), UNIT_ONCE(unexpected_by_turns), UNIT_ONCE(cancelled),
                    UNIT_ONCE(parked_and_discarded), UNIT_ONCE(abandoned),
                    UNIT_ONCE(sends_in_reverse));
}
