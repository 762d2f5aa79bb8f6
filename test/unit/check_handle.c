/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Handles: what is alive is found, what is gone or was never there is not. */
#include "common/support/handle.h"

#include "test/unit/unit.h"

#define MAX_LIVE 300
#define MAX_DEAD 2000

static uint64_t slot_of(uint64_t handle)
{
    return handle & UINT32_MAX;
}

/* Random use beside a plain list of what is alive; dead handles stay dead. */
START_TEST(random_use)
{
    unit_random_t r = {unit_seed()};
    onic_handles_t t = {0};
    static char object[MAX_LIVE];
    static uint64_t live[MAX_LIVE], dead[MAX_DEAD];
    size_t ndead = 0;

    for (int step = 0; step < 200000; step++) {
        const size_t i = unit_below(&r, MAX_LIVE);
        if (live[i] == 0) {
            live[i] = onic_handle_new(&t, &object[i]);
            UNIT_CHECK(live[i] != 0);
        } else if (unit_once_in(&r, 2)) {
            UNIT_CHECK(onic_handle_free(&t, live[i]) == &object[i]);
            UNIT_CHECK(onic_handle_free(&t, live[i]) == NULL);
            dead[ndead++ % MAX_DEAD] = live[i];
            live[i] = 0;
        } else {
            UNIT_CHECK(onic_handle_get(&t, live[i]) == &object[i]);
        }
        if (ndead > 0) {
            const size_t n = ndead < MAX_DEAD ? ndead : MAX_DEAD;
            UNIT_CHECK(onic_handle_get(&t, dead[unit_below(&r, n)]) == NULL);
        }
    }
    ck_assert_uint_le(t.n, 2 * MAX_LIVE);
    onic_handles_fini(&t);
    ck_assert_uint_eq(t.n, 0);
    ck_assert_ptr_null(onic_handle_get(&t, live[0] | 1));
}
END_TEST

/* And every slot is used before there are more. */
START_TEST(live_handles_differ)
{
    onic_handles_t t = {0};
    static uint64_t handle[5000];
    static char object[5000];

    for (uint32_t i = 0; i < 5000; i++) {
        const uint32_t n = t.n;
        handle[i] = onic_handle_new(&t, &object[i]);
        UNIT_CHECK(t.n == n || i == n);
    }
    for (int i = 0; i < 5000; i++)
        UNIT_CHECK(onic_handle_free(&t, handle[i]) == &object[i]);
    onic_handles_fini(&t);
}
END_TEST

START_TEST(other_handles)
{
    unit_random_t r = {unit_seed()};
    onic_handles_t t = {0};
    int object;

    ck_assert_ptr_null(onic_handle_get(&t, 0));
    ck_assert_ptr_null(onic_handle_free(&t, UINT64_MAX));
    ck_assert_uint_eq(onic_handle_new(&t, NULL), 0);

    const uint64_t good = onic_handle_new(&t, &object);
    for (int i = 0; i < 100000; i++) {
        uint64_t other = unit_random64(&r);
        if (unit_once_in(&r, 2))
            other = good ^ 1ull << unit_below(&r, 64);
        if (other == good)
            continue;
        UNIT_CHECK(onic_handle_get(&t, other) == NULL);
        UNIT_CHECK(onic_handle_free(&t, other) == NULL);
    }
    ck_assert_ptr_null(onic_handle_get(&t, 0));
    ck_assert_ptr_null(onic_handle_get(&t, slot_of(good)));

    /* The handle that the slot will have next does not work before it is given. */
    ck_assert_ptr_eq(onic_handle_free(&t, good), &object);
    ck_assert_ptr_null(onic_handle_get(&t, good + (1ull << 32)));
    onic_handles_fini(&t);
}
END_TEST

/* Before its generation is too long for its place in a message it begins anew, at 1: never a
 * handle of 0. */
START_TEST(generation_wraps_past_zero)
{
    onic_handles_t t = {0};
    int object;
    uint64_t handle = onic_handle_new(&t, &object);
    const uint64_t slot = slot_of(handle);

    ck_assert_ptr_eq(onic_handle_free(&t, handle), &object);
    t.slot[slot].generation = ONIC_GENERATION_MAX - 1;
    handle = onic_handle_new(&t, &object);
    ck_assert_ptr_eq(onic_handle_free(&t, handle), &object);
    handle = onic_handle_new(&t, &object);
    ck_assert_uint_eq(handle, (uint64_t)ONIC_GENERATION_MAX << 32 | slot);
    ck_assert_ptr_eq(onic_handle_free(&t, handle), &object);
    ck_assert_ptr_null(onic_handle_get(&t, handle));
    ck_assert_ptr_null(onic_handle_get(&t, slot));
    handle = onic_handle_new(&t, &object);
    ck_assert_uint_eq(handle, 1ull << 32 | slot);
    ck_assert_ptr_eq(onic_handle_get(&t, handle), &object);
    onic_handles_fini(&t);
}
END_TEST

int main(void)
{
    return UNIT_RUN("handle", UNIT_ONCE(random_use), UNIT_ONCE(live_handles_differ),
                    UNIT_ONCE(other_handles), UNIT_ONCE(generation_wraps_past_zero));
}
