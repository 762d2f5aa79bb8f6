/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The wire form of layouts. It is written whole, or in slices.
 *
 *  One byte says the form (low half) and the number of levels (high half). Then
 *
 *      empty   nothing
 *      stride  offset, block
 *      list    runs: flags (one byte), distance from the offset of the run before, then those of
 *  block, count, stride that the flags do not imply; the last run has a flag around  offset; the
 *  list itself is known
 *
 *  and then for all forms the levels from the innermost: count, stride. Numbers are base-128
 *  varints, seven bits in a byte, the lowest first; signed ones are folded (0, -1, 1, -2 ...). The
 *  decoder refuses encodings that exceed the bytes, overflow, or have empty parts that must not be
 *  empty.
 */
#include "common/layout/layout.h"

#include <string.h>

#include "common/layout/layout_walk.h"

enum {
    FORM_EMPTY = 0,
    FORM_STRIDE = 1,
    FORM_LIST = 2,
    FORM_AROUND = 3,
    FORM_MASK = 15,
    LEVELS_SHIFT = 4
};

enum {
    RUN_SAME_BLOCK = 1,  /* the block is as long as in the run before */
    RUN_ONE = 2,         /* one block: no count, no stride */
    RUN_SAME_REPEAT = 4, /* count and stride as in the run before */
    RUN_LAST = 8
};

/* ---- writing -------------------------------------------------------------------------------- */

typedef struct writer {
    uint8_t *next;
    uint8_t *end;
} writer_t;

static bool put_byte(writer_t *w, unsigned value)
{
    if (w->next == w->end)
        return false;
    *w->next++ = (uint8_t)value;
    return true;
}

static bool put_unsigned(writer_t *w, uint64_t value)
{
    for (; value >= 128; value >>= 7)
        if (!put_byte(w, 128 | (value & 127)))
            return false;
    return put_byte(w, (unsigned)value);
}

static bool put_signed(writer_t *w, int64_t value)
{
    uint64_t twice = (uint64_t)value << 1;

    return put_unsigned(w, value < 0 ? ~twice : twice);
}

static bool put_form(writer_t *w, unsigned form, uint32_t nlevels)
{
    return put_byte(w, form | nlevels << LEVELS_SHIFT);
}

static bool put_levels(writer_t *w, const onic_layout_t *l)
{
    for (uint32_t i = 0; i < l->nlevels; i++)
        if (!put_unsigned(w, l->level[i].count) || !put_signed(w, l->level[i].stride))
            return false;
    return true;
}

static bool put_stride_form(writer_t *w, const onic_layout_t *l)
{
    return put_form(w, FORM_STRIDE, l->nlevels) && put_signed(w, l->offset) &&
           put_unsigned(w, l->block) && put_levels(w, l);
}

/** Writes a run that follows `prev` (zeroed for the first). `*flags_p` gets the address of its
 *  flags. */
static bool put_run(writer_t *w, const onic_run_t *prev, const onic_run_t *run, uint8_t **flags_p)
{
    unsigned flags = 0;

    if (run->block == prev->block)
        flags |= RUN_SAME_BLOCK;
    if (run->count == 1)
        flags |= RUN_ONE;
    else if (run->count == prev->count && run->stride == prev->stride)
        flags |= RUN_SAME_REPEAT;
    *flags_p = w->next;
    return put_byte(w, flags) && put_signed(w, run->offset - prev->offset) &&
           ((flags & RUN_SAME_BLOCK) || put_unsigned(w, run->block)) &&
           ((flags & (RUN_ONE | RUN_SAME_REPEAT)) ||
            (put_unsigned(w, run->count) && put_signed(w, run->stride)));
}

/** Writes as many runs as fit, of at most `limit` data bytes; moves the cursor; returns the data
 *  bytes. */
static uint64_t put_runs(writer_t *w, onic_cursor_t *c, uint64_t limit)
{
    uint64_t data = 0;
    uint8_t *last = NULL;
    onic_run_t prev = {0};
    onic_run_t run;

    while (onic_cursor_peek(c, limit - data, &run) > 0) {
        writer_t before = *w;
        uint8_t *flags;

        if (!put_run(w, &prev, &run, &flags)) {
            *w = before;
            break;
        }
        onic_cursor_advance(c, &run);
        data += run.block * run.count;
        last = flags;
        prev = run;
    }
    if (last != NULL)
        *last |= RUN_LAST;
    return data;
}

static bool put_list_form(writer_t *w, const onic_layout_t *l)
{
    onic_layout_t list = *l;
    onic_cursor_t c;

    list.nlevels = 0;
    list.size = onic_layout_leaf_size(l);
    onic_cursor_init(&c, &list, 0);
    return put_form(w, FORM_LIST, l->nlevels) && put_runs(w, &c, list.size) == list.size &&
           put_levels(w, l);
}

