/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: create allocate dynamic shared */
/* threads: multiple */
/**
 * @file
 * Bugs that once were, one function for each, with what was wrong.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create */
#endif
#include "test/mpi/testlib.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/** Seconds after which a thread no longer believes that another will get on. */
#define PATIENCE TL_PATIENCE

static int next_of(const tl_window_t *w)
{
    return (w->rank + 1) % w->size;
}

/* ---- flushes beside a sender ---- */

enum { FLUSHES = 3, IN_FLIGHT = 64, SENT_LONGS = 1 << 17 };

/** What the threads of a rank share. The sender has all longs of the next rank but two. */
typedef struct traffic {
    const tl_window_t *w;
    void (*send)(struct traffic *);
    atomic_int flushing;
    atomic_bool out_of_patience;
} traffic_t;

static MPI_Aint long_at(const tl_window_t *w, int index)
{
    return tl_disp(w, next_of(w), index * (MPI_Aint)sizeof(long));
}

/** The flushes must not need that the sender stops; it gives up in the end. */
static bool may_stop(traffic_t *t, double begin)
{
    if (MPI_Wtime() - begin > PATIENCE)
        atomic_store(&t->out_of_patience, true);
    return t->out_of_patience || atomic_load(&t->flushing) == 0;
}

/** As soon as one put is over, the next: more are under way than one slice of time can move. */
static void send_large(traffic_t *t)
{
    static const long data[SENT_LONGS];
    MPI_Request requests[IN_FLIGHT];
    double begin = MPI_Wtime();
    int next = next_of(t->w), i = 0, longs = tl_slow() ? SENT_LONGS / 16 : SENT_LONGS;

    for (int r = 0; r < IN_FLIGHT; r++)
        requests[r] = MPI_REQUEST_NULL;
    while (!may_stop(t, begin)) {
        TL_MPI(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
        TL_MPI(MPI_Rput(data, longs, MPI_LONG, next, long_at(t->w, 2), longs, MPI_LONG, t->w->win,
                        &requests[i]));
        i = (i + 1) % IN_FLIGHT;
    }
    TL_MPI(MPI_Waitall(IN_FLIGHT, requests, MPI_STATUSES_IGNORE));
}

/** Each of its flushes lets messages go that another thread's flush would like to hold back. */
static void send_and_flush(traffic_t *t)
{
    double begin = MPI_Wtime();
    int next = next_of(t->w);
    const long one = 1;

    while (!may_stop(t, begin)) {
        TL_MPI(MPI_Put(&one, 1, MPI_LONG, next, long_at(t->w, 2), 1, MPI_LONG, t->w->win));
        TL_MPI(MPI_Win_flush_local(next, t->w->win));
    }
}

static void *send_on(void *arg)
{
    traffic_t *t = arg;

    t->send(t);
    return NULL;
}

/** Each flush completes what this thread put before; `index` is that of its own long. */
static void put_and_flush(traffic_t *t, int index, int (*flush)(int, MPI_Win))
{
    MPI_Aint disp = long_at(t->w, index);
    int next = next_of(t->w);

    for (long i = 1; i <= FLUSHES; i++) {
        long got = -1;

        TL_MPI(MPI_Put(&i, 1, MPI_LONG, next, disp, 1, MPI_LONG, t->w->win));
        TL_MPI(MPI_Win_flush(next, t->w->win));
        TL_MPI(MPI_Get(&got, 1, MPI_LONG, next, disp, 1, MPI_LONG, t->w->win));
        TL_MPI(flush(next, t->w->win));
        TL_CHECK(got == i, "%ld, not %ld", got, i);
    }
    atomic_fetch_sub(&t->flushing, 1);
}

static void *flush_remotely(void *arg)
{
    put_and_flush(arg, 0, MPI_Win_flush);
    return NULL;
}

static void *flush_locally(void *arg)
{
    put_and_flush(arg, 1, MPI_Win_flush_local);
    return NULL;
}

/**
 * A flush waited until nothing was under way to the target, which another thread that kept sending
 * put off for ever; and a local flush waited for a remote one of another thread.
 */
static void test_flushes_beside_sender(tl_kind_t kind, void (*send)(traffic_t *))
{
    tl_window_t w = tl_win_make(kind, (SENT_LONGS + 2) * (MPI_Aint)sizeof(long), sizeof(long),
                                MPI_COMM_WORLD, MPI_INFO_NULL);
    void *(*const bodies[])(void *) = {send_on, flush_remotely, flush_locally};
    traffic_t t = {.w = &w, .send = send, .flushing = 2};
    pthread_t threads[3];

    tl_begin(&w, TL_LOCK_ALL);
    for (int i = 0; i < 3; i++)
        if (pthread_create(&threads[i], NULL, bodies[i], &t) != 0)
            MPI_Abort(MPI_COMM_WORLD, TL_EXIT_FAILED);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    TL_CHECK(!t.out_of_patience, "%s: flushes last as long as another thread sends%s",
             tl_kind_name(kind), send == send_and_flush ? " and flushes" : "");
    tl_end(&w, TL_LOCK_ALL);
    tl_win_free(&w);
}

/* ---- nearly 2 GiB ---- */

#define GIBI ((size_t)1 << 30)
#define REAL ((size_t)16 << 20)

/** 2 GiB of addresses, again and again the same 16 MiB of memory; NULL where there are none. */
static unsigned char *two_gibi(void)
{
    int fd = memfd_create("regressions", 0);
    unsigned char *base = MAP_FAILED;

    if (fd >= 0 && ftruncate(fd, (off_t)REAL) == 0)
        base = mmap(NULL, 2 * GIBI, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (size_t at = 0; at < 2 * GIBI && base != MAP_FAILED; at += REAL) {
        if (mmap(base + at, REAL, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
            MAP_FAILED) {
            munmap(base, 2 * GIBI);
            base = MAP_FAILED;
        }
    }
    if (fd >= 0)
        close(fd);
    return base != MAP_FAILED ? base : NULL;
}

/** Rank 0 gets all but eight bytes of rank 1's 2 GiB. */
static void get_two_blocks(MPI_Win win, unsigned char *origin)
{
    const int lengths[2] = {(int)(GIBI - 8), (int)GIBI};
    const MPI_Aint at[2] = {0, (MPI_Aint)GIBI};
    unsigned char *want = tl_alloc(REAL);
    MPI_Datatype type;

    MPI_Type_create_hindexed(2, lengths, at, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    tl_fill_random(want, REAL, tl_seed());
    TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win));
    TL_MPI(MPI_Get(origin, 1, type, 1, 0, 1, type, win));
    TL_MPI(MPI_Win_unlock(1, win));
    TL_BYTES(origin, want, REAL, "2 GiB from rank 1");
    MPI_Type_free(&type);
    free(want);
}

/**
 * Single copy gave the kernel up to 2 GiB - 1 in one call; the kernel moves a page less, and the
 * rest was taken for memory that does not exist.
 */
static void test_two_gibi(void)
{
    unsigned char *memory = tl_rank() < 2 ? two_gibi() : NULL;
    int have = tl_rank() >= 2 || memory != NULL, all_have;
    MPI_Win win;

    MPI_Allreduce(&have, &all_have, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    if (all_have) {
        if (tl_rank() == 1)
            tl_fill_random(memory, REAL, tl_seed());
        TL_MPI(MPI_Win_create(memory, tl_rank() == 1 ? 2 * GIBI : 0, 1, MPI_INFO_NULL,
                              MPI_COMM_WORLD, &win));
        TL_MPI(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
        if (tl_rank() == 0)
            get_two_blocks(win, memory);
        TL_MPI(MPI_Win_free(&win));
    }
    if (memory != NULL)
        munmap(memory, 2 * GIBI);
}

/* ---- many requests, and memory that is mapped anew ---- */

/** With other components so many requests at once were too many (open-mpi/ompi 14192). */
static void test_requests(tl_kind_t kind)
{
    enum { DOUBLES = 500 };
    tl_window_t window =
                    tl_win_make(kind, DOUBLES * sizeof(double), 1, MPI_COMM_WORLD, MPI_INFO_NULL),
                *w = &window;
    const int n = tl_slow() ? 3000 : 100000;
    MPI_Request *requests = tl_alloc((size_t)n * sizeof(*requests));
    int *values = tl_alloc((size_t)n * sizeof(*values));
    const int each = 2 * DOUBLES / w->size, next = (w->rank + 1) % w->size;

    TL_MPI(MPI_Win_lock_all(0, w->win));
    for (int i = 0; i < n; i++) {
        const MPI_Aint place = (w->rank * each + i % each) * (MPI_Aint)sizeof(int);

        values[i] = i;
        TL_MPI(MPI_Rput(&values[i], 1, MPI_INT, next, tl_disp(w, next, place), 1, MPI_INT, w->win,
                        &requests[i]));
    }
    TL_MPI(MPI_Waitall(n, requests, MPI_STATUSES_IGNORE));
    TL_MPI(MPI_Win_unlock_all(w->win));
    MPI_Barrier(w->comm);
    const int before = (w->rank + w->size - 1) % w->size;
    /* Puts to one place are not ordered. */
    for (int i = 0; i < each && i < n; i++) {
        const int got = ((int *)w->base)[before * each + i];

        TL_CHECK(got < n && got % each == i, "%d at %d", got, i);
    }
    free(requests);
    free(values);
    tl_win_free(w);
}

/** The pages of the window are others at the same address, between epochs and while others put to
 *  the pages beside them: no copy, key or registration may still mean the former ones. */
static void test_remap(void)
{
    enum { PAGE = 4096, ROUNDS = 6 };
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS, next = (tl_rank() + 1) % tl_size();
    unsigned char *memory = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);
    unsigned char data[PAGE];
    MPI_Win win;

    if (memory == MAP_FAILED)
        return;
    TL_MPI(MPI_Win_create(memory, 2 * PAGE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    for (int k = 0; k < ROUNDS; k++) {
        const int page = k % 2;

        memset(data, k + 1, sizeof(data));
        TL_MPI(MPI_Win_fence(0, win));
        TL_MPI(MPI_Put(data, PAGE, MPI_BYTE, next, (1 - page) * PAGE, PAGE, MPI_BYTE, win));
        TL_CHECK(mmap(memory + page * PAGE, PAGE, PROT_READ | PROT_WRITE, flags | MAP_FIXED, -1,
                      0) == memory + page * PAGE,
                 "mmap failed");
        TL_MPI(MPI_Win_fence(0, win));
        TL_FILL(memory + (1 - page) * PAGE, (unsigned char)(k + 1), PAGE, "round %d", k);
        TL_FILL(memory + page * PAGE, 0, PAGE, "the new page, round %d", k);
        TL_MPI(MPI_Win_fence(0, win));
        TL_MPI(MPI_Put(data, PAGE, MPI_BYTE, next, page * PAGE, PAGE, MPI_BYTE, win));
        TL_MPI(MPI_Win_fence(0, win));
        TL_FILL(memory + page * PAGE, (unsigned char)(k + 1), PAGE, "onto it, round %d", k);
    }
    TL_MPI(MPI_Win_free(&win));
    munmap(memory, 2 * PAGE);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_MULTIPLE);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        test_flushes_beside_sender(kind, send_large);
        test_flushes_beside_sender(kind, send_and_flush);
        test_requests(kind);
        if (kind == TL_CREATE)
            test_remap();
        if (kind == TL_CREATE && tl_size() > 1 && !tl_slow())
            test_two_gibi();
    }
    return tl_finish();
}
