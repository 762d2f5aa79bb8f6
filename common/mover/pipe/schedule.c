/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/mover/pipe/schedule.h"

void onic_schedule_growing(onic_schedule_t *s, double c0, double q, uint32_t unit, uint32_t slot)
{
    s->unit = unit;
    s->highest = slot - slot % unit;
    /* Written so that what is not a number is not taken either. */
    s->next = c0 > 0 && c0 < s->highest ? c0 : s->highest;
    s->q = q > 0 ? (q < s->highest ? q : s->highest) : 1;
}

void onic_schedule_fixed(onic_schedule_t *s, double chunk, uint32_t unit, uint32_t slot)
{
    onic_schedule_growing(s, chunk, 1, unit, slot);
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

unsigned onic_schedule_chunks(const onic_schedule_t *s, uint64_t bytes, unsigned most)
{
    onic_schedule_t ahead = *s;
    unsigned chunks = 0;
    uint64_t rest = 0;

    /* Those of one size need not be gone through, and are what most transfers have. */
    while (bytes > 0 && chunks < most &&
           (ahead.q < 1 || (ahead.q > 1 && ahead.next < ahead.highest))) {
        const uint32_t chunk = onic_schedule_next(&ahead);

        bytes -= chunk < bytes ? chunk : bytes;
        chunks++;
    }
    if (bytes > 0)
        rest = (bytes - 1) / onic_schedule_next(&ahead) + 1;
    return rest < most - chunks ? chunks + (unsigned)rest : most;
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
