/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What the MPI test programs share: options, windows of every kind behind one face, checks that
 * count and name rank and line, random numbers, and the totals at the end.
 *
 * A program is
 *
 *     int main(int argc, char **argv)
 *     {
 *         tl_init(&argc, &argv, MPI_THREAD_SINGLE);
 *         for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
 *             tl_window_t w = tl_win_make(kind, bytes, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
 *             TL_MPI(MPI_Put(..., target, tl_disp(&w, target, offset), ..., w.win));
 *             TL_CHECK(w.base[0] == 'x', "got %d", w.base[0]);
 *             tl_win_free(&w);
 *         }
 *         return tl_finish();
 *     }
 *
 * and near its top has comments that the runner reads: `ranks: 1-4`, `windows: create allocate`,
 * `threads: multiple`.
 *
 * Error handlers: tl_init() sets MPI_ERRORS_RETURN on MPI_COMM_WORLD and MPI_COMM_SELF,
 * tl_win_make() on the window. Threads: checks and the option queries may be used by several
 * threads at once; everything else belongs to one thread.
 */
#pragma once

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/** Exit codes as `make check` reads them. */
enum { TL_EXIT_OK = 0, TL_EXIT_FAILED = 1, TL_EXIT_SKIP = 77 };

/* ---- program ---- */

/** The kinds of window; TL_KINDS is also "no more kinds". */
typedef enum tl_kind { TL_CREATE, TL_ALLOCATE, TL_DYNAMIC, TL_SHARED, TL_KINDS } tl_kind_t;

/**
 * Starts MPI with at least the thread level `required` and reads the options
 *     -w create|allocate|dynamic|shared|all   kinds of window (default all; may be repeated)
 *     -s SEED                                 default: environment ONIC_TEST_SEED, then 1
 *     -n FACTOR                               multiplies the work (default 1)
 * Options it does not know stay in argv. Ends the program with TL_EXIT_SKIP where the thread
 * level is not to be had. Sends no message: the processes have not met then.
 */
void tl_init(int *argc, char ***argv, int required);

/**
 * Collective, when all windows are freed. Checks that the component has no operation and no request
 * left, unless ONIC_TEST_LEAKS is in the environment, as test/run puts it there for programs that
 * forget some on purpose. Sums the checks of all ranks, prints "NAME: N checks passed, M failed" on
 * rank 0, finalizes MPI. Returns the exit code, the same on all ranks.
 */
int tl_finish(void);

/** Collective: finalizes and exits with TL_EXIT_SKIP; rank 0 prints why. Does not return. */
_Noreturn void tl_skip(const char *why);

/** Is `name` among the arguments that tl_init() left? True as well where it left none at all. */
bool tl_asked_for(const char *name, int argc, char **argv);

/** Prints rank and text and ends the whole job. */
_Noreturn void tl_die(const char *what);

/** Seconds after which a test calls a hang what must happen without any time. Far more than it
 *  takes, however many others want the processors, and less than test/run waits. */
#define TL_PATIENCE 300

/** Waits until a process of this machine is stopped by a signal (or gone): no SIGCONT may come
 *  before its SIGSTOP. No MPI. */
void tl_await_stopped(pid_t pid);

/** Skips unless the number of ranks is in min .. max. */
void tl_need_ranks(int min, int max);

/** The program's name; rank and size in MPI_COMM_WORLD. */
const char *tl_name(void);
int tl_rank(void);
int tl_size(void);

uint64_t tl_seed(void);
int tl_factor(void);

/**
 * True where ONIC_TEST_SLOW is in the environment: processors and network are emulated, some tens
 * of MB/s, or sanitizers slow all down. What would take minutes is then made smaller or left out.
 */
bool tl_slow(void);

/** True where ONIC_TEST_LARGE is in the environment, as in `./run test all`: with more steps, in
 * which a run among many others finds nothing more, and larger sizes. */
bool tl_large(void);

/**
 * Of the calling thread: nobody may look into this process, and it may look into nobody, as where
 * each process is in a container of its own. Descriptors of others cannot be opened then, in /proc.
 */
