/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Single cases of matching in a communicator; check_pml_match has the random ones. */
#include "pml_superpipe/matching/comm.h"

#include "test/unit/unit.h"

static superpipe_comm_t c;
static superpipe_receive_t *receive;

static superpipe_arrival_t arrive(int32_t source, int32_t tag, uint32_t sequence)
{
    receive = NULL;
    return superpipe_comm_arrive(&c, source, tag, sequence, &receive);
}

static bool post(superpipe_receive_t *r, int32_t source, int32_t tag)
{
    return superpipe_match_post(&c.match, r, source, tag) == NULL;
}

/* Numbers begin at 0 on both sides and go round. */
START_TEST(numbers_go_round)
{
    superpipe_receive_t any = {.stamp = 0};

    UNIT_CHECK(superpipe_comm_init(&c, 7, 2) == 0);
    ck_assert_uint_eq(c.sent[1]++, 0);
    ck_assert_uint_eq(c.sent[1]++, 1);
    ck_assert_uint_eq(c.sent[0]++, 0);
    ck_assert_uint_eq(c.expected[0] | c.expected[1], 0);
    c.sent[1] = c.expected[1] = UINT32_MAX;
    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t number = c.sent[1]++;
        ck_assert_uint_eq(number, UINT32_MAX + i);
        UNIT_CHECK(post(&any, SUPERPIPE_ANY_SOURCE, 3));
        UNIT_CHECK(arrive(1, 3, number) == SUPERPIPE_MATCHED && receive == &any);
    }
    superpipe_comm_fini(&c);
}
END_TEST

/* A rank that is not there changes nothing. */
START_TEST(ranks)
{
    superpipe_receive_t any = {.stamp = 0};
    superpipe_message_t early = {.source = 1, .tag = 4, .sequence = 102};

    UNIT_CHECK(superpipe_comm_init(&c, 7, 2) == 0);
    c.expected[1] = 100;
    UNIT_CHECK(post(&any, SUPERPIPE_ANY_SOURCE, SUPERPIPE_ANY_TAG));
    UNIT_CHECK(arrive(1, 4, 102) == SUPERPIPE_WAITS);
    superpipe_comm_keep(&c, &early);
    for (int i = 0; i < 2; i++) {
        UNIT_CHECK(arrive(2, 4, 0) == SUPERPIPE_REFUSED);
        UNIT_CHECK(arrive(-1, 4, 0) == SUPERPIPE_REFUSED);
        UNIT_CHECK(arrive(INT32_MIN, 4, 0) == SUPERPIPE_REFUSED);
    }
    UNIT_CHECK(superpipe_comm_next(&c, 1, &receive) == NULL);
    UNIT_CHECK(arrive(1, 4, 100) == SUPERPIPE_MATCHED && receive == &any);
    UNIT_CHECK(superpipe_comm_discard(&c) == &early && superpipe_comm_discard(&c) == NULL);
    superpipe_comm_fini(&c);
}
END_TEST

/* A message for which there was no memory is found as it was: nothing has been counted. */
START_TEST(asked_twice)
{
    superpipe_receive_t r = {.stamp = 0};
    superpipe_message_t m = {.source = 0, .tag = -3};

    UNIT_CHECK(superpipe_comm_init(&c, 7, 1) == 0);
    UNIT_CHECK(arrive(0, -3, 0) == SUPERPIPE_WAITS && arrive(0, -3, 0) == SUPERPIPE_WAITS);
    superpipe_comm_keep(&c, &m);
    UNIT_CHECK(post(&r, SUPERPIPE_ANY_SOURCE, SUPERPIPE_ANY_TAG));
    UNIT_CHECK(superpipe_match_cancel(&c.match, &r));
    UNIT_CHECK(superpipe_match_probe(&c.match, SUPERPIPE_ANY_SOURCE, -3) == &m);
    superpipe_match_take(&c.match, &m);
    UNIT_CHECK(superpipe_match_probe(&c.match, 0, -3) == NULL);
    superpipe_comm_fini(&c);
}
END_TEST

/* Of four receives that match, one of each class, the one posted first gets the message. */
START_TEST(earliest_of_four)
{
    superpipe_receive_t r[4] = {{.stamp = 0}};

    for (int first = 0; first < 4; first++) {
        UNIT_CHECK(superpipe_comm_init(&c, 7, 3) == 0);
        for (int k = 0; k < 4; k++) {
            const int i = (first + k) % 4;
            UNIT_CHECK(
                post(&r[i], i & 1 ? SUPERPIPE_ANY_SOURCE : 2, i & 2 ? SUPERPIPE_ANY_TAG : 5));
        }
        for (uint32_t k = 0; k < 4; k++)
            UNIT_CHECK(arrive(2, 5, k) == SUPERPIPE_MATCHED &&
                       receive == &r[((uint32_t)first + k) % 4]);
        superpipe_comm_fini(&c);
    }
}
END_TEST

int main(void)
{
    return UNIT_RUN("pml comm", UNIT_ONCE(numbers_go_round), UNIT_ONCE(ranks),
                    UNIT_ONCE(asked_twice), UNIT_ONCE(earliest_of_four));
}
