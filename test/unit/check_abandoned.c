/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Requests to a process that is gone: their callers are told once, and what the row still
 *  has of them keeps no server thread at work. */
#include "common/transport/row/row.h"
#include "test/unit/unit.h"

static int told;

static void failed(void *arg, int status)
{
    (void)arg;
    UNIT_CHECK(status < 0);
    told++;
}

START_TEST(told_once_and_not_counted)
{
    onic_peer_t *peer = calloc(1, sizeof(*peer));
    onic_request_t *sent, *late;

    onic_requests_start();
    sent = onic_request_get(peer, failed, NULL, 0);
    late = onic_request_get(peer, failed, NULL, 400);
    sent->starting = late->starting = false;
    onic_requests_abandon();
    ck_assert_uint_eq(onic_requests.out, 2);
    peer->gone = true;
    onic_requests_abandon();
    onic_requests_abandon();
    ck_assert_int_eq(told, 2);
    ck_assert_uint_eq(onic_requests.out, 0);

    /* The row completes one after all, and another request takes its place. */
    onic_request_done(late, 0);
    ck_assert_int_eq(onic_requests_progress(), 1);
    ck_assert_ptr_eq(onic_request_get(NULL, failed, NULL, 0), late);
    ck_assert_uint_eq(onic_requests.out, 1);
    onic_requests_stop();
    ck_assert_uint_eq(onic_requests.out, 0);
    ck_assert_int_eq(told, 2);
    free(peer);
}
END_TEST

int main(void)
{
    return UNIT_RUN("abandoned requests", UNIT_ONCE(told_once_and_not_counted));
}
