/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Messages that stay with their sender; see backlog.h. */
#include "pml_superpipe/matching/backlog.h"

#include "pml_superpipe/matching/match.h"

/* Envelopes that are told before the first of them is answered. */
#define WINDOW 8

void superpipe_backlog_add(superpipe_backlog_t *b, superpipe_kept_t *k, uint32_t context,
                           int32_t source, int32_t tag)
{
    *k =
        (superpipe_kept_t){.number = ++b->number, .context = context, .source = source, .tag = tag};
    if (b->head == NULL)
        b->head = k;
    else
        b->tail->next = k;
    b->tail = k;
    if (b->untold == NULL)
        b->untold = k;
}

const superpipe_kept_t *superpipe_backlog_tell(superpipe_backlog_t *b)
{
    const superpipe_kept_t *k = b->untold;

    if (k == NULL || b->unanswered >= WINDOW)
        return NULL;
    b->unanswered++;
    b->untold = k->next;
    return k;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static bool matches(const superpipe_kept_t *k, uint32_t context, int32_t source, int32_t tag)
{
    return k->context == context && (source == SUPERPIPE_ANY_SOURCE || source == k->source) &&
           (tag == SUPERPIPE_ANY_TAG ? k->tag >= 0 : tag == k->tag);
}

/** Calls for one, and for those before it that it must not overtake. */
static void call(superpipe_backlog_t *b, const superpipe_kept_t *last)
{
    for (superpipe_kept_t *k = b->head;; k = k->next) {
        if (!k->called && k->context == last->context && (k->tag < 0) == (last->tag < 0)) {
            k->called = true;
            b->ncalled++;
        }
        if (k == last)
            return;
    }
}

void superpipe_backlog_answered(superpipe_backlog_t *b, uint64_t number)
{
    const superpipe_kept_t *k = number > 0 ? b->head : NULL;

    if (b->unanswered > 0)
        b->unanswered--;
    while (k != NULL && k->number < number)
        k = k->next;
    if (k != NULL && k->number == number)
        call(b, k);
}

bool superpipe_backlog_wanted(superpipe_backlog_t *b, uint32_t context, int32_t source, int32_t tag)
{
    const superpipe_kept_t *k = b->head;

    while (k != NULL && !matches(k, context, source, tag))
        k = k->next;
    if (k != NULL)
        call(b, k);
    return k != NULL;
}

/* ---- what goes ------------------------------------------------------------------------------- */

static superpipe_kept_t *take_out(superpipe_backlog_t *b, superpipe_kept_t *before,
                                  superpipe_kept_t *k)
{
    if (before == NULL)
        b->head = k->next;
    else
        before->next = k->next;
    if (b->tail == k)
        b->tail = before;
    if (b->untold == k)
        b->untold = k->next;
    b->ncalled -= k->called;
    return k;
}

superpipe_kept_t *superpipe_backlog_take(superpipe_backlog_t *b)
{
    return b->head != NULL ? take_out(b, NULL, b->head) : NULL;
}

superpipe_kept_t *superpipe_backlog_take_called(superpipe_backlog_t *b)
{
    superpipe_kept_t *before = NULL, *k = b->head;

    if (b->ncalled == 0)
        return NULL;
    for (; !k->called; k = k->next)
        before = k;
    return take_out(b, before, k);
}
