/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Engine mlx5 over an adapter of the tests' own (mlx5_sim.h): what every engine must do, and what
 * only this one does.
 */
#include "common/config.h"

#if OMPI_NIC_HAVE_MLX5DV

#include "coll_nicbarrier/engines/mlx5/state.h"
#include "test/unit/mlx5_sim.h"
#include "test/unit/nicbarrier_here.h"

/** All members, which are told of nothing. */
static void connect_all(void)
{
    for (int i = 0; i < here.n; i++)
        connect_with(i, NULL);
}

static void set_param(const char *name, int value)
{
    const onic_param_t *p = nicbarrier_engine_mlx5.params;

    while (strcmp(p->name, name) != 0)
        p++;
    *p->number = value;
}

static void adapter_begin(int n, nicbarrier_schedule_kind_t schedule, uint64_t seed)
{
    mlx5_sim_reset(MLX5_SIM_WAITS, seed);
    set_param("mlx5_prepost", 1 + (int)(seed % 8));
    here_begin(&nicbarrier_engine_mlx5, n, schedule);
}

static void mlx5_end(void)
{
    here_end();
    check_all_closed();
}

#define WITH_MLX5                                                                                  \
    .connect = here_connect, .pass = mlx5_sim_pass, .end = mlx5_end, .fail = here_fail,            \
    .cut = mlx5_sim_cut, IN_THIS_PROCESS,                                                          \
    .cannot = {[CONFORMANCE_LATE] = "a queue pair takes nothing before it is connected; an "       \
                                    "agreement connects all first",                                \
               [CONFORMANCE_TOGETHER] = "the tests' adapter is for one thread"}

static const conformance_row_t mlx5_adapter = {.name = "mlx5", .begin = adapter_begin, WITH_MLX5};

/** Where there is no such adapter the engine says so. */
START_TEST(without_such_an_adapter)
{
    static const char *const reasons[] = {[MLX5_SIM_NONE] = "no device",
                                          [MLX5_SIM_OTHER] = "no mlx5 adapter",
                                          [MLX5_SIM_OLD] = "does not wait"};
    nicbarrier_reason_t why = {""};

    mlx5_sim_reset((mlx5_sim_t)_i, 0);
    ck_assert_int_eq(nicbarrier_engine_mlx5.open(false, &why), -1);
    ck_assert_msg(strstr(why.text, reasons[_i]) != NULL, "%s", why.text);
    check_all_closed();
}
END_TEST

/** Once all have entered the adapter needs no process any more. */
START_TEST(the_adapter_goes_on_by_itself)
{
    adapter_begin(CONFORMANCE_MEMBERS_MAX, (nicbarrier_schedule_kind_t)_i, unit_seed());
    connect_all();
    for (int i = 0; i < here.n; i++)
        here_enter(i, 1);
    for (int k = 0; k < 10000; k++)
        mlx5_sim_pass();
    ck_assert_uint_gt(sim.taken, 0);
    for (int i = 0; i < here.n; i++) {
        here_progress(i);
        ck_assert_uint_eq(here_completed(i), 1);
        here_disconnect(i);
    }
    mlx5_end();
}
END_TEST

/** The number of a request begins again behind 2^16. */
START_TEST(many_epochs)
{
    const uint64_t epochs = 70000;

    adapter_begin(2, NICBARRIER_DISSEMINATION, unit_seed());
    connect_all();
    for (uint64_t epoch = 1; epoch <= epochs; epoch++) {
        for (int i = 0; i < 2; i++)
            here_enter(i, epoch);
        for (int left = 10000; here_completed(0) < epoch || here_completed(1) < epoch; left--) {
            ck_assert_int_gt(left, 0);
            mlx5_sim_pass();
            here_progress(0);
            here_progress(1);
        }
    }
    ck_assert_uint_ge(sim.taken, 4 * epochs);
    for (int i = 0; i < 2; i++)
        here_disconnect(i);
    mlx5_end();
}
END_TEST

/** Who has completed leaves at once, group after group: partners still get what they need, and not
 *  all connections stay. */
START_TEST(many_groups_leave)
{
    adapter_begin(4, NICBARRIER_GATHER_BROADCAST, unit_seed());
    for (int round = 0; round < 40; round++) {
        if (round > 0)
            here_prepare();
        connect_all();
        for (int i = 0; i < here.n; i++)
            here_enter(i, 1);
        for (int here_still = here.n, left = 100000; here_still > 0; left--) {
            const int i = left % here.n;

            ck_assert_int_gt(left, 0);
            mlx5_sim_pass();
            if (here.net[i] == NULL)
                continue;
            here_progress(i);
            ck_assert(!here_failed(i));
            if (here_completed(i) == 1) {
                here_disconnect(i);
                here.net[i] = NULL;
                here_still--;
            }
        }
    }
    ck_assert_int_lt(pairs(), 100);
    mlx5_end();
}
END_TEST

/** What is complete at a member, others may still wait for: the adapter has it by then. */
START_TEST(complete_and_gone)
{
    adapter_begin(2, NICBARRIER_DISSEMINATION, (uint64_t)_i);
    connect_all();
    for (uint64_t epoch = 1; epoch <= 3; epoch++)
        here_enter(0, epoch);
    here_enter(1, 3);
    for (int left = 10000; here_completed(0) < 3; left--) {
        const nicbarrier_net_t *net = here.net[0];

        ck_assert_int_gt(left, 0);
        mlx5_sim_pass();
        (void)nicbarrier_mlx5_progress(here.net[1], 0);
        here_enter(0, 3);
        ck_assert_uint_le(here_completed(0), net->posted);
    }
    for (int i = 0; i < 2; i++)
        here_disconnect(i);
    mlx5_end();
}
END_TEST

int main(void)
{
    const conformance_row_t *const rows[] = {&mlx5_adapter};
    Suite *suite = UNIT_SUITE(
        "nicbarrier_mlx5", UNIT_LOOP(without_such_an_adapter, 0, MLX5_SIM_WAITS),
        UNIT_LOOP(the_adapter_goes_on_by_itself, 0, NICBARRIER_GATHER_BROADCAST + 1),
        UNIT_LOOP(complete_and_gone, 0, 20), UNIT_ONCE(many_groups_leave), UNIT_ONCE(many_epochs));

    unit_in_one_process();
    conformance_add(suite, rows, sizeof(rows) / sizeof(rows[0]));
    return unit_run_suite(suite);
}

#else

int main(void)
{
    return 0;
}

#endif
