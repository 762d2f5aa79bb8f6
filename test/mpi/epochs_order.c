/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* windows: create allocate dynamic shared */
/**
 * @file
 * What one epoch does comes before what the next one does, whoever does it and by whatever way it
 * travels: puts and accumulates of one rank are overwritten by those of another in the next epoch,
 * by stores of the owner, and seen by its loads, by gets and by accumulates, though a rank comes
 * late to the end of each epoch and has much to take then. By fences and by post and start, on one
 * window and on two whose epochs cross.
 *
 * Many small transfers go by message and few large ones by single copy where there is a choice, so
 * each epoch draws its own way. With three ranks and no forced method rank 1 sends messages only.
 */
#include "test/mpi/testlib.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/** Words of a place at most; each rank has three places. */
#define WORDS     (64 << 10)
#define WINDOWS   2
#define EVERYBODY (-1)

enum { SHARED_PLACE, OWN_PLACE, SUMS, PLACES };

/** How a place is written. */
typedef enum way { BY_WORD, BY_KIB, STRIDED, WHOLE, REPLACE_WORDS, REPLACE_WHOLE, WAYS } way_t;

static const char *const way_names[WAYS] = {"words",          "KiB",           "strided", "whole",
                                            "replaced words", "replaced whole"};

typedef enum sync { FENCES, POST_START, SYNCS } sync_t;

/** The windows whose epochs run side by side, and what is the same on all ranks. */
typedef struct field {
    tl_window_t w[WINDOWS];
    int n; /**< windows */
    sync_t sync;
    tl_rng_t rng;
    MPI_Group all;
    int64_t *values[2][WINDOWS]; /**< what is put, for each of two epochs */
    int64_t *got[2][WINDOWS];
    int64_t *sums[WINDOWS]; /**< that everybody has */
    int64_t *ones;
} field_t;

/** One round, drawn alike by all. */
typedef struct draw {
    int round;
    int words;
    int writer[2];
    way_t way[2];
    int late[3]; /**< rank that comes late to the end of an epoch */
    int delay;   /**< microseconds */
    int reader;
} draw_t;

static const int word_counts[] = {1, 8, 128, 512, WORDS};

static draw_t draw_round(field_t *f, int round)
{
    const int last = f->w[0].size - 1;
    draw_t d = {.round = round,
                .words = word_counts[tl_range(&f->rng, 0, 4)],
                .reader = (int)tl_range(&f->rng, 0, last),
                .delay = (int)tl_range(&f->rng, 0, 1500)};

    for (int i = 0; i < 2; i++) {
        d.writer[i] = (int)tl_range(&f->rng, 0, last);
        d.way[i] = (way_t)tl_range(&f->rng, 0, WAYS - 1);
    }
    for (int i = 0; i < 3; i++)
        d.late[i] = (int)tl_range(&f->rng, 0, last);
    return d;
}

/** What a word holds after epoch `epoch` of a round. */
static int64_t value_of(const draw_t *d, int window, int epoch, int word)
{
    return ((((int64_t)d->round * 4 + epoch) * WINDOWS + window) << 32) + word + 1;
}

static MPI_Aint at(const tl_window_t *w, int target, int place, int word)
{
    return tl_disp(w, target, ((MPI_Aint)place * WORDS + word) * (MPI_Aint)sizeof(int64_t));
}

static int64_t *mine(const tl_window_t *w, int place)
{
    return (int64_t *)(void *)w->base + (size_t)place * WORDS;
}

/* ---- writing ---- */

static void put(const tl_window_t *w, int target, int place, int word, const int64_t *values, int n)
{
    TL_MPI(MPI_Put(values + word, n, MPI_INT64_T, target, at(w, target, place, word), n,
                   MPI_INT64_T, w->win));
}

static void replace(const tl_window_t *w, int target, int place, int word, const int64_t *values,
                    int n)
{
    TL_MPI(MPI_Accumulate(values + word, n, MPI_INT64_T, target, at(w, target, place, word), n,
                          MPI_INT64_T, MPI_REPLACE, w->win));
}

