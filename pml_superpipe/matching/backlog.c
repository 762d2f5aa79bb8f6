/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Messages without credit; see backlog.h. */
#include "pml_superpipe/matching/backlog.h"

#include "pml_superpipe/matching/match.h"

/* Envelopes that are sent before the first of them is answered. */
#define WINDOW 8

void superpipe_backlog_add(superpipe_backlog_t *b, superpipe_entry_t *k, uint32_t context,
                           int32_t source, int32_t tag)
{
    *k = (superpipe_entry_t){
        .number = ++b->number, .context = context, .source = source, .tag = tag};
    if (b->head == NULL)
        b->head = k;
    else
        b->tail->next = k;
    b->tail = k;
    if (b->unsent == NULL)
        b->unsent = k;
}

const superpipe_entry_t *superpipe_backlog_announce(superpipe_backlog_t *b)
{
    const superpipe_entry_t *k = b->unsent;

    if (k == NULL || b->unanswered >= WINDOW)
        return NULL;
    b->unanswered++;
    b->unsent = k->next;
    return k;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static bool matches(const superpipe_entry_t *k, uint32_t context, int32_t source, int32_t tag)
{
    return k->context == context && (source == SUPERPIPE_ANY_SOURCE || source == k->source) &&
           (tag == SUPERPIPE_ANY_TAG ? k->tag >= 0 : tag == k->tag);
}

/** Pulls one, and those before it that it must not overtake. */
static void pull(superpipe_backlog_t *b, const superpipe_entry_t *last)
{
    for (superpipe_entry_t *k = b->head;; k = k->next) {
        if (!k->pulled && k->context == last->context && (k->tag < 0) == (last->tag < 0)) {
            k->pulled = true;
            b->npulled++;
        }
        if (k == last)
            return;
    }
}

void superpipe_backlog_answered(superpipe_backlog_t *b, uint64_t number)
{
    const superpipe_entry_t *k = number > 0 ? b->head : NULL;

    if (b->unanswered > 0)
        b->unanswered--;
    while (k != NULL && k->number < number)
        k = k->next;
    if (k != NULL && k->number == number)
        pull(b, k);
}

bool superpipe_backlog_query(superpipe_backlog_t *b, uint32_t context, int32_t source, int32_t tag)
{
    const superpipe_entry_t *k = b->head;

    while (k != NULL && !matches(k, context, source, tag))
        k = k->next;
    if (k != NULL)
        pull(b, k);
    return k != NULL;
}

/* ---- what is sent ---------------------------------------------------------------------------- */

static superpipe_entry_t *take_out(superpipe_backlog_t *b, superpipe_entry_t *before,
                                   superpipe_entry_t *k)
{
    if (before == NULL)
        b->head = k->next;
    else
        before->next = k->next;
    if (b->tail == k)
        b->tail = before;
    if (b->unsent == k)
        b->unsent = k->next;
    b->npulled -= k->pulled;
    return k;
}

superpipe_entry_t *superpipe_backlog_take(superpipe_backlog_t *b)
{
    return b->head != NULL ? take_out(b, NULL, b->head) : NULL;
}

superpipe_entry_t *superpipe_backlog_take_pulled(superpipe_backlog_t *b)
{
    superpipe_entry_t *before = NULL, *k = b->head;

    if (b->npulled == 0)
        return NULL;
    for (; !k->pulled; k = k->next)
        before = k;
    return take_out(b, before, k);
}
