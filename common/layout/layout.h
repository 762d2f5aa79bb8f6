/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Layouts: the bytes of memory that a (datatype, count) pair describes, and their order.
 *
 *  A layout is a short program of nested strides, the multi-strided shape of ARMCI (up to eight
 *  levels of {count, stride} over a contiguous block), or, if a type is irregular, such levels over
 * a list of runs. The packed order of a layout is the order of the type map: the outermost level is
 *  the slowest, inside it the runs in their order, inside a run its blocks.
 *
 *  All offsets are relative to a base address that the layout does not hold, so the same layout
 *  describes the origin and the target side and can travel between processes.
 *
 *  This file is pure: no MPI, no global state. A layout may be read by many threads at once. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/support/export.h"

/** Most stride levels of a layout (ARMCI's limit). */
#define ONIC_LAYOUT_MAX_LEVELS 8

/** One stride level: the levels below it repeated `count` times, `stride` bytes apart. */
typedef struct onic_stride {
    uint64_t count;
    int64_t stride;
} onic_stride_t;

/** The distance of two neighbours, regardless of which lies first. */
static inline uint64_t onic_magnitude(int64_t stride)
{
    return stride < 0 ? 0 - (uint64_t)stride : (uint64_t)stride;
}

/** `count` blocks of `block` bytes; the first at `offset`, the others `stride` bytes apart. */
typedef struct onic_run {
    int64_t offset;
    uint64_t block;
    uint64_t count;
    int64_t stride;
} onic_run_t;

/** A layout. In stride form (`nruns == 0`) the leaf is one block of `block` bytes at `offset`; in
 *  list form it is `runs[0 .. nruns)` shifted by `offset`. `level[0]` is the innermost level. A
 *  layout of zero bytes has `size == 0`, `nlevels == 0`, `nruns == 0` and `lb == ub == 0`. size,
 *  lb, ub and ub - lb never exceed INT64_MAX; ONIC_LAYOUT_OVERFLOW is returned instead. */
typedef struct onic_layout {
    uint64_t size;  /**< bytes of data in the whole layout */
    int64_t lb;     /**< lowest byte offset that the layout touches */
    int64_t ub;     /**< one more than the highest byte offset that it touches */
    int64_t offset; /**< added to the offset of every byte */
    uint64_t block; /**< stride form: bytes of the leaf block */
    uint32_t nlevels;
    uint32_t nruns;
    onic_run_t *runs; /**< list form: the runs, shared with duplicates; the first at offset 0 */
    uint64_t
        *run_start; /**< list form: packed position of each run in one pass, nruns + 1 values */
    /** Last, so that contiguous layouts use only the first cache line. */
    onic_stride_t level[ONIC_LAYOUT_MAX_LEVELS];
} onic_layout_t;

/** A growing list of runs, from which a list-form layout is made. Zero-initialise it. */
typedef struct onic_runs {
    onic_run_t *run;
    size_t n;
    size_t cap;
} onic_runs_t;

/** Results of the functions below. */
typedef enum onic_layout_status {
    ONIC_LAYOUT_OK = 0,
    ONIC_LAYOUT_NO_MEMORY,   /**< allocation failed */
    ONIC_LAYOUT_OVERFLOW,    /**< a size or an offset does not fit in 64 bits */
    ONIC_LAYOUT_TOO_DEEP,    /**< more than ONIC_LAYOUT_MAX_LEVELS levels, after normalising */
    ONIC_LAYOUT_NO_SPACE,    /**< the encoding does not fit in the buffer */
    ONIC_LAYOUT_BAD_ENCODING /**< the bytes are not a valid encoding */
} onic_layout_status_t;

/** Makes `l` one contiguous block of `size` bytes at `offset`. Allocates nothing. */
ONIC_EXPORT onic_layout_status_t onic_layout_contig(onic_layout_t *l, int64_t offset,
                                                    uint64_t size);