/** All even words by one call, then the odd ones. */
static void put_strided(const tl_window_t *w, int target, int place, const int64_t *values, int n)
{
    for (int odd = 0; odd < 2 && odd < n; odd++) {
        MPI_Datatype every_second;

        MPI_Type_vector((n - odd + 1) / 2, 1, 2, MPI_INT64_T, &every_second);
        MPI_Type_commit(&every_second);
        TL_MPI(MPI_Put(values + odd, 1, every_second, target, at(w, target, place, odd), 1,
                       every_second, w->win));
        MPI_Type_free(&every_second);
    }
}

/** Writes `n` words in pieces of `piece`; most pieces of a large place are larger. */
static void in_pieces(const tl_window_t *w, int target, int place, const int64_t *values, int n,
                      int piece,
                      void (*write)(const tl_window_t *, int, int, int, const int64_t *, int))
{
    for (int word = 0, count; word < n; word += count) {
        const int most = word < 512 ? piece : 128;

        count = n - word < most ? n - word : most;
        write(w, target, place, word, values, count);
    }
}

static void write_place(const tl_window_t *w, int target, int place, const int64_t *values, int n,
                        way_t way)
{
    switch (way) {
    case BY_WORD:
        in_pieces(w, target, place, values, n, 1, put);
        break;
    case BY_KIB:
        in_pieces(w, target, place, values, n, 128, put);
        break;
    case STRIDED:
        put_strided(w, target, place, values, n);
        break;
    case REPLACE_WORDS:
        in_pieces(w, target, place, values, n, 1, replace);
        break;
    case REPLACE_WHOLE:
        replace(w, target, place, 0, values, n);
        break;
    default:
        put(w, target, place, 0, values, n);
        break;
    }
}

/** Fills a place of every rank. Whoever was there before is overwritten. */
static void write_all(const field_t *f, int window, const draw_t *d, int epoch, int place)
{
    const tl_window_t *w = &f->w[window];

    /* The late rank first: it has the more to take. */
    for (int i = 0; i < w->size; i++) {
        write_place(w, (d->late[epoch] + i) % w->size, place, f->values[epoch][window], d->words,
                    d->way[epoch]);
    }
}

/* ---- epochs ---- */

/** Opens an epoch in which a rank, or EVERYBODY, accesses everybody. Fences have opened theirs. */
static void begin(const field_t *f, int window, int accessor)
{
    const tl_window_t *w = &f->w[window];
    MPI_Group from = f->all;

    if (f->sync == FENCES)
        return;
    if (accessor != EVERYBODY)
        from = tl_group_of(w->comm, accessor);
    TL_MPI(MPI_Win_post(from, 0, w->win));
    if (accessor != EVERYBODY)
        MPI_Group_free(&from);
    if (accessor == EVERYBODY || accessor == w->rank)
        TL_MPI(MPI_Win_start(f->all, 0, w->win));
}

static void wait_or_test(const tl_window_t *w, bool test)
{
    int over = 0;

    while (test && !over)
        if (!TL_MPI(MPI_Win_test(w->win, &over)))
            return;
    if (!over)
        TL_MPI(MPI_Win_wait(w->win));
}

static void end(const field_t *f, int window, const draw_t *d, int epoch, int accessor)
{
    const tl_window_t *w = &f->w[window];

    if (f->sync == POST_START && (accessor == EVERYBODY || accessor == w->rank))
        TL_MPI(MPI_Win_complete(w->win));
    if (window == f->n - 1 && d->late[epoch] == w->rank)
        usleep((useconds_t)d->delay);
    if (f->sync == FENCES)
        TL_MPI(MPI_Win_fence(0, w->win));
    else
        wait_or_test(w, d->round % 2 == 1);
}

/* ---- a round ---- */

/** The windows are closed in the other order than they were used. */
static void end_all(const field_t *f, const draw_t *d, int epoch, int accessor)
{
    for (int i = f->n - 1; i >= 0; i--)
        end(f, i, d, epoch, accessor);
}

