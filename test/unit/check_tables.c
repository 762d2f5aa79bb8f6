/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What a window and the addresses of its processes take up in jobs of 1,000 and 10,000 processes,
 * 64 on each node, and how many processes are looked up for it: printed, and bounded.
 */
#include <stdio.h>

#include "common/support/collective.h"
#include "common/transport/row/address.h"
#include "osc_nicstride/protocol/fence.h"
#include "osc_nicstride/protocol/lockq.h"
#include "osc_nicstride/window/place.h"
#include "test/unit/unit.h"

enum { LOCAL = 64, UCX = 400, EXCHANGES = 3 };

static unsigned rounds(unsigned n)
{
    unsigned steps = 0;

    while (1u << steps < n)
        steps++;
    return steps;
}

/* A window keeps 10 bytes for each rank, and the share of one process in what its node keeps.
 * Addresses are kept once for each node. */
START_TEST(tables_are_small)
{
    const unsigned sizes[] = {1000, 10000}, ranks = sizes[_i];
    const unsigned nodes = (ranks + LOCAL - 1) / LOCAL;
    const onic_address_t address = {.ucx_len = UCX};
    /* Of a rank its peer and its epoch, of a node its first rank. */
    const double own = sizeof(void *) + 1 + (double)sizeof(int) * nodes / ranks +
                       (double)sizeof(nicstride_rank_info_t) / LOCAL;
    const double queue = (double)nicstride_lockq_size(ranks) / ranks;
    const double table = (double)onic_address_row_bytes(onic_address_size(&address)) / LOCAL;

    printf(
        "%u processes, %d on each node: a window takes %.2f bytes for each rank, and %.2f of its "
        "lock; addresses %.1f bytes for each process and its share\n",
        ranks, LOCAL, own, queue, table);
    printf("%u processes: a window takes %d collectives of %u rounds and 3 messages on the node, "
           "a fence %u messages between nodes\n",
           ranks, EXCHANGES, rounds(ranks), rounds(nodes));
    UNIT_CHECK(own <= 11);
    UNIT_CHECK(table <= 20);
}
END_TEST

/* Two ranks next to each other in the tree know that of each other, and all hang together. */
START_TEST(few_are_looked_up)
{
    const int sizes[] = {1, 2, 5, 1000, 10000}, ranks = sizes[_i];
    int most = 0, sum = 0;

    for (int r = 0; r < ranks; r++) {
        int n = r > 0;

        UNIT_CHECK(r == 0 || (onic_tree_above(r) >= 0 && onic_tree_above(r) < r));
        for (int i = 0; i < ONIC_BRANCHES && onic_tree_below(r, i) < ranks; i++, n++)
            UNIT_CHECK(onic_tree_above(onic_tree_below(r, i)) == r);
        most = n > most ? n : most;
        sum += n;
    }
    printf("%d processes: one looks up %d others at most before a window\n", ranks, most);
    UNIT_CHECK(most <= ONIC_BRANCHES + 1);
    UNIT_CHECK(sum == 2 * (ranks - 1));
}
END_TEST

int main(void)
{
    return UNIT_RUN("tables", UNIT_LOOP(tables_are_small, 0, 2),
                    UNIT_LOOP(few_are_looked_up, 0, 5));
}
