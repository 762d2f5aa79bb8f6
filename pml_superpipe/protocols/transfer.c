/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "pml_superpipe/protocols/transfer.h"

void superpipe_transfer_break(superpipe_transfer_t *t)
{
    t->broken = true;
}

void superpipe_transfer_started(superpipe_transfer_t *t)
{
    t->in_flight++;
}

void superpipe_transfer_ended(superpipe_transfer_t *t, bool good)
{
    t->in_flight--;
    t->broken = t->broken || !good;
}

void superpipe_transfer_moving(superpipe_transfer_t *t)
{
    t->moving = true;
}

void superpipe_transfer_moved(superpipe_transfer_t *t, bool good)
{
    t->moving = false;
    t->broken = t->broken || !good;
    if (t->sends)
        t->sent = true;
    else if (good)
        t->moved += superpipe_transfer_rest(t);
}

/* ---- sender ---------------------------------------------------------------------------------- */

void superpipe_transfer_begins_early(superpipe_transfer_t *t, uint64_t bytes, bool waits)
{
    t->early = bytes;
    t->matched = bytes == t->length && !waits;
}

void superpipe_transfer_sent_whole(superpipe_transfer_t *t, bool waits)
{
    t->matched = !waits;
    t->sent = true;
}

/** Has nobody its data, nor been promised it? */
static bool is_free(const superpipe_transfer_t *t)
{
    return t->sends && !t->asked && !t->sent && !t->broken && !t->done;
}

superpipe_answer_t superpipe_transfer_asked(superpipe_transfer_t *t, superpipe_how_t how,
                                            uint64_t wanted, bool one_piece)
{
    /* The mover begins where the early bytes end, and not before they are given away. */
    if (!is_free(t) || wanted <= t->early || wanted > t->length ||
        (how == SUPERPIPE_BY_MOVER && t->moved < t->early))
        return SUPERPIPE_ANSWER_REFUSED;
    t->matched = t->asked = true;
    t->wanted = wanted;
    t->how = how == SUPERPIPE_BY_RENDEZVOUS && !one_piece ? SUPERPIPE_BY_STREAM : how;
    return how == SUPERPIPE_BY_MOVER ? SUPERPIPE_ANSWER_SLOTS : SUPERPIPE_ANSWER_FRAGMENTS;
}

void superpipe_transfer_refused(superpipe_transfer_t *t)
{
    t->asked = false;
}

bool superpipe_transfer_lend(superpipe_transfer_t *t)
{
    if (!is_free(t))
        return false;
    t->asked = true;
    t->in_flight++;
    return true;
}

void superpipe_transfer_copied(superpipe_transfer_t *t)
{
    t->in_flight--;
    t->matched = t->sent = true;
}

void superpipe_transfer_finished(superpipe_transfer_t *t)
{
    if (!t->sends || t->asked)
        return;
    t->matched = true;
    /* What was announced to come early is waited for, whoever needs it. */
    t->wanted = t->early;
    t->sent = t->moved >= t->early;
}

/** Is there data that goes in fragments, now? */
static bool has_fragments(const superpipe_transfer_t *t)
{
    const bool asked =
        t->asked && (t->how == SUPERPIPE_BY_STREAM || t->how == SUPERPIPE_BY_RENDEZVOUS);

    return !t->sent && !t->broken && (asked || t->moved < t->early);
}

uint64_t superpipe_transfer_fragment(const superpipe_transfer_t *t, uint64_t most)
{
    const uint64_t end = t->moved < t->early ? t->early : t->wanted;
    const uint64_t left = end - t->moved;

    if (!has_fragments(t) || t->in_flight >= SUPERPIPE_FRAGMENTS)
        return 0;
    return left < most ? left : most;
}

void superpipe_transfer_given(superpipe_transfer_t *t, uint64_t bytes, bool pending)
{
    t->moved += bytes;
    t->sent = t->moved == t->wanted;
    t->in_flight += pending;
}

bool superpipe_transfer_lacks_turn(const superpipe_transfer_t *t)
{
    return has_fragments(t) && t->in_flight == 0 && !t->queued;
}

/* ---- receiver -------------------------------------------------------------------------------- */

uint64_t superpipe_transfer_rest(const superpipe_transfer_t *t)
{
    return t->wanted - t->early;
}

uint64_t superpipe_transfer_takes_early(const superpipe_transfer_t *t, uint64_t at, uint64_t bytes)
{
    const uint64_t left = at < t->early ? t->early - at : 0;

    if (t->sends || t->broken || t->done)
        return 0;
    return bytes < left ? bytes : left;
}

void superpipe_transfer_ask(superpipe_transfer_t *t, superpipe_how_t how)
{
    t->how = how;
    t->moving = how == SUPERPIPE_BY_MOVER;
}

bool superpipe_transfer_takes(const superpipe_transfer_t *t, uint64_t at, uint64_t bytes,
                              bool meets)
{
    /* A peer that was asked for fragments may send them, but not have us write where it likes
     * while we read on. */
    if (t->sends || t->broken || t->done || t->moving ||
        (meets && t->how != SUPERPIPE_BY_RENDEZVOUS))
        return false;
    if (t->how != SUPERPIPE_BY_STREAM && t->how != SUPERPIPE_BY_RENDEZVOUS)
        return false;
    return bytes > 0 && at >= t->early && at <= t->wanted && bytes <= t->wanted - at &&
           bytes <= t->wanted - t->moved;
}

superpipe_refusal_t superpipe_transfer_was_refused(const superpipe_transfer_t *t)
{
    if (t->sends || t->done || t->how == 0)
        return SUPERPIPE_REFUSAL_IGNORED;
    return t->moving ? SUPERPIPE_REFUSAL_WITHDRAW : SUPERPIPE_REFUSAL_BREAKS;
}
