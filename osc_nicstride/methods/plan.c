/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/methods/plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/** What messages wait for before anybody looks at them. */
static double wait(const nicstride_case_t *c)
{
    if (c->presence == NICSTRIDE_PRESENT)
        return 0;
    return c->presence == NICSTRIDE_SERVED ? c->path->link.wake : c->path->link.absence;
}

/** The model's estimates for all methods, for a target that is present. */
static void estimate(const nicstride_case_t *c, double model[NICSTRIDE_METHODS_MAX])
{
    for (unsigned m = 0; m < NICSTRIDE_METHODS_MAX; m++) {
        model[m] = INFINITY;
        if (nicstride_can(c, m))
            model[m] = c->rows[m]->cost(c);
    }
}

/** By estimates and what was learned, and how long a target stays away. */
static nicstride_method_t cheapest(const nicstride_case_t *c, double model[NICSTRIDE_METHODS_MAX])
{
    unsigned best = NICSTRIDE_METHOD_PACK;

    if (c->learned.cell != NULL)
        onic_learn_known(c->learned.cell, model, c->target->size);
    for (unsigned m = 0; m < NICSTRIDE_METHODS_MAX; m++)
        if (c->rows[m] != NULL && c->rows[m]->needs_target)
            model[m] += wait(c);
    for (unsigned m = 0; m < NICSTRIDE_METHODS_MAX; m++)
        if (model[m] < model[best])
            best = m;
    return (nicstride_method_t)best;
}

nicstride_method_t nicstride_plan(const nicstride_case_t *c)
{
    const bool present = c->presence == NICSTRIDE_PRESENT;
    double model[NICSTRIDE_METHODS_MAX];

    if (nicstride_can(c, c->forced))
        return c->forced;
    estimate(c, model);
    /* How long a target stays away says nothing of the methods: nothing is tried then. */
    if (c->learned.cell != NULL && c->learned.budget != NULL && present)
        return (nicstride_method_t)onic_learn_choose(c->learned.cell, c->learned.budget, model,
                                                     c->target->size);
    return cheapest(c, model);
}

size_t nicstride_plan_reason(const nicstride_case_t *c, char *buf, size_t cap)
{
    double model[NICSTRIDE_METHODS_MAX], known[NICSTRIDE_METHODS_MAX];
    size_t len = 0;

    if (cap == 0)
        return 0;
    buf[0] = '\0';
    estimate(c, model);
    memcpy(known, model, sizeof(known));
    if (c->learned.cell != NULL)
        onic_learn_known(c->learned.cell, known, c->target->size);
    for (unsigned m = 0; m < NICSTRIDE_METHODS_MAX && len < cap; m++) {
        if (isinf(model[m]))
            continue;
        len += (size_t)snprintf(buf + len, cap - len, "%s%s %.2f", len > 0 ? ", " : "",
                                c->rows[m]->name, model[m] / 1000);
        if (known[m] != model[m] && len < cap)
            len += (size_t)snprintf(buf + len, cap - len, " (learned %.2f)", known[m] / 1000);
    }
    if (wait(c) > 0 && len < cap)
        len += (size_t)snprintf(buf + len, cap - len, ", messages wait %.0f", wait(c) / 1000);
    return len < cap ? len : cap - 1;
}
