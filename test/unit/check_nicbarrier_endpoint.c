/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The parts of an endpoint record of engine datagram. */
#include "coll_nicbarrier/engines/datagram/endpoint.h"

#include "test/unit/unit.h"

START_TEST(parts)
{
    unit_random_t random = {unit_seed()};
    unsigned char bytes[NICBARRIER_ENDPOINT_HEAD + 2 * NICBARRIER_ENDPOINT_PART_MAX + 1];
    nicbarrier_parts_t p;

    for (int i = 0; i < 20000; i++) {
        uint32_t len[NICBARRIER_VIAS], whole = NICBARRIER_ENDPOINT_HEAD;
        for (int j = 0; j < NICBARRIER_VIAS; j++) {
            len[j] = (uint32_t)unit_below(
                &random, unit_once_in(&random, 3) ? 1 : NICBARRIER_ENDPOINT_PART_MAX + 1);
            whole += len[j];
        }
        UNIT_CHECK(nicbarrier_endpoint_head(len, bytes) == whole);
        UNIT_CHECK(nicbarrier_endpoint_split(bytes, whole, &p) == NULL);
        UNIT_CHECK(p.bytes[0] == bytes + NICBARRIER_ENDPOINT_HEAD);
        UNIT_CHECK(p.bytes[1] == p.bytes[0] + len[0]);
        UNIT_CHECK(p.len[0] == len[0] && p.len[1] == len[1]);
        UNIT_CHECK(nicbarrier_endpoint_split(bytes, whole + 1, &p) != NULL);
        UNIT_CHECK(nicbarrier_endpoint_split(bytes, unit_below(&random, whole), &p) != NULL);
        len[unit_below(&random, 2)] = NICBARRIER_ENDPOINT_PART_MAX + 1;
        UNIT_CHECK(nicbarrier_endpoint_split(bytes, nicbarrier_endpoint_head(len, bytes), &p) !=
                   NULL);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {parts};

    return unit_run("nicbarrier_endpoint", tests, sizeof(tests) / sizeof(tests[0]));
}
