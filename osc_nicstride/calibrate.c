/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Every process measures for itself, on its own memory: that needs nobody else, takes well below
 * a millisecond and finds what differs between the kinds of cores of one node. The shortest of a
 * few runs counts, since whatever disturbs one makes it longer.
 */
#include <stddef.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "osc_nicstride/calibrate.h"
#include "osc_nicstride/component.h"
#include "common/clock.h"
#include "common/pack.h"

#define RUNS 4
/** Pieces of one call; blocks of a gather, which are as long as a number. */
#define PIECES 32
#define BLOCKS 64
#define BLOCK  8
/** Bytes of a long copy: more than an L1, so that it counts what pages cost, too. */
#define LONG 65536
/** The blocks of one in each page, a line further in each. */
#define PAGE_STRIDE (NICSTRIDE_COST_PAGE + NICSTRIDE_COST_LINE)
#define MEMORY      ((size_t)BLOCKS * PAGE_STRIDE)

/** The shorter one of two times, of which 0 is none. */
static double shorter(double a, double b)
{
    return a > 0 && a < b ? a : b;
}

/** Single copy within this process, of pieces in pages of their own; 0 where that fails. */
static double single_copy(char *memory, unsigned pieces, size_t len)
{
    const size_t half = MEMORY / 2;
    struct iovec from[PIECES], to[PIECES];
    double best = 0;

    for (unsigned i = 0; i < pieces; i++) {
        from[i] = (struct iovec){.iov_base = memory + (size_t)i * PAGE_STRIDE, .iov_len = len};
        to[i] = (struct iovec){.iov_base = memory + half + (size_t)i * PAGE_STRIDE, .iov_len = len};
    }
    for (int run = 0; run < RUNS; run++) {
        const uint64_t begun = onic_now_nsec();

        if (process_vm_readv(getpid(), to, pieces, from, pieces, 0) != (ssize_t)(pieces * len))
            return 0;
        best = shorter(best, (double)(onic_now_nsec() - begun));
    }
    return best;
}

/** Programs sweep their memory between two exchanges: where each block has a line for itself the
 *  line is seldom in a core's own cache. */
static void forget(const char *memory, int64_t stride)
{
#if defined(__x86_64__)
    for (int64_t i = 0; i < BLOCKS; i++)
        __builtin_ia32_clflush(memory + i * stride);
    __builtin_ia32_mfence();
#else
    (void)memory;
    (void)stride;
#endif
}

/** Gathers short blocks and scatters them again. */
static double gather(char *memory, int64_t stride)
{
    char packed[BLOCKS * BLOCK];
    double best = 0;
    onic_layout_t l;

    if (onic_layout_contig(&l, 0, BLOCK) != ONIC_LAYOUT_OK ||
        onic_layout_repeat(&l, BLOCKS, stride) != ONIC_LAYOUT_OK)
        return 0;
    for (int run = 0; run < RUNS; run++) {
        onic_cursor_t c;
        uint64_t begun;

        if (stride >= NICSTRIDE_COST_LINE)
            forget(memory, stride);
        begun = onic_now_nsec();
        onic_cursor_init(&c, &l, 0);
        onic_pack(&c, memory, packed, sizeof(packed));
        onic_cursor_init(&c, &l, 0);
        onic_unpack(&c, memory, packed, sizeof(packed));
        best = shorter(best, (double)(onic_now_nsec() - begun));
    }
    return best;
}

static void measure(void)
{
    nicstride_component_t *c = &mca_osc_nicstride_component;
    nicstride_samples_t s = {
        .npieces = PIECES, .ndense = BLOCKS, .nlines = BLOCKS, .npages = BLOCKS, .nbytes = LONG};
    char *memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        return;
    memset(memory, 1, MEMORY);
    if (c->params.cma) {
        s.call = single_copy(memory, 1, BLOCK);
        s.pieces = single_copy(memory, PIECES, BLOCK);
        s.bytes = single_copy(memory, 1, LONG);
    }
    s.dense = gather(memory, 2 * BLOCK);
    /* Not a power of two: programs that care for speed avoid it. */
    s.lines = gather(memory, 5 * NICSTRIDE_COST_LINE);
    s.pages = gather(memory, PAGE_STRIDE);
    munmap(memory, MEMORY);
    nicstride_cost_fit(&c->node_cost, &s);
}

void nicstride_calibrate(bool neighbours)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    if (neighbours && mca_osc_nicstride_component.params.calibrate)
        pthread_once(&once, measure);
}
