/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/check/check.h"

#include <stdlib.h>

#include "common/support/collective.h"
#include "common/transport/shm/segment.h"
#include "osc_nicstride/check/report.h"
#include "osc_nicstride/check/shadow.h"
#include "osc_nicstride/check/under_way.h"
#include "osc_nicstride/window/state.h"

#include "ompi/datatype/ompi_datatype.h"
#include "ompi/op/op.h"

/** The most blocks that are kept for calls under way. Each takes 48 bytes. */
#define BLOCKS_MAX (UINT32_C(1) << 22)

_Static_assert(OMPI_OP_NUM_OF_TYPES < 16 && OMPI_DATATYPE_MAX_PREDEFINED <= 128,
               "operations and types fit into cells");

struct nicstride_check {
    nicstride_under_way_t calls;
    onic_segment_t segment;     /**< the shadows of the node */
    nicstride_shadow_t *shadow; /**< of each process of the node; NULL: none */
    bool full;                  /**< the user was told that not everything is kept */
};

/* ---- making ---------------------------------------------------------------------------------- */

static size_t shadow_size(const nicstride_module_t *m, int local)
{
    return nicstride_shadow_size(nicstride_info(m, m->node.ranks[local])->size, m->node.n);
}

/** Bytes of all shadows; 0: too many bytes or processes. */
static size_t all_shadows(const nicstride_module_t *m)
{
    size_t bytes = 0;

    for (int i = 0; i < m->node.n; i++) {
        const size_t size = shadow_size(m, i);

        if (size == 0 || bytes > SIZE_MAX / 4 || m->node.n > (int)NICSTRIDE_SHADOWED_MAX)
            return 0;
        bytes += size;
    }
    return onic_whole_pages(bytes);
}

static int make_shadows(nicstride_module_t *m)
{
    nicstride_check_t *c = m->check;
    const size_t bytes = all_shadows(m);
    onic_made_t made = ONIC_NO_SPACE;
    int rc = OMPI_SUCCESS;

    if (bytes > 0)
        rc = onic_node_segment(m->comm, &m->node, bytes, true, &c->segment, &made);
    if (rc != OMPI_SUCCESS)
        return rc;
    if (made != ONIC_MADE) {
        nicstride_report_no_shadow(bytes);
        return OMPI_SUCCESS;
    }
    c->shadow = calloc((size_t)m->node.n, sizeof(*c->shadow));
    if (c->shadow == NULL)
        onic_abort_no_memory(m->comm, "a window");
    char *at = c->segment.base;
    for (int i = 0; i < m->node.n; i++) {
        c->shadow[i] =
            nicstride_shadow_at(at, nicstride_info(m, m->node.ranks[i])->size, m->node.n);
        at += shadow_size(m, i);
    }
    return OMPI_SUCCESS;
}

int nicstride_check_begin(nicstride_module_t *m, const nicstride_promises_t *promises)
{
    m->check = calloc(1, sizeof(*m->check));
    if (m->check == NULL ||
        !nicstride_under_way_init(&m->check->calls, (uint32_t)m->size, BLOCKS_MAX))
        onic_abort_no_memory(m->comm, "a window");
    m->check->calls.promises = *promises;
    return m->shared && m->node.n > 1 ? make_shadows(m) : OMPI_SUCCESS;
}