/** Repeats the layout `count` times, `stride` bytes apart, as a new outermost level.
 *  `count` 0 empties the layout. The result is normalised: blocks that touch are merged into longer
 *  blocks, levels that continue each other are merged, levels of one pass vanish. Allocates
 *  nothing. On an error `l` is unchanged. */
ONIC_EXPORT onic_layout_status_t onic_layout_repeat(onic_layout_t *l, uint64_t count,
                                                    int64_t stride);

/** Shortens `l` to its first `size` packed bytes; does nothing if it has no more. Takes time and
 *  memory for each run. On an error, ONIC_LAYOUT_NO_MEMORY or ONIC_LAYOUT_OVERFLOW (more than 2^32
 *  - 1 runs), `l` is unchanged. */
ONIC_EXPORT onic_layout_status_t onic_layout_cut(onic_layout_t *l, uint64_t size);

/** Appends a run to a list; merges it with the run before it if the two form one run (touching
 *  blocks, or the next block or blocks of the same stride). Runs of no bytes are dropped. */
ONIC_EXPORT onic_layout_status_t onic_runs_add(onic_runs_t *r, onic_run_t run);

/** Appends all the pieces of `l`, shifted by `shift`, to `r`, as few runs. After an error `r` can
 *  only be passed to onic_runs_fini. At most 2^32 - 1 runs, else ONIC_LAYOUT_OVERFLOW. */
ONIC_EXPORT onic_layout_status_t onic_runs_add_layout(onic_runs_t *r, const onic_layout_t *l,
                                                      int64_t shift);

/** Makes `l` from a list and leaves the list empty, even on an error. A list of one run, or one
 *  that is regular (equal runs at a constant distance, groups of such runs at a constant distance,
 *  and so on), becomes stride form, if that leaves room for `above` more outer levels, 0 ..
 *  ONIC_LAYOUT_MAX_LEVELS. */
ONIC_EXPORT onic_layout_status_t onic_layout_from_runs(onic_layout_t *l, onic_runs_t *r,
                                                       uint32_t above);

/** Frees the memory of a list that was not made into a layout. */
ONIC_EXPORT void onic_runs_fini(onic_runs_t *r);

/** Gives up a layout's share of its list; the last one frees it. */
ONIC_EXPORT void onic_list_release(onic_layout_t *l);

/** Makes `dst` a second layout of the same bytes, to be freed separately. A list never changes, so
 *  both share it: this takes some nanoseconds for any length. */
ONIC_EXPORT void onic_layout_dup(onic_layout_t *dst, const onic_layout_t *src);

/** Gives a list a number, by which it can be identified without a comparison as long as numbers are
 *  not reused. All layouts that share the list have the number. `l` is in list form. */
ONIC_EXPORT void onic_layout_set_number(onic_layout_t *l, uint64_t number);
/** The number of a layout's list; 0 if it was given none, or there is no list. */
ONIC_EXPORT uint64_t onic_layout_number(const onic_layout_t *l);

/** True if the bytes are one contiguous block, or none. */
static inline bool onic_layout_is_contig(const onic_layout_t *l)
{
    return l->nruns == 0 && l->nlevels == 0;
}

/** Makes `l` one block of `size` <= INT64_MAX bytes from 0 on. For short transfers, which make two
 *  such layouts each: unused levels are not written. */
static inline void onic_layout_set(onic_layout_t *l, uint64_t size)
{
    l->size = l->block = size;
    l->lb = l->offset = 0;
    l->ub = (int64_t)size;
    l->nlevels = l->nruns = 0;
    l->runs = NULL;
    l->run_start = NULL;
}

/** Frees what `l` owns, and leaves it empty. Any thread. */
static inline void onic_layout_fini(onic_layout_t *l)
{
    if (l->nruns > 0)
        onic_list_release(l);
    onic_layout_set(l, 0);
}