void tl_closed(bool closed);

/** Does the launcher say that all processes of the job are on one host? Also before MPI_Init. */
bool tl_launched_here(void);

/** Do all ranks of MPI_COMM_WORLD share memory? Collective; windows in shared memory need it. */
bool tl_one_host(void);

/** A group of one rank of a communicator. The caller frees it. */
MPI_Group tl_group_of(MPI_Comm comm, int rank);

/** The class of a code that an MPI call returned. */
int tl_class(int code);

/** Does a rank of MPI_COMM_WORLD share memory with this one? Collective; ranks may differ. */
bool tl_same_host(int rank);

/** Does the kernel let every rank of MPI_COMM_WORLD read the memory of all of them? Collective. */
bool tl_may_copy(void);

/**
 * Says that windows in shared memory will have so many bytes for each rank. Where /dev/shm has less
 * room for all of them that kind is left out, and the program skipped if it was the only one.
 * Collective; to be called before the first window.
 */
void tl_shared_needs(MPI_Aint bytes);

/** Iterates over the kinds that were asked for and are possible here (shared needs one node). The
 *  first call is collective. */
tl_kind_t tl_first_kind(void);
tl_kind_t tl_next_kind(tl_kind_t kind);
const char *tl_kind_name(tl_kind_t kind);

/* ---- windows ---- */

/** A window and, for all its ranks, what is needed to address it. Read only. */
typedef struct tl_window {
    MPI_Win win;
    MPI_Comm comm; /**< a duplicate of the communicator it was made on */
    tl_kind_t kind;
    int rank;              /**< mine in comm */
    int size;              /**< of comm */
    unsigned char *base;   /**< my memory; any value where bytes is 0 */
    MPI_Aint bytes;        /**< size of my memory */
    MPI_Aint *peer_bytes;  /**< for each rank */
    MPI_Aint *peer_base;   /**< for each rank: its address in a dynamic window, otherwise 0 */
    int *peer_unit;        /**< for each rank: the unit of its displacements, 1 where dynamic */
    unsigned char *region; /**< base and its guard zones, where they were allocated here */
} tl_window_t;

/**
 * Collective over `comm`: a window of `kind` with `bytes` (>= 0) of zeroed memory at this rank.
 * Sizes and units may differ by rank. `disp_unit` is ignored for dynamic windows, whose memory is
 * attached. Memory of create and dynamic windows lies between guard zones that tl_win_free()
 * checks. Ends the whole job where the window cannot be had, since nothing after it makes sense.
 * Every rank's memory is ready when it returns.
 */
tl_window_t tl_win_make(tl_kind_t kind, MPI_Aint bytes, int disp_unit, MPI_Comm comm,
                        MPI_Info info);

/** Collective; no epoch may be open. Checks the guard zones, detaches, frees. */
void tl_win_free(tl_window_t *w);

/**
 * The displacement that means byte `offset` of `target`'s memory, to be given to MPI_Put and its
 * kin. `offset` must be a multiple of the target's displacement unit.
 */
MPI_Aint tl_disp(const tl_window_t *w, int target, MPI_Aint offset);

/** The ranks after and before this one, in a ring. */
static inline int tl_next(const tl_window_t *w)
{
    return (w->rank + 1) % w->size;
}
static inline int tl_before(const tl_window_t *w)
{
    return (w->rank + w->size - 1) % w->size;
}

/* ---- epochs ---- */

/** How accesses are synchronised; TL_SYNCS is their number. */
typedef enum tl_sync { TL_FENCE, TL_LOCK, TL_LOCK_ALL, TL_PSCW, TL_SYNCS } tl_sync_t;

const char *tl_sync_name(tl_sync_t sync);

/**
 * Collective: opens an epoch in which every rank may access every rank, by fence, a shared lock on
 * each, lock_all, or post and start with everybody. Local stores made before are seen by all.
 */
void tl_begin(const tl_window_t *w, tl_sync_t sync);

/** Collective: closes it; afterwards every rank may load and store its own memory. */
void tl_end(const tl_window_t *w, tl_sync_t sync);

