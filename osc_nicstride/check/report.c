/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/check/report.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

#include "common/support/help.h"
#include "osc_nicstride/check/check.h"
#include "osc_nicstride/window/state.h"

#include "opal/util/proc.h"

#define TEXTS_MAX 40
#define BYTES_MAX 128
#define TEXT_MAX  256

/** True for the first few texts; after those it says once that there are more. */
static bool may_say(void)
{
    static _Atomic unsigned texts;
    const unsigned n = atomic_fetch_add(&texts, 1);

    if (n == TEXTS_MAX)
        onic_say("osc_nicstride: further conflicts are counted, and not shown "
                 "(MPI_T variable osc_nicstride_conflicts)");
    return n < TEXTS_MAX;
}

/** Describes a range of a target's bytes, by offsets into the window or by addresses. */
static void bytes_text(const nicstride_module_t *m, int rank, int64_t from, int64_t to, char *text)
{
    const nicstride_rank_info_t *info = nicstride_info(m, rank);

    if (m->flavor == MPI_WIN_FLAVOR_DYNAMIC)
        snprintf(text, BYTES_MAX, "addresses %#" PRIx64 " to %#" PRIx64, (uint64_t)from,
                 (uint64_t)to - 1);
    else if (info->disp_unit > 1)
        snprintf(text, BYTES_MAX, "displacement %" PRId64 ", bytes %" PRId64 " to %" PRId64,
                 from / info->disp_unit, from, to - 1);
    else
        snprintf(text, BYTES_MAX, "bytes %" PRId64 " to %" PRId64, from, to - 1);
}

static void call_text(const nicstride_module_t *m, const nicstride_noted_t *c, char *text)
{
    char bytes[BYTES_MAX];

    bytes_text(m, (int)c->target, c->from, c->to, bytes);
    snprintf(text, TEXT_MAX, "%s to rank %" PRIu32 ", %s", c->name, c->target, bytes);
}

/** Describes the place of a byte. */
static void place_text(const nicstride_module_t *m, int64_t at, char *text)
{
    snprintf(text, TEXT_MAX, m->flavor == MPI_WIN_FLAVOR_DYNAMIC ? "%#" PRIx64 : "byte %" PRId64,
             at);
}

void nicstride_report_clash(const nicstride_module_t *m, const nicstride_noted_t *call,
                            const nicstride_clash_t *clash, bool local)
{
    char mine[TEXT_MAX], other[TEXT_MAX], place[TEXT_MAX];

    if (!may_say())
        return;
    call_text(m, call, mine);
    call_text(m, &clash->with, other);
    if (local)
        snprintf(place, sizeof(place), "%#" PRIx64, (uint64_t)clash->at);
    else
        place_text(m, clash->at, place);
    if (clash->itself && local)
        onic_help_each(NICSTRIDE_HELP_FILE, "check-buffer-twice", m->rank, mine, m->win->w_name,
                       place);
    else if (clash->itself)
        onic_help_each(NICSTRIDE_HELP_FILE, "check-twice", m->rank, mine, m->win->w_name, place);
    else
        onic_help_each(NICSTRIDE_HELP_FILE, local ? "check-buffers" : "check-overlap", m->rank,
                       mine, m->win->w_name, place, other);
}

/** The name of the call that left a mark, as far as the mark tells. */
static const char *call_of(const nicstride_visit_t *v, bool other_accumulates)
{
    if (v->buffer)
        return v->use.how == NICSTRIDE_READS ? "which sends from there" : "which receives there";
    if (nicstride_accumulates(v->use) && other_accumulates)
        return "an accumulate with another operation or element type";
    switch (v->use.how) {
    case NICSTRIDE_READS:
        return "MPI_Get";
    case NICSTRIDE_WRITES:
        return "MPI_Put";
    case NICSTRIDE_SWAPS:
        return "MPI_Compare_and_swap";
    default:
        return "an accumulate";
    }
}

void nicstride_report_crossing(const nicstride_module_t *m, const nicstride_noted_t *call, int rank,
                               bool buffer, const nicstride_crossing_t *crossing)
{
    const nicstride_visit_t *other = &crossing->other;
    char mine[TEXT_MAX];

    if (!may_say())
        return;
    call_text(m, call, mine);
    onic_help_each(NICSTRIDE_HELP_FILE, "check-race", m->rank, mine, m->win->w_name,
                   (unsigned long long)crossing->at, rank, buffer ? ", where its buffer is," : "",
                   m->node.ranks[other->origin],
                   call_of(other, !buffer && nicstride_accumulates(call->use)));
}

void nicstride_report_precedes(const nicstride_module_t *m)
{
    if (may_say())
        onic_help_each(NICSTRIDE_HELP_FILE, "check-precedes", m->rank, m->win->w_name);
}

void nicstride_report_full(const nicstride_module_t *m, const char *call, uint32_t most)
{
    onic_help_each(NICSTRIDE_HELP_FILE, "check-full", m->rank, call, m->win->w_name, most);
}

void nicstride_report_no_shadow(size_t bytes)
{
    onic_help(NICSTRIDE_HELP_FILE, "check-no-shadow", (unsigned long long)bytes,
              opal_process_info.nodename);
}

void nicstride_report_refused_locked(const nicstride_module_t *m, const nicstride_peer_t *p,
                                     const nicstride_msg_t *msg)
{
    if (!may_say())
        return;
    onic_say(
        "osc_nicstride: rank %d, window \"%s\": an access of rank %d to %llu bytes from %s%#llx "
        "on is not in memory %s",
        m->rank, m->win->w_name, p->rank, (unsigned long long)msg->len,
        m->flavor == MPI_WIN_FLAVOR_DYNAMIC ? "address " : "byte ", (unsigned long long)msg->disp,
        m->flavor == MPI_WIN_FLAVOR_DYNAMIC ? "that is attached here" : "of the window");
}
