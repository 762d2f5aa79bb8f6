/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Methods cma and sieve: the kernel copies to and from private memory on the node. If it
 *  refuses a copy, the data goes by message, and single copy is not tried again there
 *  (common/transport/shm/refused.h). */
#include <math.h>
#include <stdlib.h>
#include <sys/uio.h>

#include "osc_nicstride/methods/methods.h"
#include "osc_nicstride/methods/sieve.h"
#include "osc_nicstride/window/control.h"
#include "osc_nicstride/window/state.h"
#include "osc_nicstride/window/transfer.h"
#include "osc_nicstride/window/module.h"
#include "common/layout/layout.h"
#include "common/layout/pack.h"
#include "common/transport/shm/node.h"
#include "common/support/help.h"
#include "opal/util/proc.h"

/* Pieces in one system call: enough to make its fixed cost negligible, few enough for the
 * stack. */
#define BATCH 128

/* The kernel moves slightly less than 2 GiB in one call; the last piece of a call may be as long
 * as all pieces before it together. */
#define CALL_MAX (1ull << 29)

/* ---- costs ----------------------------------------------------------------------------------- */

static double cost_of_pieces(const nicstride_case_t *c)
{
    if (c->path->costs == NULL)
        return INFINITY;
    return nicstride_cost_on_node(c, ONIC_WAY_cma_put, ONIC_WAY_cma_get, (double)c->target->size);
}

static bool may_sieve(const nicstride_case_t *c)
{
    return c->dir == NICSTRIDE_GET && nicstride_sieve_takes(c->target);
}

static double cost_of_sieve(const nicstride_case_t *c)
{
    if (c->path->costs == NULL)
        return INFINITY;
    return nicstride_cost_on_node(c, ONIC_WAY_sieve, ONIC_WAY_sieve,
                                  (double)(c->target->ub - c->target->lb));
}

/* ---- copies ---------------------------------------------------------------------------------- */

/** Adds a piece to a list of pieces, merging it with the last one if they touch. */
static void add_piece(struct iovec *iov, unsigned *n, char *at, uint64_t len)
{
    if (*n > 0 && (char *)iov[*n - 1].iov_base + iov[*n - 1].iov_len == at) {
        iov[*n - 1].iov_len += len;
    } else {
        iov[*n].iov_base = at;
        iov[*n].iov_len = len;
        (*n)++;
    }
}

/** Contiguous pieces of both sides, walked in step. */
typedef struct walk {
    onic_cursor_t cursor;
    char *base;
    int64_t offset;
    uint64_t left; /* of the current piece */
} walk_t;

/** Bytes of the piece at hand; 0 at the end. */
static uint64_t walk_piece(walk_t *w)
{
    if (w->left == 0)
        (void)onic_cursor_next(&w->cursor, CALL_MAX, &w->offset, &w->left);
    return w->left;
}

static char *walk_take(walk_t *w, uint64_t n)
{
    char *at = (char *)((uintptr_t)w->base + (uintptr_t)w->offset);

    w->offset += (int64_t)n;
    w->left -= n;
    return at;
}

static onic_refused_t copy_pieces(const nicstride_transfer_t *a)
{
    walk_t o = {.base = a->origin_base}, t = {.base = (char *)(uintptr_t)a->remote};
    onic_refused_t refused = ONIC_REFUSED_NOT;

    onic_cursor_init(&o.cursor, &a->origin, 0);
    onic_cursor_init(&t.cursor, &a->target, 0);
    for (uint64_t left = a->target.size; left > 0 && refused == ONIC_REFUSED_NOT;) {
        struct iovec local[BATCH], remote[BATCH];
        unsigned nl = 0, nr = 0;
        uint64_t bytes = 0;

        while (nl < BATCH && nr < BATCH && bytes < CALL_MAX && bytes < left) {
            const uint64_t here = walk_piece(&o), there = walk_piece(&t),
                           n = here < there ? here : there;

            add_piece(local, &nl, walk_take(&o, n), n);
            add_piece(remote, &nr, walk_take(&t, n), n);
            bytes += n;
        }
        refused = onic_peer_copy(a->peer->peer, a->type == NICSTRIDE_MSG_PUT, local, nl, remote, nr,
                                 bytes);
        left -= bytes;
    }
    return refused;
}

