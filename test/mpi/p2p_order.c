/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* p2p: */
/**
 * @file
 * MPI's order: of two messages of a sender that fit a receive the first is received, however long
 * it is, and of two receives that fit a message the first gets it. Long before short ones, and
 * random traffic with tags and wildcards, whose outcome is checked against the rule.
 */
#include "test/mpi/p2p.h"

#include <stdlib.h>
#include <string.h>

enum { PAIRS = 40, MESSAGES = 500, WINDOW = 24, LONGEST = 200000, FEW_TAGS = 4 };

/* ---- long before short ---- */

/** The same tag: sizes fall, rise, or alternate; the receives are there before or after. */
static void test_overtaking(bool posted)
{
    static unsigned char in[PAIRS][LONGEST], out[PAIRS][LONGEST];
    MPI_Request sends[PAIRS], receives[PAIRS];
    int bytes[PAIRS];

    for (int i = 0; i < PAIRS; i++) {
        bytes[i] = i % 2 ? p2p_sizes[i % p2p_nsizes] % LONGEST : LONGEST / (i + 1);
        p2p_fill(out[i], (size_t)bytes[i], p2p_seed(tl_rank(), 1, i));
    }
    for (int stage = 0; stage < 2; stage++) {
        for (int i = 0; i < PAIRS && stage != posted; i++) {
            TL_MPI(MPI_Irecv(in[i], LONGEST, MPI_BYTE, i % 3 ? p2p_before() : MPI_ANY_SOURCE,
                             i % 4 ? 1 : MPI_ANY_TAG, MPI_COMM_WORLD, &receives[i]));
        }
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; i < PAIRS && stage == posted; i++)
            TL_MPI(MPI_Isend(out[i], bytes[i], MPI_BYTE, p2p_next(), 1, MPI_COMM_WORLD, &sends[i]));
    }
    for (int i = PAIRS - 1; i >= 0; i--) {
        MPI_Status status;

        TL_MPI(MPI_Wait(&receives[i], &status));
        p2p_check_status(&status, p2p_before(), 1, (size_t)bytes[i], "long before short");
        TL_CHECK(p2p_holds(in[i], (size_t)bytes[i], p2p_seed(p2p_before(), 1, i)),
                 "message %d of %d bytes, %sposted", i, bytes[i], posted ? "" : "not ");
    }
    TL_MPI(MPI_Waitall(PAIRS, sends, MPI_STATUSES_IGNORE));
}

static int size_of(int source, int i)
{
    tl_rng_t rng = tl_rng(tl_seed() + 5, (uint64_t)source * 1000003 + (uint64_t)i);
    int kind = (int)tl_range(&rng, 0, 19);

    return (int)(kind == 0  ? tl_range(&rng, 20000, LONGEST)
                 : kind < 3 ? tl_range(&rng, 8150, 8250)
                 : kind < 6 ? tl_range(&rng, 300, 5000)
                            : tl_range(&rng, 8, 200));
}

/* ---- random traffic ---- */

/** What a receive asked for and what it got. */
typedef struct outcome {
    int source, tag; /**< asked for */
    int from, number;
} outcome_t;

static int tag_of(int source, int i)
{
    tl_rng_t rng = tl_rng(tl_seed() + 6, (uint64_t)source * 1000003 + (uint64_t)i);

    return (int)tl_range(&rng, 0, FEW_TAGS - 1);
}

static bool fits(const outcome_t *o, int source, int number)
{
    return (o->source == MPI_ANY_SOURCE || o->source == source) &&
           (o->tag == MPI_ANY_TAG || o->tag == tag_of(source, number));
}

/** Where the later of two receives got the earlier of two messages the earlier must not fit it. */
static void check_order(const outcome_t *o, int n)
{
    int wrong = 0;

    for (int a = 0; a < n; a++) {
        for (int b = a + 1; b < n; b++) {
            wrong += o[a].from >= 0 && o[a].from == o[b].from && o[b].number < o[a].number &&
                     fits(&o[a], o[b].from, o[b].number);
            /* A receive that got nothing lets pass nothing that it fits. */
            wrong += o[a].from < 0 && o[b].from >= 0 && fits(&o[a], o[b].from, o[b].number);
        }
    }
    TL_CHECK(wrong == 0, "%d pairs of %d receives are out of order", wrong, n);
}

/** Receives that are posted, at most WINDOW and one at a time. */
typedef struct posted {
    MPI_Request requests[WINDOW];
    int which[WINDOW];
    unsigned char data[WINDOW][LONGEST];
} posted_t;

