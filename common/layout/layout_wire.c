/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Writing the wire form of layouts (layout_form.h), whole and in slices. */
#include "common/layout/layout.h"

#include "common/layout/layout_form.h"
#include "common/layout/layout_walk.h"

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

/** Writes a run that comes after `prev` (zeroed for the first). `*flags_p` is its flags' place. */
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

/** Writes as many runs as fit, of at most `limit` bytes; moves the cursor; returns their bytes. */
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

    if (l->nruns > 0)
        return ONIC_LAYOUT_NO_SPACE;
    fits = l->size == 0 ? put_form(&w, FORM_EMPTY, 0) : put_stride_form(&w, l);
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

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b > 0) {
        uint64_t left = a % b;

        a = b;
        b = left;
    }
    return a;
}

/** The largest part, of at most `limit` bytes, that begins at the cursor and is itself regular:
 *  some passes of a level that stands at the beginning of everything below it. Fills in `part`,
 *  which shares the runs of the layout, and returns its bytes; 0 where there is none. */
static uint64_t regular_part(const onic_cursor_t *c, uint64_t limit, uint64_t granule,
                             onic_layout_t *part)
{
    const onic_layout_t *l = c->layout;
    uint64_t size = onic_layout_leaf_size(l);
    uint64_t best = 0;

    *part = *l;
    part->offset = c->leaf;
    if (!onic_cursor_at_leaf(c))
        return 0;
    for (uint32_t i = 0; i < l->nlevels && size <= limit; i++) {
        uint64_t left = l->level[i].count - c->index[i];
        uint64_t passes = limit / size < left ? limit / size : left;

        passes -= passes % (granule / gcd(granule, size));
        if (passes > 0 && passes * size > best) {
            best = passes * size;
            part->nlevels = passes > 1 ? i + 1 : i;
            part->level[i].count = passes;
            for (uint32_t below = 0; below < i; below++)
                part->level[below] = l->level[below];
        }
        if (c->index[i] > 0)
            break;
        size *= l->level[i].count;
    }
    return best;
}

/** Where the cursor stands inside a group of runs that is short and comes back, a slice that ends
 *  with the group lets the next one be regular. `limit`, or the bytes to the group's end. */
static uint64_t limit_to_group(const onic_cursor_t *c, uint64_t limit, uint64_t granule)
{
    const onic_layout_t *l = c->layout;
    uint64_t group = onic_layout_leaf_size(l);
    uint64_t left;

    if (l->nruns == 0 && l->nlevels > 0)
        group *= l->level[0].count;
    left = group - c->pos % group;
    return left < group && group <= limit / 8 && left % granule == 0 ? left : limit;
}

/** Writes runs in whole granules: a cut run may need more room, so it repeats with less data. */
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
    onic_layout_t part;
    uint64_t data;

    *data_p = 0;
    if (limit == 0)
        return onic_layout_encode(&(onic_layout_t){0}, buf, cap, len_p);
    granule = granule > 0 ? granule : 1;
    limit = max < limit ? max : limit;
    limit -= limit % granule;

    /* Runs can fill up what passes leave over, but cost room for each run of each pass. */
    data = regular_part(c, limit, granule, &part);
    if (data > 0 && data >= limit / 2) {
        writer_t whole = w;

        if (part.nruns > 0 ? put_list_form(&whole, &part) : put_stride_form(&whole, &part)) {
            onic_cursor_init(c, c->layout, c->pos + data);
            *len_p = (size_t)(whole.next - (uint8_t *)buf);
            *data_p = data;
            return ONIC_LAYOUT_OK;
        }
    }
    data = put_slice_granules(&w, c, limit_to_group(c, limit, granule), granule);
    if (data == 0)
        return ONIC_LAYOUT_NO_SPACE;
    *len_p = (size_t)(w.next - (uint8_t *)buf);
    *data_p = data;
    return ONIC_LAYOUT_OK;
}
