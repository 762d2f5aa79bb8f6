/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * A process measures on its own memory, which needs nobody else. The shortest of a few runs counts,
 * since whatever disturbs one makes it longer.
 */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/layout/pack.h"
#include "common/model/calibrate.h"
#include "common/support/clock.h"

#define RUNS      4
#define LONG_RUNS 2
/** Bytes of a short block, which is as long as a number; of a long one. */
#define SHORT 8
#define BLOCK 4096
/** The blocks of one in each page, a line further in each. */
#define PAGE_STRIDE (ONIC_LINK_PAGE + ONIC_LINK_LINE)
/** What is copied first, more than an L1, so that it counts what pages cost, too. */
#define LESS ((size_t)ONIC_SAMPLE_BLOCKS * PAGE_STRIDE)
/** Long blocks, as far apart as they are long, and packed: more than an L1, since the bandwidth
 *  of a copy is that of the whole data set (superpipeline paper, section 3). */
#define MEMORY ((size_t)3 * ONIC_SAMPLE_LONG)

_Static_assert(2 * ONIC_SAMPLE_PIECES * PAGE_STRIDE <= LESS, "pieces in both halves");
_Static_assert(LESS <= MEMORY, "all in the same memory");

/** The shorter one of two times, of which 0 is none. */
static double shorter(double a, double b)
{
    return a > 0 && a < b ? a : b;
}

static double since(uint64_t begun)
{
    return (double)(onic_now_nsec() - begun);
}

/** Single copy within this process, of pieces in pages of their own; 0 where that fails. */
static double single_copy(char *memory, unsigned pieces, size_t len)
{
    const size_t half = LESS / 2;
    struct iovec from[ONIC_SAMPLE_PIECES], to[ONIC_SAMPLE_PIECES];
    double best = 0;

    for (unsigned i = 0; i < pieces; i++) {
        from[i] = (struct iovec){.iov_base = memory + (size_t)i * PAGE_STRIDE, .iov_len = len};
        to[i] = (struct iovec){.iov_base = memory + half + (size_t)i * PAGE_STRIDE, .iov_len = len};
    }
    for (int run = 0; run < RUNS; run++) {
        const uint64_t begun = onic_now_nsec();

        if (process_vm_readv(getpid(), to, pieces, from, pieces, 0) != (ssize_t)(pieces * len)) {
            return 0;
        }
        best = shorter(best, since(begun));
    }
    return best;
}

/** Programs sweep their memory between two exchanges: where each block has a line for itself the
 *  line is seldom in a core's own cache. */
static void forget(const char *memory, int64_t stride)
{
#if defined(__x86_64__)
    for (int64_t i = 0; i < ONIC_SAMPLE_BLOCKS; i++) {
        __builtin_ia32_clflush(memory + i * stride);
    }
    __builtin_ia32_mfence();
#else
    (void)memory;
    (void)stride;
#endif
}

/** `count` blocks of `block` bytes, so far apart. */
static bool blocks(onic_layout_t *l, uint64_t block, uint64_t count, int64_t stride)
{
    return onic_layout_contig(l, 0, block) == ONIC_LAYOUT_OK &&
           onic_layout_repeat(l, count, stride) == ONIC_LAYOUT_OK;
}

/** Packs and unpacks them once. */
static double there_and_back(const onic_layout_t *l, char *memory, char *packed)
{
    const uint64_t begun = onic_now_nsec();
    onic_cursor_t c;

    onic_cursor_init(&c, l, 0);
    onic_pack(&c, memory, packed, (size_t)l->size);
    onic_cursor_init(&c, l, 0);
    onic_unpack(&c, memory, packed, (size_t)l->size);
    return since(begun);
}

/** Gathers short blocks and scatters them again. */
static double gather(char *memory, int64_t stride)
{
    char packed[ONIC_SAMPLE_BLOCKS * SHORT];
    double best = 0;
    onic_layout_t l;

    if (!blocks(&l, SHORT, ONIC_SAMPLE_BLOCKS, stride)) {
        return 0;
    }
    for (int run = 0; run < RUNS; run++) {
        if (stride >= ONIC_LINK_LINE) {
            forget(memory, stride);
        }
        best = shorter(best, there_and_back(&l, memory, packed));
    }
    return best;
}

/** Packs long blocks, every second of memory, and unpacks them. */
static double pack_long(char *memory)
{
    double best = 0;
    onic_layout_t l;

    if (!blocks(&l, BLOCK, ONIC_SAMPLE_LONG / BLOCK, 2 * (int64_t)BLOCK)) {
        return 0;
    }
    for (int run = 0; run < LONG_RUNS; run++) {
        best = shorter(best, there_and_back(&l, memory, memory + 2 * (size_t)ONIC_SAMPLE_LONG));
    }
    return best;
}

void onic_calibrate(bool with_single_copy, onic_samples_t *samples)
{
    char *memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

    memset(samples, 0, sizeof(*samples));
    if (memory == MAP_FAILED) {
        return;
    }
    memset(memory, 1, MEMORY); /* which brings its pages */
    if (with_single_copy) {
        samples->call = single_copy(memory, 1, SHORT);
        samples->pieces = single_copy(memory, ONIC_SAMPLE_PIECES, SHORT);
        samples->bytes = single_copy(memory, 1, ONIC_SAMPLE_BYTES);
    }
    samples->dense = gather(memory, 2 * SHORT);
    /* Not a power of two: programs that care for speed avoid it. */
    samples->lines = gather(memory, 5 * ONIC_LINK_LINE);
    samples->pages = gather(memory, PAGE_STRIDE);
    samples->packed = pack_long(memory);
    munmap(memory, MEMORY);
}
