/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What the numbers of processors choose against what was measured on such ones, as facts:
 *  where one way was the fastest there it is chosen. Figures were taken between two virtual
 *  processors, with every method and protocol forced, or with stock components that go the same
 *  way. */
#include <string.h>

#include "pml_superpipe/protocols/choice.h"
#include "test/unit/method_rows.h"
#include "test/unit/protocol_rows.h"
#include "test/unit/unit.h"

#define KIB 1024ull
#define MIB (1024 * KIB)

/* ---- one-sided ------------------------------------------------------------------------------- */

#define BY(method) (1U << NICSTRIDE_METHOD_##method)

static const struct {
    const char *processor;
    nicstride_direction_t dir;
    bool many, mapped;
    uint64_t size, block; /**< in every other block of memory; 0: contiguous */
    unsigned by;          /**< one of these */
} transfers[] = {
    /* Zen 5. A step of the halo by columns of 1024 doubles, between fences: 33 to 36 a ms by pack,
     * 34 by pipeline, and 7 to 12 where single copy was tried. 256: 72 and 78. */
    {"zen5", NICSTRIDE_PUT, true, false, 1024 * 8, 8, BY(PACK) | BY(PIPELINE)},
    {"zen5", NICSTRIDE_PUT, false, false, 1024 * 8, 8, BY(PACK) | BY(PIPELINE)},
    {"zen5", NICSTRIDE_PUT, true, false, 256 * 8, 8, BY(PACK) | BY(PIPELINE)},
    /* 17.6 GB/s by cma, 2.0 otherwise; 16 puts before a flush: 5.3 GB/s by pack, 3.1 otherwise; 4.3
     * by cma, 2.5 otherwise. */
    {"zen5", NICSTRIDE_PUT, false, false, MIB, 0, BY(CMA)},
    {"zen5", NICSTRIDE_PUT, true, false, 64 * KIB, 64, BY(PACK)},
    {"zen5", NICSTRIDE_GET, false, false, MIB, KIB, BY(CMA)},
    /* 42 to 50 GB/s by loads and stores, 3.4 to 6 otherwise. */
    {"zen5", NICSTRIDE_PUT, true, true, 64 * KIB, 64, BY(DIRECT)},
    {"zen5", NICSTRIDE_PUT, false, true, 64 * KIB, 64, BY(DIRECT)},
    /* A Xeon. 64 KiB by single copy 2.4 us (osc/rdma), 3.8 otherwise; in blocks of 8 to 512 bytes
     * 45 to 3400 by it, and 6.6 to 8.8 by messages or slots. */
    {"xeon", NICSTRIDE_PUT, false, false, 64 * KIB, 0, BY(CMA)},
    {"xeon", NICSTRIDE_GET, false, false, 64 * KIB, 0, BY(CMA)},
    {"xeon", NICSTRIDE_PUT, false, false, 64 * KIB, 512, BY(PACK) | BY(PIPELINE)},
    {"xeon", NICSTRIDE_PUT, false, false, 64 * KIB, 64, BY(PACK) | BY(PIPELINE)},
    {"xeon", NICSTRIDE_PUT, false, false, 64 * KIB, 8, BY(PACK) | BY(PIPELINE)},
    /* 8 bytes and a flush: 0.44 us by message, 0.47 by osc/rdma. */
    {"xeon", NICSTRIDE_PUT, false, false, 8, 0, BY(PACK)},
    {"xeon", NICSTRIDE_GET, false, false, 8, 0, BY(PACK)},
    /* Columns of 256 and 1024 doubles: 3.0 and 26 us, by single copy 340 and 1400 (osc/ucx). */
    {"xeon", NICSTRIDE_PUT, true, false, 256 * 8, 8, BY(PACK) | BY(PIPELINE)},
    {"xeon", NICSTRIDE_PUT, true, false, 1024 * 8, 8, BY(PACK) | BY(PIPELINE)},
    /* Zen 3, pipeline: contiguous 18.0 GB/s, in blocks of 16 KiB 16.8, of 1 KiB 12.0. By what was
     * chosen otherwise it was 14.3; by single copy 7.6 (osc/ucx). */
    {"zen3", NICSTRIDE_PUT, false, false, MIB, 0, BY(PIPELINE)},
    {"zen3", NICSTRIDE_PUT, false, false, MIB, 16 * KIB, BY(PIPELINE)},
    {"zen3", NICSTRIDE_PUT, false, false, MIB, KIB, BY(PIPELINE)},
};

#define N_TRANSFERS ((int)(sizeof(transfers) / sizeof(transfers[0])))

static onic_layout_t layout(uint64_t size, uint64_t block)
{
    onic_layout_t l;

    ck_assert_int_eq(onic_layout_contig(&l, 0, block > 0 ? block : size), ONIC_LAYOUT_OK);
    if (block > 0)
        ck_assert_int_eq(onic_layout_repeat(&l, size / block, 2 * (int64_t)block), ONIC_LAYOUT_OK);
    return l;
}

START_TEST(transfer)
{
    static nicstride_path_t table[ONIC_KINDS];
    const onic_links_t links = onic_links_default(transfers[_i].processor);
    const onic_layout_t origin = layout(transfers[_i].size, 0),
                        target = layout(transfers[_i].size, transfers[_i].block);
    const uint32_t node = REACH_MESSAGE | REACH_COPY | REACH_SLOTS;

    nicstride_paths_set(table, &links);
    const nicstride_case_t c = {.rows = rows,
                                .dir = transfers[_i].dir,
                                .many = transfers[_i].many,
                                .reach = node | (transfers[_i].mapped ? REACH_DIRECT : 0),
                                .origin = &origin,
                                .target = &target};
    const nicstride_method_t m = plan_for(table, ONIC_NEAR, c);

    ck_assert_msg((transfers[_i].by >> m & 1) != 0, "%s: transfer %d goes by %s",
                  transfers[_i].processor, _i, rows[m]->name);
}
END_TEST

