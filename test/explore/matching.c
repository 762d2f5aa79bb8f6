/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Matching: the messages of one sender, while another thread posts receives, takes them
 *  back, or probes. Each message goes to the receive that MPI's order gives
 *  it, as a model of plain lists has it; none is lost, and none comes twice. */
#include "test/explore/explore.h"

#include <string.h>

#define NAIVE_MOST 8
#include "test/unit/pml_naive.c"

#include "pml_superpipe/matching/match.c"

enum { MESSAGES = 4, RECEIVES = 3, SOURCE = 1, CONTEXT = 2, CLASSES = 4 };

static superpipe_match_t match;
static naive_comm_t naive;

static superpipe_message_t message[MESSAGES];
static superpipe_receive_t receive[RECEIVES];
/** By message: 1 + the number of its receive; as it came, and as it should. */
static int got[MESSAGES], wanted[MESSAGES];

/** What has been matched is the same in both. */
static void compare(void)
{
    EXPLORE_ASSERT(memcmp(got, wanted, sizeof(got)) == 0);
}

static void note(int *of, int m, int r)
{
    EXPLORE_ASSERT(of[m] == 0);
    of[m] = 1 + r;
}

static int number_of(const superpipe_message_t *m)
{
    return (int)(m - message);
}

/* ---- messages ----------------------------------------------------------------------------------
 */

/** As pml_superpipe/protocols/receive.c. */
static void arrive(superpipe_message_t *m)
{
    const superpipe_receive_t *r = superpipe_match_message(&match, m->context, m->source, m->tag);
    if (r != NULL)
        note(got, number_of(m), (int)(r - receive));
    else
        superpipe_match_keep(&match, m);
}

static void come(int i)
{
    const naive_item_t item = {i, SOURCE, message[i].tag};
    arrive(&message[i]);
    const int should = naive_arrive(&naive, item);
    if (should != NAIVE_NONE)
        note(wanted, i, should);
    compare();
}

/* ---- receives ----------------------------------------------------------------------------------
 */

static void post(int r, int32_t source, int32_t tag)
{
    superpipe_message_t *m = superpipe_match_post(&match, &receive[r], CONTEXT, source, tag);
    if (m != NULL)
        note(got, number_of(m), r);
    const int should = naive_post(&naive, (naive_item_t){r, source, tag});
    if (should != NAIVE_NONE)
        note(wanted, should, r);
    compare();
}

/** With one of the wildcards, both or none, or the same twice. */
static void post_one(int r)
{
    const unsigned class = explore_choose(CLASSES);
    post(r, class & 1 ? SUPERPIPE_ANY_SOURCE : SOURCE,
         class & 2 ? SUPERPIPE_ANY_TAG : (int32_t)(r % 2));
}

static void cancel(int r)
{
    EXPLORE_ASSERT(superpipe_match_cancel(&match, &receive[r]) == naive_take(&naive.posted, r));
    compare();
}

static void probe(void)
{
    const superpipe_message_t *m = superpipe_match_probe(&match, CONTEXT, SUPERPIPE_ANY_SOURCE, 1);
    EXPLORE_ASSERT((m != NULL ? number_of(m) : NAIVE_NONE) == naive_find(&naive, NAIVE_ANY, 1));
    compare();
}

/* ---- targets -----------------------------------------------------------------------------------
 */

static void setup(void)
{
    superpipe_match_init(&match);
    for (int i = 0; i < MESSAGES; i++)
        message[i] = (superpipe_message_t){
            .context = CONTEXT, .source = SOURCE, .tag = i == 1 || i == 3 ? 1 : 0};
}

/* ---- orders ------------------------------------------------------------------------------------
 */

/** All orders of the messages and `ncalls` calls. */
static void in_any_order(void (*const *calls)(void), unsigned ncalls)
{
    unsigned call = 0;
    int m = 0;
    while (m < MESSAGES || call < ncalls)
        if (call == ncalls || (m < MESSAGES && explore_choose(2) == 0))
            come(m++);
        else
            calls[call++]();
}

static void post_first(void)
{
    post_one(0);
}

static void post_second(void)
{
    post_one(1);
}

static void post_any(void)
{
    post(2, SUPERPIPE_ANY_SOURCE, SUPERPIPE_ANY_TAG);
}

static void cancel_first(void)
{
    cancel(0);
}

static void matching(unsigned me)
{
    static void (*const calls[])(void) = {post_first, post_second};
    (void)me;
    in_any_order(calls, 2);
}

static void cancelling(unsigned me)
{
    static void (*const calls[])(void) = {post_first, post_second, probe, cancel_first, post_any};
    (void)me;
    in_any_order(calls, 5);
}

/** What is left is found, and is all. */
static void all_there(void)
{
    unsigned n = 0;
    size_t cursor = 0;
    const superpipe_message_t *m;
    TAILQ_FOREACH(m, superpipe_match_arrived(&match, CONTEXT), of_context) {
        EXPLORE_ASSERT(got[number_of(m)] == 0);
        n++;
    }
    for (int i = 0; i < MESSAGES; i++)
        n += got[i] != 0;
    EXPLORE_ASSERT(n == MESSAGES);
    while (superpipe_match_abandon(&match, CONTEXT, SUPERPIPE_ALL_RECEIVES, &cursor) != NULL)
        naive.posted.n--;
    EXPLORE_ASSERT(naive.posted.n == 0);
}

static const explore_target_t targets[] = {
    {"matching", 1, setup, matching, all_there, 0, 0},
    {"matching-cancel", 1, setup, cancelling, all_there, 0, 0},
};

int main(int argc, char **argv)
{
    return explore_main(argc, argv, targets, sizeof(targets) / sizeof(targets[0]));
}
