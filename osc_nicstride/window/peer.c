/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "common/support/help.h"
#include "common/support/pause.h"
#include "osc_nicstride/window/control.h"
#include "osc_nicstride/window/module.h"
#include "osc_nicstride/window/state.h"

#include "opal/util/output.h"

/* ---- processes ------------------------------------------------------------------------------- */

/* All of them; transport lock. */
static LIST_HEAD(, nicstride_process) processes = LIST_HEAD_INITIALIZER(processes);

/** The record of a process, made if need be; NULL where memory is exhausted. */
static nicstride_process_t *process_of(onic_peer_t *wire)
{
    void **slot = onic_peer_slot(wire, ONIC_AM_OSC);
    nicstride_process_t *p = *slot;

    if (p != NULL)
        return p;
    p = calloc(1, sizeof(*p));
    if (p == NULL)
        return NULL;
    LIST_INSERT_HEAD(&processes, p, next);
    *slot = p;
    return p;
}

static void free_process(nicstride_process_t *p)
{
    for (unsigned i = 0; i < NICSTRIDE_METHODS_MAX; i++)
        if (p->of_row[i] != NULL)
            nicstride_component.methods[i]->leave(p->of_row[i]);
    LIST_REMOVE(p, next);
    free(p);
}

bool nicstride_process_forget(onic_peer_t *wire, bool left)
{
    void **slot = onic_peer_slot(wire, ONIC_AM_OSC);
    nicstride_process_t *p = *slot;

    if (!left || p == NULL)
        return true;
    /* A window that was forgotten at the end may have some. */
    if (!LIST_EMPTY(&p->peers))
        return false;
    *slot = NULL;
    free_process(p);
    return true;
}

void nicstride_processes_fini(void)
{
    while (!LIST_EMPTY(&processes))
        free_process(LIST_FIRST(&processes));
}

/* ---- peers ----------------------------------------------------------------------------------- */

/** Finds the reply lines by which a process of my node and I answer each other. */
static void find_slots(const nicstride_module_t *m, nicstride_peer_t *p)
{
    nicstride_reply_line_t *mine, *its;

    if (nicstride_reply_line_count(m->node.n) == 0 || p->local < 0 || p->rank == m->rank)
        return;
    mine = nicstride_ctl_part(m, m->node.me, m->ctl.reply_lines);
    its = nicstride_ctl_part(m, p->local, m->ctl.reply_lines);
    p->flow.reply_line = &mine[p->local];
    p->flow.reply_line_there = &its[m->node.me];
}

static uint64_t name_of(const nicstride_module_t *m, int rank)
{
    return m->names != NULL ? m->names[rank] : m->first_name + (uint64_t)rank;
}

onic_peer_t *nicstride_wire_locked(const nicstride_module_t *m, int rank)
{
    const int local = onic_node_index(&m->node, rank);

    return local >= 0 ? m->near[local] : onic_peer_named(name_of(m, rank));
}

nicstride_peer_t *nicstride_peer_make_locked(nicstride_module_t *m, int rank)
{
    const nicstride_rank_info_t *mine = nicstride_info(m, m->rank), *its = nicstride_info(m, rank);
    nicstride_peer_t *p = calloc(1, sizeof(*p));
    onic_peer_t *wire = p != NULL ? onic_peer_take(name_of(m, rank)) : NULL;
    nicstride_process_t *process = wire != NULL ? process_of(wire) : NULL;
    if (process == NULL) {
        if (wire != NULL)
            onic_peer_give(wire);
        free(p);
        return NULL;
    }
    p->module = m;
    p->wire = wire;
    p->process = process;
    p->quota = &process->quota;
    nicstride_quota_told(p->quota, its->share);
    LIST_INSERT_HEAD(&process->peers, p, of_process);
    STAILQ_INIT(&p->queue.waiting);
    TAILQ_INIT(&p->queue.live);
    p->rank = rank;
    p->win = its->win;
    p->me = (uint32_t)m->rank;
    p->local = onic_node_index(&m->node, rank);
    p->flow.tx.window = mine->window;
    p->flow.rx.window = its->window;
    find_slots(m, p);
    /* Other MPI threads look without the lock. */
    __atomic_store_n(&m->peer[rank], p, __ATOMIC_RELEASE);
    return p;
}

