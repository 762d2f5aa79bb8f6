/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Copies of contiguous bytes, by length and by the place of both ends in their pages: within a
 * process, and between processes through slots in shared memory or by the kernel's single copy.
 * Runs without MPI. Prints for each way of copying which places are slow.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/layout/copy.h"
#include "common/support/clock.h"
#include "common/support/pause.h"

#define KIB      ((size_t)1 << 10)
#define PAGE     (4 * KIB)
#define LONGEST  (KIB << 10)
#define SLOT     (16 * KIB)
#define SLOTS    ((size_t)128) /* more than an L2 */
#define TRIPS    200
#define RUNS     5
#define RUN_NSEC 400000.0
#define SPINS    4096
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
/** Slow means less than this share of the speed of the same copy at its best place. */
#define SLOW 0.5

typedef void copy_t(void *to, const void *from, size_t bytes);

/* ---- ways of copying ------------------------------------------------------------------------- */

static void by_memcpy(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
}

static void by_kernel(void *to, const void *from, size_t bytes)
{
    const struct iovec there = {(void *)(uintptr_t)from, bytes}, here = {to, bytes};

    if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) != (ssize_t)bytes)
        memset(to, 0, bytes);
}

#if defined(__x86_64__)
static void by_movsb(void *to, const void *from, size_t bytes)
{
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

/** Copies with streaming stores; `to` is a multiple of 16. */
static void by_streaming(void *to, const void *from, size_t bytes)
{
    typedef long long vector_t __attribute__((vector_size(16)));
    typedef long long unaligned_t __attribute__((vector_size(16), aligned(1)));

    for (size_t i = 0; i < bytes / sizeof(vector_t); i++)
        __builtin_ia32_movntdq((vector_t *)to + i, ((const unaligned_t *)from)[i]);
    __builtin_ia32_sfence();
}
#else
#define by_movsb     by_memcpy
#define by_streaming by_memcpy
#endif

/* ---- within a process ------------------------------------------------------------------------ */

typedef struct way {
    const char *name;
    copy_t *copy;
} way_t;

static const way_t ways[] = {{"ours", onic_copy_bytes},
                             {"memcpy", by_memcpy},
                             {"rep movsb", by_movsb},
                             {"kernel", by_kernel}};

/** GB/s: the best of a few runs, since any disturbance makes a run longer. */
static double speed(copy_t *copy, char *to, const char *from, size_t bytes)
{
    double best = 0;

    for (int run = 0; run < RUNS; run++) {
        const uint64_t begun = onic_now_nsec();
        double took;
        size_t n = 0;

        do {
            for (int i = 0; i < 4; i++, n++)
                copy(to, from, bytes);
            took = (double)(onic_now_nsec() - begun);
        } while (took < RUN_NSEC / RUNS);
        best = (double)(n * bytes) / took > best ? (double)(n * bytes) / took : best;
    }
    return best;
}

static void within(char *from, char *to)
{
    static const size_t lengths[] = {64,       256,      KIB,       2 * KIB,   4 * KIB,
                                     16 * KIB, 64 * KIB, 256 * KIB, 1024 * KIB};
    static const size_t places[][2] = {{0, 0},  {0, 4},   {0, 8},   {0, 16},   {0, 48},
                                       {16, 0}, {0, 256}, {4, 260}, {16, 2048}};

    printf("within a process, GB/s\n%8s %5s %5s", "bytes", "from", "to");
    for (size_t w = 0; w < COUNT(ways); w++)
        printf(" %10s", ways[w].name);
    printf("\n");
    for (size_t l = 0; l < COUNT(lengths); l++) {
        for (size_t p = 0; p < COUNT(places); p++) {
            printf("%8zu %5zu %5zu", lengths[l], places[p][0], places[p][1]);
            for (size_t w = 0; w < COUNT(ways); w++)
                printf(" %10.1f",
                       speed(ways[w].copy, to + places[p][1], from + places[p][0], lengths[l]));
            printf("\n");
        }
    }
}

/** Tries every distance of the two ends within a page, at first in steps of a word, and prints the
 *  slow ones. */
static void slow_places(char *from, char *to, size_t bytes)
{
    printf("\nslow distances of the destination from the source within a page, %zu bytes\n", bytes);
    for (size_t w = 0; w < COUNT(ways); w++) {
        double gbs[PAGE / 4], best = 0, worst = 1e9;
        size_t at[PAGE / 4], n = 0, first = 0, last = 0;
        unsigned slow = 0;

        for (size_t d = 0; d < PAGE; d += d < 128 || d >= PAGE - 128 ? 4 : 64, n++) {
            at[n] = d;
            gbs[n] = speed(ways[w].copy, to + d, from, bytes);
            best = gbs[n] > best ? gbs[n] : best;
            worst = gbs[n] < worst ? gbs[n] : worst;
        }
        for (size_t i = 0; i < n; i++) {
            if (gbs[i] >= SLOW * best)
                continue;
            first = slow++ == 0 ? at[i] : first;
            last = at[i];
        }
        printf("%10s: %5.1f to %5.1f GB/s", ways[w].name, worst, best);
        if (slow > 0)
            printf(", slow at %u of %zu distances, %zu to %zu", slow, n, first, last);
        printf("\n");
    }
}

/* ---- from process to process ----------------------------------------------------------------- */

typedef struct shared {
    _Alignas(128) _Atomic uint64_t sent;
    _Alignas(128) _Atomic uint64_t taken;
    _Alignas(128) _Atomic uint64_t array; /**< address of the sender's array */
    _Alignas(PAGE) char slot[SLOTS][SLOT];
} shared_t;

static void wait_for(_Atomic uint64_t *word, uint64_t value)
{
    for (unsigned spins = 1; atomic_load_explicit(word, memory_order_acquire) < value; spins++) {
        onic_pause();
        if (spins % SPINS == 0)
            sched_yield();
    }
}

static cpu_set_t allowed;

/** Moves the process to the `n`th processor that it may use. */
static void pin(int n)
{
    cpu_set_t one;

    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed) && n-- == 0)
            CPU_SET(cpu, &one);
    if (CPU_COUNT(&one) > 0)
        (void)sched_setaffinity(0, sizeof(one), &one);
}

