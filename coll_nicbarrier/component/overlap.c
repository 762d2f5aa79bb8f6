/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Whether programs compute behind their barriers; see overlap.h. */
#include "coll_nicbarrier/component/overlap.h"

bool nicbarrier_overlap_leave(nicbarrier_overlap_t *h, uint64_t last, uint64_t now)
{
    h->left = now;
    h->last = last;
    return h->known >= NICBARRIER_OVERLAP_AWAY;
}

void nicbarrier_overlap_back(nicbarrier_overlap_t *h, uint64_t now)
{
    if (h->left != 0 && now - h->left >= NICBARRIER_OVERLAP_LONG)
        h->through = h->last;
    h->left = 0;
}

void nicbarrier_overlap_done(nicbarrier_overlap_t *h, uint64_t barrier)
{
    if (barrier > h->last)
        return;
    if (barrier > h->through)
        h->known -= h->known > 0;
    else
        h->known += h->known < NICBARRIER_OVERLAP_MAX;
}
