/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-3 */
/* p2p: auto */
/**
 * @file
 * A row of protocols that only this program has: the receiver reads the sender's memory by a thread
 * of its own, some time after the message has found its receive, and an MPI thread ends it. Now and
 * then it cannot start, or what it has begun comes to nothing: then the message comes as a stream.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "pml_superpipe/protocols/process.h"

#include "ompi/mca/pml/base/base.h"

#include "test/mpi/counter.h"
#include "test/mpi/p2p.h"

enum { LENGTH = 300000, LATE_USEC = 3000, ROUNDS = 12, EACH_FAILS = 4, MAX_RANKS = 3 };

/** What is under way of a message. */
typedef struct job {
    superpipe_request_t *r;
    pid_t pid;
    struct iovec here, there;
    bool good;
    atomic_bool done;
    struct job *next;
} job_t;

static superpipe_component_t *component;
static pid_t pids[MAX_RANKS];
static job_t *jobs; /* the transport's lock */
static int asked, begun, ended, failed;

static bool can(const superpipe_case_t *c)
{
    return !c->self && c->one_piece;
}

static double cost(const superpipe_case_t *c)
{
    (void)c;
    return 1;
}

static void *copy(void *arg)
{
    job_t *job = arg;
    const size_t bytes = job->here.iov_len;

    usleep(LATE_USEC);
    if (job->good && process_vm_readv(job->pid, &job->here, 1, &job->there, 1, 0) != (ssize_t)bytes)
        tl_die("the copy failed");
    atomic_store(&job->done, true);
    return NULL;
}

static bool start(superpipe_request_t *r)
{
    const uint64_t early = r->state.early, bytes = superpipe_transfer_remaining(&r->state);
    job_t *job;
    pthread_t thread;

    if (++asked % EACH_FAILS == 1)
        return false;
    job = calloc(1, sizeof(*job));
    if (job == NULL)
        return false;
    *job = (job_t){.r = r,
                   .pid = pids[r->super.req_status.MPI_SOURCE],
                   .here = {r->base + r->layout.offset + early, bytes},
                   .there = {(void *)(uintptr_t)(r->address + early), bytes},
                   .good = asked % EACH_FAILS != 2,
                   .next = jobs};
    jobs = job;
    begun++;
    r->state.in_flight++;
    if (pthread_create(&thread, NULL, copy, job) != 0)
        tl_die("no thread");
    pthread_detach(thread);
    onic_transport_ask(ONIC_AM_PML, ONIC_MPI);
    return true;
}

static int go_on(void)
{
    int n = 0;

    onic_transport_lock();
    for (job_t **at = &jobs, *job; (job = *at) != NULL;) {
        if (!atomic_load(&job->done)) {
            at = &job->next;
            continue;
        }
        *at = job->next;
        ended++;
        failed += !job->good;
        component->fetched(job->r, job->good);
        free(job);
        n++;
    }
    if (jobs != NULL)
        onic_transport_ask(ONIC_AM_PML, ONIC_MPI);
    onic_transport_unlock();
    return n;
}

static const superpipe_row_t row = {
    .name = "late", .can = can, .cost = cost, .start = start, .progress = go_on};

/** Puts the row behind the component's own. False where the component is not in use. */
static bool add_row(void)
{
    mca_base_component_list_item_t *item;

    OPAL_LIST_FOREACH(item, &ompi_pml_base_framework.framework_components,
                      mca_base_component_list_item_t)
    if (strcmp(item->cli_component->mca_component_name, "superpipe") == 0) {
        component = (superpipe_component_t *)(uintptr_t)item->cli_component;
        component->rows[SUPERPIPE_PROTOCOLS] = &row;
        return true;
    }
    return false;
}

/** Round the ring; the buffers are another part of the memory in each round. */
static void exchange(int round, unsigned char *out, unsigned char *in, unsigned char *expected)
{
    const int size = tl_size(), from = (tl_rank() + size - 1) % size;
    const size_t at = (size_t)round * 64, bytes = LENGTH - at;
    MPI_Status status;
    int count;

    p2p_fill(out + at, bytes, p2p_seed(tl_rank(), round, 0));
    TL_MPI(MPI_Sendrecv(out + at, (int)bytes, MPI_BYTE, (tl_rank() + 1) % size, round, in + at,
                        LENGTH, MPI_BYTE, from, round, MPI_COMM_WORLD, &status));
    TL_MPI(MPI_Get_count(&status, MPI_BYTE, &count));
    TL_CHECK((size_t)count == bytes && status.MPI_SOURCE == from, "round %d: %d bytes from %d",
             round, count, status.MPI_SOURCE);
    p2p_fill(expected, bytes, p2p_seed(from, round, 0));
    TL_BYTES(in + at, expected, bytes, "round %d", round);
}

int main(int argc, char **argv)
{
    const pid_t pid = getpid();
    unsigned char *out, *in, *expected;
    int provided;

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(2, MAX_RANKS);
    if (!tl_may_copy() || !add_row())
        tl_skip("single copy does not work here, or there is no component");
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Allgather(&pid, sizeof(pid), MPI_BYTE, pids, sizeof(pid), MPI_BYTE, MPI_COMM_WORLD);
    out = tl_alloc(2 * LENGTH);
    in = tl_alloc(2 * LENGTH);
    expected = tl_alloc(LENGTH);
    counter_t *c = counter_begin("pml_superpipe_fallbacks");
    for (int round = 0; round < ROUNDS; round++)
        exchange(round, out, in, expected);
    TL_CHECK(asked == ROUNDS && ended == begun, "asked %d times, began %d, ended %d", asked, begun,
             ended);
    TL_CHECK(begun == ROUNDS - ROUNDS / EACH_FAILS && failed == ROUNDS / EACH_FAILS,
             "%d were begun, %d failed", begun, failed);
    TL_CHECK(counter_read(c) == 2 * ROUNDS / EACH_FAILS, "%llu came as a stream", counter_read(c));
    counter_end(c);
    free(out);
    free(in);
    free(expected);
    MPI_T_finalize();
    return tl_finish();
}