/** Reads in pieces that stay in the cache until they are gathered. */
static onic_refused_t sieve(const nicstride_transfer_t *a)
{
    const uint64_t piece = onic_l2_size() / 2;
    uint64_t extent = (uint64_t)(a->target.ub - a->target.lb);
    char *bounce = malloc((extent < piece ? extent : piece) + 2 * ONIC_WORD);
    onic_cursor_t to, from;
    onic_refused_t refused = ONIC_REFUSED_NOT;

    if (bounce == NULL)
        return ONIC_REFUSED_NOW;
    onic_cursor_init(&to, &a->origin, 0);
    onic_cursor_init(&from, &a->target, 0);
    while (from.pos < a->target.size && refused == ONIC_REFUSED_NOT) {
        nicstride_cover_t c = nicstride_sieve_next(&from, piece, NICSTRIDE_SIEVE_GAP);
        const onic_words_t w = onic_words_around(a->remote + (uint64_t)c.lo, c.len);
        struct iovec local = {.iov_base = bounce, .iov_len = w.len};
        struct iovec remote = {.iov_base = (void *)(uintptr_t)w.at, .iov_len = w.len};

        refused = onic_peer_copy(a->peer->peer, false, &local, 1, &remote, 1, w.len);
        if (refused == ONIC_REFUSED_NOT)
            onic_copy(&to, a->origin_base, &from,
                      (const void *)((uintptr_t)bounce + w.before - (uintptr_t)c.lo), c.bytes,
                      false);
    }
    free(bounce);
    return refused;
}

/** Warns once that single copy is impossible: the program works all the same, but may be slow. */
static void warn_no_single_copy(void)
{
    static bool said;

    if (!said)
        onic_help(NICSTRIDE_HELP_FILE, "no-cma", opal_process_info.nodename);
    said = true;
}

/** Where to keep whether the kernel copies in the transfer's direction. */
static int *known(const nicstride_transfer_t *t)
{
    return nicstride_known(t->peer, NICSTRIDE_METHOD_CMA, t->type);
}

/** Moves the data. If only part of it was copied, everything goes again by message. */
static int start(const nicstride_transfer_t *t,
                 onic_refused_t (*copy)(const nicstride_transfer_t *), bool *done_p)
{
    const onic_refused_t refused = copy(t);

    *done_p = true;
    if (refused == ONIC_REFUSED_MEMORY || refused == ONIC_REFUSED_PROCESS)
        __atomic_store_n(known(t), -1, __ATOMIC_RELAXED);
    if (refused == ONIC_REFUSED_PROCESS)
        warn_no_single_copy();
    if (refused != ONIC_REFUSED_NOT)
        return OMPI_ERR_NOT_AVAILABLE;
    return OMPI_SUCCESS;
}

/** True if the kernel can copy to and from the peer's memory. Asked once. */
static bool works(const nicstride_transfer_t *t)
{
    int *kept = known(t), is = __atomic_load_n(kept, __ATOMIC_RELAXED);

    if (is == 0) {
        onic_transport_lock();
        is = onic_peer_can_cma(t->peer->peer) ? 1 : -1;
        onic_transport_unlock();
        __atomic_store_n(kept, is, __ATOMIC_RELAXED);
        /* If the process has died, a warning would only confuse the user. */
        if (is < 0 && !onic_peer_look(t->peer->peer))
            warn_no_single_copy();
    }
    return is > 0;
}

/** True if the bytes are known to be attached to a dynamic window. Only single copy bypasses the
 *  target, which would check that. */
static bool is_attached(const nicstride_transfer_t *t)
{
    return t->m->flavor != MPI_WIN_FLAVOR_DYNAMIC ||
           nicstride_shown_holds(&nicstride_ctl(t->m, t->peer->local)->attached,
                                 t->remote + (uint64_t)t->target.lb,
                                 (uint64_t)(t->target.ub - t->target.lb));
}

static bool reaches(const nicstride_transfer_t *t)
{
    return !t->mapped && (t->type == NICSTRIDE_MSG_PUT || t->type == NICSTRIDE_MSG_GET) &&
           t->peer->local >= 0 && nicstride_component.params.cma && works(t) && is_attached(t);
}

static bool reaches_pieces(const nicstride_transfer_t *t)
{
    /* The kernel could tear other elements (layout.h). */
    return reaches(t) && onic_whole_words(&t->origin, (uint64_t)(uintptr_t)t->origin_base) &&
           onic_whole_words(&t->target, t->remote);
}

static int start_cma(nicstride_transfer_t *t, bool *done_p)
{
    return start(t, copy_pieces, done_p);
}

static int start_sieve(nicstride_transfer_t *t, bool *done_p)
{
    return start(t, sieve, done_p);
}

const nicstride_method_row_t nicstride_cma = {
    .name = "cma", .cost = cost_of_pieces, .reach = reaches_pieces, .start = start_cma};

const nicstride_method_row_t nicstride_sieve = {.name = "sieve",
                                                .fits = may_sieve,
                                                .cost = cost_of_sieve,
                                                .reach = reaches,
                                                .start = start_sieve};
