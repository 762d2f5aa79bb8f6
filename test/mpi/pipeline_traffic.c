/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test/mpi/pipeline_traffic.h"

#include <stdlib.h>
#include <string.h>

#include "ompi/constants.h"

#include "common/pipeline/rma/carrier_rma.h"
#include "common/pipeline/shm/carrier_shm.h"
#include "test/mpi/testlib.h"

moves_t moves;

/* ---- life ------------------------------------------------------------------------------------ */

bool moves_reached(int rank)
{
    onic_transport_lock();
    const bool yes = onic_pipeline_reaches_locked(moves.peers[rank]);
    onic_transport_unlock();
    return yes;
}

/** The first question makes a peer known. */
static bool all_reached(void)
{
    bool all = true;

    for (int i = 0; i < tl_size(); i++)
        all = (i == tl_rank() || moves_reached(i)) && all;
    return all;
}

void moves_open(size_t rx_pool, size_t buffer)
{
    const onic_links_t links = onic_links_default("other");
    const onic_pipeline_config_t config = {.rx_pool = rx_pool,
                                           .rx_buffer = buffer,
                                           .rma = moves.puts ? ONIC_PIPELINE_RMA_ALWAYS
                                                             : ONIC_PIPELINE_RMA_AUTO,
                                           .links = &links};
    const double end = MPI_Wtime() + MOVES_PATIENCE;

    onic_pipeline_open(&config);
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    while (!all_reached() && MPI_Wtime() < end)
        onic_transport_progress();
    if (!TL_CHECK(all_reached() && !moves_reached(tl_rank()), "not all are reached, or oneself"))
        tl_die("peers");
    moves_meet(MPI_COMM_WORLD);
}

uint64_t moves_free_buffers(void)
{
    return atomic_load(&onic_node_state.rx_pool.pool.words->free);
}

bool moves_clean(uint64_t lost)
{
    const uint64_t all = onic_pool_all(&onic_node_state.rx_pool.pool);

    onic_transport_lock();
    bool clean = onic_pipeline_idle() && (moves_free_buffers() ^ lost) == all;
    if (moves.puts)
        clean = clean && (lost != 0 || onic_rma_records.used == 0) &&
                atomic_load(&onic_rma_state.bounce_free) == all &&
                onic_rma_state.grant_queue.first == NULL;
    onic_transport_unlock();
    return clean;
}

static uint64_t nothing_lost(void)
{
    return 0;
}

void moves_settle(uint64_t (*lost)(void))
{
    const double end = MPI_Wtime() + MOVES_PATIENCE;

    while (!moves_clean(lost()) && MPI_Wtime() < end)
        onic_transport_progress();
    TL_CHECK(moves_clean(lost()), "left: buffers %llx of mine, %llx lost, %llx to pack into%s%s",
             (unsigned long long)moves_free_buffers(), (unsigned long long)lost(),
             (unsigned long long)onic_rma_state.bounce_free,
             onic_rma_state.grant_queue.first != NULL ? ", requests" : "",
             onic_pipeline_idle() ? "" : ", transfers");
}

