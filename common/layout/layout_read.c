/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Reading the wire form of layouts (layout_form.h), which comes from peers. */
#include "common/layout/layout.h"

#include <string.h>

#include "common/layout/layout_form.h"

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
        if (byte < 128) {
            /* Refused: a last byte that adds nothing, and bits above the 64th. */
            return (byte > 0 || shift == 0) && (shift < 63 || byte == 1);
        }
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

static bool flags_are_valid(unsigned flags)
{
    return (flags & ~(unsigned)RUN_FLAGS) == 0 &&
           (flags & (RUN_ONE | RUN_SAME_REPEAT)) != (RUN_ONE | RUN_SAME_REPEAT);
}

/** Reads the run behind `prev`, which it becomes. False where it is not what put_run writes. */
static bool get_run(reader_t *r, onic_run_t *prev, bool *last)
{
    onic_run_t run = *prev;
    int64_t distance;
    unsigned flags;

    if (!get_byte(r, &flags) || !flags_are_valid(flags) || !get_signed(r, &distance) ||
        __builtin_add_overflow(prev->offset, distance, &run.offset))
        return false;
    if (!(flags & RUN_SAME_BLOCK) && (!get_unsigned(r, &run.block) || run.block == prev->block))
        return false;
    if (flags & RUN_ONE) {
        run.count = 1;
        run.stride = 0;
    } else if (!(flags & RUN_SAME_REPEAT)) {
        if (!get_unsigned(r, &run.count) || !get_signed(r, &run.stride) ||
            (run.count == prev->count && run.stride == prev->stride))
            return false;
    }
    if (run.block == 0 || run.block > INT64_MAX || run.count == 0 ||
        ((run.count == 1 || run.stride == (int64_t)run.block) && !(flags & RUN_ONE)))
        return false;
    *last = (flags & RUN_LAST) != 0;
    *prev = run;
    return true;
}

/** Reads runs to the last one; `*data_p` gets their bytes of data. */
static onic_layout_status_t get_runs(reader_t *r, onic_runs_t *runs, size_t most, uint64_t *data_p)
{
    onic_layout_status_t status = ONIC_LAYOUT_OK;
    onic_run_t run = {0};
    bool last = false;

    *data_p = 0;
    while (status == ONIC_LAYOUT_OK && !last) {
        status = get_run(r, &run, &last) ? onic_runs_add(runs, run) : ONIC_LAYOUT_BAD_ENCODING;
        *data_p += run.block * run.count;
        if (runs->n > most)
            return ONIC_LAYOUT_BAD_ENCODING;
    }
    return status;
}

onic_layout_status_t onic_runs_decode(onic_runs_t *runs, const void *buf, size_t len, size_t most,
                                      uint64_t *data_p)
{
    reader_t r = {.next = buf, .end = (const uint8_t *)buf + len};
    unsigned head;

    if (!get_byte(&r, &head) || head != FORM_LIST)
        return ONIC_LAYOUT_BAD_ENCODING;
    onic_layout_status_t status = get_runs(&r, runs, most, data_p);
    return status == ONIC_LAYOUT_OK && r.next != r.end ? ONIC_LAYOUT_BAD_ENCODING : status;
}

/** The sender may have written levels out as runs for which it had no room: where they would be
 * found again and leave no room for those that follow, they stay runs here, too. */
static onic_layout_status_t get_list(reader_t *r, onic_layout_t *l, uint32_t nlevels)
{
    onic_runs_t runs = {0};
    uint64_t data = 0;
    onic_layout_status_t status = get_runs(r, &runs, UINT32_MAX, &data);

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
        status = head >> LEVELS_SHIFT ? ONIC_LAYOUT_BAD_ENCODING : ONIC_LAYOUT_OK;
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
    /* In stride form each level must stay one: what normalising removes is not sent. */
    if (status == ONIC_LAYOUT_OK && (head & FORM_MASK) == FORM_STRIDE &&
        got.nlevels != head >> LEVELS_SHIFT)
        status = ONIC_LAYOUT_BAD_ENCODING;
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
    if (status != ONIC_LAYOUT_OK || got.nlevels != head >> LEVELS_SHIFT || r.next != r.end)
        return ONIC_LAYOUT_BAD_ENCODING;
    onic_layout_dup(l, &got);
    return ONIC_LAYOUT_OK;
}