/** How a get is planned on a Zen 4, all on one node. */
static nicstride_method_t plan_get(nicstride_presence_t presence, bool many,
                                   const onic_layout_t *target)
{
    static nicstride_path_t table[ONIC_KINDS];
    const onic_links_t links = onic_links_default("zen4");
    const onic_layout_t origin = layout(target->size, 0);

    nicstride_paths_set(table, &links);
    const nicstride_case_t c = {.rows = rows,
                                .dir = NICSTRIDE_GET,
                                .presence = presence,
                                .many = many,
                                .reach = REACH_MESSAGE | REACH_COPY | REACH_SLOTS,
                                .origin = &origin,
                                .target = target};
    return plan_for(table, ONIC_NEAR, c);
}

/* 64 KiB in rows of 4 KiB with 512 bytes between them, from a target that computes: 8.2 us by the
 * sieve, 11.0 by single copy of the rows, 25 with its help. Where as much is left out as is got
 * single copy of the rows reads half as much. */
START_TEST(rows_of_a_matrix)
{
    onic_layout_t l;

    for (uint64_t gap = 512; gap <= 4096; gap *= 8) {
        onic_layout_contig(&l, 0, 4096);
        onic_layout_repeat(&l, 16, (int64_t)(4096 + gap));
        ck_assert_int_eq(plan_get(NICSTRIDE_SERVED, false, &l),
                         gap == 512 ? NICSTRIDE_METHOD_SIEVE : NICSTRIDE_METHOD_CMA);
    }
}
END_TEST

/* Both ranks get doubles at random places from each other, one of four, between fences: parts of
 * the time that their rows take. 30000: 0.6 by messages, 0.85 by slots; 100000: 0.65 to 0.9, and
 * 0.95 to 1.4. */
START_TEST(random_places)
{
    static const unsigned lengths[] = {10000, 30000, 100000};

    for (int n = 0; n < 6; n++) {
        onic_runs_t runs = {0};
        onic_layout_t l;

        for (unsigned i = 0; i < lengths[n / 2]; i++)
            ck_assert_int_eq(
                onic_runs_add(&runs, (onic_run_t){(int64_t)(i * 4 + i * i % 3) * 8, 8, 1, 0}),
                ONIC_LAYOUT_OK);
        ck_assert_int_eq(onic_layout_from_runs(&l, &runs, 0), ONIC_LAYOUT_OK);
        ck_assert_uint_gt(l.nruns, 0);
        ck_assert_int_eq(plan_get(NICSTRIDE_PRESENT, n % 2 == 0, &l), NICSTRIDE_METHOD_PACK);
        onic_layout_fini(&l);
    }
}
END_TEST

/* ---- messages -------------------------------------------------------------------------------- */

static const struct {
    const char *processor;
    uint64_t size, block; /**< 0: contiguous */
    bool fresh;
    superpipe_protocol_t protocol;
} messages[] = {
    /* Zen 5: stream 8.9 GB/s, and 4.5 by what was chosen otherwise. */
    {"zen5", 64 * KIB, 0, false, SUPERPIPE_STREAM},
    /* Fresh buffers: single copy has 0.6, stream and pipeline have between 5.5 and 6.4. */
    {"zen5", 64 * KIB, 0, true, SUPERPIPE_STREAM},
    {"zen5", MIB, 0, true, SUPERPIPE_STREAM},
    {"zen5", 16 * MIB, 0, true, SUPERPIPE_STREAM},
    /* Single copy from the same buffers 20 to 25 GB/s, but 6 of 16 MiB, where copies have 16. */
    {"zen5", MIB, 0, false, SUPERPIPE_COPY},
    {"zen5", 16 * MIB, 0, false, SUPERPIPE_STREAM},
    /* A Xeon: 16 and 32 KiB are read in 2.0 and 2.7 us, copied twice in 2.6 and 4.2 (pml/ucx); 64
     * KiB in 3.5 and 6.9, 1 MiB in 63 and 83. */
    {"xeon", 16 * KIB, 0, false, SUPERPIPE_COPY},
    {"xeon", 32 * KIB, 0, false, SUPERPIPE_COPY},
    {"xeon", 64 * KIB, 0, false, SUPERPIPE_COPY},
    {"xeon", MIB, 0, false, SUPERPIPE_COPY},
};

#define N_MESSAGES ((int)(sizeof(messages) / sizeof(messages[0])))

START_TEST(message)
{
    static superpipe_table_t table;

    reach_all();
    table = (superpipe_table_t){.links = onic_links_default(messages[_i].processor)};
    superpipe_case_t c = superpipe_case(&table, ONIC_NEAR);

    c.length = messages[_i].size;
    c.one_piece = messages[_i].block == 0;
    c.send_block = c.receive_block = c.one_piece ? c.length : messages[_i].block;
    c.pins = messages[_i].fresh ? 1 : 0;
    const superpipe_protocol_t p = superpipe_choose(&c, SUPERPIPE_AUTO);

    ck_assert_msg(p == messages[_i].protocol, "%s: message %d goes by %s", messages[_i].processor,
                  _i, superpipe_rows[p]->name);
}
END_TEST

int main(void)
{
    return UNIT_RUN("plan facts", UNIT_LOOP(transfer, 0, N_TRANSFERS), UNIT_ONCE(rows_of_a_matrix),
                    UNIT_ONCE(random_places), UNIT_LOOP(message, 0, N_MESSAGES));
}
