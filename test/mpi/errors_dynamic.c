/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: dynamic */
/**
 * @file
 * Dynamic windows at their edges: memory that was never attached, is no longer, or lies partly
 * beyond its region; regions that overlap or were never there; and regions that come and go while
 * others are used. A thousand regions: dynamic. Required is that nothing outside attached memory is
 * written and that the window works afterwards; that errors are noticed, and their class, are
 * quality. Arguments that name a case run only that case.
 */
#include "test/mpi/testlib.h"

#include <stdlib.h>
#include <string.h>

/** Bytes of a region; two of them and a gap make up what a rank has. */
#define BYTES 4096

/** A window without memory, and what the ranks must know of each other. */
typedef struct field {
    tl_window_t w;
    unsigned char *memory; /**< of 4 * BYTES */
    MPI_Aint *addresses;   /**< where everybody's memory is */
    int next;
} field_t;

static field_t make_field(void)
{
    field_t f = {.w = tl_win_make(TL_DYNAMIC, 0, 1, MPI_COMM_WORLD, MPI_INFO_NULL)};
    MPI_Aint mine;

    f.memory = tl_alloc(4 * BYTES);
    f.addresses = tl_alloc((size_t)f.w.size * sizeof(MPI_Aint));
    f.next = tl_next(&f.w);
    MPI_Get_address(f.memory, &mine);
    MPI_Allgather(&mine, 1, MPI_AINT, f.addresses, 1, MPI_AINT, f.w.comm);
    return f;
}

static void end_field(field_t *f)
{
    tl_win_free(&f->w);
    free(f->addresses);
    free(f->memory);
}

/** Puts and gets n bytes at `offset` of the next rank's memory; class of the first error. */
static int reach(const field_t *f, MPI_Aint offset, int n)
{
    unsigned char data[64], got[64] = {0};
    MPI_Aint disp = MPI_Aint_add(f->addresses[f->next], offset);
    int code, get_code, late;

    memset(data, 0x66, sizeof(data));
    TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, f->next, 0, f->w.win));
    code = MPI_Put(data, n, MPI_BYTE, f->next, disp, n, MPI_BYTE, f->w.win);
    late = MPI_Win_flush(f->next, f->w.win);
    code = code ? code : late;
    late = MPI_Get(got, n, MPI_BYTE, f->next, disp, n, MPI_BYTE, f->w.win);
    get_code = MPI_Win_flush(f->next, f->w.win);
    get_code = late ? late : get_code;
    TL_CHECK((get_code == MPI_SUCCESS) == (code == MPI_SUCCESS), "put %d, get %d", code, get_code);
    TL_CHECK(code != MPI_SUCCESS || memcmp(got, data, (size_t)n) == 0, "got other than was put");
    TL_MPI(MPI_Win_unlock(f->next, f->w.win));
    return tl_class(code);
}

static void check_good(const field_t *f, MPI_Aint offset, int n, const char *what)
{
    int class = reach(f, offset, n);

    TL_CHECK(class == MPI_SUCCESS, "%s: error class %d", what, class);
}

static void check_bad(const field_t *f, MPI_Aint offset, int n, const char *what)
{
    int class = reach(f, offset, n);

    TL_CHECK(class == MPI_ERR_RMA_RANGE || class == MPI_ERR_RMA_ATTACH, "%s: error class %d", what,
             class);
}

static void try_unattached(int distance)
{
    field_t f = make_field();

    f.next = (f.w.rank + distance) % f.w.size;
    check_bad(&f, 0, 8, "nothing is attached");
    MPI_Barrier(f.w.comm);
    TL_MPI(MPI_Win_attach(f.w.win, f.memory + BYTES, BYTES));
    MPI_Barrier(f.w.comm);
    check_good(&f, BYTES, 8, "start of the region");
    check_good(&f, 2 * BYTES - 8, 8, "end of the region");
    check_bad(&f, 2 * BYTES - 7, 8, "across its end");
    check_bad(&f, BYTES - 1, 8, "across its start");
    check_bad(&f, 2 * BYTES, 8, "behind it");
    check_bad(&f, 0, 8, "before it");
    check_bad(&f, -f.addresses[f.next], 8, "address 0");
    check_bad(&f, (MPI_Aint)((uint64_t)INT64_MAX - (uint64_t)f.addresses[f.next]) - 3, 8,
              "the highest address");
    check_good(&f, BYTES + 100, 8, "the region afterwards");
    MPI_Barrier(f.w.comm);
    TL_FILL(f.memory, 0, BYTES, "memory before the region");
    TL_FILL(f.memory + 2 * BYTES, 0, 2 * BYTES, "memory behind the region");
    TL_MPI(MPI_Win_detach(f.w.win, f.memory + BYTES));
    end_field(&f);
}

