/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file MCA parameters of coll_nicbarrier and its engines, and MPI_T performance variables. */
#include "coll_nicbarrier/component/state.h"

#include "common/support/help.h"
#include "common/support/component.h"
#include "ompi/constants.h"

#define HELP_FILE "help-coll-nicbarrier.txt"
/** Lower than the priorities of the components that come with Open MPI. */
#define PRIORITY_INITIAL 5

nicbarrier_state_t nicbarrier_state = {.lock = PTHREAD_MUTEX_INITIALIZER,
                                       .params = {.priority = PRIORITY_INITIAL,
                                                  .setup_call = 8,
                                                  .agreement = {.polls = 1000, .thread = true}}};
nicbarrier_counters_t nicbarrier_counters;

/* ---- performance variables ------------------------------------------------------------------ */

static const onic_counter_t counters[] = {
    {"barriers_below", "Barriers left to the module below", &nicbarrier_counters.below, 0},
    {"agreements", "Agreements on an engine begun", &nicbarrier_agreements.begun, 0},
    {"trials", "Engines tried between nodes before barriers depend on them",
     &nicbarrier_agreements.trials, 0},
    {"declined", "Agreements that found no engine", &nicbarrier_agreements.declined, 0},
};

static void register_counters(const mca_base_component_t *c)
{
    for (int k = 0; nicbarrier_engines[k] != NULL; k++) {
        onic_register_counter_of(c, "barriers", nicbarrier_engines[k]->name,
                                 "Barriers carried by engine", &nicbarrier_counters.barriers[k]);
        onic_register_counters(c, nicbarrier_engines[k]->counters,
                               nicbarrier_engines[k]->ncounters);
    }
    onic_register_counters(c, counters, sizeof(counters) / sizeof(counters[0]));
}

/* ---- the component's own -------------------------------------------------------------------- */

#define VALUE(field) (&nicbarrier_state.params.field)
static const char *schedule_word = "dissemination", *engine_word = "auto";
static const char *const schedules[] = {"dissemination", "pairwise", "gather", NULL};
/** "auto", then the engines' names. */
static const char *engine_words[NICBARRIER_ENGINES_MAX + 2] = {"auto"};

static const onic_param_t own[] = {
    {.name = "priority",
     .help = "Priority among the coll components. The default is below that of the components that "
             "come with Open MPI (tuned has 30): give 90 to use this one",
     .same = true,
     .number = VALUE(priority),
     .max = 100},
    {.name = "setup_call",
     .help = "Which barrier of a communicator sets up the engine, or the next MPI_Barrier if it is "
             "an MPI_Ibarrier; those before go to the module below, so that communicators of a "
             "short life pay nothing",
     .same = true,
     .number = VALUE(setup_call),
     .min = 1,
     .max = 1000000000},
    {.name = "ppn",
     .help = "Most processes of a node that gather in shared memory behind one leader for the "
             "network engines; 0: all of them (a network engine that is asked for where there is "
             "one node takes 1)",
     .same = true,
     .number = VALUE(agreement.ppn),
     .max = 1000000},
    {.name = "spin",
     .help =
         "How often a waiting process polls before it calls Open MPI's progress. Where a node "
         "has more processes than processors, or than those that they are bound to, they do not "
         "poll, but yield at once, and sleep",
     .number = VALUE(agreement.polls),
     .max = 1000000},
    {.name = "engine",
     .help =
         "What carries barriers: auto (shm where all processes share memory; otherwise put where "
         "all machines have an RDMA adapter that is up and that UCX_TLS and UCX_NET_DEVICES allow, "
         "else datagram), shm (flags in shared memory), put (UCX puts into flags; over TCP and the "
         "like UCX emulates them by messages, which takes longer than datagrams), datagram (UDP, "
         "with retransmission on request of the receiver), mlx5 (never chosen by itself, and only "
         "where it was built with libibverbs and mlx5dv: steps "
         "taken by adapters of ConnectX-7 or later, by work requests that wait for memory; not run "
         "on such an adapter yet: please report what happens, with what ibv_devinfo says of it). "
         "Between nodes one leader for each node takes part, the others gather behind it in shared "
         "memory",
     .same = true,
     .number = VALUE(agreement.engine),
     .words = engine_words,
     .text = &engine_word},
    {.name = "schedule",
     .help =
         "Which leaders send to which in the network engines: dissemination, pairwise or gather",
     .same = true,
     .number = VALUE(agreement.schedule),
     .words = schedules,
     .text = &schedule_word},
    {.name = "thread",
     .help = "Run a helper thread that moves barriers on while the application is not in MPI; it "
             "sleeps in the kernel otherwise. Without it nonblocking barriers between nodes make "
             "progress only inside MPI calls, and windows of osc_nicstride are not served outside "
             "of them if engine put is the first to start UCX",
     .flag = VALUE(agreement.thread),
     .on = true},
    {.name = "verbose",
     .help = "1 prints a line for each communicator with an engine, by its first process, and at "
             "the end what the first process of the job has counted; 2 what all processes have "
             "counted",
     .number = VALUE(verbose),
     .max = 2},
    {.name = NULL},
};

const onic_param_t *nicbarrier_param(int i)
{
    for (int k = -1; k < 0 || nicbarrier_engines[k] != NULL; k++) {
        const onic_param_t *p = k < 0 ? own : nicbarrier_engines[k]->params;
        for (; p != NULL && p->name != NULL; p++)
            if (i-- == 0)
                return p;
    }
    return NULL;
}

void nicbarrier_params_register(const mca_base_component_t *c)
{
    const onic_param_t *p;
    register_counters(c);
    for (int k = 0; nicbarrier_engines[k] != NULL; k++)
        engine_words[k + 1] = nicbarrier_engines[k]->name;
    for (int i = 0; (p = nicbarrier_param(i)) != NULL; i++)
        onic_param_register(c, p);
}

int nicbarrier_params_check(const mca_base_component_t *c)
{
    const onic_param_t *p;
    if (onic_check_given(c, HELP_FILE) != OMPI_SUCCESS)
        return OMPI_ERR_BAD_PARAM;
    for (int i = 0; (p = nicbarrier_param(i)) != NULL; i++)
        if (!onic_param_check(p, HELP_FILE))
            return OMPI_ERR_BAD_PARAM;
    return OMPI_SUCCESS;
}

bool nicbarrier_params_wanted(void)
{
    return nicbarrier_state.params.priority > PRIORITY_INITIAL;
}
