/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What components ask of the transport: nobody is worse off for the order in which they
 *  come. */
#include "common/transport/row/requirements.h"

#include <stdio.h>
#include "test/unit/unit.h"

static onic_transport_config_t any_config(unit_random_t *r)
{
    return (onic_transport_config_t){.server_thread = unit_once_in(r, 2),
                                     .server_idle_usec = 1 + (unsigned)unit_below(r, 1000),
                                     .single_copy = unit_once_in(r, 2),
                                     .publish = unit_once_in(r, 2),
                                     .puts = unit_once_in(r, 2),
                                     .queues = unit_below(r, 4) * 4096,
                                     .memory = unit_below(r, 4) * 65536};
}

START_TEST(any_order)
{
    unit_random_t r = {unit_seed()};

    for (int round = 0; round < 20000; round++) {
        onic_transport_config_t all = {0}, sum = {0};
        const int n = 1 + (int)unit_below(&r, 4);
        unsigned idle = 0;

        for (int i = 0; i < n; i++) {
            const onic_transport_config_t c = any_config(&r);

            onic_requirements_add(&all, &c);
            if (c.server_thread && (idle == 0 || c.server_idle_usec < idle))
                idle = c.server_idle_usec;
            sum.server_thread |= c.server_thread;
            sum.single_copy |= c.single_copy;
            sum.publish |= c.publish;
            sum.puts |= c.puts;
            if (sum.queues < c.queues)
                sum.queues = c.queues;
            if (sum.memory < c.memory)
                sum.memory = c.memory;
        }
        UNIT_CHECK(all.server_thread == sum.server_thread);
        UNIT_CHECK(all.server_idle_usec == idle);
        UNIT_CHECK(all.single_copy == sum.single_copy);
        UNIT_CHECK(all.publish == sum.publish);
        UNIT_CHECK(all.puts == sum.puts);
        UNIT_CHECK(all.queues == sum.queues && all.memory == sum.memory);
    }
}
END_TEST

int main(void)
{
    return UNIT_RUN("requirements", UNIT_ONCE(any_order));
}