/** Memory of others, which they check, and own memory. */
static void test_unattached(void)
{
    try_unattached(1);
    try_unattached(0);
}

/** What has been used and is detached must be refused, though its owner still has the memory. */
static void test_detached(void)
{
    field_t f = make_field();

    for (int round = 0; round < 3; round++) {
        TL_MPI(MPI_Win_attach(f.w.win, f.memory, BYTES));
        MPI_Barrier(f.w.comm);
        check_good(&f, 16, 8, "attached");
        MPI_Barrier(f.w.comm);
        TL_MPI(MPI_Win_detach(f.w.win, f.memory));
        memset(f.memory, 0, BYTES);
        MPI_Barrier(f.w.comm);
        check_bad(&f, 16, 8, "detached");
        MPI_Barrier(f.w.comm);
        TL_FILL(f.memory, 0, BYTES, "detached memory was written");
        TL_MPI(MPI_Win_attach(f.w.win, f.memory, BYTES / 2));
        MPI_Barrier(f.w.comm);
        check_good(&f, 16, 8, "attached again");
        check_bad(&f, BYTES / 2, 8, "attached again, but shorter");
        MPI_Barrier(f.w.comm);
        TL_MPI(MPI_Win_detach(f.w.win, f.memory));
    }
    end_field(&f);
}

static void refuse(int code, const char *what)
{
    const int class = tl_class(code);

    TL_CHECK(class == MPI_ERR_RMA_ATTACH || class == MPI_ERR_RMA_RANGE || class == MPI_ERR_ARG ||
                 class == MPI_ERR_BASE,
             "%s: error class %d", what, class);
}

static void test_attach(void)
{
    field_t f = make_field();

    refuse(MPI_Win_detach(f.w.win, f.memory), "detach of what never was attached");
    TL_MPI(MPI_Win_attach(f.w.win, f.memory + BYTES, BYTES));
    refuse(MPI_Win_attach(f.w.win, f.memory + BYTES, BYTES), "attach of the same again");
    refuse(MPI_Win_attach(f.w.win, f.memory + 2 * BYTES - 1, 16), "attach of the last byte");
    refuse(MPI_Win_attach(f.w.win, f.memory, BYTES + 1), "attach up to the first byte");
    refuse(MPI_Win_attach(f.w.win, f.memory, 4 * BYTES), "attach around");
    refuse(MPI_Win_attach(f.w.win, f.memory + BYTES + 8, 8), "attach within");
    refuse(MPI_Win_detach(f.w.win, f.memory + BYTES + 8), "detach within");
    TL_MPI(MPI_Win_attach(f.w.win, f.memory, BYTES));
    TL_MPI(MPI_Win_attach(f.w.win, f.memory + 2 * BYTES, BYTES));
    MPI_Barrier(f.w.comm);
    check_good(&f, 0, 8, "the region below");
    check_good(&f, BYTES, 8, "the region between");
    check_good(&f, 3 * BYTES - 8, 8, "the region above");
    MPI_Barrier(f.w.comm);
    TL_MPI(MPI_Win_detach(f.w.win, f.memory + BYTES));
    refuse(MPI_Win_detach(f.w.win, f.memory + BYTES), "detach of the same again");
    MPI_Barrier(f.w.comm);
    check_bad(&f, BYTES, 8, "the region that was between");
    check_good(&f, 3 * BYTES - 8, 8, "the region above, the middle one gone");
    MPI_Barrier(f.w.comm);
    TL_MPI(MPI_Win_detach(f.w.win, f.memory));
    TL_MPI(MPI_Win_detach(f.w.win, f.memory + 2 * BYTES));
    end_field(&f);
}

