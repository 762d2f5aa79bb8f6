/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The matrix of progress: what a process has begun, times what it does then, times where the other
 * one is. A family is such a product of tables; the index of a cell is a number in it, and rules
 * say of each whether MPI allows it and what must come of it.
 *
 * In a cell one process holds: it stays where it is until the other tells that what was begun is
 * complete there, in memory that MPI knows nothing of. Where that needs the holder's next call
 * of MPI nobody tells, and the holder goes on after its patience: a failure, unless the cell "may".
 */
#pragma once

#include <mpi.h>
#include <stdbool.h>

#include "test/mpi/testlib.h"

/* ---- cells ---- */

/** What becomes of a cell: MPI does not allow it, it may wait for the holder's next call, it must
 *  not. */
typedef enum progress_rule { PROGRESS_NEVER, PROGRESS_MAY, PROGRESS_MUST } progress_rule_t;

/** What the rules depend on beside the cell. */
typedef struct progress_context {
    bool meets;     /**< the two have not had to do with each other, on different hosts */
    bool ours_rma;  /**< osc_nicstride */
    bool server;    /**< ... with its server thread */
    bool mapped;    /**< the target's memory is, and nothing but load and store is used */
    bool forced;    /**< a protocol is, so that short messages may go as long ones */
    bool ours_coll; /**< coll_nicbarrier's engine does the barriers, and needs nobody's help */
} progress_context_t;

typedef struct progress_cell {
    char name[128];
    progress_rule_t rule;
    const char *why;  /**< it may wait: what for; a row of docs/progress.md */
    int number;       /**< of all cells of a run, from 1 */
    int index;        /**< in the product */
    int first, other; /**< ranks: of who begins, and of its peer; other -1: all others */
} progress_cell_t;

typedef struct progress_family {
    const char *name;
    int cells;  /**< in the product, with what is left out by the rules */
    int one_in; /**< so many is run, drawn by lot, unless all are asked for */
    /** Writes name, rule and why of the cell `index`. Without MPI. */
    void (*describe)(progress_cell_t *cell, const progress_context_t *context);
    /** The two parts, each by the ranks that it is for. */
    void (*first)(const progress_cell_t *cell);
    void (*others)(const progress_cell_t *cell);
} progress_family_t;

/** Splits an index into digits: returns *index_p modulo n, and divides it. */
int progress_digit(int *index_p, int n);

/* ---- a run ---- */

/** Before MPI_Init. Reads the options
 *      --list          prints cells: "must" or "may", name, reason, and ends
 *      --only REGEX    some cells, all of them
 *      --all           all cells
 *      --after NAME    those behind this one, to go on behind one that hangs
 *      --show          prints of each cell whether it has waited for the holder's next call
 *      --patience S    seconds of a holder, 60
 *  and starts MPI and the control. Ends the program for --list. */
void progress_begin(int argc, char **argv, const progress_family_t *families, int n);

/** All that tell the rules what is there, which programs change. */
extern progress_context_t progress_context;

/** Cells are between the ranks of MPI_COMM_WORLD; or of `base`, where control is there. */
void progress_world(void);
void progress_over(MPI_Comm base);
MPI_Comm progress_base(void);

/** Runs all cells of a family between ranks `a` and `b`, in both directions by turns; or, for
 *  PROGRESS_ANY, between all pairs by turns; or, for PROGRESS_ALL, between one by turns and all
 *  others. `label` is part of the names; may be empty. */
void progress_run(const progress_family_t *family, const char *label, int a, int b);
enum { PROGRESS_ANY = -1, PROGRESS_ALL = -2 };

/** Collective over `base`. Prints how many cells there were. */
void progress_part(void);
/** That, and the end of the program. Returns the exit code. */
int progress_finish(void);

/** What this process does just now, for the line that says where it hangs. A string that stays. */
void progress_step(const char *what);

/* ---- the two sides of a cell ---- */

/** Both sides at the beginning: the other one is ready, as `tell` says it, before the first goes
 *  on. Waits without MPI. */
void progress_meet_ready(const progress_cell_t *cell);
void progress_tell_ready(const progress_cell_t *cell);

/** The first one is about to enter the state in which it stays, or what may block before. */
void progress_tell_in(const progress_cell_t *cell);
/** Waits for that outside of MPI, or polling; then a moment, so that it is most often there. */
void progress_await_in(const progress_cell_t *cell, bool polls);

/** What was to come has come. */
void progress_tell_seen(const progress_cell_t *cell);
/** The holder: waits for that outside of MPI, or polling MPI_Iprobe on MPI_COMM_SELF; at most as
 *  long as its patience. Judges the cell. */
void progress_hold(const progress_cell_t *cell, bool polls);
/** The same where it stays until an MPI call returns. Has come. */
void progress_held(const progress_cell_t *cell);

/** Both sides at the end: polls until the others have got here. */
void progress_meet_end(const progress_cell_t *cell);

/** A communicator of the two, made when it is first needed, and on which nothing is under way
 *  between cells. Collective over the two. */
MPI_Comm progress_pair(const progress_cell_t *cell);
/** A new one, which the caller frees. */
MPI_Comm progress_new_pair(const progress_cell_t *cell);
/** The rank of the other one in a communicator of the two. */
int progress_peer(const progress_cell_t *cell);

/** Do all of a communicator share a node? Collective. */
bool progress_one_host(MPI_Comm comm);

/* ---- control: a board that all have mapped; knows nothing of MPI ---- */

enum { CONTROL_READY, CONTROL_HERE, CONTROL_IN, CONTROL_SEEN, CONTROL_END, CONTROL_WORDS };

/** The processes of a job find each other, on one machine. Returns when all are there. */
void control_open(int rank, int size);
/** By word of mouth: writes its address, of CONTROL_ADDRESS bytes; one of another job joins. */
enum { CONTROL_ADDRESS = 512 };
void control_make(int size, char *address);
void control_join(const char *address, int rank);
/** Local. */
void control_close(void);

void control_tell(int to, int word, int number);
/** Has `from` said the word with this number or a later one? Waits for it so many seconds, 0: looks
 *  only; negative: for ever. */
bool control_told(int from, int word, int number, double seconds);
