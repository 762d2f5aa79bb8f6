/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/mover/pipe/policy.h"

#include <math.h>
#include <string.h>

#include "common/model/pipeline.h"

/** "Hardwired C0 = 12 KB and q = 1.5 gives results almost as good as optimal values." */
#define PAPER_C0 (12.0 * 1024)
#define PAPER_Q  1.5

static const char *const names[ONIC_POLICIES] = {
    [ONIC_POLICY_AUTO] = "auto",   [ONIC_POLICY_SLOT] = "slot",       [ONIC_POLICY_MODEL] = "model",
    [ONIC_POLICY_PAPER] = "paper", [ONIC_POLICY_OPTIMAL] = "optimal",
};

const char *onic_policy_name(onic_policy_kind_t kind)
{
    return kind < ONIC_POLICIES ? names[kind] : "";
}

onic_policy_kind_t onic_policy_named(const char *name)
{
    int kind = 0;

    while (kind < ONIC_POLICIES && strcmp(name, names[kind]) != 0)
        kind++;
    return (onic_policy_kind_t)kind;
}

/** The two numbers of a schedule, as a kind says. */
typedef struct series {
    double c0;
    double q;
} series_t;

static series_t series_of(onic_policy_kind_t kind, const onic_link_t *link, uint64_t len,
                          uint32_t unit, uint32_t slot)
{
    switch (kind) {
    case ONIC_POLICY_MODEL: {
        const onic_chunks_t c = onic_superpipeline_chunks(link, unit, slot);
        return (series_t){c.first, fmax(1, c.ratio)};
    }
    case ONIC_POLICY_PAPER:
        return (series_t){PAPER_C0, PAPER_Q};
    case ONIC_POLICY_OPTIMAL:
        return (series_t){onic_pipeline_chunk(link, (double)len), 1};
    default:
        return (series_t){slot, 1};
    }
}

static bool is_given(double number)
{
    return number > 0 && isfinite(number);
}

void onic_policy_schedule(const onic_policy_t *p, onic_policy_kind_t best, const onic_link_t *link,
                          uint64_t len, uint32_t unit, uint32_t slot, onic_schedule_t *s)
{
    const series_t of =
        series_of(p->kind == ONIC_POLICY_AUTO ? best : p->kind, link, len, unit, slot);

    onic_schedule_growing(s, is_given(p->c0) ? p->c0 : of.c0, is_given(p->q) ? p->q : of.q, unit,
                          slot);
}