onic_layout_status_t onic_layout_encode(const onic_layout_t *l, void *buf, size_t cap,
                                        size_t *len_p)
{
    writer_t w = {.next = buf, .end = (uint8_t *)buf + cap};
    bool fits;

    fits = l->size == 0   ? put_form(&w, FORM_EMPTY, 0)
           : l->nruns > 0 ? put_list_form(&w, l)
                          : put_stride_form(&w, l);
    if (!fits)
        return ONIC_LAYOUT_NO_SPACE;
    *len_p = (size_t)(w.next - (uint8_t *)buf);
    return ONIC_LAYOUT_OK;
}

size_t onic_layout_encode_around(const onic_layout_t *l, unsigned char buf[ONIC_LAYOUT_ENCODED_MAX])
{
    writer_t w = {.next = buf, .end = buf + ONIC_LAYOUT_ENCODED_MAX};

    (void)(put_form(&w, FORM_AROUND, l->nlevels) && put_signed(&w, l->offset) && put_levels(&w, l));
    return (size_t)(w.next - buf);
}

/* ---- slices --------------------------------------------------------------------------------- */

/** Writes runs in whole granules. A cut run may need more room, so it retries with less data. */
static uint64_t put_slice_granules(writer_t *w, onic_cursor_t *c, uint64_t limit, uint64_t granule)
{
    while (limit > 0) {
        writer_t try_w = *w;
        onic_cursor_t try_c = *c;
        uint64_t data = put_form(&try_w, FORM_LIST, 0) ? put_runs(&try_w, &try_c, limit) : 0;

        if (data > 0 && data % granule == 0) {
            *w = try_w;
            *c = try_c;
            return data;
        }
        limit = data - data % granule;
    }
    return 0;
}

onic_layout_status_t onic_layout_encode_slice(onic_cursor_t *c, uint64_t max, uint64_t granule,
                                              void *buf, size_t cap, size_t *len_p,
                                              uint64_t *data_p)
{
    writer_t w = {.next = buf, .end = (uint8_t *)buf + cap};
    uint64_t limit = c->layout->size - c->pos;

    granule = granule > 0 ? granule : 1;
    limit = max < limit ? max : limit;
    *data_p = put_slice_granules(&w, c, limit - limit % granule, granule);
    *len_p = (size_t)(w.next - (uint8_t *)buf);
    return *data_p > 0 ? ONIC_LAYOUT_OK : ONIC_LAYOUT_NO_SPACE;
}

/* ---- reading -------------------------------------------------------------------------------- */

typedef struct reader {
    const uint8_t *next;
    const uint8_t *end;
} reader_t;

static bool get_byte(reader_t *r, unsigned *value)
{
    if (r->next == r->end)
        return false;
    *value = *r->next++;
    return true;
}

static bool get_unsigned(reader_t *r, uint64_t *value)
{
    unsigned byte;

    *value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (!get_byte(r, &byte))
            return false;
        *value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return true;
    }
    return false;
}

static bool get_signed(reader_t *r, int64_t *value)
{
    uint64_t folded;

    if (!get_unsigned(r, &folded))
        return false;
    folded = folded & 1 ? ~(folded >> 1) : folded >> 1;
    memcpy(value, &folded, sizeof(*value));
    return true;
}

/** Reads the run that follows `prev`, and stores it there. False if the bytes end, the run has no
 *  bytes, or its offset overflows. */
static bool get_run(reader_t *r, onic_run_t *prev, bool *last)
{
    onic_run_t run = *prev;
    int64_t distance;
    unsigned flags;

    if (!get_byte(r, &flags) || !get_signed(r, &distance) ||
        __builtin_add_overflow(prev->offset, distance, &run.offset))
        return false;
    if (!(flags & RUN_SAME_BLOCK) && !get_unsigned(r, &run.block))
        return false;
    if (flags & RUN_ONE) {
        run.count = 1;
        run.stride = 0;
    } else if (!(flags & RUN_SAME_REPEAT)) {
        if (!get_unsigned(r, &run.count) || !get_signed(r, &run.stride))
            return false;
    }
    if (run.block == 0 || run.count == 0)
        return false;
    *last = (flags & RUN_LAST) != 0;
    *prev = run;
    return true;
}

/** Reads runs up to the last one; `*data_p` gets their bytes of data. */
static onic_layout_status_t get_runs(reader_t *r, onic_runs_t *runs, uint64_t *data_p)
{
    onic_layout_status_t status = ONIC_LAYOUT_OK;
    onic_run_t run = {0};
    bool last = false;

    *data_p = 0;
    while (status == ONIC_LAYOUT_OK && !last) {
        status = get_run(r, &run, &last) ? onic_runs_add(runs, run) : ONIC_LAYOUT_BAD_ENCODING;
        *data_p += run.block * run.count;
    }
    return status;
}