/** How many; `*first` is one of them. */
static int wrong_words(const int64_t *words, const draw_t *d, int window, int epoch, int *first)
{
    int wrong = 0;

    for (int i = d->words - 1; i >= 0; i--) {
        if (words[i] != value_of(d, window, epoch, i)) {
            wrong++;
            *first = i;
        }
    }
    return wrong;
}

static void check_place(const field_t *f, const int64_t *words, const draw_t *d, int window,
                        int epoch, const char *what)
{
    int first = 0;
    const int wrong = wrong_words(words, d, window, epoch, &first);

    TL_CHECK(
        wrong == 0,
        "%s, %s window %d, round %d, %s: %d of %d words from %d on, which is %llx and not %llx; "
        "%s of %d, then %s of %d",
        f->sync == FENCES ? "fences" : "post and start", tl_kind_name(f->w[window].kind), window,
        d->round, what, wrong, d->words, first, (unsigned long long)words[first],
        (unsigned long long)value_of(d, window, epoch, first), way_names[d->way[0]], d->writer[0],
        way_names[d->way[1]], d->writer[1]);
}

/** One rank writes both places of everybody. */
static void first_epoch(const field_t *f, const draw_t *d)
{
    for (int i = 0; i < f->n; i++) {
        begin(f, i, d->writer[0]);
        if (f->w[i].rank == d->writer[0]) {
            write_all(f, i, d, 0, OWN_PLACE);
            write_all(f, i, d, 0, SHARED_PLACE);
        }
    }
    end_all(f, d, 0, d->writer[0]);
}

/** Another one overwrites one place, and the owner the other one. */
static void second_epoch(const field_t *f, const draw_t *d)
{
    for (int i = 0; i < f->n; i++) {
        const tl_window_t *w = &f->w[i];

        begin(f, i, d->writer[1]);
        if (w->rank == d->writer[1])
            write_all(f, i, d, 1, SHARED_PLACE);
        check_place(f, mine(w, OWN_PLACE), d, i, 0, "loads behind an epoch");
        for (int word = 0; word < d->words; word++)
            mine(w, OWN_PLACE)[word] = value_of(d, i, 2, word);
    }
    end_all(f, d, 1, d->writer[1]);
}

/** Memory that is shared is read by plain loads as well, behind a fence without any further call.
 */
static void check_loads(const field_t *f, const draw_t *d)
{
    const tl_window_t *w = &f->w[0];

    for (int t = 0; t < w->size && w->kind == TL_SHARED && f->sync == FENCES; t++) {
        MPI_Aint bytes;
        int64_t *words;
        int unit;

        TL_MPI(MPI_Win_shared_query(w->win, t, &bytes, &unit, &words));
        check_place(f, words + SHARED_PLACE * WORDS, d, 0, 1, "loads of others behind puts");
        check_place(f, words + OWN_PLACE * WORDS, d, 0, 2, "loads of others behind stores");
    }
}

/** Everybody adds, one rank reads all of both places. */
static void third_epoch(field_t *f, const draw_t *d)
{
    check_loads(f, d);
    for (int i = 0; i < f->n; i++) {
        const tl_window_t *w = &f->w[i];

        begin(f, i, EVERYBODY);
        for (int t = 0; t < w->size; t++) {
            TL_MPI(MPI_Accumulate(f->ones, d->words, MPI_INT64_T, t, at(w, t, SUMS, 0), d->words,
                                  MPI_INT64_T, MPI_SUM, w->win));
        }
        for (int place = 0; place < 2 && w->rank == d->reader; place++) {
            for (int t = 0; t < w->size; t++) {
                TL_MPI(MPI_Get(f->got[place][i] + t * WORDS, d->words, MPI_INT64_T, t,
                               at(w, t, place, 0), d->words, MPI_INT64_T, w->win));
            }
        }
        for (int word = 0; word < d->words; word++)
            f->sums[i][word] += w->size;
    }
    end_all(f, d, 2, EVERYBODY);
}

