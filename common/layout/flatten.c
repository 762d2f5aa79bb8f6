/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* Open MPI keeps a datatype as a small program: an element is `count` blocks of `blocklen` basic
 * items, `extent` bytes apart, the first at `disp`, from the start of the whole type; a loop
 * repeats all up to its end marker, each pass `extent` bytes further. It is read from the inside
 * out. A body that is a single item becomes stride levels; any other becomes a list of runs, which
 * becomes stride levels, too, where it is regular, as short loops that Open MPI has unrolled are;
 * and the loops around a list become levels over it. */
#include <stdlib.h>

#include "common/ompi_compat.h"

#include "mpi.h"
#include "ompi/constants.h"
#include "ompi/datatype/ompi_datatype.h"
#include "opal/datatype/opal_datatype_internal.h"

#include "common/layout/flatten.h"

/* Every loop has at least two passes, so the size of a deeper nest would not fit in 64 bits. */
#define MAX_DEPTH 64

/* Most runs for a type of too many levels: they take 320 MiB. */
#define MAX_WRITTEN_RUNS (UINT64_C(1) << 23)

static onic_layout_status_t read_body(const dt_elem_desc_t *d, const dt_elem_desc_t *end,
                                      unsigned depth, onic_layout_t *l);

/* ---- types of more levels than a layout holds ------------------------------------------------ */

/* Expands the innermost level of a list-form layout, or two levels of a stride-form one, into a
 * list, so that there is room for one more. The bytes and their order stay the same. */
static onic_layout_status_t make_room(onic_layout_t *l)
{
    const uint32_t gone = l->nruns > 0 ? 1 : 2;
    onic_runs_t runs = {0};
    onic_layout_t inner = *l, list;
    uint64_t nruns;

    if (__builtin_mul_overflow(l->nruns > 0 ? l->nruns : 1, l->level[gone - 1].count, &nruns) ||
        nruns > MAX_WRITTEN_RUNS)
        return ONIC_LAYOUT_NO_MEMORY;
    inner.nlevels = gone;
    for (uint32_t i = gone; i < l->nlevels; i++)
        inner.size /= l->level[i].count;
    onic_layout_status_t rc = onic_runs_add_layout(&runs, &inner, 0);
    if (rc == ONIC_LAYOUT_OK)
        rc = onic_layout_from_runs(&list, &runs, ONIC_LAYOUT_MAX_LEVELS);
    onic_runs_fini(&runs);
    if (rc != ONIC_LAYOUT_OK)
        return rc;
    for (uint32_t i = gone; i < l->nlevels; i++)
        (void)onic_layout_repeat(&list, l->level[i].count, l->level[i].stride);
    onic_layout_fini(l);
    *l = list;
    return ONIC_LAYOUT_OK;
}

static onic_layout_status_t repeat(onic_layout_t *l, uint64_t count, int64_t stride)
{
    onic_layout_status_t rc = onic_layout_repeat(l, count, stride);

    if (rc == ONIC_LAYOUT_TOO_DEEP) {
        rc = make_room(l);
        if (rc == ONIC_LAYOUT_OK)
            rc = onic_layout_repeat(l, count, stride);
    }
    return rc;
}

/* ---- the program ----------------------------------------------------------------------------- */

static bool element_bytes(const ddt_elem_desc_t *e, uint64_t *bytes_p)
{
    return !__builtin_mul_overflow(e->blocklen, opal_datatype_basicDatatypes[e->common.type]->size,
                                   bytes_p);
}

static onic_layout_status_t read_run(const ddt_elem_desc_t *e, onic_run_t *run)
{
    *run = (onic_run_t){.offset = e->disp, .count = e->count};
    if (e->count > 1) /* the extent of a single block has no meaning and may have any value */
        run->stride = e->extent;
    return element_bytes(e, &run->block) ? ONIC_LAYOUT_OK : ONIC_LAYOUT_OVERFLOW;
}

static onic_layout_status_t read_element(const ddt_elem_desc_t *e, onic_layout_t *l)
{
    onic_run_t run;

    onic_layout_status_t rc = read_run(e, &run);
    if (rc == ONIC_LAYOUT_OK)
        rc = onic_layout_contig(l, run.offset, run.block);
    if (rc == ONIC_LAYOUT_OK)
        rc = onic_layout_repeat(l, run.count, run.stride);
    return rc;
}

