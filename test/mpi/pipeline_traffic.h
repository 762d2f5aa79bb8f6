/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Transfers for the test of the pipeline: puts and gets between layouts of several shapes, by
 * messages that say what to expect, so that both sides can tell whether the bytes are right.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/pipeline/pipeline.h"
#include "common/transport/transport.h"
#include "test/mpi/testlib.h"

/** No wait takes longer where all is well, in seconds. */
#define MOVES_PATIENCE TL_PATIENCE

/** Opens the pipeline with such a receive pool, which all other ranks then reach, by puts where
 *  moves.puts. Collective. */
void moves_open(size_t rx_pool, size_t buffer);
/** Does the pipeline reach this rank now? */
bool moves_reached(int rank);
/** Buffers of my receive pool that nobody has. */
uint64_t moves_free_buffers(void);
/** Is nothing under way? Buffers of mine may be `lost`, whose holders have died. */
bool moves_clean(uint64_t lost);
/** Waits for that, and says what is left. */
void moves_settle(uint64_t (*lost)(void));
/** Closes it, when nothing is under way any more and all leases are back. Collective. */
void moves_close(void);
/** Makes progress until all ranks of the communicator are here. Collective. */
void moves_meet(MPI_Comm comm);

/** Counters; before anything else was moved to this process. Collective. */
void moves_count(void);

/** Shapes of memory. CALLED is contiguous, and taken by a function piece by piece. */
typedef enum shape {
    CONTIG,
    BLOCKS_8,
    BLOCKS_64,
    BLOCKS_1024,
    NESTED,
    IRREGULAR,
    CALLED,
    SHAPES
} shape_t;

/** REFUSED: a get cannot be answered now. */
typedef enum move_kind { PUT = 1, GET, DONE, REFUSED } move_kind_t;

/** The message of a transfer, and what becomes of it. */
typedef struct move_header {
    uint32_t kind;
    uint32_t from;
    uint64_t op; /**< the origin's */
    uint64_t seed;
    uint64_t len;
    uint32_t shape; /**< at the target */
    uint32_t granule;
    int64_t status;
    onic_ticket_t ticket;
} move_header_t;

/** User memory of one end. */
typedef struct memory {
    onic_layout_t layout;
    uint64_t at, len;
    unsigned char *bytes;
    uint64_t size;
    char *base;
    uint64_t taken; /**< CALLED: so far */
} memory_t;

/** Memory of the shape with `len` bytes of data from some position on. */
memory_t memory_make(shape_t shape, uint64_t len, uint64_t seed);
void memory_free(memory_t *m);
/** Writes what a source of that seed holds. */
void memory_write(memory_t *m, uint64_t seed);
/** Is there what a source of that seed holds, and nothing else changed? */
bool memory_holds(const memory_t *m, uint64_t seed);
/** As an end of a transfer. */
onic_pipeline_end_t memory_end(memory_t *m, shape_t shape, bool sink, void (*done)(void *, int),
                               void *arg);

/** One operation of an origin. */
typedef struct move {
    move_kind_t kind;
    int target;
    shape_t mine, theirs;
    uint64_t len, seed;
    memory_t memory;
    int status;
    bool refused;     /**< a get: by its target, which may do it later */
    atomic_int waits; /**< for so many ends */
    onic_transfer_t *transfer;
} move_t;

typedef struct moves {
    onic_peer_t **peers; /**< by rank; set by the program */
    pthread_t mpi_thread;
    bool puts;           /**< all ranks are reached by puts; set by the program */
    bool may_fail;       /**< a reply, since who asked may be dead; set by the program */
    atomic_long foreign; /**< ends at targets that came in another thread */
    atomic_long taken;   /**< transfers at this process as a target, that came to their end */
    atomic_long wrong;   /**< of these, with wrong data or an error */
    atomic_long failed_targets; /**< of these, with an error */
} moves_t;

extern moves_t moves;

/** The transport's function for messages. */
void move_handle(onic_peer_t *from, const void *header, size_t header_len, const void *data,
                 size_t len, onic_rndv_t *rndv);

/** What a transfer's end at its origin calls; `arg` is the move. */
void move_ended(void *arg, int status);

/** Starts it, m->kind .. m->seed being set; false where no buffer is to be had now. */
bool move_start(move_t *m);
/** Makes its memory. */
void move_prepare(move_t *m);
static inline bool move_is_done(const move_t *m)
{
    return atomic_load(&m->waits) == 0;
}
/** Makes progress until it is done; that it did not fail is checked. */
void move_wait(const move_t *m);
/** Checks a get's data, and frees. */
void move_finish(move_t *m);
/** Cancels the ends with this argument. */
void moves_cancel(void *arg);

/** `n` operations with other ranks, of random kinds, shapes and lengths up to `most` bytes, some of
 *  them at a time. A get that is refused is done again. */
void moves_run(tl_rng_t *rng, int n, uint64_t most);

/** Opens the pipeline, does such operations on all ranks, and closes it. Collective. */
void moves_pairs(size_t rx_pool, size_t buffer, int n, uint64_t most);
/** Rank 0 puts to all others and gets from them, while they are away from MPI and their helper
 *  threads serve it, which a component wants or rank 0 wakes. Collective. */
void moves_away(bool wanted, bool wakes);
/** Leases for gets that are withdrawn. Collective. */
void moves_withdraw(void);
