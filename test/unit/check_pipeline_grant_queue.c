/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The queue of requests for buffers: who has fewest is next, so nobody starves, whatever
 *  others hold. */
#include <string.h>

#include "common/pipeline/core/grant_queue.h"
#include "test/unit/unit.h"

#define ASKERS 6
#define ALL    (ASKERS * ONIC_GRANT_REQUESTS_MAX)

static onic_grant_queue_t queue;
static onic_asker_t askers[ASKERS];
static onic_grant_request_t requests[ALL];

static void begin(void)
{
    memset(&queue, 0, sizeof(queue));
    memset(askers, 0, sizeof(askers));
    memset(requests, 0, sizeof(requests));
}

static bool waits(const onic_grant_request_t *request)
{
    const onic_grant_request_t *r = queue.first;

    while (r != NULL && r != request)
        r = r->next;
    return r != NULL;
}

/* Random requests, buffers, grants and losses, against the rule said naively. */
START_TEST(random_turns)
{
    unit_random_t r = {unit_seed() + (uint64_t)_i};
    unsigned long came[ALL] = {0}, clock = 0;

    begin();
    for (int step = 0; step < 20000; step++) {
        const unsigned i = (unsigned)unit_below(&r, ASKERS);
        onic_grant_request_t *some = &requests[unit_below(&r, ALL)], *best = NULL;

        askers[i].held = unit_below(&r, 2) != 0 ? unit_below(&r, 64) : 0;
        if (unit_once_in(&r, 300)) {
            onic_grant_queue_lose(&queue, &askers[i]);
            for (unsigned k = 0; k < ALL; k++)
                if (requests[k].asker == &askers[i])
                    came[k] = 0;
        } else if (unit_below(&r, 3) != 0 && came[some - requests] == 0) {
            onic_grant_queue_add(&queue, some, &askers[i], 1 + i);
            came[some - requests] = ++clock;
        }
        for (unsigned k = 0; k < ALL; k++) {
            if (came[k] == 0)
                continue;
            const int held = __builtin_popcountll(requests[k].asker->held);
            const int least = best != NULL ? __builtin_popcountll(best->asker->held) : 65;
            if (held < least || (held == least && came[k] < came[best - requests]))
                best = &requests[k];
        }
        ck_assert_ptr_eq(onic_grant_queue_next(&queue), best);
        if (best != NULL && unit_below(&r, 3) == 0) {
            onic_grant_queue_remove(&queue, best);
            came[best - requests] = 0;
            ck_assert(!waits(best));
        }
    }
}
END_TEST

int main(void)
{
    return UNIT_RUN("pipeline grant queue", UNIT_LOOP(random_turns, 0, 8));
}
