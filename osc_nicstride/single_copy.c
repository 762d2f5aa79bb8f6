/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stddef.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>

#include "osc_nicstride/single_copy.h"
#include "osc_nicstride/component.h"
#include "osc_nicstride/target.h"
#include "osc_nicstride/sieve.h"
#include "common/pack.h"

/* Pieces in one system call: enough that its fixed cost vanishes, few enough for the stack. */
#define BATCH 128

/* The kernel moves a little less than 2 GiB in one call; the last piece of a call may be as long as
 * all before it. */
#define CALL_MAX (1ull << 29)

/* Milliseconds from the loss of a process's memory to its end; more than its destructors take. */
#define ENDING_MS 100

/* Milliseconds that mpirun gets to end the job after one of its processes; it takes much less. */
#define ENDED_MS 2000

typedef ssize_t (*vm_fn_t)(pid_t, const struct iovec *, unsigned long, const struct iovec *,
                           unsigned long, unsigned long);

static void pause_ms(unsigned ms)
{
    const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

    nanosleep(&t, NULL);
}

/** Does a process end whose memory could not be had? What ends may lose memory before it is gone:
 *  destructors unmap it, and the kernel itself does where memory is short. So it is given a while;
 *  only an error waits for that. */
static bool is_ending(const nicstride_peer_t *p)
{
    for (unsigned ms = 0; ms < ENDING_MS; ms++) {
        if (!onic_peer_readable(p->wire))
            return true;
        pause_ms(1);
    }
    return false;
}

/** The process has ended. That is for mpirun to tell, so it gets time to end this one; what cannot
 *  be done here goes by message then, and waits, or fails. */
static int process_ended(void)
{
    pause_ms(ENDED_MS);
    return OMPI_ERR_OUT_OF_RESOURCE;
}

static int vm_error(const nicstride_peer_t *p, ssize_t moved)
{
    if (moved < 0 && (errno == EPERM || errno == ENOSYS))
        return OMPI_ERR_NOT_SUPPORTED;
    if (moved < 0 && errno == ENOMEM)
        return OMPI_ERR_OUT_OF_RESOURCE;
    if ((moved < 0 && errno == ESRCH) || is_ending(p))
        return process_ended();
    /* The range was inside the window, so the target gave memory that is not there (or not
     * writable). */
    return MPI_ERR_RMA_RANGE;
}

static int vm_move(vm_fn_t fn, const nicstride_peer_t *p, const struct iovec *local, unsigned nl,
                   const struct iovec *remote, unsigned nr, uint64_t bytes)
{
    ssize_t moved;

    do
        moved = fn(onic_peer_pid(p->wire), local, nl, remote, nr, 0);
    while (moved < 0 && errno == EINTR);
    return moved == (ssize_t)bytes ? OMPI_SUCCESS : vm_error(p, moved);
}

/** Adds a piece to a list of pieces; continues the last one where it can. */
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

static bool walk_piece(walk_t *w)
{
    return w->left > 0 || onic_cursor_next(&w->cursor, CALL_MAX, &w->offset, &w->left);
}

static char *walk_take(walk_t *w, uint64_t n)
{
    char *at = (char *)((uintptr_t)w->base + (uintptr_t)w->offset);

    w->offset += (int64_t)n;
    w->left -= n;
    return at;
}

static int move_pieces(const nicstride_target_t *a, vm_fn_t fn)
{
    walk_t o = {.base = a->origin_base}, t = {.base = (char *)(uintptr_t)a->remote};
    bool more = true;

    onic_cursor_init(&o.cursor, &a->origin, 0);
    onic_cursor_init(&t.cursor, &a->target, 0);
    while (more) {
        struct iovec local[BATCH], remote[BATCH];
        unsigned nl = 0, nr = 0;
        uint64_t bytes = 0;
        int rc;

        while (nl < BATCH && nr < BATCH && bytes < CALL_MAX) {
            uint64_t n;

            more = walk_piece(&o) && walk_piece(&t);
            if (!more)
                break;
            n = o.left < t.left ? o.left : t.left;
            add_piece(local, &nl, walk_take(&o, n), n);
            add_piece(remote, &nr, walk_take(&t, n), n);
            bytes += n;
        }
        if (bytes == 0)
            break;
        rc = vm_move(fn, a->peer, local, nl, remote, nr, bytes);
        if (rc != OMPI_SUCCESS)
            return rc;
    }
    return OMPI_SUCCESS;
}

int nicstride_cma_put(const nicstride_target_t *a)
{
    return move_pieces(a, process_vm_writev);
}

int nicstride_cma_get(const nicstride_target_t *a)
{
    return move_pieces(a, process_vm_readv);
}

int nicstride_cma_bytes(const nicstride_peer_t *p, nicstride_direction_t dir, void *local,
                        uint64_t remote, size_t bytes)
{
    const struct iovec here = {.iov_base = local, .iov_len = bytes};
    const struct iovec there = {.iov_base = (void *)(uintptr_t)remote, .iov_len = bytes};

    return vm_move(dir == NICSTRIDE_PUT ? process_vm_writev : process_vm_readv, p, &here, 1, &there,
                   1, bytes);
}

int nicstride_sieve_get(const nicstride_target_t *a)
{
    const uint64_t piece = mca_osc_nicstride_component.params.sieve_piece;
    uint64_t extent = (uint64_t)(a->target.ub - a->target.lb);
    char *bounce = malloc(extent < piece ? extent : piece);
    onic_cursor_t to, from;
    uint64_t pos = 0;
    int rc = OMPI_SUCCESS;

    if (bounce == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    onic_cursor_init(&to, &a->origin, 0);
    onic_cursor_init(&from, &a->target, 0);
    while (pos < a->target.size && rc == OMPI_SUCCESS) {
        nicstride_cover_t c = nicstride_sieve_next(&a->target, pos, piece, NICSTRIDE_SIEVE_GAP);
        struct iovec local = {.iov_base = bounce, .iov_len = c.len};
        struct iovec remote = {.iov_base = (void *)(uintptr_t)(a->remote + (uint64_t)c.lo),
                               .iov_len = c.len};

        rc = vm_move(process_vm_readv, a->peer, &local, 1, &remote, 1, c.len);
        if (rc == OMPI_SUCCESS)
            onic_copy(&to, a->origin_base, &from,
                      (const void *)((uintptr_t)bounce - (uintptr_t)c.lo), c.bytes);
        pos += c.bytes;
    }
    free(bounce);
    return rc;
}