/** Moves a layout, with everything it owns. */
static inline void onic_layout_move(onic_layout_t *to, onic_layout_t *from)
{
    if (onic_layout_is_contig(from)) {
        onic_layout_set(to, from->size);
        to->lb = from->lb;
        to->ub = from->ub;
        to->offset = from->offset;
    } else {
        *to = *from;
    }
    from->nruns = 0;
}

/** Number of contiguous blocks of a layout's list, in one pass. */
ONIC_EXPORT uint64_t onic_list_blocks(const onic_layout_t *l);

/** Number of contiguous blocks: an upper bound, since touching neighbours may not be merged. */
static inline uint64_t onic_layout_blocks(const onic_layout_t *l)
{
    uint64_t n = l->nruns > 0 ? onic_list_blocks(l) : l->size > 0;

    for (uint32_t i = 0; i < l->nlevels; i++)
        n *= l->level[i].count;
    return n;
}

/* ---- walking -------------------------------------------------------------------------------- */

/** A position in the packed order of a layout. Cheap to copy; holds a pointer to the layout. */
typedef struct onic_cursor {
    const onic_layout_t *layout;
    uint64_t pos;                           /**< packed bytes before this position */
    uint64_t index[ONIC_LAYOUT_MAX_LEVELS]; /**< pass of each level */
    uint64_t run;                           /**< list form: current run */
    uint64_t in_run;                        /**< list form: block in the run */
    uint64_t in_block;                      /**< byte in the block */
    int64_t leaf; /**< offset of the leaf: levels and layout offset summed */
} onic_cursor_t;

/** Puts the cursor at packed byte `pos` (0 .. size). O(levels + log runs). */
ONIC_EXPORT void onic_cursor_init(onic_cursor_t *c, const onic_layout_t *l, uint64_t pos);

/** Returns the contiguous piece at the cursor, at most `max` bytes (max > 0), and moves past it.
 *  Returns false at the end of the layout. */
ONIC_EXPORT bool onic_cursor_next(onic_cursor_t *c, uint64_t max, int64_t *offset_p,
                                  uint64_t *len_p);

/** How many of the `len` > 0 packed bytes from `pos` on can be moved separately without tearing an
 *  aligned element of up to 8 bytes, if the layout's memory begins at `base` (modulo 8): the byte
 * after them begins a block, or lies at a multiple of 8. At least 1; all if there is no such place.
 */
ONIC_EXPORT uint64_t onic_layout_whole(const onic_layout_t *l, uint64_t base, uint64_t pos,
                                       uint64_t len);

/* ---- wire form ------------------------------------------------------------------------------ */

/** Encodes a whole layout. `*len_p` is the number of bytes used. ONIC_LAYOUT_NO_SPACE if it does
 *  not fit in `cap`. A stride-form layout never needs more than ONIC_LAYOUT_ENCODED_MAX bytes. */
#define ONIC_LAYOUT_ENCODED_MAX 200
ONIC_EXPORT onic_layout_status_t onic_layout_encode(const onic_layout_t *l, void *buf, size_t cap,
                                                    size_t *len_p);

/** Encodes the part of a layout that begins at the cursor, run by run, as much of it as fits in
 *  `cap` bytes and holds at most `max` > 0 data bytes; moves the cursor past it. `*len_p` gets the
 *  bytes of the encoding and `*data_p` the bytes of data. The decoded layout is at position 0 where
 *  the cursor stood. ONIC_LAYOUT_NO_SPACE, with the cursor where it was, only if not even one run,
 *  or granule, fits, and at the end. `granule` > 1: every slice holds a whole multiple of that many
 *  data bytes, as the cursor's position and the layout's size must be. */
ONIC_EXPORT onic_layout_status_t onic_layout_encode_slice(onic_cursor_t *c, uint64_t max,
                                                          uint64_t granule, void *buf, size_t cap,
                                                          size_t *len_p, uint64_t *data_p);

