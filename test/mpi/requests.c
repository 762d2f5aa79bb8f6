/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: create allocate dynamic shared */
/**
 * @file
 * The calls that give a request: MPI_Rput, MPI_Rget, MPI_Raccumulate, MPI_Rget_accumulate. They
 * complete one by one, by every MPI completion call, mixed with other requests, or are freed.
 */
#include <stdlib.h>
#include <string.h>

#include "test/mpi/testlib.h"

/** Doubles of one piece; pieces are strided at the target. */
#define PIECE  700
#define PIECES 12
#define SLOT   ((MPI_Aint)(2 * PIECE * PIECES * sizeof(double)))

/** The test's requests and buffers. */
typedef struct pieces {
    double out[PIECES][PIECE], in[PIECES][PIECE];
    MPI_Request requests[PIECES];
    MPI_Datatype strided; /**< a piece at the target: every second double */
    int target;
} pieces_t;

static MPI_Aint piece_at(const tl_window_t *w, int target, int piece)
{
    MPI_Aint bytes = (MPI_Aint)(2 * PIECE * sizeof(double));

    return tl_disp(w, target, w->rank * SLOT + piece * bytes);
}

static void prepare(const tl_window_t *w, pieces_t *p, int target, double base)
{
    p->target = target;
    for (int i = 0; i < PIECES; i++) {
        for (int k = 0; k < PIECE; k++) {
            p->out[i][k] = base + 1000.0 * i + k + 100000.0 * w->rank;
            p->in[i][k] = -1;
        }
    }
}

static void rput(const tl_window_t *w, pieces_t *p, int i)
{
    TL_MPI(MPI_Rput(p->out[i], PIECE, MPI_DOUBLE, p->target, piece_at(w, p->target, i), 1,
                    p->strided, w->win, &p->requests[i]));
}

static void rget(const tl_window_t *w, pieces_t *p, int i)
{
    TL_MPI(MPI_Rget(p->in[i], PIECE, MPI_DOUBLE, p->target, piece_at(w, p->target, i), 1,
                    p->strided, w->win, &p->requests[i]));
}

static void raccumulate(const tl_window_t *w, pieces_t *p, int i, MPI_Op op)
{
    TL_MPI(MPI_Raccumulate(p->out[i], PIECE, MPI_DOUBLE, p->target, piece_at(w, p->target, i), 1,
                           p->strided, op, w->win, &p->requests[i]));
}

/** Piece i came back as `factor` times what was sent. */
static void check_piece(const pieces_t *p, int i, double factor, const char *what)
{
    int wrong = 0;

    for (int k = 0; k < PIECE; k++)
        wrong += p->in[i][k] != factor * p->out[i][k];
    TL_CHECK(wrong == 0, "%s: %d of %d wrong in piece %d from %d; the first %g, not %g", what,
             wrong, PIECE, i, p->target, p->in[i][0], factor * p->out[i][0]);
}