/** required: regions come and go at one end while the other end of the window is in use. */
static void test_churn(void)
{
    field_t f = make_field();

    TL_MPI(MPI_Win_attach(f.w.win, f.memory, BYTES));
    MPI_Barrier(f.w.comm);
    for (int i = 0; i < 100; i++) {
        TL_MPI(MPI_Win_attach(f.w.win, f.memory + 2 * BYTES + i, 64));
        check_good(&f, 8 * i, 8, "the region that stays");
        TL_MPI(MPI_Win_detach(f.w.win, f.memory + 2 * BYTES + i));
    }
    MPI_Barrier(f.w.comm);
    TL_FILL(f.memory, 0x66, 800, "what was put while regions came and went");
    TL_MPI(MPI_Win_detach(f.w.win, f.memory));
    end_field(&f);
}

/** A request that is freed before it is over cannot tell of an error: the next flush does. Where
 *  the answer was quicker the request keeps it, so it is tried again. */
static void test_freed_request(void)
{
    field_t f = make_field();
    int class = MPI_SUCCESS;

    TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, f.next, 0, f.w.win));
    for (int i = 0; i < 100 && class == MPI_SUCCESS; i++) {
        const MPI_Aint disp = f.addresses[f.next];
        char got[8];
        MPI_Request r;
        int code = MPI_Rget(got, 8, MPI_BYTE, f.next, disp, 8, MPI_BYTE, f.w.win, &r);

        if (code == MPI_SUCCESS) {
            TL_MPI(MPI_Request_free(&r));
            code = MPI_Win_flush(f.next, f.w.win);
        }
        class = tl_class(code);
    }
    TL_CHECK(class == MPI_ERR_RMA_RANGE || class == MPI_ERR_RMA_ATTACH,
             "a freed request to unattached memory: error class %d", class);
    (void)MPI_Win_unlock(f.next, f.w.win);
    end_field(&f);
}

/** required: of a row of puts, or gets, that travel together one is bad where the target alone can
 *  see that. The others are done, and the error is told once. */
static void test_row(void)
{
    enum { ROW = 40, BAD = 17 };
    field_t f = make_field();
    uint64_t source[ROW], result[ROW];

    TL_MPI(MPI_Win_attach(f.w.win, f.memory, BYTES));
    MPI_Barrier(f.w.comm);
    TL_MPI(MPI_Win_lock_all(0, f.w.win));
    for (int gets = 0; gets < 2; gets++) {
        int code = MPI_SUCCESS, late;

        for (int i = 0; i < ROW; i++) {
            const MPI_Aint disp =
                i == BAD ? 64 : MPI_Aint_add(f.addresses[f.next], i * (MPI_Aint)sizeof(uint64_t));

            source[i] = UINT64_C(0x0101010101010101) * (unsigned)(i + 1);
            result[i] = 0;
            late = gets ? MPI_Get(&result[i], 8, MPI_BYTE, f.next, disp, 8, MPI_BYTE, f.w.win)
                        : MPI_Put(&source[i], 8, MPI_BYTE, f.next, disp, 8, MPI_BYTE, f.w.win);
            code = code ? code : late;
        }
        late = MPI_Win_flush(f.next, f.w.win);
        const int class = tl_class(code ? code : late);
        TL_CHECK(class == MPI_ERR_RMA_RANGE || class == MPI_ERR_RMA_ATTACH, "error class %d",
                 class);
        TL_MPI(MPI_Win_flush(f.next, f.w.win));
    }
    for (int i = 0; i < ROW; i++)
        TL_CHECK(result[i] == (i == BAD ? 0 : source[i]), "number %d of a row", i);
    TL_MPI(MPI_Win_unlock_all(f.w.win));
    MPI_Barrier(f.w.comm);
    TL_MPI(MPI_Win_detach(f.w.win, f.memory));
    end_field(&f);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {{"unattached", test_unattached},
             {"detached", test_detached},
             {"freed_request", test_freed_request},
             {"attach", test_attach},
             {"churn", test_churn},
             {"row", test_row}};

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]) && kind == TL_DYNAMIC; i++)
            if (tl_asked_for(cases[i].name, argc, argv))
                cases[i].run();
    }
    return tl_finish();
}