static void check_round(const field_t *f, const draw_t *d)
{
    for (int i = 0; i < f->n; i++) {
        const tl_window_t *w = &f->w[i];

        check_place(f, mine(w, SHARED_PLACE), d, i, 1, "puts behind puts");
        check_place(f, mine(w, OWN_PLACE), d, i, 2, "stores behind puts");
        TL_BYTES(mine(w, SUMS), f->sums[i], WORDS * sizeof(int64_t), "round %d: sums", d->round);
        for (int t = 0; t < w->size && w->rank == d->reader; t++) {
            check_place(f, f->got[SHARED_PLACE][i] + t * WORDS, d, i, 1, "gets behind puts");
            check_place(f, f->got[OWN_PLACE][i] + t * WORDS, d, i, 2, "gets behind stores");
        }
    }
}

static void one_round(field_t *f, int round)
{
    const draw_t d = draw_round(f, round);

    for (int i = 0; i < f->n; i++) {
        for (int word = 0; word < d.words; word++) {
            f->values[0][i][word] = value_of(&d, i, 0, word);
            f->values[1][i][word] = value_of(&d, i, 1, word);
        }
    }
    first_epoch(f, &d);
    second_epoch(f, &d);
    third_epoch(f, &d);
    check_round(f, &d);
    /* Nobody overwrites what others still look at: no transfer has come before this one. */
    for (int i = 0; i < f->n && f->sync == FENCES; i++)
        TL_MPI(MPI_Win_fence(round % 2 == 0 ? MPI_MODE_NOPRECEDE : 0, f->w[i].win));
}

/* ---- program ---- */

static void make_windows(field_t *f, tl_kind_t kind)
{
    const MPI_Aint bytes = (MPI_Aint)PLACES * WORDS * (MPI_Aint)sizeof(int64_t);

    for (int i = 0; i < f->n; i++) {
        f->w[i] = tl_win_make(i == 0 ? kind : TL_CREATE, bytes, sizeof(int64_t), MPI_COMM_WORLD,
                              MPI_INFO_NULL);
        f->sums[i] = tl_alloc(WORDS * sizeof(int64_t));
        for (int e = 0; e < 2; e++) {
            f->values[e][i] = tl_alloc(WORDS * sizeof(int64_t));
            f->got[e][i] = tl_alloc((size_t)f->w[i].size * WORDS * sizeof(int64_t));
        }
    }
    f->ones = tl_alloc(WORDS * sizeof(int64_t));
    for (int word = 0; word < WORDS; word++)
        f->ones[word] = 1;
    MPI_Comm_group(f->w[0].comm, &f->all);
}

static void free_windows(field_t *f)
{
    MPI_Group_free(&f->all);
    free(f->ones);
    for (int i = 0; i < f->n; i++) {
        free(f->sums[i]);
        for (int e = 0; e < 2; e++) {
            free(f->values[e][i]);
            free(f->got[e][i]);
        }
        tl_win_free(&f->w[i]);
    }
}

static void try(tl_kind_t kind, sync_t sync, int windows)
{
    field_t f = {.n = windows, .sync = sync, .rng = tl_rng(tl_seed(), (uint64_t)sync)};
    const int rounds = (tl_slow() ? 4 : (tl_large() ? 24 : 12) / windows) * tl_factor();

    make_windows(&f, kind);
    for (int i = 0; i < f.n && sync == FENCES; i++)
        TL_MPI(MPI_Win_fence(0, f.w[i].win));
    for (int round = 1; round <= rounds; round++)
        one_round(&f, round);
    free_windows(&f);
}

/** Ranks may differ in what they force. */
static void mix_methods(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK"), *size = getenv("OMPI_COMM_WORLD_SIZE");

    if (rank != NULL && size != NULL && strcmp(size, "3") == 0 && strcmp(rank, "1") == 0)
        setenv("OMPI_MCA_osc_nicstride_method", "pack", 0);
}

int main(int argc, char **argv)
{
    mix_methods();
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        for (sync_t sync = FENCES; sync < SYNCS; sync++) {
            try(kind, sync, 1);
            try(kind, sync, WINDOWS);
        }
    }
    return tl_finish();
}