/** Appends the runs of a slice to a list, at most len / 2 of them. The slice comes from a peer and
 *  takes all `len` bytes. `*data_p` gets the bytes of data that the runs describe. After an error
 *  the list can only be passed to onic_runs_fini. */
ONIC_EXPORT onic_layout_status_t onic_runs_decode(onic_runs_t *runs, const void *buf, size_t len,
                                                  uint64_t *data_p);

/** Encodes the part of a list-form layout outside of its list: `offset` and the levels. Never needs
 *  more than ONIC_LAYOUT_ENCODED_MAX bytes; returns how many. */
ONIC_EXPORT size_t onic_layout_encode_around(const onic_layout_t *l,
                                             unsigned char buf[ONIC_LAYOUT_ENCODED_MAX]);

/** Makes `l` from a list and all `len` bytes, which come from a peer and were made by the function
 *  above. `list` is in list form, at offset 0, without levels, and is shared. On an error
 *  (ONIC_LAYOUT_BAD_ENCODING) `l` is unchanged. */
ONIC_EXPORT onic_layout_status_t onic_layout_decode_around(onic_layout_t *l,
                                                           const onic_layout_t *list,
                                                           const void *buf, size_t len);

/** Decodes what onic_layout_encode and onic_layout_encode_slice made. Nothing after the bytes is
 * read, and no arithmetic overflows; the layout's size, lb and ub are computed here. `*used_p` gets
 *  the bytes consumed (there may be more behind them). List form allocates; time and memory are at
 *  most proportional to `len`. On an error (only ONIC_LAYOUT_BAD_ENCODING or ONIC_LAYOUT_NO_MEMORY)
 *  `l` is unchanged. */
ONIC_EXPORT onic_layout_status_t onic_layout_decode(onic_layout_t *l, const void *buf, size_t len,
                                                    size_t *used_p);

/* ---- whole words --------------------------------------------------------------------------------
 *
 * What single copy can move without tearing elements of up to 8 bytes that others access. The
 * kernel promises nothing. It copies page by page, on x86-64 by 8-byte moves or `rep movsb`, with
 * single bytes at an end that is no multiple of 8 and, before 6.4, at such a begin; later kernels
 * make 8-byte moves from the begin of the destination. arm64 moves words likewise. So words stay
 * whole only if both sides begin at a word and whole words are moved. Pure. */

#define ONIC_WORD 8u

/** True if every piece of a layout begins and ends at a multiple of `size`, a power of two, if its
 *  offsets count from address `base`. */
static inline bool onic_is_aligned(const onic_layout_t *l, uint64_t base, uint64_t size)
{
    uint64_t all = base + (uint64_t)l->offset;

    for (uint32_t i = 0; i < l->nlevels; i++)
        all |= (uint64_t)l->level[i].stride;
    if (l->nruns == 0)
        all |= l->block;
    for (uint32_t i = 0; i < l->nruns; i++) {
        const onic_run_t *run = &l->runs[i];

        all |= (uint64_t)run->offset | run->block;
        if (run->count > 1)
            all |= (uint64_t)run->stride;
    }
    return (all & (size - 1)) == 0;
}

/** True if all pieces of a layout are whole aligned words, if its offsets count from `base`. */
static inline bool onic_whole_words(const onic_layout_t *l, uint64_t base)
{
    return onic_is_aligned(l, base, ONIC_WORD);
}

/** The words that contain some bytes; they lie in the same pages. */
typedef struct onic_words {
    uint64_t at;
    uint64_t len;
    uint64_t before; /**< bytes in these words before the bytes in question */
} onic_words_t;

static inline onic_words_t onic_words_around(uint64_t at, uint64_t len)
{
    const uint64_t before = at % ONIC_WORD;
    const uint64_t after = (ONIC_WORD - (at + len) % ONIC_WORD) % ONIC_WORD;

    return (onic_words_t){.at = at - before, .len = before + len + after, .before = before};
}
