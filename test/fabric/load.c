/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What goes on while a fault comes: each rank puts, gets and accumulates to the next one, or sends
 * to it, strided and contiguous, and checks every byte.
 *
 *   load [-t SECONDS | -r ROUNDS] [-b BYTES] [-w create|allocate] [-p] [-l] [-u SECONDS] [-m]
 *
 *   -m  messages in place of a window
 *   -p  passive: lock_all and flush, not fence
 *   -l  rank 1 takes an exclusive lock at rank 0, prints "locked" and keeps it, the others wait
 *   -u  rank 1 loses its memory while rank 0 puts to it, and is killed so many seconds later
 *
 * Prints "making" before it makes its window, "ready" when the first round is done, and at the end
 * how many rounds there were and how many bytes were wrong; the exit code is 0 if none.
 */
#include <mpi.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BLOCK 64

typedef struct load {
    double seconds;
    long rounds;
    int bytes; /**< of each put; a multiple of BLOCK */
    bool allocate, passive, lock, messages;
    double lost; /**< how long rank 1 lives without its memory; 0 where it keeps it */
    int rank, size, next;
    MPI_Datatype strided; /**< blocks of BLOCK bytes, as many bytes between them */
    MPI_Win win;
    unsigned char *memory; /**< strided data, contiguous data, a counter */
    unsigned char *data, *back;
    long wrong;
} load_t;

/** Where the contiguous data and the counter are in a window. */
static MPI_Aint contiguous_at(const load_t *l)
{
    return 2 * (MPI_Aint)l->bytes;
}

static MPI_Aint counter_at(const load_t *l)
{
    return 3 * (MPI_Aint)l->bytes;
}

static unsigned char value(int rank, long round, int i)
{
    return (unsigned char)(i * 7 + i / 251 + rank * 31 + (int)round * 13 + 1);
}

static void make_window(load_t *l)
{
    MPI_Aint bytes = counter_at(l) + (MPI_Aint)sizeof(int64_t);

    if (l->messages) {
        l->memory = malloc((size_t)bytes);
    } else if (l->allocate) {
        MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &l->memory, &l->win);
    } else {
        l->memory = malloc((size_t)bytes);
        MPI_Win_create(l->memory, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &l->win);
    }
    memset(l->memory, 0, (size_t)bytes);
    l->data = malloc((size_t)l->bytes);
    l->back = malloc((size_t)l->bytes);
    MPI_Type_vector(l->bytes / BLOCK, BLOCK, 2 * BLOCK, MPI_BYTE, &l->strided);
    MPI_Type_commit(&l->strided);
    MPI_Barrier(MPI_COMM_WORLD);
    if (l->passive)
        MPI_Win_lock_all(0, l->win);
}

static void free_window(load_t *l)
{
    if (l->passive)
        MPI_Win_unlock_all(l->win);
    MPI_Type_free(&l->strided);
    if (!l->messages)
        MPI_Win_free(&l->win);
    if (l->messages || !l->allocate)
        free(l->memory);
    free(l->data);
    free(l->back);
}

/** All transfers of this round are done everywhere. */
static void synchronise(load_t *l)
{
    if (l->messages) {
        MPI_Barrier(MPI_COMM_WORLD);
    } else if (l->passive) {
        MPI_Win_flush_all(l->win);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_sync(l->win);
    } else {
        MPI_Win_fence(0, l->win);
    }
}

static void check_memory(load_t *l, int from, long round)
{
    for (int i = 0; i < l->bytes; i++) {
        unsigned char expected = value(from, round, i);
        l->wrong += l->memory[i / BLOCK * 2 * BLOCK + i % BLOCK] != expected;
        l->wrong += l->memory[contiguous_at(l) + i] != expected;
    }
}

