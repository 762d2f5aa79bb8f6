/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What the processes of a node do in an agreement. The first of them arranges all before the
 *  others hear of the segment, so they find it as it will be: one message to each. */
#include "coll_nicbarrier/agree/agreement.h"

#include <stdlib.h>
#include <string.h>

#include "common/support/collective.h"
#include "ompi/constants.h"

/** Of the area that begins with a member. */
static int in_area(const nicbarrier_plan_t *p, int first)
{
    return p->n - first < p->limit ? p->n - first : p->limit;
}

static size_t offset_of(const nicbarrier_plan_t *p, int first)
{
    return (size_t)(first / p->limit) * nicbarrier_shm_bytes(p->limit);
}

static size_t segment_bytes(const nicbarrier_plan_t *p)
{
    return offset_of(p, p->n + p->limit - 1);
}

/** The first: all areas. False where memory is exhausted. */
static bool arrange(const nicbarrier_agreement_t *a, const onic_segment_t *segment)
{
    const nicbarrier_plan_t *p = &a->plan;
    nicbarrier_locality_t *where = calloc((size_t)p->limit, sizeof(*where));
    bool done = where != NULL;
    for (int32_t first = 0, r = p->first; done && first < p->n; first += p->limit) {
        const int n = in_area(p, first);
        for (int i = 0; i < n; i++, r = nicbarrier_plan_member(p, a->facts, r)) {
            where[i] = a->facts[r].where;
        }
        done = nicbarrier_shm_arrange((char *)segment->base + offset_of(p, first), n, where,
                                      nicbarrier_shm_config.fanout) == 0;
    }
    free(where);
    return done;
}

/** My part of what has been arranged. False where memory is exhausted. */
static bool attach(nicbarrier_agreement_t *a, onic_segment_t *segment)
{
    const nicbarrier_plan_t *p = &a->plan;
    const int first = p->index / p->limit * p->limit, n = in_area(p, first);
    const size_t offset = offset_of(p, first);
    if (n == 1 || a->team == NULL) {
        return n == 1;
    }
    nicbarrier_shm_introduce((char *)segment->base + offset, n, p->index - first);
    return nicbarrier_team_attach(a->team, segment, offset, n, p->index - first,
                                  nicbarrier_shm_config.fanout, n < p->size) == 0;
}

/** An empty key says that there is no segment. */
static nicbarrier_mapped_t make(nicbarrier_agreement_t *a, bool named, onic_segment_key_t *key,
                                onic_segment_t *segment)
{
    if (!onic_node_make(segment_bytes(&a->plan), named, key, segment)) {
        return NICBARRIER_UNMAPPED;
    }
    if (!arrange(a, segment)) {
        onic_node_hide(key);
        return NICBARRIER_EXHAUSTED;
    }
    return NICBARRIER_MAPPED;
}

static int tell_others(const nicbarrier_agreement_t *a, const onic_segment_key_t *key)
{
    const nicbarrier_plan_t *p = &a->plan;
    int rc = OMPI_SUCCESS;
    for (int32_t r = nicbarrier_plan_member(p, a->facts, p->first); r >= 0 && rc == OMPI_SUCCESS;
         r = nicbarrier_plan_member(p, a->facts, r)) {
        rc = onic_send_bytes(a->comm, r, key, sizeof(*key));
    }
    return rc;
}

static nicbarrier_mapped_t map(const nicbarrier_agreement_t *a, const onic_segment_key_t *key,
                               onic_segment_t *segment)
{
    switch (onic_node_map(key, segment_bytes(&a->plan), segment)) {
    case ONIC_JOINED:
        return NICBARRIER_MAPPED;
    case ONIC_NEEDS_NAME:
        return NICBARRIER_UNNAMED;
    default:
        return NICBARRIER_UNMAPPED;
    }
}

int nicbarrier_set_up_node(nicbarrier_agreement_t *a, bool named, onic_segment_key_t *key_p,
                           nicbarrier_mapped_t *mapped_p)
{
    onic_segment_t segment = {NULL, 0};
    int rc;
    memset(key_p, 0, sizeof(*key_p));
    *mapped_p = NICBARRIER_MAPPED;
    if (a->plan.limit == 1) {
        return OMPI_SUCCESS;
    }
    if (a->plan.index == 0) {
        *mapped_p = make(a, named, key_p, &segment);
        rc = tell_others(a, key_p);
    } else {
        onic_segment_key_t theirs;
        rc = onic_receive_bytes(a->comm, a->plan.first, &theirs, sizeof(theirs));
        *mapped_p = rc == OMPI_SUCCESS ? map(a, &theirs, &segment) : NICBARRIER_UNMAPPED;
    }
    if (*mapped_p == NICBARRIER_MAPPED && !attach(a, &segment)) {
        *mapped_p = NICBARRIER_EXHAUSTED;
    }
    onic_segment_unmap(&segment);
    return rc;
}