void nicstride_peer_free_locked(nicstride_peer_t *p)
{
    LIST_REMOVE(p, of_process);
    nicstride_tx_forget(&p->flow.tx, p->quota);
    if (p->kept != NULL)
        nicstride_layouts_leave(&nicstride_component.lists, p->kept);
    free(p->sent);
    free(p->kept);
    free(p);
}

/* ---- lost ------------------------------------------------------------------------------------ */

bool nicstride_peer_failed_locked(nicstride_peer_t *p)
{
    if (!p->failed && onic_peer_lost(p->wire)) {
        __atomic_store_n(&p->failed, true, __ATOMIC_RELAXED);
        nicstride_use_locked(p);
    }
    return p->failed;
}

bool nicstride_rank_failed_locked(nicstride_module_t *m, int rank)
{
    if (m->peer[rank] != NULL)
        return nicstride_peer_failed_locked(m->peer[rank]);
    onic_peer_t *wire = nicstride_wire_locked(m, rank);
    return wire == NULL || onic_peer_lost(wire);
}

int nicstride_lost_class(const onic_peer_t *wire)
{
    return onic_peer_has_died(wire) ? ONIC_ERR_PROC_FAILED : MPI_ERR_OTHER;
}

bool nicstride_node_has_lost(const nicstride_module_t *m)
{
    bool lost = false;

    for (int i = 0; i < m->node.n && !lost && onic_transport_losses() > 0; i++)
        lost = onic_peer_has_died(m->near[i]);
    return lost;
}

/* ---- peers in use ---------------------------------------------------------------------------- */

/* Windows whose lists are not empty; transport lock. */
static LIST_HEAD(, nicstride_module) windows = LIST_HEAD_INITIALIZER(windows);

void nicstride_enlist_locked(nicstride_peer_t *p)
{
    nicstride_module_t *m = p->module;

    p->used = true;
    p->next_used = NULL;
    if (m->used == NULL) {
        m->used_end = &m->used;
        LIST_INSERT_HEAD(&windows, m, in_use);
    }
    /* A walk reads it without the lock. */
    __atomic_store_n(m->used_end, p, __ATOMIC_RELEASE);
    m->used_end = &p->next_used;
}

void nicstride_thin_used_locked(nicstride_module_t *m, bool all)
{
    nicstride_peer_t **link = &m->used;

    if (m->used == NULL || m->walks > 0)
        return;
    while (*link != NULL) {
        nicstride_peer_t *p = *link;

        if (!all && !(nicstride_is_clean(p) && TAILQ_EMPTY(&p->queue.live))) {
            link = &p->next_used;
            continue;
        }
        /* nicstride_any_used reads it without the lock. */
        __atomic_store_n(link, p->next_used, __ATOMIC_RELAXED);
        p->used = false;
    }
    m->used_end = link;
    if (m->used == NULL)
        LIST_REMOVE(m, in_use);
}

nicstride_peer_t *nicstride_used_begin(nicstride_module_t *m)
{
    nicstride_peer_t *first;

    onic_transport_lock();
    m->walks++;
    first = m->used;
    onic_transport_unlock();
    return first;
}

void nicstride_used_end(nicstride_module_t *m)
{
    onic_transport_lock();
    m->walks--;
    nicstride_thin_used_locked(m, false);
    onic_transport_unlock();
}

void nicstride_used_each_locked(void (*f)(nicstride_peer_t *p, void *arg), void *arg)
{
    for (nicstride_module_t *m = LIST_FIRST(&windows), *next; m != NULL; m = next) {
        next = LIST_NEXT(m, in_use);
        for (nicstride_peer_t *p = m->used; p != NULL; p = p->next_used)
            f(p, arg);
        nicstride_thin_used_locked(m, false);
    }
}

/* ---- control blocks -----------------------------------------------------------------------------
 *
 * Control blocks: their parts, waiting for their locks, windows that have failed. */

/* ---- where the parts of a block lie ---------------------------------------------------------- */

#define ALIGN64(n) (((n) + 63) & ~(size_t)63)

/** Places `bytes` behind what was placed before; returns where. */
static size_t place(size_t *end, size_t bytes)
{
    const size_t at = *end;

    *end = ALIGN64(at + bytes);
    return at;
}