void moves_close(void)
{
    moves_meet(MPI_COMM_WORLD);
    moves_settle(nothing_lost);
    moves_meet(MPI_COMM_WORLD);
    onic_pipeline_close();
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

void moves_meet(MPI_Comm comm)
{
    MPI_Request request;
    int all = 0;

    TL_MPI(MPI_Ibarrier(comm, &request));
    while (!all) {
        TL_MPI(MPI_Test(&request, &all, MPI_STATUS_IGNORE));
        for (int i = 0; i < 100; i++)
            onic_transport_progress();
    }
}

/* ---- memory ---------------------------------------------------------------------------------- */

enum { EMPTY = 0xee, MARGIN = 64 };

static void repeat(onic_layout_t *l, uint64_t count, int64_t stride)
{
    if (onic_layout_repeat(l, count, stride) != ONIC_LAYOUT_OK)
        tl_die("a layout cannot be had");
}

/** A list that is not regular: blocks of 1 to 100 bytes, 0 to 20 bytes apart, a thousand of them
 *  and those again and again. */
static void irregular(onic_layout_t *l, uint64_t len)
{
    onic_runs_t runs = {0};
    tl_rng_t rng = tl_rng(1, 2);
    int64_t at = 0;
    uint64_t sum = 0;

    for (int i = 0; i < 1000 && sum < len; i++) {
        const uint64_t block = (uint64_t)tl_range(&rng, 1, 100);
        if (onic_runs_add(&runs, (onic_run_t){at, block, 1, 0}) != ONIC_LAYOUT_OK)
            tl_die("a list cannot be had");
        at += (int64_t)block + tl_range(&rng, 0, 20);
        sum += block;
    }
    if (onic_layout_from_runs(l, &runs, 0) != ONIC_LAYOUT_OK)
        tl_die("a layout of a list cannot be had");
    repeat(l, (len - 1) / sum + 1, at + 8);
}

static void blocks(onic_layout_t *l, uint64_t block, uint64_t len)
{
    onic_layout_contig(l, 0, block);
    repeat(l, (len - 1) / block + 1, (int64_t)(2 * block));
}

static void shape_layout(shape_t shape, uint64_t len, onic_layout_t *l)
{
    switch (shape) {
    case BLOCKS_8:
        blocks(l, 8, len);
        break;
    case BLOCKS_64:
        blocks(l, 64, len);
        break;
    case BLOCKS_1024:
        blocks(l, 1024, len);
        break;
    case NESTED:
        onic_layout_contig(l, 0, 12);
        repeat(l, 5, 16);
        repeat(l, 7, 100);
        repeat(l, (len - 1) / (12 * 35) + 1, 720);
        break;
    case IRREGULAR:
        irregular(l, len);
        break;
    default:
        onic_layout_contig(l, 0, len);
    }
}

memory_t memory_make(shape_t shape, uint64_t len, uint64_t seed)
{
    memory_t m = {.len = len, .at = shape == CALLED ? 0 : seed % 37};

    shape_layout(shape, len + m.at, &m.layout);
    m.size = (uint64_t)m.layout.ub + 2 * MARGIN;
    m.bytes = aligned_alloc(64, (m.size + 63) / 64 * 64);
    if (m.bytes == NULL)
        tl_die("no memory");
    m.base = (char *)m.bytes + MARGIN;
    memset(m.bytes, EMPTY, m.size);
    return m;
}

void memory_free(memory_t *m)
{
    onic_layout_fini(&m->layout);
    free(m->bytes);
    m->bytes = NULL;
}

static unsigned char byte_of(uint64_t seed, uint64_t pos)
{
    return (unsigned char)((pos + seed) * 0x9e3779b97f4a7c15U >> 40);
}

/** Byte after byte, so that it has nothing in common with how the pipeline packs. */
static void write_to(const memory_t *m, unsigned char *bytes, uint64_t seed)
{
    onic_cursor_t c;
    int64_t offset;
    uint64_t n, pos = 0;

    onic_cursor_init(&c, &m->layout, m->at);
    while (pos < m->len && onic_cursor_next(&c, m->len - pos, &offset, &n)) {
        for (uint64_t i = 0; i < n; i++)
            bytes[MARGIN + offset + (int64_t)i] = byte_of(seed, pos + i);
        pos += n;
    }
}

void memory_write(memory_t *m, uint64_t seed)
{
    write_to(m, m->bytes, seed);
}

bool memory_holds(const memory_t *m, uint64_t seed)
{
    unsigned char *want = malloc(m->size);

    if (want == NULL)
        tl_die("no memory");
    memset(want, EMPTY, m->size);
    write_to(m, want, seed);
    const bool holds = memcmp(want, m->bytes, m->size) == 0;
    free(want);
    return holds;
}

/* ---- targets --------------------------------------------------------------------------------- */

/** What a target has to do with one transfer. */
typedef struct service {
    move_header_t h;
    memory_t memory;
    unsigned calls;
} service_t;

/** Takes whole elements of 8 bytes, is busy now and then, and insists on the order. */
static int64_t take_some(memory_t *m, unsigned *calls, uint64_t pos, const void *data, uint64_t n)
{
    if (++*calls % 5 == 0)
        return 0;
    if (pos != m->taken || n > m->len - pos || (n % 8 != 0 && pos + n != m->len))
        return -1;
    n = *calls % 3 == 0 && n > 16 ? 16 : n;
    memcpy(m->base + pos, data, n);
    m->taken += n;
    return (int64_t)n;
}

static int64_t take_service(void *arg, uint64_t pos, const void *data, uint64_t n)
{
    service_t *s = arg;
    return take_some(&s->memory, &s->calls, pos, data, n);
}

static int64_t take_move(void *arg, uint64_t pos, const void *data, uint64_t n)
{
    static _Thread_local unsigned calls;
    move_t *m = arg;
    return take_some(&m->memory, &calls, pos, data, n);
}

onic_pipeline_end_t memory_end(memory_t *m, shape_t shape, bool sink, void (*done)(void *, int),
                               void *arg)
{
    onic_pipeline_end_t end = {
        .at = m->at, .len = m->len, .base = m->base, .done = done, .arg = arg};

    if (!sink || shape != CALLED)
        onic_layout_dup(&end.layout, &m->layout);
    return end;
}

static void reply(const move_header_t *h, move_kind_t kind, int status)
{
    move_header_t r = *h;

    r.kind = kind;
    r.from = (uint32_t)tl_rank();
    r.status = status;
    const int rc =
        onic_peer_send(moves.peers[h->from], ONIC_AM_COLL, &r, sizeof(r), NULL, 0, NULL, NULL);
    TL_CHECK(rc >= 0 || moves.may_fail, "a reply could not be sent");
}

/** With the transport lock held. */
static void served(void *arg, int status)
{
    service_t *s = arg;
    bool ok = status == OMPI_SUCCESS;

    if (s->h.kind == PUT && ok)
        ok = memory_holds(&s->memory, s->h.seed);
    if (status != OMPI_SUCCESS)
        atomic_fetch_add(&moves.failed_targets, 1);
    if (!ok)
        atomic_fetch_add(&moves.wrong, 1);
    /* Handlers must be able to tell that it is the helper thread. */
    if (!pthread_equal(pthread_self(), moves.mpi_thread) &&
        onic_guard_is_helper(&onic_transport_guard))
        atomic_fetch_add(&moves.foreign, 1);
    if (s->h.kind == PUT)
        reply(&s->h, DONE, status);
    memory_free(&s->memory);
    free(s);
    atomic_fetch_add(&moves.taken, 1);
}

static void serve(const move_header_t *h)
{
    service_t *s = calloc(1, sizeof(*s));
    onic_peer_t *from = moves.peers[h->from];
    int rc;

    s->h = *h;
    s->memory = memory_make((shape_t)h->shape, h->len, h->seed);
    onic_pipeline_end_t end = memory_end(&s->memory, (shape_t)h->shape, h->kind == PUT, served, s);
    if (h->kind == PUT) {
        end.take = h->shape == CALLED ? take_service : NULL;
        rc = onic_pipeline_receive_locked(from, &h->ticket, &end);
    } else {
        end.granule = h->granule;
        memory_write(&s->memory, h->seed);
        rc = onic_pipeline_answer_locked(from, &h->ticket, &end);
    }
    if (rc == OMPI_ERR_OUT_OF_RESOURCE && h->kind == GET) {
        reply(h, REFUSED, rc);
        onic_layout_fini(&end.layout);
        memory_free(&s->memory);
        free(s);
        return;
    }
    TL_CHECK(rc == OMPI_SUCCESS, "a ticket of rank %u was refused: %d", h->from, rc);
}

/* ---- origins --------------------------------------------------------------------------------- */

/** With the transport lock held. */
void move_ended(void *arg, int status)
{
    move_t *m = arg;

    if (status != OMPI_SUCCESS)
        m->status = status;
    atomic_fetch_sub(&m->waits, 1);
}

/** The target cannot answer now: nothing will come. */
static void refused(move_t *m)
{
    onic_pipeline_withdraw_locked(m->transfer);
    m->refused = true;
    atomic_store(&m->waits, 0);
}

void move_handle(onic_peer_t *from, const void *header, size_t header_len, const void *data,
                 size_t len, onic_rndv_t *rndv)
{
    move_header_t h;

    (void)from;
    (void)data;
    (void)rndv;
    TL_CHECK(header_len == sizeof(h) && len == 0, "a message of %zu and %zu bytes", header_len,
             len);
    memcpy(&h, header, sizeof(h));
    switch (h.kind) {
    case PUT:
    case GET:
        serve(&h);
        break;
    case REFUSED:
        refused((void *)(uintptr_t)h.op);
        break;
    case DONE:
        move_ended((void *)(uintptr_t)h.op, (int)h.status);
        break;
    default:
        TL_CHECK(false, "a message of kind %u", h.kind);
    }
}

void move_prepare(move_t *m)
{
    if (m->memory.bytes == NULL) {
        m->memory = memory_make(m->mine, m->len, m->seed + 5);
        if (m->kind == PUT)
            memory_write(&m->memory, m->seed);
    }
    m->status = OMPI_SUCCESS;
}

static move_header_t header_of(move_t *m)
{
    return (move_header_t){.kind = m->kind,
                           .from = (uint32_t)tl_rank(),
                           .op = (uint64_t)(uintptr_t)m,
                           .seed = m->seed,
                           .len = m->len,
                           .shape = m->theirs,
                           .granule = m->mine == CALLED ? 8 : 0};
}

bool move_start(move_t *m)
{
    move_header_t h = header_of(m);
    onic_peer_t *to = moves.peers[m->target];
    onic_pipeline_end_t end = memory_end(&m->memory, m->mine, m->kind == GET, move_ended, m);

    end.take = m->kind == GET && m->mine == CALLED ? take_move : NULL;
    end.granule = m->theirs == CALLED ? 8 : 0;
    /* A put ends twice: its memory is packed, and the target has it. */
    atomic_store(&m->waits, m->kind == PUT ? 2 : 1);
    m->refused = false;
    onic_transport_lock();
    m->transfer = m->kind == PUT ? onic_pipeline_send_locked(to, &end, &h.ticket)
                                 : onic_pipeline_expect_locked(to, &end, &h.ticket);
    if (m->transfer != NULL) {
        TL_CHECK(onic_peer_send(to, ONIC_AM_COLL, &h, sizeof(h), NULL, 0, NULL, NULL) >= 0,
                 "a message could not be sent");
    }
    if (m->transfer != NULL && m->kind == PUT)
        onic_pipeline_run_locked(m->transfer);
    onic_transport_unlock();
    if (m->transfer == NULL)
        onic_layout_fini(&end.layout);
    return m->transfer != NULL;
}

void move_wait(const move_t *m)
{
    const double end = MPI_Wtime() + MOVES_PATIENCE;

    while (!move_is_done(m) && MPI_Wtime() < end)
        onic_transport_progress();
    TL_CHECK(move_is_done(m) && m->status == OMPI_SUCCESS,
             "a transfer of %llu bytes with rank %d is not done, or has failed",
             (unsigned long long)m->len, m->target);
}

void moves_cancel(void *arg)
{
    onic_transport_lock();
    onic_pipeline_cancel_locked(arg);
    onic_transport_unlock();
}

void move_finish(move_t *m)
{
    if (m->kind == GET && m->status == OMPI_SUCCESS) {
        TL_CHECK(memory_holds(&m->memory, m->seed),
                 "a get of %llu bytes, shape %d from %d, rank %d", (unsigned long long)m->len,
                 (int)m->mine, (int)m->theirs, m->target);
    }
    memory_free(&m->memory);
}