/** Puts pieces; complete locally, so buffers may be used again before any flush. */
static void put_all(const tl_window_t *w, pieces_t *p)
{
    for (int i = 0; i < PIECES; i++)
        rput(w, p, i);
    TL_MPI(MPI_Waitall(PIECES, p->requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < PIECES; i++) {
        double keep = p->out[i][0];

        TL_CHECK(p->requests[i] == MPI_REQUEST_NULL, "request %d not released", i);
        p->out[i][0] = -5;
        TL_MPI(MPI_Win_flush(p->target, w->win));
        p->out[i][0] = keep;
    }
}

/** An arrived rget has its data although nobody flushed. */
static void get_by_waitall(const tl_window_t *w, pieces_t *p)
{
    for (int i = 0; i < PIECES; i++)
        rget(w, p, i);
    TL_MPI(MPI_Waitall(PIECES, p->requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < PIECES; i++)
        check_piece(p, i, 1, "waitall");
}

/** Each is waited for alone, in another order than they were made. */
static void get_one_by_one(const tl_window_t *w, pieces_t *p)
{
    for (int i = 0; i < PIECES; i++)
        rget(w, p, i);
    for (int i = PIECES - 1; i >= 0; i -= 2) {
        TL_MPI(MPI_Wait(&p->requests[i], MPI_STATUS_IGNORE));
        check_piece(p, i, 1, "wait");
    }
    for (int i = 0; i < PIECES; i += 2) {
        int done = 0;

        while (!done)
            TL_MPI(MPI_Test(&p->requests[i], &done, MPI_STATUS_IGNORE));
        check_piece(p, i, 1, "test");
    }
}

static void get_by_waitany(const tl_window_t *w, pieces_t *p)
{
    int index, seen[PIECES] = {0};

    for (int i = 0; i < PIECES; i++)
        rget(w, p, i);
    for (int i = 0; i < PIECES; i++) {
        TL_MPI(MPI_Waitany(PIECES, p->requests, &index, MPI_STATUS_IGNORE));
        if (TL_CHECK(index >= 0 && index < PIECES && !seen[index], "waitany says %d", index)) {
            seen[index] = 1;
            check_piece(p, index, 1, "waitany");
        }
    }
    TL_MPI(MPI_Waitany(PIECES, p->requests, &index, MPI_STATUS_IGNORE));
    TL_CHECK(index == MPI_UNDEFINED, "waitany without requests says %d", index);
}

/** MPI_Request_get_status leaves the request; some and all forms of the completion calls. */
static void get_by_status_and_some(const tl_window_t *w, pieces_t *p)
{
    int done = 0, left = PIECES - 1, count, indices[PIECES];

    for (int i = 0; i < PIECES; i++)
        rget(w, p, i);
    while (!done)
        TL_MPI(MPI_Request_get_status(p->requests[0], &done, MPI_STATUS_IGNORE));
    TL_CHECK(p->requests[0] != MPI_REQUEST_NULL, "get_status released the request");
    check_piece(p, 0, 1, "get_status");
    TL_MPI(MPI_Wait(&p->requests[0], MPI_STATUS_IGNORE));
    while (left > 0 && tl_failed() == 0) {
        TL_MPI(MPI_Waitsome(PIECES, p->requests, &count, indices, MPI_STATUSES_IGNORE));
        for (int i = 0; i < count; i++)
            check_piece(p, indices[i], 1, "waitsome");
        left -= count;
    }
    done = 0;
    TL_MPI(MPI_Testall(PIECES, p->requests, &done, MPI_STATUSES_IGNORE));
    TL_CHECK(done, "testall with null requests only");
}

/** More than may be under way at a time, and short, so that all acknowledgements come along with
 *  data: what was held back must go on by them, since nobody flushes. */
static void get_many_short(const tl_window_t *w, pieces_t *p)
{
    enum { MANY = 3000 };
    static MPI_Request requests[MANY];
    static double in[MANY];
    int wrong = 0;

    for (int i = 0; i < MANY; i++) {
        const MPI_Aint place = (MPI_Aint)(2 * sizeof(double)) * (i % PIECE);
        const MPI_Aint at = tl_disp(w, p->target, w->rank * SLOT + place);

        if (i % 3 == 2) {
            TL_MPI(MPI_Rget_accumulate(NULL, 0, MPI_DOUBLE, &in[i], 1, MPI_DOUBLE, p->target, at, 1,
                                       MPI_DOUBLE, MPI_NO_OP, w->win, &requests[i]));
        } else {
            TL_MPI(MPI_Rget(&in[i], 1, MPI_DOUBLE, p->target, at, 1, MPI_DOUBLE, w->win,
                            &requests[i]));
        }
    }
    TL_MPI(MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < MANY; i++)
        wrong += in[i] != p->out[0][i % PIECE];
    TL_CHECK(wrong == 0, "%d of many short ones from %d are wrong", wrong, p->target);
}

/** Accumulates with and without results, in order, mixed in one array of requests. */
static void accumulate_all(const tl_window_t *w, pieces_t *p)
{
    MPI_Request more[PIECES];

    for (int i = 0; i < PIECES; i++) {
        raccumulate(w, p, i, MPI_REPLACE);
        TL_MPI(MPI_Rget_accumulate(p->out[i], PIECE, MPI_DOUBLE, p->in[i], PIECE, MPI_DOUBLE,
                                   p->target, piece_at(w, p->target, i), 1, p->strided, MPI_SUM,
                                   w->win, &more[i]));
    }
    TL_MPI(MPI_Waitall(PIECES, more, MPI_STATUSES_IGNORE));
    for (int i = 0; i < PIECES; i++)
        check_piece(p, i, 1, "rget_accumulate");
    TL_MPI(MPI_Waitall(PIECES, p->requests, MPI_STATUSES_IGNORE));
    TL_MPI(MPI_Win_flush(p->target, w->win));
    for (int i = 0; i < PIECES; i++) {
        rget(w, p, i);
        TL_MPI(MPI_Wait(&p->requests[i], MPI_STATUS_IGNORE));
        check_piece(p, i, 2, "rget after rget_accumulate");
    }
}

/**
 * Frees a request under way. The standard leaves this undefined and some refuse it; then it is
 * waited for, unless the option -strict says that freeing has to work.
 */
static void release(MPI_Request *request)
{
    int code = MPI_Request_free(request);

    if (code != MPI_SUCCESS && !tl_strict())
        TL_MPI(MPI_Wait(request, MPI_STATUS_IGNORE));
    else
        TL_MPI(code);
    TL_CHECK(*request == MPI_REQUEST_NULL, "released request has a handle");
}

/** Requests freed while under way: the transfer goes on and the flush completes it. */
static void free_before_completion(const tl_window_t *w, pieces_t *p)
{
    for (int i = 0; i < PIECES; i++) {
        rput(w, p, i);
        release(&p->requests[i]);
    }
    TL_MPI(MPI_Win_flush(p->target, w->win));
    for (int i = 0; i < PIECES; i++) {
        rget(w, p, i);
        release(&p->requests[i]);
    }
    TL_MPI(MPI_Win_flush(p->target, w->win));
    for (int i = 0; i < PIECES; i++) {
        check_piece(p, i, 1, "freed");
        raccumulate(w, p, i, MPI_SUM);
        release(&p->requests[i]);
    }
    TL_MPI(MPI_Win_flush(p->target, w->win));
    for (int i = 0; i < PIECES; i++)
        rget(w, p, i);
    TL_MPI(MPI_Waitall(PIECES, p->requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < PIECES; i++)
        check_piece(p, i, 2, "freed accumulate");
}

/** To nobody, of nothing, and in company of point-to-point requests. */
static void corners(const tl_window_t *w, pieces_t *p)
{
    int next = (w->rank + 1) % w->size, from = (w->rank + w->size - 1) % w->size, got = -1;
    MPI_Request r[6];
    MPI_Status statuses[6];

    TL_MPI(MPI_Rput(p->out, 5, MPI_DOUBLE, MPI_PROC_NULL, 0, 5, MPI_DOUBLE, w->win, &r[0]));
    TL_MPI(MPI_Rget(p->in, 0, MPI_DOUBLE, p->target, piece_at(w, p->target, 0), 0, MPI_DOUBLE,
                    w->win, &r[1]));
    TL_MPI(MPI_Irecv(&got, 1, MPI_INT, from, 3, w->comm, &r[2]));
    TL_MPI(MPI_Isend(&w->rank, 1, MPI_INT, next, 3, w->comm, &r[3]));
    TL_MPI(MPI_Rget(p->in[1], PIECE, MPI_DOUBLE, p->target, piece_at(w, p->target, 1), 1,
                    p->strided, w->win, &r[4]));
    TL_MPI(MPI_Raccumulate(p->out, 0, MPI_INT, p->target, piece_at(w, p->target, 1), 0, MPI_INT,
                           MPI_SUM, w->win, &r[5]));
    TL_MPI(MPI_Waitall(6, r, statuses));
    TL_CHECK(got == from, "%d arrived from %d", got, from);
    check_piece(p, 1, 2, "beside a message");
}

static void try_target(const tl_window_t *w, pieces_t *p, int target)
{
    prepare(w, p, target, 1);
    TL_MPI(MPI_Win_lock_all(0, w->win));
    put_all(w, p);
    get_by_waitall(w, p);
    get_many_short(w, p);
    prepare(w, p, target, 2);
    put_all(w, p);
    get_one_by_one(w, p);
    prepare(w, p, target, 3);
    put_all(w, p);
    get_by_waitany(w, p);
    prepare(w, p, target, 4);
    put_all(w, p);
    get_by_status_and_some(w, p);
    prepare(w, p, target, 5);
    accumulate_all(w, p);
    prepare(w, p, target, 6);
    free_before_completion(w, p);
    corners(w, p);
    TL_MPI(MPI_Win_unlock_all(w->win));
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    pieces_t *p = tl_alloc(sizeof(*p));

    MPI_Type_vector(PIECE, 1, 2, MPI_DOUBLE, &p->strided);
    MPI_Type_commit(&p->strided);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        tl_window_t w = tl_win_make(kind, tl_size() * SLOT, 8, MPI_COMM_WORLD, MPI_INFO_NULL);

        for (int i = 0; i < w.size * tl_factor(); i++)
            try_target(&w, p, (w.rank + i) % w.size);
        tl_win_free(&w);
    }
    MPI_Type_free(&p->strided);
    free(p);
    return tl_finish();
}