nicstride_ctl_parts_t nicstride_ctl_place(int nlocal, int nranks)
{
    const size_t n = (size_t)nlocal;
    nicstride_ctl_parts_t parts;
    size_t end = ALIGN64(sizeof(nicstride_ctl_t));

    parts.counts = place(&end, n * sizeof(uint64_t));
    parts.notices = place(&end, 3 * n * sizeof(uint32_t));
    parts.granted = parts.notices + NICSTRIDE_NOTICES * n * sizeof(uint32_t);
    parts.reply_lines =
        place(&end, (size_t)nicstride_reply_line_count(nlocal) * sizeof(nicstride_reply_line_t));
    parts.lockq = place(&end, nicstride_lockq_size((uint32_t)nranks));
    parts.board = place(&end, nicstride_fence_board_bytes(nlocal, nranks));
    parts.bytes = end;
    return parts;
}

/* ---- windows that have failed ---------------------------------------------------------------- */

/* The cause in the upper half of the word, the process + 1 in the lower. Nodes are smaller. */
#define WHO_BITS 16

void nicstride_break(const nicstride_module_t *m, nicstride_broken_t why, int local)
{
    uint32_t not_yet = NICSTRIDE_BROKEN_NOT;

    atomic_compare_exchange_strong(nicstride_ctl_broken(m), &not_yet,
                                   (uint32_t)why << WHO_BITS | (uint32_t)(local + 1));
}

int nicstride_broken_error(const nicstride_module_t *m, const char *call)
{
    const uint32_t word = atomic_load(nicstride_ctl_broken(m));
    const int local = (int)(word & ((1u << WHO_BITS) - 1)) - 1;

    const char *did = word >> WHO_BITS == NICSTRIDE_BROKEN_LOCK ? "held a lock of the window"
                                                                : "updated the window";

    return nicstride_error(m, call, ONIC_ERR_PROC_FAILED,
                           "rank %d of this node has died while it %s: the data of the window "
                           "cannot be trusted any more",
                           m->node.ranks[local], did);
}

static bool is_orphaned(const nicstride_module_t *m, onic_owned_lock_t *lock)
{
    const int64_t owner = onic_owned_by(lock);

    if (owner < 0 || !onic_peer_look(m->near[owner]))
        return false;
    /* What it had a moment ago it has for ever, or had given back before. */
    if (onic_owned_by(lock) != owner)
        return false;
    nicstride_break(m, NICSTRIDE_BROKEN_UPDATE, (int)owner);
    return true;
}

int nicstride_ctl_wait(const nicstride_module_t *m, onic_owned_lock_t *lock)
{
    onic_owned_wait_t w = {0};

    while (!nicstride_ctl_try(m, lock)) {
        switch (onic_owned_next(&w)) {
        case ONIC_OWNED_SPIN:
            onic_pause();
            break;
        case ONIC_OWNED_YIELD:
            sched_yield();
            break;
        case ONIC_OWNED_NAP: {
            const struct timespec nap = onic_timespec(UINT64_C(1000) * w.nap);

            nanosleep(&nap, NULL);
            break;
        }
        case ONIC_OWNED_LOOK_AT_OWNER:
            if (is_orphaned(m, lock))
                return ONIC_ERR_PROC_FAILED;
            break;
        }
    }
    return OMPI_SUCCESS;
}

/* ---- errors ---------------------------------------------------------------------------------- */

/* A program that goes on after errors (MPI_ERRORS_RETURN) may make thousands of them. Not through
 * opal_show_help, which drops texts that come fast. */
#define TEXTS_MAX 16

int nicstride_error(const nicstride_module_t *m, const char *call, int error, const char *format,
                    ...)
{
    static _Atomic unsigned texts;
    unsigned shown = atomic_fetch_add(&texts, 1);
    char reason[384];
    va_list args;

    if (shown >= TEXTS_MAX)
        return error;
    va_start(args, format);
    vsnprintf(reason, sizeof(reason), format, args);
    va_end(args);
    opal_output(0, "%s failed in rank %d of window \"%s\": %s%s", call, m->rank, m->win->w_name,
                reason,
                shown + 1 == TEXTS_MAX ? " (further errors are returned without text)" : "");
    return error;
}

int nicstride_sync_error(const nicstride_module_t *m, const char *call, const char *wrong,
                         int target)
{
    if (target >= 0)
        return nicstride_error(m, call, OMPI_ERR_RMA_SYNC, "%s (target rank %d)", wrong, target);
    return nicstride_error(m, call, OMPI_ERR_RMA_SYNC, "%s", wrong);
}

int nicstride_select_error(int rc, const char *reason)
{
    onic_help(NICSTRIDE_HELP_FILE, "select-error", reason);
    return rc;
}

nicstride_component_t nicstride_component;
nicstride_counters_t nicstride_counters;
