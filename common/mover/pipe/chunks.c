/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/mover/pipe/chunks.h"

/** "Hardwired C0 = 12 KB and q = 1.5 gives results almost as good as optimal values." */
#define PAPER_C0 (12.0 * 1024)
#define PAPER_Q  1.5

void onic_schedule_growing(onic_schedule_t *s, double c0, double q, uint32_t unit, uint32_t slot)
{
    s->unit = unit;
    s->highest = slot - slot % unit;
    /* Written so that what is not a number is not taken either. */
    s->next = c0 > 0 && c0 < s->highest ? c0 : s->highest;
    s->q = q > 0 ? (q < s->highest ? q : s->highest) : 1;
}

void onic_schedule_paper(onic_schedule_t *s, uint32_t unit, uint32_t slot)
{
    onic_schedule_growing(s, PAPER_C0, PAPER_Q, unit, slot);
}

uint32_t onic_schedule_next(onic_schedule_t *s)
{
    uint32_t bytes = (uint32_t)s->next;

    bytes -= bytes % s->unit;
    if (bytes < s->unit)
        bytes = s->unit;
    s->next *= s->q;
    if (s->next > s->highest)
        s->next = s->highest;
    if (s->next < s->unit)
        s->next = s->unit;
    return bytes;
}

bool onic_schedule_holds(const onic_schedule_t *s, unsigned chunks, uint64_t bytes, uint32_t slack)
{
    onic_schedule_t ahead = *s;

    for (; chunks > 0 && bytes > 0; chunks--) {
        uint32_t chunk = onic_schedule_next(&ahead);
        uint32_t sure = chunk > slack ? chunk - slack : 0;

        bytes -= sure < bytes ? sure : bytes;
    }
    return bytes == 0;
}
