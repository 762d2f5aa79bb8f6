/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What components ask of the transport: nobody is worse off for the order in which they
 * come. */
#include "common/transport/row/requirements.h"

#include <stdio.h>
#include <string.h>

#include "test/unit/unit.h"

static onic_transport_config_t any_config(unit_random_t *r)
{
    static const char *const tls[] = {NULL, "", "tcp", "tcp,self", "posix,tcp"};

    return (onic_transport_config_t){.server_thread = unit_once_in(r, 2),
                                     .server_idle_usec = 1 + (unsigned)unit_below(r, 1000),
                                     .single_copy = unit_once_in(r, 2),
                                     .publish = unit_once_in(r, 2),
                                     .puts = unit_once_in(r, 2),
                                     .tls = tls[unit_below(r, 5)],
                                     .tcp_seg_size = unit_below(r, 4) * 4096};
}

static bool gives_transports(const onic_transport_config_t *c)
{
    return c->tls != NULL && *c->tls != '\0';
}

START_TEST(any_order)
{
    unit_random_t r = {unit_seed()};

    for (int round = 0; round < 20000; round++) {
        onic_requirements_t all = {.all = {0}};
        const int n = 1 + (int)unit_below(&r, 4);
        onic_transport_config_t sum = {0};
        unsigned idle = 0;

        for (int i = 0; i < n; i++) {
            const onic_transport_config_t c = any_config(&r);
            const bool same =
                !gives_transports(&c) || sum.tls == NULL || strcmp(sum.tls, c.tls) == 0;

            UNIT_CHECK(onic_requirements_add(&all, &c) == same);
            if (c.server_thread && (idle == 0 || c.server_idle_usec < idle))
                idle = c.server_idle_usec;
            sum.server_thread |= c.server_thread;
            sum.single_copy |= c.single_copy;
            sum.publish |= c.publish;
            sum.puts |= c.puts;
            if (sum.tcp_seg_size < c.tcp_seg_size)
                sum.tcp_seg_size = c.tcp_seg_size;
            if (sum.tls == NULL && gives_transports(&c))
                sum.tls = c.tls;
        }
        UNIT_CHECK(all.all.server_thread == sum.server_thread);
        UNIT_CHECK(all.all.server_idle_usec == idle);
        UNIT_CHECK(all.all.single_copy == sum.single_copy);
        UNIT_CHECK(all.all.publish == sum.publish);
        UNIT_CHECK(all.all.puts == sum.puts);
        UNIT_CHECK(all.all.tcp_seg_size == sum.tcp_seg_size);
        UNIT_CHECK((all.all.tls == NULL) == (sum.tls == NULL));
        UNIT_CHECK(sum.tls == NULL || strcmp(all.all.tls, sum.tls) == 0);
    }
}
END_TEST

/* What is given is copied; a list that does not fit is refused. */
START_TEST(long_lists)
{
    char list[2 * ONIC_TLS_MAX];
    onic_transport_config_t c = {.tls = list};
    onic_requirements_t all = {.all = {0}};

    memset(list, 'x', sizeof(list));
    list[ONIC_TLS_MAX] = '\0';
    UNIT_CHECK(!onic_requirements_add(&all, &c) && all.all.tls == NULL);
    list[ONIC_TLS_MAX - 1] = '\0';
    UNIT_CHECK(onic_requirements_add(&all, &c));
    list[0] = 'y';
    UNIT_CHECK(all.all.tls != NULL && all.all.tls[0] == 'x' &&
               strlen(all.all.tls) == ONIC_TLS_MAX - 1);
}
END_TEST

int main(void)
{
    return UNIT_RUN("requirements", UNIT_ONCE(any_order), UNIT_ONCE(long_lists));
}