static void post(posted_t *p, int slot, outcome_t *o, int which, tl_rng_t *rng, bool any)
{
    o->source =
        any || tl_range(rng, 0, 3) == 0 ? MPI_ANY_SOURCE : (int)tl_range(rng, 0, tl_size() - 1);
    o->tag = any || tl_range(rng, 0, 3) == 0 ? MPI_ANY_TAG : (int)tl_range(rng, 0, FEW_TAGS - 1);
    o->from = -1;
    p->which[slot] = which;
    TL_MPI(MPI_Irecv(p->data[slot], LONGEST, MPI_BYTE, o->source, o->tag, MPI_COMM_WORLD,
                     &p->requests[slot]));
}

static void arrived(posted_t *p, int slot, outcome_t *o, const MPI_Status *status)
{
    int source = status->MPI_SOURCE, number = -1;

    memcpy(&number, p->data[slot], sizeof(number));
    if (!TL_CHECK(number >= 0 && number < MESSAGES && source >= 0 && source < tl_size(),
                  "message %d from %d", number, source))
        return;
    o[p->which[slot]].from = source;
    o[p->which[slot]].number = number;
    p2p_check_status(status, source, tag_of(source, number), (size_t)size_of(source, number),
                     "random traffic");
    TL_CHECK(p2p_holds(p->data[slot] + 4, (size_t)size_of(source, number) - 4,
                       p2p_seed(source, tl_rank(), number)),
             "message %d from %d", number, source);
}

/** Sends the i-th message of this rank, to all by turns. */
static unsigned char *send_one(int i, MPI_Request *request)
{
    int bytes = size_of(tl_rank(), i), to = i % tl_size();
    unsigned char *data = tl_alloc((size_t)bytes);

    memcpy(data, &i, sizeof(i));
    p2p_fill(data + 4, (size_t)bytes - 4, p2p_seed(tl_rank(), to, i));
    TL_MPI(MPI_Isend(data, bytes, MPI_BYTE, to, tag_of(tl_rank(), i), MPI_COMM_WORLD, request));
    return data;
}

/**
 * Everybody sends to everybody while it posts receives of all kinds, in an order that the seed
 * says. The last slot is always a receive of anything, so that no message stays; those that get
 * nothing at last are cancelled.
 */
static void test_random(void)
{
    posted_t *p = tl_alloc(sizeof(*p));
    MPI_Request *sends = tl_alloc(MESSAGES * sizeof(MPI_Request));
    unsigned char **out = tl_alloc(MESSAGES * sizeof(*out));
    outcome_t *o = tl_alloc((MESSAGES + WINDOW) * sizeof(*o));
    tl_rng_t rng = tl_rng(tl_seed(), 100 + (uint64_t)tl_rank());
    int sent = 0, received = 0, n = 0, done, indices[WINDOW];
    MPI_Status statuses[WINDOW];
    const int all = tl_size() * (MESSAGES / tl_size());

    for (int slot = 0; slot < WINDOW; slot++)
        p->requests[slot] = MPI_REQUEST_NULL;
    /* As many to each, so that the number of those that come is known. */
    while (received < all) {
        for (int k = (int)tl_range(&rng, 0, 12); k > 0 && sent < all; k--, sent++)
            out[sent] = send_one(sent, &sends[sent]);
        for (int slot = 0; slot < WINDOW && n < MESSAGES + WINDOW; slot++) {
            if (p->requests[slot] == MPI_REQUEST_NULL &&
                (slot == WINDOW - 1 || tl_range(&rng, 0, 2) == 0)) {
                post(p, slot, &o[n], n, &rng, slot == WINDOW - 1);
                n++;
            }
        }
        TL_MPI(MPI_Testsome(WINDOW, p->requests, &done, indices, statuses));
        for (int k = 0; k < done; k++)
            arrived(p, indices[k], o, &statuses[k]);
        received += done > 0 ? done : 0;
    }
    for (int slot = 0; slot < WINDOW; slot++) {
        int cancelled = 0;

        if (p->requests[slot] != MPI_REQUEST_NULL) {
            TL_MPI(MPI_Cancel(&p->requests[slot]));
            TL_MPI(MPI_Wait(&p->requests[slot], &statuses[0]));
            TL_MPI(MPI_Test_cancelled(&statuses[0], &cancelled));
            TL_CHECK(cancelled, "a receive got message %d too many", n);
        }
    }
    TL_MPI(MPI_Waitall(sent, sends, MPI_STATUSES_IGNORE));
    check_order(o, n);
    for (int i = 0; i < sent; i++)
        free(out[i]);
    free(o);
    free(out);
    free(sends);
    free(p);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    test_overtaking(true);
    test_overtaking(false);
    /* Nobody's random traffic meets the receives of another. */
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 2 * tl_factor(); i++)
        test_random();
    return tl_finish();
}
