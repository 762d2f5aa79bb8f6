/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "pml_superpipe/protocols/cost.h"

#include <string.h>

uint64_t superpipe_mean_block(const onic_layout_t *l)
{
    const uint64_t pieces = onic_layout_blocks(l);

    return pieces > 0 && l->size > pieces ? l->size / pieces : 1;
}

double superpipe_way_cost(const superpipe_case_t *c, onic_way_t way)
{
    const uint64_t block = c->send_block < c->receive_block ? c->send_block : c->receive_block;
    const double pieces = block < c->length ? (double)c->length / (double)block : 1;

    return onic_cost(&c->costs->of[way][c->many], pieces, (double)c->length / pieces,
                     (double)c->length);
}

double superpipe_gather(const onic_link_t *link, uint64_t length, uint64_t block)
{
    onic_layout_t l;

    if (block >= length)
        return 0;
    /* The gaps between pieces are as long as the pieces. */
    (void)onic_layout_contig(&l, 0, block);
    if (onic_layout_repeat(&l, length / block, (int64_t)(2 * block)) != ONIC_LAYOUT_OK)
        return 0;
    return onic_link_gather(link, &l);
}

double superpipe_answers_in(const onic_link_t *link, double unseen, bool away)
{
    if (unseen < SUPERPIPE_SEEN)
        return 0;
    if (away)
        return link->wake;
    return unseen < link->absence ? unseen : link->absence;
}

/** The number of buffers over which the share averages: a program's new phase is noticed after
 *  about as many. */
#define LATELY 16

/** The place of a remembered buffer that contains this one; SUPERPIPE_BUFFERS if there is none. */
static unsigned find(const superpipe_reuse_t *r, uint64_t start, uint64_t length)
{
    unsigned i = 0;

    while (i < SUPERPIPE_BUFFERS && (start < r->buffer[i].start || length > r->buffer[i].length ||
                                     start - r->buffer[i].start > r->buffer[i].length - length))
        i++;
    return i;
}

double superpipe_reuse_note(superpipe_reuse_t *r, uint64_t start, uint64_t length)
{
    const unsigned at = find(r, start, length);
    const bool hit = at < SUPERPIPE_BUFFERS;
    const uint64_t from = hit ? r->buffer[at].start : start;
    const uint64_t bytes = hit ? r->buffer[at].length : length;

    memmove(&r->buffer[1], &r->buffer[0],
            (hit ? at : SUPERPIPE_BUFFERS - 1) * sizeof(r->buffer[0]));
    r->buffer[0].start = from;
    r->buffer[0].length = bytes;
    r->hits += ((hit ? 1 : 0) - r->hits) / LATELY;
    return hit ? 0 : 1 - r->hits;
}
