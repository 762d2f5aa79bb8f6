/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What the processes of a node do in an agreement. The first of them arranges all before it
 *  sends the segment's key to the others, so they find it as it will be: one message to each. */
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

static nicbarrier_mapped_t failed(nicbarrier_agreement_t *a, const char *why)
{
    nicbarrier_reason(&a->why, "%s", why);
    return NICBARRIER_UNMAPPED;
}

/** The first: makes the segment, arranged, and sends its key, which is empty where there is none.
 */
static int make(nicbarrier_agreement_t *a, bool named, onic_segment_key_t *key,
                onic_segment_t *segment, int *mapped_p)
{
    const nicbarrier_plan_t *p = &a->plan;
    int rc = OMPI_SUCCESS;
    *mapped_p = NICBARRIER_MAPPED;
    if (!onic_node_make(segment_bytes(p), named, key, segment)) {
        *mapped_p = failed(a, "no shared memory can be had");
    } else if (!arrange(a, segment)) {
        onic_node_hide(key);
        *mapped_p = failed(a, "memory is exhausted");
    }
    for (int32_t r = nicbarrier_plan_member(p, a->facts, p->first); r >= 0 && rc == OMPI_SUCCESS;
         r = nicbarrier_plan_member(p, a->facts, r)) {
        rc = onic_send_bytes(a->comm, r, key, sizeof(*key));
    }
    return rc;
}

/** The others: receive the key, and map its segment. */
static int map(nicbarrier_agreement_t *a, onic_segment_t *segment, int *mapped_p)
{
    onic_segment_key_t key;
    const int rc = onic_receive_bytes(a->comm, a->plan.first, &key, sizeof(key));
    const onic_joined_t joined = rc == OMPI_SUCCESS
                                     ? onic_node_map(&key, segment_bytes(&a->plan), segment)
                                     : ONIC_NOT_JOINED;
    *mapped_p = joined == ONIC_JOINED       ? NICBARRIER_MAPPED
                : joined == ONIC_NEEDS_NAME ? NICBARRIER_UNNAMED
                                            : failed(a, "processes of a node cannot share memory "
                                                        "(coll_nicbarrier_ppn 1 does without)");
    return rc;
}

int nicbarrier_set_up_node(nicbarrier_agreement_t *a, bool named, onic_segment_key_t *key_p,
                           int *mapped_p)
{
    onic_segment_t segment = {NULL, 0};
    memset(key_p, 0, sizeof(*key_p));
    *mapped_p = NICBARRIER_MAPPED;
    if (a->plan.limit == 1) {
        return OMPI_SUCCESS;
    }
    const int rc =
        a->plan.index == 0 ? make(a, named, key_p, &segment, mapped_p) : map(a, &segment, mapped_p);
    if (*mapped_p == NICBARRIER_MAPPED && !attach(a, &segment)) {
        *mapped_p = failed(a, "memory is exhausted");
    }
    onic_segment_unmap(&segment);
    return rc;
}
