/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What a process tells of itself: what is written is read, and nothing else is. */
#define _GNU_SOURCE
#include "common/transport/row/address.h"

#include <string.h>

#include "test/unit/unit.h"

enum { UCX_MAX = 300, ROOM = 1024 };

static unsigned char ucx[UCX_MAX];

static void random_bytes(unit_random_t *r, void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((unsigned char *)bytes)[i] = (unsigned char)unit_random64(r);
}

static onic_address_t any_address(unit_random_t *r)
{
    onic_address_t a = {.ucx = ucx, .ucx_len = 1 + unit_below(r, UCX_MAX)};

    random_bytes(r, ucx, a.ucx_len);
    random_bytes(r, &a.cma_id, sizeof(a.cma_id));
    memset(a.cma_id.host, 0, sizeof(a.cma_id.host));
    memset(a.cma_id.host, 'x', unit_below(r, sizeof(a.cma_id.host)));
    random_bytes(r, &a.queues, sizeof(a.queues));
    a.queues.name[unit_below(r, sizeof(a.queues.name))] = '\0';
    a.name = unit_random64(r);
    a.credit = unit_random64(r);
    return a;
}

static bool same(const onic_address_t *a, const onic_address_t *b)
{
    return a->name == b->name && a->credit == b->credit &&
           memcmp(&a->cma_id, &b->cma_id, sizeof(a->cma_id)) == 0 &&
           memcmp(&a->queues, &b->queues, sizeof(a->queues)) == 0 && a->ucx_len == b->ucx_len &&
           memcmp(a->ucx, b->ucx, a->ucx_len) == 0;
}

START_TEST(what_is_written_is_read)
{
    unit_random_t r = {unit_seed()};
    unsigned char bytes[ROOM];

    for (int round = 0; round < 5000; round++) {
        const onic_address_t a = any_address(&r);
        const size_t size = onic_address_size(&a);
        onic_address_t b;

        UNIT_CHECK(onic_address_write(&a, bytes, size) == size);
        UNIT_CHECK(onic_address_read(bytes, size, &b) && same(&a, &b));
        /* Where there is less room nothing is written. */
        memset(bytes, 0xEE, sizeof(bytes));
        UNIT_CHECK(onic_address_write(&a, bytes, unit_below(&r, size)) == 0 && bytes[0] == 0xEE);
    }
}
END_TEST

START_TEST(other_lengths_are_refused)
{
    unit_random_t r = {unit_seed()};
    unsigned char bytes[ROOM] = {0};
    const onic_address_t a = any_address(&r);
    const size_t size = onic_address_write(&a, bytes, sizeof(bytes));
    onic_address_t b;

    for (size_t len = 0; len <= sizeof(bytes); len++)
        UNIT_CHECK(onic_address_read(bytes, len, &b) == (len == size));
}
END_TEST

/** Another version's begin with other bytes. */
START_TEST(other_versions_are_refused)
{
    unit_random_t r = {unit_seed()};
    unsigned char bytes[ROOM];
    const onic_address_t a = any_address(&r);
    const size_t size = onic_address_write(&a, bytes, sizeof(bytes));
    onic_address_t b;

    for (int bit = 0; bit < 64; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        UNIT_CHECK(!onic_address_read(bytes, size, &b));
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    UNIT_CHECK(onic_address_read(bytes, size, &b));
}
END_TEST

/** The name of a file ends within its bytes, and the address of UCX is not empty. */
START_TEST(malformed_ones_are_neither_written_nor_read)
{
    unit_random_t r = {unit_seed()};
    unsigned char bytes[ROOM];
    onic_address_t a = any_address(&r), b;
    const size_t size = onic_address_write(&a, bytes, sizeof(bytes));
    unsigned char *name =
        memmem(bytes, size, a.queues.name, strnlen(a.queues.name, sizeof(a.queues.name)) + 1);

    UNIT_CHECK(name != NULL);
    memset(name, 'x', sizeof(a.queues.name));
    UNIT_CHECK(!onic_address_read(bytes, size, &b));
    memset(a.queues.name, 'x', sizeof(a.queues.name));
    UNIT_CHECK(onic_address_write(&a, bytes, sizeof(bytes)) == 0);
    a.queues.name[0] = '\0';
    a.ucx_len = 0;
    UNIT_CHECK(onic_address_write(&a, bytes, sizeof(bytes)) == 0);
}
END_TEST

int main(void)
{
    return UNIT_RUN("address", UNIT_ONCE(what_is_written_is_read),
                    UNIT_ONCE(other_lengths_are_refused), UNIT_ONCE(other_versions_are_refused),
                    UNIT_ONCE(malformed_ones_are_neither_written_nor_read));
}
