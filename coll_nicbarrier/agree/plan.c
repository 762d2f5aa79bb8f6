/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coll_nicbarrier/agree/plan.h"

#include <string.h>

/** The first rank of a rank's node, or the rank itself if its first rank does not call itself
 *  first. */
static int32_t first_of(const nicbarrier_facts_t *all, int32_t rank)
{
    const int32_t first = all[rank].first;

    return first >= 0 && first < rank && all[first].first == first ? first : rank;
}

int32_t nicbarrier_limit(const nicbarrier_options_t *o, int32_t n, int32_t size)
{
    const bool by_network = o->engine > NICBARRIER_NODE_ENGINE;

    if (!by_network && (n == size || o->engine >= 0))
        return n;
    if (o->ppn > 0)
        return o->ppn < n ? o->ppn : n;
    /* If a network engine was asked for on a single node, it works between the processes of that
     * node. */
    return by_network && n == size ? 1 : n;
}

nicbarrier_processors_t nicbarrier_plan_processors(const nicbarrier_facts_t *all, int32_t size,
                                                   int32_t me, long online)
{
    int32_t n = 0;

    for (int32_t r = 0; r < size; r++)
        n += first_of(all, r) == first_of(all, me) &&
             all[r].processor_set == all[me].processor_set &&
             all[r].processors == all[me].processors;
    if (all[me].processors > 0 && n > all[me].processors)
        return NICBARRIER_CROWDED;
    return n == 1 && all[me].processors > 0 && all[me].processors < online ? NICBARRIER_OWN
                                                                           : NICBARRIER_SHARED;
}

static void add_leader(nicbarrier_plan_t *p, const nicbarrier_facts_t *facts, int32_t rank)
{
    p->rank[p->leaders++] = rank;
    for (int i = 0; i < NICBARRIER_ENGINES_MAX; i++)
        if (facts->score[i] < p->score[i])
            p->score[i] = facts->score[i];
}

nicbarrier_plan_t nicbarrier_plan(const nicbarrier_options_t *options,
                                  const nicbarrier_facts_t *all, int32_t size, int32_t me,
                                  int32_t *room)
{
    int32_t *members = room, *seen = room + size;
    nicbarrier_plan_t p = {
        .size = size, .first = first_of(all, me), .leader = -1, .rank = room + 2 * size};

    memset(p.score, UINT8_MAX, sizeof(p.score));
    memset(room, 0, 2 * (size_t)size * sizeof(*room));
    for (int32_t r = 0; r < size; r++)
        members[first_of(all, r)]++;
    p.n = members[p.first];
    p.limit = nicbarrier_limit(options, p.n, size);
    for (int32_t r = 0; r < size; r++) {
        const int32_t first = first_of(all, r), index = seen[first]++;
        const bool leads = index % nicbarrier_limit(options, members[first], size) == 0;
        if (r == me) {
            p.index = index;
            p.leader = leads ? p.leaders : -1;
        }
        if (leads)
            add_leader(&p, &all[r], r);
    }
    return p;
}

int32_t nicbarrier_plan_position(const nicbarrier_plan_t *plan, const nicbarrier_facts_t *all,
                                 int32_t me)
{
    int32_t index = 0, before = 0;

    for (int32_t r = 0; r < plan->size; r++) {
        if (first_of(all, r) != plan->first || index++ / plan->limit != plan->index / plan->limit)
            continue;
        before += all[r].place < all[me].place || (all[r].place == all[me].place && r < me);
    }
    return before;
}

int nicbarrier_choose(const nicbarrier_plan_t *plan, const nicbarrier_options_t *options)
{
    int engine = NICBARRIER_ANY_ENGINE;
    uint8_t best = 0;

    for (int i = 0; i < NICBARRIER_ENGINES_MAX; i++) {
        const bool asked = options->engine == NICBARRIER_ANY_ENGINE || options->engine == i;
        if (asked && plan->score[i] > best) {
            best = plan->score[i];
            engine = i;
        }
    }
    return engine;
}

static int add_partner(int32_t partner, int32_t *list, int n)
{
    for (int i = 0; i < n; i++)
        if (list[i] == partner)
            return n;
    if (partner == NICBARRIER_NOBODY)
        return n;
    list[n] = partner;
    return n + 1;
}

int nicbarrier_partners(const nicbarrier_group_t *group, int32_t partner[NICBARRIER_PARTNERS_MAX])
{
    int n = 0;

    for (int k = 0; k < group->nsteps; k++) {
        n = add_partner(group->step[k].send_to, partner, n);
        n = add_partner(group->step[k].wait_for, partner, n);
    }
    return n;
}