/** The same by post and start with the next rank alone. */
void tl_begin_ring(const tl_window_t *w);
void tl_end_ring(const tl_window_t *w);

/* ---- checks ---- */

/** Counts a check; where `ok` is false prints file, line, rank and the text. Returns `ok`. */
bool tl_check(bool ok, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/** Checks that `got` and `want` agree in `n` bytes; names the first that differs. */
bool tl_check_bytes(const void *got, const void *want, size_t n, const char *file, int line,
                    const char *format, ...) __attribute__((format(printf, 6, 7)));

/** Checks that all `n` bytes at `got` are `value`. */
bool tl_check_fill(const void *got, unsigned char value, size_t n, const char *file, int line,
                   const char *format, ...) __attribute__((format(printf, 6, 7)));

/** Checks that an MPI call returned `error_class`; with MPI_SUCCESS counts failures only. */
bool tl_check_mpi(int code, int error_class, const char *call, const char *file, int line);

#define TL_CHECK(ok, ...) tl_check((ok), __FILE__, __LINE__, __VA_ARGS__)
#define TL_BYTES(got, want, n, ...)                                                                \
    tl_check_bytes((got), (want), (n), __FILE__, __LINE__, __VA_ARGS__)
#define TL_FILL(got, value, n, ...)                                                                \
    tl_check_fill((got), (value), (n), __FILE__, __LINE__, __VA_ARGS__)
#define TL_MPI(call) tl_check_mpi((call), MPI_SUCCESS, #call, __FILE__, __LINE__)
#define TL_MPI_ERROR(call, error_class)                                                            \
    tl_check_mpi((call), (error_class), #call, __FILE__, __LINE__)

/** What this process prints to standard error goes to a file from here to tl_heard, which gives it
 *  back: up to the next tl_listen. So do lines of several threads, whole. */
void tl_listen(void);
const char *tl_heard(void);
/** How often a text is in another one. */
int tl_count(const char *text, const char *what);

/** Checks of this rank so far that passed, and that failed. */
long tl_passed(void);
long tl_failed(void);

/* ---- memory ---- */

/** Zeroed memory, or the end of the job. Free with free(). */
void *tl_alloc(size_t bytes);

/** Resident memory that this process shares with nobody, in bytes; 0 under AddressSanitizer, which
 *  keeps what is freed, and under valgrind, which notes things about it. Shared memory is pools of
 * transports: UCX touches the buffers of one for the first time over tens of thousands of messages.
 */
size_t tl_private(void);

/** Bytes that the process has from malloc now, exactly; 0 with sanitizers. Objects that are left
 *  behind show in it one by one, where pages of memory only show many of them. */
size_t tl_allocated(void);

/** What the iterations of a loop leave behind in memory. */
typedef struct tl_growth {
    size_t before;
    size_t least; /**< bytes, of its parts */
} tl_growth_t;

enum { TL_GROWTH_PARTS = 3 };

/**
 * To be called before iteration `i` of 0 .. n - 1, and once more with n. Behind the first `warm_up`
 * come TL_GROWTH_PARTS equal parts, and what counts is the least growth among them: transports take
 * some MiB for themselves now and then, but what is lost in each iteration is lost in all parts.
 * n must be warm_up + TL_GROWTH_PARTS at least; what is left when it is divided is not looked at.
 */
void tl_growth_step(tl_growth_t *g, int i, int warm_up, int n);

/* ---- random numbers ---- */

/** A stream of its own for each (seed, stream); the same on all machines. */
typedef struct tl_rng {
    uint64_t state;
} tl_rng_t;

tl_rng_t tl_rng(uint64_t seed, uint64_t stream);
uint64_t tl_random(tl_rng_t *rng);

/** Even over low .. high, both included. */
int64_t tl_range(tl_rng_t *rng, int64_t low, int64_t high);

/** True once in `n` times (n > 0). */
bool tl_one_in(tl_rng_t *rng, int n);

/** Fills memory with bytes that differ by `seed` and position. */
void tl_fill_random(void *memory, size_t bytes, uint64_t seed);
