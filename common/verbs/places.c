/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/verbs/places.h"

int onic_place_to_end(const onic_place_t *place, unsigned n, uint64_t now)
{
    int oldest = -1;

    for (unsigned i = 0; i < n; i++) {
        if (place[i].state == ONIC_PLACE_FREE || place[i].state == ONIC_PLACE_ENDING)
            return -1;
        if (place[i].state == ONIC_PLACE_IDLE && (oldest < 0 || place[i].used < place[oldest].used))
            oldest = (int)i;
    }
    return oldest >= 0 && now - place[oldest].used >= (uint64_t)ONIC_PLACE_TURNS * n ? oldest : -1;
}

int onic_place_for(const onic_served_place_t *place, unsigned n, uint64_t process)
{
    int empty = -1, ended = -1;

    for (unsigned i = 0; i < n; i++)
        if (!place[i].taken)
            empty = (int)i;
        else if (place[i].process == process)
            return (int)i;
        else if (place[i].ended)
            ended = (int)i;
    return empty >= 0 ? empty : ended;
}