/** The same by messages: strided and contiguous data, and what is counted. */
static void send_and_receive(load_t *l, long round)
{
    const int before = (l->rank + l->size - 1) % l->size;
    const int64_t counted = round + 1;
    MPI_Request r[4];

    MPI_Irecv(l->memory, 1, l->strided, before, 0, MPI_COMM_WORLD, &r[0]);
    MPI_Irecv(l->memory + contiguous_at(l), l->bytes, MPI_BYTE, before, 1, MPI_COMM_WORLD, &r[1]);
    MPI_Isend(l->data, l->bytes, MPI_BYTE, l->next, 0, MPI_COMM_WORLD, &r[2]);
    MPI_Isend(l->data, l->bytes, MPI_BYTE, l->next, 1, MPI_COMM_WORLD, &r[3]);
    MPI_Sendrecv(&counted, 1, MPI_INT64_T, l->next, 2, l->memory + counter_at(l), 1, MPI_INT64_T,
                 before, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
    check_memory(l, before, round);
}

static void run_round(load_t *l, long round)
{
    int64_t one = 1;

    for (int i = 0; i < l->bytes; i++)
        l->data[i] = value(l->rank, round, i);
    if (l->messages) {
        send_and_receive(l, round);
        return;
    }
    synchronise(l);
    MPI_Put(l->data, l->bytes, MPI_BYTE, l->next, 0, 1, l->strided, l->win);
    MPI_Put(l->data, l->bytes, MPI_BYTE, l->next, contiguous_at(l), l->bytes, MPI_BYTE, l->win);
    MPI_Accumulate(&one, 1, MPI_INT64_T, l->next, counter_at(l), 1, MPI_INT64_T, MPI_SUM, l->win);
    synchronise(l);
    MPI_Get(l->back, l->bytes, MPI_BYTE, l->next, 0, 1, l->strided, l->win);
    synchronise(l);
    check_memory(l, (l->rank + l->size - 1) % l->size, round);
    l->wrong += memcmp(l->data, l->back, (size_t)l->bytes) != 0;
}

static bool go_on(const load_t *l, long round, double began)
{
    int more = l->seconds > 0 ? MPI_Wtime() - began < l->seconds : round < l->rounds;

    MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return more;
}

static void say(const load_t *l, const char *text)
{
    if (l->rank == 0 || strcmp(text, "locked") == 0) {
        printf("%s\n", text);
        fflush(stdout);
    }
}

static void hold_lock(load_t *l)
{
    int64_t one = 1;

    MPI_Barrier(MPI_COMM_WORLD);
    if (l->rank == 1) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, l->win);
        MPI_Put(&one, 8, MPI_BYTE, 0, 0, 8, MPI_BYTE, l->win);
        MPI_Win_flush(0, l->win);
        say(l, "locked");
        sleep(120);
    } else {
        sleep(1);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, l->win);
    }
    MPI_Win_unlock(0, l->win);
}

/** As a process that ends: its memory goes first. */
static void lose_memory(load_t *l)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = ((uintptr_t)l->memory + page - 1) / page * page;
    uintptr_t end = ((uintptr_t)l->memory + (uintptr_t)counter_at(l)) / page * page;

    munmap((void *)first, end - first);
    usleep((useconds_t)(l->lost * 1e6));
    raise(SIGKILL);
}

static void put_to_lost_memory(load_t *l)
{
    if (l->rank == 0)
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, l->win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (l->rank == 1)
        lose_memory(l);
    if (l->rank > 1)
        sleep(60);
    for (;;)
        MPI_Put(l->data, l->bytes, MPI_BYTE, 1, contiguous_at(l), l->bytes, MPI_BYTE, l->win);
}

static void read_options(load_t *l, int argc, char **argv)
{
    int c;

    while ((c = getopt(argc, argv, "t:r:b:w:plu:m")) != -1) {
        switch (c) {
        case 't':
            l->seconds = atof(optarg);
            break;
        case 'r':
            l->rounds = atol(optarg);
            break;
        case 'b':
            l->bytes = atoi(optarg) / BLOCK * BLOCK;
            break;
        case 'w':
            l->allocate = strcmp(optarg, "allocate") == 0;
            break;
        case 'p':
            l->passive = true;
            break;
        case 'l':
            l->lock = true;
            break;
        case 'm':
            l->messages = true;
            break;
        case 'u':
            l->lost = atof(optarg);
            break;
        default:
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
    }
}

int main(int argc, char **argv)
{
    load_t load = {.rounds = 4, .bytes = 1 << 20}, *l = &load;
    int64_t counted;
    long round = 0, all = 0;
    double began;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &l->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &l->size);
    l->next = (l->rank + 1) % l->size;
    read_options(l, argc, argv);
    say(l, "making");
    make_window(l);
    if (l->lock)
        hold_lock(l);
    if (l->lost > 0)
        put_to_lost_memory(l);
    for (began = MPI_Wtime(); go_on(l, round, began); round++) {
        run_round(l, round);
        if (round == 0) {
            say(l, "ready");
            /* The first may take long, and what is done to the job counts from here, too. */
            began = MPI_Wtime();
        }
    }
    synchronise(l);
    memcpy(&counted, l->memory + counter_at(l), sizeof(counted));
    l->wrong += counted != round;
    MPI_Allreduce(&l->wrong, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (l->rank == 0)
        printf("load: %ld rounds of %d bytes, %ld wrong\n", round, l->bytes, all);
    free_window(l);
    MPI_Finalize();
    return all == 0 ? 0 : 1;
}
