/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* p2p: auto eager stream */
/**
 * @file
 * Messages through queues between the processes of a node: one process has a short queue, which is
 * soon full, one has none, so that its messages come by UCX, the others have the usual ones. Each
 * sends to all others, of all lengths and layouts, to receivers that come late, and everything
 * arrives in order and unchanged.
 */
#include "test/mpi/p2p.h"

#include <stdlib.h>
#include <unistd.h>

#include "test/mpi/counter.h"

enum { ROUNDS = 3, MESSAGES = 400, SHORT_QUEUE = 0, NO_QUEUE = 1, LATE_USEC = 20000, TAG = 5 };

static int bytes_of(int round, int i)
{
    return i % 50 == 49   ? 60000 + round
           : i % 50 == 24 ? 200000 + round
                          : p2p_sizes[(i + round) % p2p_nsizes] % 8192;
}

static p2p_shape_t shape_of(int i)
{
    return (p2p_shape_t)(i / 3 % P2P_SHAPES);
}

/** All messages of a round to one process, or from one. */
typedef struct pile {
    p2p_buffer_t buffer[MESSAGES];
    MPI_Request request[MESSAGES];
} pile_t;

static pile_t *begin(int peer, int round, bool sends)
{
    pile_t *p = tl_alloc(sizeof(*p));

    for (int i = 0; i < MESSAGES; i++) {
        p2p_buffer_t *b = &p->buffer[i];

        *b = p2p_buffer(p2p_side(sends ? shape_of(i) : shape_of(i + 1), bytes_of(round, i)));
        if (sends) {
            p2p_write(b, p2p_seed(tl_rank(), i, round));
            TL_MPI(MPI_Isend(b->at, b->side.count, b->side.type, peer, TAG, MPI_COMM_WORLD,
                             &p->request[i]));
        } else {
            TL_MPI(MPI_Irecv(b->at, b->side.count, b->side.type, peer, TAG, MPI_COMM_WORLD,
                             &p->request[i]));
        }
    }
    return p;
}

static void end(pile_t *p, int peer, int round, bool sends)
{
    TL_MPI(MPI_Waitall(MESSAGES, p->request, MPI_STATUSES_IGNORE));
    for (int i = 0; i < MESSAGES; i++) {
        if (!sends) {
            p2p_check(&p->buffer[i], (size_t)bytes_of(round, i), p2p_seed(peer, i, round),
                      "through a queue");
        }
        p2p_free(&p->buffer[i]);
    }
    free(p);
}

/** The receivers come late, one after the other, so that queues fill up. */
static void all_to_all(int round)
{
    pile_t **out = tl_alloc((size_t)tl_size() * sizeof(*out));

    for (int peer = 0; peer < tl_size(); peer++)
        out[peer] = peer != tl_rank() ? begin(peer, round, true) : NULL;
    usleep(LATE_USEC * (useconds_t)((tl_rank() + round) % tl_size()));
    for (int peer = 0; peer < tl_size(); peer++)
        if (peer != tl_rank())
            end(begin(peer, round, false), peer, round, false);
    for (int peer = 0; peer < tl_size(); peer++)
        if (peer != tl_rank())
            end(out[peer], peer, round, true);
    free(out);
    MPI_Barrier(MPI_COMM_WORLD);
}

/** Is there nothing to keep the processes from having queues? */
static bool has_queues(void)
{
    MPI_Comm node;
    int size;

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &size);
    MPI_Comm_free(&node);
    return p2p_layer("superpipe") && size == tl_size() && getenv("UCX_TLS") == NULL;
}

static void check_counts(const counter_t *received, const counter_t *waited)
{
    const unsigned long long came = counter_read(received);

    if (tl_rank() == NO_QUEUE)
        TL_CHECK(came == 0, "%llu messages came through a queue that there should not be", came);
    else
        TL_CHECK(came >= ROUNDS * MESSAGES, "only %llu messages came through a queue", came);
    if (tl_rank() == NO_QUEUE)
        TL_CHECK(counter_read(waited) > 0, "the short queue was never full");
}

int main(int argc, char **argv)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    counter_t *received, *waited;

    if (rank != NULL && (atoi(rank) == SHORT_QUEUE || atoi(rank) == NO_QUEUE))
        setenv("OMPI_MCA_pml_superpipe_queues", atoi(rank) == SHORT_QUEUE ? "1" : "0", 1);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    received = counter_begin("pml_superpipe_queued");
    waited = counter_begin("pml_superpipe_queue_waits");
    for (int round = 0; round < ROUNDS; round++)
        all_to_all(round);
    if (has_queues() && received != NULL && waited != NULL)
        check_counts(received, waited);
    counter_end(received);
    counter_end(waited);
    return tl_finish();
}