onic_layout_status_t onic_runs_decode(onic_runs_t *runs, const void *buf, size_t len,
                                      uint64_t *data_p)
{
    reader_t r = {.next = buf, .end = (const uint8_t *)buf + len};
    unsigned head;

    if (!get_byte(&r, &head) || head != FORM_LIST)
        return ONIC_LAYOUT_BAD_ENCODING;
    onic_layout_status_t status = get_runs(&r, runs, data_p);
    return status == ONIC_LAYOUT_OK && r.next != r.end ? ONIC_LAYOUT_BAD_ENCODING : status;
}

/** The sender may have expanded levels into runs for lack of room. If such levels would be found
 *  again and leave no room for those that follow, they stay runs here, too. */
static onic_layout_status_t get_list(reader_t *r, onic_layout_t *l, uint32_t nlevels)
{
    onic_runs_t runs = {0};
    uint64_t data = 0;
    onic_layout_status_t status = get_runs(r, &runs, &data);

    if (status != ONIC_LAYOUT_OK) {
        onic_runs_fini(&runs);
        return status;
    }
    return onic_layout_from_runs(l, &runs, nlevels);
}

static onic_layout_status_t get_block(reader_t *r, onic_layout_t *l)
{
    uint64_t block;
    int64_t offset;

    if (!get_signed(r, &offset) || !get_unsigned(r, &block) || block == 0)
        return ONIC_LAYOUT_BAD_ENCODING;
    return onic_layout_contig(l, offset, block);
}

static onic_layout_status_t get_levels(reader_t *r, onic_layout_t *l, uint32_t nlevels)
{
    onic_layout_status_t status = ONIC_LAYOUT_OK;
    uint64_t count;
    int64_t stride;

    for (uint32_t i = 0; i < nlevels && status == ONIC_LAYOUT_OK; i++) {
        if (!get_unsigned(r, &count) || !get_signed(r, &stride) || count < 2)
            return ONIC_LAYOUT_BAD_ENCODING;
        status = onic_layout_repeat(l, count, stride);
    }
    return status;
}

onic_layout_status_t onic_layout_decode(onic_layout_t *l, const void *buf, size_t len,
                                        size_t *used_p)
{
    reader_t r = {.next = buf, .end = (const uint8_t *)buf + len};
    onic_layout_status_t status = ONIC_LAYOUT_BAD_ENCODING;
    onic_layout_t got = {0};
    unsigned head;

    if (!get_byte(&r, &head) || head >> LEVELS_SHIFT > ONIC_LAYOUT_MAX_LEVELS)
        return ONIC_LAYOUT_BAD_ENCODING;
    switch (head & FORM_MASK) {
    case FORM_EMPTY:
        status = ONIC_LAYOUT_OK;
        break;
    case FORM_STRIDE:
        status = get_block(&r, &got);
        break;
    case FORM_LIST:
        status = get_list(&r, &got, head >> LEVELS_SHIFT);
        break;
    default:
        break;
    }
    if (status == ONIC_LAYOUT_OK && got.size > 0)
        status = get_levels(&r, &got, head >> LEVELS_SHIFT);
    if (status != ONIC_LAYOUT_OK) {
        onic_layout_fini(&got);
        return status == ONIC_LAYOUT_NO_MEMORY ? status : ONIC_LAYOUT_BAD_ENCODING;
    }
    *l = got;
    *used_p = (size_t)(r.next - (const uint8_t *)buf);
    return ONIC_LAYOUT_OK;
}

onic_layout_status_t onic_layout_decode_around(onic_layout_t *l, const onic_layout_t *list,
                                               const void *buf, size_t len)
{
    reader_t r = {.next = buf, .end = (const uint8_t *)buf + len};
    onic_layout_status_t status = ONIC_LAYOUT_BAD_ENCODING;
    onic_layout_t got = *list;
    unsigned head;

    if (!get_byte(&r, &head) || (head & FORM_MASK) != FORM_AROUND ||
        head >> LEVELS_SHIFT > ONIC_LAYOUT_MAX_LEVELS || !get_signed(&r, &got.offset) ||
        __builtin_add_overflow(list->lb, got.offset, &got.lb) ||
        __builtin_add_overflow(list->ub, got.offset, &got.ub))
        return ONIC_LAYOUT_BAD_ENCODING;
    status = get_levels(&r, &got, head >> LEVELS_SHIFT);
    if (status != ONIC_LAYOUT_OK || r.next != r.end)
        return ONIC_LAYOUT_BAD_ENCODING;
    onic_layout_dup(l, &got);
    return ONIC_LAYOUT_OK;
}