static bool is_loop(const dt_elem_desc_t *d)
{
    return d->elem.common.type == OPAL_DATATYPE_LOOP;
}

/* The item after an element or after a whole loop. */
static const dt_elem_desc_t *next_item(const dt_elem_desc_t *d)
{
    return is_loop(d) ? d + d->loop.items + 1 : d + 1;
}

static onic_layout_status_t read_loop(const ddt_loop_desc_t *loop, unsigned depth, onic_layout_t *l)
{
    const dt_elem_desc_t *d = (const dt_elem_desc_t *)loop;

    onic_layout_status_t rc = read_body(d + 1, d + loop->items, depth + 1, l);
    if (rc == ONIC_LAYOUT_OK) {
        rc = repeat(l, loop->loops, loop->extent);
        if (rc != ONIC_LAYOUT_OK)
            onic_layout_fini(l);
    }
    return rc;
}

static onic_layout_status_t add_item(onic_runs_t *runs, const dt_elem_desc_t *d, unsigned depth)
{
    onic_layout_status_t rc;
    onic_layout_t passes;
    onic_run_t run;

    if (!is_loop(d)) {
        rc = read_run(&d->elem, &run);
        return rc == ONIC_LAYOUT_OK ? onic_runs_add(runs, run) : rc;
    }
    rc = read_loop(&d->loop, depth, &passes);
    if (rc == ONIC_LAYOUT_OK) {
        rc = onic_runs_add_layout(runs, &passes, 0);
        onic_layout_fini(&passes);
    }
    return rc;
}

static onic_layout_status_t read_list(const dt_elem_desc_t *d, const dt_elem_desc_t *end,
                                      unsigned depth, onic_layout_t *l)
{
    onic_runs_t runs = {0};
    onic_layout_status_t rc = ONIC_LAYOUT_OK;

    for (; d < end && rc == ONIC_LAYOUT_OK; d = next_item(d))
        rc = add_item(&runs, d, depth);
    if (rc == ONIC_LAYOUT_OK)
        rc = onic_layout_from_runs(l, &runs, 0);
    onic_runs_fini(&runs);
    return rc;
}

/* Reads the items from `d` to before `end`. On success the caller owns *l, otherwise there is
 * nothing to free; this holds for all readers here. */
static onic_layout_status_t read_body(const dt_elem_desc_t *d, const dt_elem_desc_t *end,
                                      unsigned depth, onic_layout_t *l)
{
    if (depth > MAX_DEPTH)
        return ONIC_LAYOUT_OVERFLOW;
    if (d == end)
        return onic_layout_contig(l, 0, 0);
    if (next_item(d) == end)
        return is_loop(d) ? read_loop(&d->loop, depth, l) : read_element(&d->elem, l);
    return read_list(d, end, depth, l);
}

/* ---- a whole type ---------------------------------------------------------------------------- */

/* Open MPI's counts of blocks and passes have 32 bits. If a count did not fit, the program
 * describes fewer bytes than the type's size, which is stored separately in 64 bits. */
static onic_layout_status_t read_description(const opal_datatype_t *dt, const dt_type_desc_t *desc,
                                             onic_layout_t *l)
{
    onic_layout_status_t rc = read_body(desc->desc, desc->desc + desc->used, 0, l);

    if (rc == ONIC_LAYOUT_OK && l->size != dt->size) {
        onic_layout_fini(l);
        rc = ONIC_LAYOUT_OVERFLOW;
    }
    return rc;
}

static onic_layout_status_t read_type(const opal_datatype_t *dt, onic_layout_t *l)
{
    if (dt->flags & OPAL_DATATYPE_FLAG_CONTIGUOUS)
        return onic_layout_contig(l, dt->true_lb, dt->size);
    if (dt->opt_desc.used > 0) {
        onic_layout_status_t rc = read_description(dt, &dt->opt_desc, l);
        /* Merged elements may overflow a count although the original description does not. */
        if (rc != ONIC_LAYOUT_OVERFLOW)
            return rc;
    }
    return read_description(dt, &dt->desc, l);
}

