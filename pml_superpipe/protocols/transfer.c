/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "pml_superpipe/protocols/transfer.h"

void superpipe_transfer_moved(superpipe_transfer_t *t, bool good)
{
    t->moving = false;
    t->broken = t->broken || !good;
    if (t->sends)
        t->sent = true;
    else if (good)
        t->moved += superpipe_transfer_remaining(t);
}

/* ---- sender ---------------------------------------------------------------------------------- */

bool superpipe_transfer_requested(superpipe_transfer_t *t, uint64_t wanted)
{
    if (t->broken || t->done || t->matched || wanted <= t->early || wanted > t->length)
        return false;
    t->matched = true;
    t->wanted = wanted;
    return true;
}

bool superpipe_transfer_lend(superpipe_transfer_t *t)
{
    if (t->broken || t->done)
        return false;
    t->in_flight++;
    return true;
}

void superpipe_transfer_copied(superpipe_transfer_t *t)
{
    t->in_flight--;
    t->matched = t->sent = true;
}

void superpipe_transfer_acknowledged(superpipe_transfer_t *t)
{
    t->matched = true;
    t->wanted = t->early;
    t->sent = true;
}

/** True if there is data to be sent in fragments now. */
static bool has_fragments(const superpipe_transfer_t *t)
{
    return !t->sent && !t->broken && t->fragments;
}

uint64_t superpipe_transfer_fragment(const superpipe_transfer_t *t, uint64_t most)
{
    const uint64_t left = t->wanted - t->moved;

    if (!has_fragments(t) || t->in_flight >= SUPERPIPE_FRAGMENTS)
        return 0;
    return left < most ? left : most;
}

bool superpipe_transfer_is_idle(const superpipe_transfer_t *t)
{
    return has_fragments(t) && t->in_flight == 0;
}

/* ---- receiver -------------------------------------------------------------------------------- */

uint64_t superpipe_transfer_takes_early(const superpipe_transfer_t *t, uint64_t at, uint64_t bytes)
{
    const uint64_t left = at < t->early ? t->early - at : 0;

    if (t->broken || t->done)
        return 0;
    return bytes < left ? bytes : left;
}

bool superpipe_transfer_takes(const superpipe_transfer_t *t, uint64_t at, uint64_t bytes)
{
    return !t->broken && !t->done && at <= t->wanted && bytes <= t->wanted - at;
}