void nicstride_check_end(nicstride_module_t *m)
{
    nicstride_check_t *c = m->check;

    if (c == NULL)
        return;
    nicstride_under_way_fini(&c->calls);
    onic_segment_unmap(&c->segment);
    free(c->shadow);
    free(c);
    m->check = NULL;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static nicstride_use_t use_of(const nicstride_transfer_t *t)
{
    const uint8_t op = (uint8_t)t->op, type = (uint8_t)t->dtype;

    switch (t->type) {
    case NICSTRIDE_MSG_PUT:
        return (nicstride_use_t){.how = NICSTRIDE_WRITES};
    case NICSTRIDE_MSG_GET:
        return (nicstride_use_t){.how = NICSTRIDE_READS};
    case NICSTRIDE_MSG_CAS:
        return (nicstride_use_t){.how = NICSTRIDE_SWAPS, .type = type};
    default:
        return t->has_origin ? (nicstride_use_t){NICSTRIDE_UPDATES, op, type}
                             : (nicstride_use_t){.how = NICSTRIDE_PEEKS, .type = type};
    }
}

/** A buffer of a call. */
typedef struct buffer {
    const void *base;
    const onic_layout_t *layout;
    bool written;
} buffer_t;

#define BUFFERS_MAX 3

static unsigned buffers_of(const nicstride_transfer_t *t, buffer_t buffer[BUFFERS_MAX])
{
    const bool get = t->type == NICSTRIDE_MSG_GET;
    unsigned n = 0;

    if (t->has_origin)
        buffer[n++] = (buffer_t){t->origin_base, &t->origin, get};
    if (t->type == NICSTRIDE_MSG_CAS)
        buffer[n++] = (buffer_t){t->swap, &t->origin, false};
    if (t->type == NICSTRIDE_MSG_CAS || t->type == NICSTRIDE_MSG_GET_ACC)
        buffer[n++] = (buffer_t){t->result_base, &t->result, true};
    return n;
}

static nicstride_use_t use_of_buffer(const buffer_t *b)
{
    return (nicstride_use_t){.how = b->written ? NICSTRIDE_WRITES : NICSTRIDE_READS};
}

/** Enters a call and all its accesses. True if one conflicts; `*clash_p` describes it, and
 *  `*local_p` says that the conflict is in a local buffer. */
static bool enter(nicstride_check_t *c, const nicstride_noted_t *call,
                  const nicstride_transfer_t *t, nicstride_clash_t *clash_p, bool *local_p)
{
    nicstride_clash_t clash = {.found = false};
    buffer_t buffer[BUFFERS_MAX];
    const unsigned n = buffers_of(t, buffer);

    *local_p = false;
    (void)nicstride_under_way_add(&c->calls, call->target, t->disp, &t->target, call->use, clash_p);
    for (unsigned i = 0; i < n; i++) {
        const int64_t base = (int64_t)(intptr_t)buffer[i].base;

        (void)nicstride_under_way_add(&c->calls, NICSTRIDE_HERE, base, buffer[i].layout,
                                      use_of_buffer(&buffer[i]), &clash);
        if (clash.found && !clash_p->found) {
            *clash_p = clash;
            *local_p = true;
        }
    }
    return clash_p->found;
}

/** True if the call conflicts with one of this process that is under way. */
static bool meets_own(const nicstride_transfer_t *t, nicstride_noted_t *call)
{
    nicstride_module_t *m = t->m;
    nicstride_check_t *c = m->check;
    nicstride_clash_t clash = {.found = false};
    bool found, full, local;

    OPAL_THREAD_LOCK(&m->lock);
    call->number = nicstride_under_way_call(&c->calls, call);
    found = enter(c, call, t, &clash, &local);
    full = c->calls.full && !c->full;
    c->full = c->full || full;
    OPAL_THREAD_UNLOCK(&m->lock);
    if (full)
        nicstride_report_full(m, call->name, BLOCKS_MAX);
    if (found)
        nicstride_report_clash(m, call, &clash, local);
    return found;
}

/* ---- others' calls --------------------------------------------------------------------------- */

static nicstride_lasts_t lasts(nicstride_access_t epoch, const nicstride_visit_t *v)
{
    if (epoch == NICSTRIDE_ACCESS_FENCE)
        return NICSTRIDE_LASTS_FENCE;
    if (v->buffer)
        return NICSTRIDE_LASTS_BUFFER;
    if (nicstride_only_reads(v->use))
        return NICSTRIDE_LASTS_HERE;
    return epoch == NICSTRIDE_ACCESS_PSCW ? NICSTRIDE_LASTS_POST : NICSTRIDE_LASTS_THERE;
}

/** Sets until when an access to the memory of a process of the node lasts. Other threads may lock
 *  other targets meanwhile. */
static void set_end(const nicstride_module_t *m, const nicstride_shadow_t *s, nicstride_visit_t *v)
{
    const nicstride_ends_t *ends = &s->head->ends[v->origin];

    v->lasts = lasts(__atomic_load_n(&m->epoch.access, __ATOMIC_RELAXED), v);
    v->tag = v->lasts == NICSTRIDE_LASTS_FENCE    ? m->fence.number
             : v->lasts == NICSTRIDE_LASTS_BUFFER ? ends->buffer
             : v->lasts == NICSTRIDE_LASTS_HERE   ? ends->here
             : v->lasts == NICSTRIDE_LASTS_POST   ? s->head->posts
                                                  : ends->there;
}

/** Notes an access to the memory of a process of the node. An access that ends with a request
 *  leaves no mark, as other processes would not see it end. */
static bool visit(const nicstride_transfer_t *t, const nicstride_noted_t *call, int local,
                  int64_t base, const onic_layout_t *l, nicstride_use_t use, bool buffer,
                  bool marks)
{
    const nicstride_module_t *m = t->m;
    const nicstride_shadow_t *s = &m->check->shadow[local];
    nicstride_visit_t v = {.origin = (uint32_t)m->node.me, .use = use, .buffer = buffer};
    const bool leaves = marks && (!call->has_request || !(buffer || nicstride_only_reads(use)));
    nicstride_crossing_t crossing;

    set_end(m, s, &v);
    if (nicstride_shadow_visit(s, &v, base, l, &m->check->calls.promises, leaves, &crossing))
        return false;
    nicstride_report_crossing(m, call, m->node.ranks[local], buffer, &crossing);
    return true;
}

/** Notes accesses by buffers that lie in this process's own part of the window. */
static bool buffer_meets_others(const nicstride_transfer_t *t, const nicstride_noted_t *call,
                                const buffer_t *b, bool marks)
{
    const nicstride_module_t *m = t->m;
    const uint64_t size = nicstride_info(m, m->rank)->size;
    const int64_t base = (int64_t)(intptr_t)b->base - (int64_t)(intptr_t)m->base;

    return b->layout->size > 0 && nicstride_layout_fits(b->layout, base, size) &&
           visit(t, call, m->node.me, base, b->layout, use_of_buffer(b), true, marks);
}

/** `marks`: leave marks for others to find. */
static bool meets_others(const nicstride_transfer_t *t, const nicstride_noted_t *call, bool marks)
{
    buffer_t buffer[BUFFERS_MAX];
    const unsigned n = buffers_of(t, buffer);
    bool met = false;

    if (t->m->check->shadow == NULL)
        return false;
    if (t->mapped && t->peer->local >= 0)
        met = visit(t, call, t->peer->local, t->disp, &t->target, call->use, false, marks);
    for (unsigned i = 0; i < n && !met; i++)
        met = buffer_meets_others(t, call, &buffer[i], marks);
    return met;
}

int nicstride_check_call(const nicstride_transfer_t *t, uint64_t *number_p)
{
    nicstride_noted_t call = {.name = t->call,
                              .from = t->disp + t->target.lb,
                              .to = t->disp + t->target.ub,
                              .target = (uint32_t)t->peer->rank,
                              .use = use_of(t),
                              .has_request = t->request != NULL};
    nicstride_module_t *m = t->m;
    const bool refuses = nicstride_component.params.check > 1;
    bool met = meets_own(t, &call);

    *number_p = call.number;
    /* A call that is refused leaves no mark. */
    if (refuses)
        met = met || meets_others(t, &call, false);
    if (!refuses || !met)
        met = meets_others(t, &call, true) || met;
    if (!met)
        return OMPI_SUCCESS;
    onic_count(&nicstride_counters.conflicts, 1);
    if (!refuses)
        return OMPI_SUCCESS;
    NICSTRIDE_LOCKED(m, nicstride_under_way_refused(&m->check->calls, call.number));
    return MPI_ERR_RMA_CONFLICT;
}

void nicstride_check_returned(uint32_t window, uint64_t number)
{
    void *found = NULL;

    onic_transport_lock();
    (void)opal_hash_table_get_value_uint32(&nicstride_component.windows, window, &found);
    onic_transport_unlock();
    nicstride_module_t *m = found;
    if (m != NULL && m->check != NULL)
        NICSTRIDE_LOCKED(m, nicstride_under_way_returned(&m->check->calls, number));
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void end_in(const nicstride_module_t *m, int local, bool here)
{
    nicstride_ends_t *ends = &m->check->shadow[local].head->ends[m->node.me];

    atomic_fetch_add(&ends->here, 1);
    if (!here)
        atomic_fetch_add(&ends->there, 1);
}

void nicstride_check_over(nicstride_module_t *m, int target, bool here)
{
    nicstride_check_t *c = m->check;
    const int local = target < 0 ? -1 : onic_node_index(&m->node, target);

    if (c == NULL)
        return;
    NICSTRIDE_LOCKED(
        m, nicstride_under_way_over(&c->calls, target < 0 ? UINT32_MAX : (uint32_t)target, here));
    if (c->shadow == NULL)
        return;
    for (int i = 0; i < m->node.n && target < 0; i++)
        end_in(m, i, here);
    if (local >= 0)
        end_in(m, local, here);
    atomic_fetch_add(&c->shadow[m->node.me].head->ends[m->node.me].buffer, 1);
}

void nicstride_check_fence(nicstride_module_t *m, bool nothing_precedes)
{
    if (m->check != NULL && nothing_precedes && m->check->calls.busy > 0) {
        onic_count(&nicstride_counters.conflicts, 1);
        nicstride_report_precedes(m);
    }
    nicstride_check_over(m, -1, false);
}

void nicstride_check_unexposed(nicstride_module_t *m)
{
    if (m->check != NULL && m->check->shadow != NULL)
        atomic_fetch_add(&m->check->shadow[m->node.me].head->posts, 1);
}