/* ---- types that were read before -------------------------------------------------------------
 *
 * The layout is an attribute of the datatype: MPI deletes it with the type, and does not copy it to
 * a duplicate, so a handle that is used again has none. */

/* Least number of elements for which a lookup pays; reading one takes about 10 ns. */
#define KEPT_ITEMS 32

static int forget(MPI_Datatype dt, int keyval, void *layout, void *unused)
{
    (void)dt;
    (void)keyval;
    (void)unused;
    onic_layout_fini(layout);
    free(layout);
    return MPI_SUCCESS;
}

/* The layout that is kept of the type; NULL if there is none. */
static onic_layout_t *find(MPI_Datatype dt, const onic_flattened_t *f)
{
    void *kept;
    int found = 0;

    if (f->keyval == MPI_KEYVAL_INVALID ||
        PMPI_Type_get_attr(dt, f->keyval, &kept, &found) != MPI_SUCCESS || !found)
        return NULL;
    return kept;
}

/* Keeps the layout, unless memory is exhausted. */
static void keep(MPI_Datatype dt, const onic_layout_t *l, onic_flattened_t *f)
{
    onic_layout_t *kept = malloc(sizeof(*kept));

    if (kept == NULL)
        return;
    onic_layout_dup(kept, l);
    if ((f->keyval == MPI_KEYVAL_INVALID &&
         PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, forget, &f->keyval, NULL) != MPI_SUCCESS) ||
        PMPI_Type_set_attr(dt, f->keyval, kept) != MPI_SUCCESS)
        (void)forget(dt, f->keyval, kept, NULL);
}

static onic_layout_status_t find_type(const struct ompi_datatype_t *dt, onic_layout_t *l,
                                      onic_flattened_t *f)
{
    MPI_Datatype handle = (MPI_Datatype)(uintptr_t)dt;
    onic_layout_status_t rc = ONIC_LAYOUT_OK;
    onic_layout_t *kept;

    if (f == NULL || (dt->super.flags & OPAL_DATATYPE_FLAG_CONTIGUOUS) ||
        dt->super.opt_desc.used < KEPT_ITEMS)
        return read_type(&dt->super, l);
    OPAL_THREAD_LOCK(&f->lock);
    kept = find(handle, f);
    if (kept != NULL) {
        if (kept->nruns > 0 && onic_layout_number(kept) == 0)
            onic_layout_set_number(kept, ++f->numbers);
        f->hits++;
        onic_layout_dup(l, kept);
    } else {
        rc = read_type(&dt->super, l);
        if (rc == ONIC_LAYOUT_OK)
            keep(handle, l, f);
    }
    OPAL_THREAD_UNLOCK(&f->lock);
    return rc;
}

/* ---- items of a type ------------------------------------------------------------------------- */

static int ompi_error(onic_layout_status_t rc)
{
    switch (rc) {
    case ONIC_LAYOUT_OK:
        return OMPI_SUCCESS;
    case ONIC_LAYOUT_OVERFLOW:
        return OMPI_ERR_VALUE_OUT_OF_BOUNDS;
    default:
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
}

int onic_flatten(const struct ompi_datatype_t *dt, size_t count, onic_layout_t *l,
                 onic_flattened_t *f)
{
    const opal_datatype_t *type = &dt->super;
    size_t bytes;
    int64_t extent;

    if (onic_type_is_plain(dt, count, &bytes)) {
        onic_layout_set(l, bytes);
        return OMPI_SUCCESS;
    }
    if (count == 0 || type->size == 0)
        return ompi_error(onic_layout_contig(l, 0, 0));
    onic_layout_status_t rc = find_type(dt, l, f);
    if (rc != ONIC_LAYOUT_OK || count == 1)
        return ompi_error(rc);
    if (__builtin_sub_overflow(type->ub, type->lb, &extent))
        rc = ONIC_LAYOUT_OVERFLOW;
    else
        rc = repeat(l, count, extent);
    if (rc != ONIC_LAYOUT_OK)
        onic_layout_fini(l);
    return ompi_error(rc);
}