/** Forks, with parent and child on different processors: on one they would measure its caches. */
static pid_t fork_apart(void)
{
    const pid_t child = fork();

    pin(child == 0);
    return child;
}

/** One side of a transfer through the ring; `base`: slots used before. */
static void ring(shared_t *s, bool sends, copy_t *copy, char *array, uint64_t base)
{
    for (uint64_t i = 0; i < LONGEST / SLOT; i++) {
        char *slot = s->slot[(base + i) % SLOTS];

        if (sends) {
            wait_for(&s->taken, base + i < SLOTS ? 0 : base + i + 1 - SLOTS);
            copy(slot, array + i * SLOT, SLOT);
            atomic_store_explicit(&s->sent, base + i + 1, memory_order_release);
        } else {
            wait_for(&s->sent, base + i + 1);
            copy(array + i * SLOT, slot, SLOT);
            atomic_store_explicit(&s->taken, base + i + 1, memory_order_release);
        }
    }
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/** A typical time out of many, without disturbances by other processes. */
static double typical(double *v, size_t n)
{
    qsort(v, n, sizeof(*v), compare);
    return v[n / 8];
}

/** GB/s of messages in sequence, each begun when the previous one has been received. */
static double through_ring(shared_t *s, copy_t *in, copy_t *out, char *array, size_t from,
                           size_t to)
{
    const uint64_t each = LONGEST / SLOT;
    double took[TRIPS];
    pid_t child;

    atomic_store(&s->sent, 0);
    atomic_store(&s->taken, 0);
    child = fork_apart();
    if (child == 0) {
        for (uint64_t trip = 0; trip < TRIPS; trip++)
            ring(s, false, out, array + to, trip * each);
        _exit(0);
    }
    for (uint64_t trip = 0; child > 0 && trip < TRIPS; trip++) {
        const uint64_t begun = onic_now_nsec();

        ring(s, true, in, array + from, trip * each);
        wait_for(&s->taken, (trip + 1) * each);
        took[trip] = (double)(onic_now_nsec() - begun);
    }
    return child < 0 || waitpid(child, NULL, 0) != child ? 0
                                                         : (double)LONGEST / typical(took, TRIPS);
}

/** GB/s of messages that the receiver reads by single copy. */
static double by_single_copy(shared_t *s, char *array, size_t from, size_t to)
{
    const pid_t sender = getpid();
    double took[TRIPS];
    pid_t child;

    atomic_store(&s->sent, 0);
    atomic_store(&s->taken, 0);
    child = fork_apart();
    if (child == 0) {
        struct iovec there = {array + from, LONGEST}, here = {array + to, LONGEST};

        for (uint64_t trip = 0; trip < TRIPS; trip++) {
            wait_for(&s->sent, trip + 1);
            if (process_vm_readv(sender, &here, 1, &there, 1, 0) < 0)
                atomic_store(&s->array, 0);
            atomic_store_explicit(&s->taken, trip + 1, memory_order_release);
        }
        _exit(0);
    }
    atomic_store(&s->array, 1);
    for (uint64_t trip = 0; child > 0 && trip < TRIPS; trip++) {
        const uint64_t begun = onic_now_nsec();

        array[from + trip] ^= 1;
        atomic_store_explicit(&s->sent, trip + 1, memory_order_release);
        wait_for(&s->taken, trip + 1);
        took[trip] = (double)(onic_now_nsec() - begun);
    }
    return child < 0 || waitpid(child, NULL, 0) != child || atomic_load(&s->array) == 0
               ? 0
               : (double)LONGEST / typical(took, TRIPS);
}

/** Nanoseconds that a cache line takes from one process to the other. */
static double line(shared_t *s)
{
    double took[TRIPS];
    pid_t child;

    atomic_store(&s->sent, 0);
    atomic_store(&s->taken, 0);
    child = fork_apart();
    if (child == 0) {
        for (uint64_t i = 1; i <= TRIPS * TRIPS; i++) {
            wait_for(&s->sent, i);
            atomic_store_explicit(&s->taken, i, memory_order_release);
        }
        _exit(0);
    }
    for (uint64_t trip = 0, i = 0; child > 0 && trip < TRIPS; trip++) {
        const uint64_t begun = onic_now_nsec();

        for (int n = 0; n < TRIPS; n++) {
            atomic_store_explicit(&s->sent, ++i, memory_order_release);
            wait_for(&s->taken, i);
        }
        took[trip] = (double)(onic_now_nsec() - begun) / (2.0 * TRIPS);
    }
    return child < 0 || waitpid(child, NULL, 0) != child ? 0 : typical(took, TRIPS);
}

static void between(shared_t *s, char *array)
{
    static const struct {
        const char *name;
        copy_t *in, *out;
    } how[] = {{"memcpy/memcpy", by_memcpy, by_memcpy},
               {"memcpy/ours", by_memcpy, onic_copy_bytes},
               {"ours/ours", onic_copy_bytes, onic_copy_bytes},
               {"streaming/ours", by_streaming, onic_copy_bytes}};
    static const size_t places[][2] = {{0, 0}, {16, 16}, {8, 8}, {64, 64}, {0, 8}, {2048, 2048}};

    printf(
        "\nfrom process to process, %zu bytes, into and out of slots at the beginning of a page, "
        "GB/s\n%5s %5s %8s",
        LONGEST, "from", "to", "line, ns");
    for (size_t h = 0; h < COUNT(how); h++)
        printf(" %14s", how[h].name);
    printf(" %14s\n", "kernel");
    for (size_t p = 0; p < COUNT(places); p++) {
        printf("%5zu %5zu %8.0f", places[p][0], places[p][1], line(s));
        for (size_t h = 0; h < COUNT(how); h++) {
            printf(" %14.1f",
                   through_ring(s, how[h].in, how[h].out, array, places[p][0], places[p][1]));
            fflush(stdout);
        }
        printf(" %14.1f\n", by_single_copy(s, array, places[p][0], places[p][1]));
        fflush(stdout);
    }
}

int main(void)
{
    const size_t bytes = 2 * (LONGEST + 2 * PAGE);
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    shared_t *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED || s == MAP_FAILED) {
        perror("copy");
        return 1;
    }
    memset(memory, 1, bytes);
    memset(s, 0, sizeof(*s));
    (void)sched_getaffinity(0, sizeof(allowed), &allowed);
    setvbuf(stdout, NULL, _IOLBF, 0);
    within(memory, memory + bytes / 2);
    slow_places(memory, memory + bytes / 2, PAGE);
    slow_places(memory, memory + bytes / 2, 16 * PAGE);
    between(s, memory);
    return 0;
}
