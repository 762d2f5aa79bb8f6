/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The engine in memory; see nicbarrier_memory_engine.h. */
#include "test/unit/nicbarrier_memory_engine.h"

#include <string.h>

#include "coll_nicbarrier/epoch/rule.h"
#include "coll_nicbarrier/schedule/schedule.h"

enum { MEMBERS_MAX = 16, FLIGHTS_MAX = 1024 };

struct nicbarrier_net {
    nicbarrier_group_t group;
    nicbarrier_net_events_t events;
    nicbarrier_rule_t rule;
    nicbarrier_step_t step[NICBARRIER_STEPS_MAX];
    nicbarrier_net_t *member[MEMBERS_MAX]; /**< partners, by their number */
    bool connected;
    bool gone; /**< disconnected: answers what it has said, and that is all */
};

/** A word that is under way. */
typedef struct flight {
    nicbarrier_net_t *to;
    uint32_t at;
    uint64_t word;
} flight_t;

static struct {
    unit_random_t random;
    memory_mutant_t mutant;
    int schedule;
    nicbarrier_net_t *net[MEMBERS_MAX]; /**< all that were made */
    int nets;
    flight_t flight[FLIGHTS_MAX];
    int flights;
} memory;

static bool is(memory_mutant_t mutant)
{
    return memory.mutant == mutant;
}

void memory_engine_reset(uint64_t seed, memory_mutant_t mutant)
{
    for (int i = 0; i < memory.nets; i++)
        free(memory.net[i]);
    memset(&memory, 0, sizeof(memory));
    memory.random.state = seed;
    memory.mutant = mutant;
}

/* ---- on the way ----------------------------------------------------------------------------- */

/** One in eight is lost, one in eight comes twice; where there are too many, they are lost. */
static void launch(const nicbarrier_net_t *net, uint32_t k, uint64_t word)
{
    const nicbarrier_step_t *step = &net->step[k];
    const uint64_t fate = unit_below(&memory.random, 8);

    for (int copies = fate == 0 ? 0 : fate == 1 ? 2 : 1; copies > 0; copies--)
        if (memory.flights < FLIGHTS_MAX)
            memory.flight[memory.flights++] =
                (flight_t){net->member[step->send_to], step->send_at, word};
}

static void advance(nicbarrier_net_t *net)
{
    const uint64_t before = net->rule.completed;
    if (is(MEMORY_SKIPS_A_WAIT) && net->group.me == 0)
        net->rule.received[__builtin_ctzll(net->rule.waits)] = net->rule.entered;
    const uint64_t out = nicbarrier_rule_advance(&net->rule);

    if (is(MEMORY_COMPLETES_TOO_MUCH) && net->rule.completed > before)
        net->rule.completed = net->rule.entered;
    if (is(MEMORY_COMPLETES_FAILURES) && net->rule.failed)
        net->rule.completed = net->rule.entered;
    for (uint32_t k = 0; k < net->rule.nsteps; k++) {
        const uint64_t word = nicbarrier_rule_word(&net->rule, k);
        if (out >> k & 1)
            launch(net, k, is(MEMORY_FAILS_ALONE) ? word & ~NICBARRIER_WORD_FAILED : word);
    }
    if (net->rule.completed > before && net->events.complete != NULL)
        net->events.complete(net->events.arg, net->rule.completed);
}

static void arrive(const flight_t *f)
{
    nicbarrier_net_t *net = f->to;

    /* To one that is not connected it is lost. */
    if (!net->connected || net->gone)
        return;
    const uint64_t word =
        is(MEMORY_COUNTS_WORDS) ? net->rule.received[f->at] + (f->word != 0) : f->word;
    const nicbarrier_word_t worth = nicbarrier_rule_receive(&net->rule, f->at, word);
    UNIT_CHECK(worth != NICBARRIER_WORD_WRONG);
    if (worth == NICBARRIER_WORD_NEW)
        advance(net);
}

static void deliver(int i)
{
    const flight_t f = memory.flight[i];

    memory.flight[i] = memory.flight[--memory.flights];
    arrive(&f);
}

/** What the member waits for is said again, by whom it waits for; whatever was said, if nothing is
 *  awaited: a failure may have been lost. */
static void ask_again(const nicbarrier_net_t *net)
{
    for (uint32_t k = 0; k < net->rule.nsteps && net->connected; k++) {
        const nicbarrier_step_t *step = &net->step[k];
        if (!(net->rule.waits >> k & 1))
            continue;
        const nicbarrier_net_t *other = net->member[step->wait_for];
        if (other->connected && !(other->gone && is(MEMORY_LEAVES_NOTHING)))
            launch(other, step->wait_at,
                   is(MEMORY_FAILS_ALONE) ? other->rule.sent[step->wait_at]
                                          : nicbarrier_rule_word(&other->rule, step->wait_at));
    }
}

void memory_engine_pass(void)
{
    if (memory.flights > 0 && !unit_once_in(&memory.random, 8))
        deliver((int)unit_below(&memory.random, (uint64_t)memory.flights));
    else if (memory.nets > 0 && !is(MEMORY_NEVER_REPEATS))
        ask_again(memory.net[unit_below(&memory.random, (uint64_t)memory.nets)]);
}

/* ---- the engine ----------------------------------------------------------------------------- */

static int memory_score(void)
{
    return 1;
}

static int memory_open(const nicbarrier_engine_settings_t *settings, nicbarrier_reason_t *why)
{
    (void)why;
    memory.schedule = settings->schedule;
    return 0;
}

static void memory_close(void)
{
    for (int i = 0; i < memory.nets; i++)
        UNIT_CHECK(memory.net[i]->gone);
    memory_engine_reset(0, MEMORY_SOUND);
}

static int memory_prepare(const nicbarrier_group_t *group, nicbarrier_net_t **net_p, void *bytes,
                          uint32_t *len_p, nicbarrier_reason_t *why)
{
    nicbarrier_net_t *net = calloc(1, sizeof(*net));

    (void)why;
    UNIT_CHECK(net != NULL && memory.nets < MEMBERS_MAX && group->n <= MEMBERS_MAX);
    net->group = *group;
    memory.net[memory.nets++] = net;
    memcpy(bytes, &net, sizeof(net));
    *len_p = sizeof(net);
    *net_p = net;
    return 0;
}

static int memory_connect(nicbarrier_net_t *net, const nicbarrier_endpoints_t *endpoints,
                          const nicbarrier_net_events_t *events, nicbarrier_reason_t *why)
{
    const int n = nicbarrier_schedule((nicbarrier_schedule_kind_t)memory.schedule, net->group.me,
                                      net->group.n, net->step);
    uint64_t sends, waits;

    (void)why;
    UNIT_CHECK(n > 0);
    nicbarrier_schedule_bits(net->step, n, &sends, &waits);
    for (int i = 0; i < endpoints->n; i++)
        memcpy(&net->member[endpoints->list[i].member], endpoints->list[i].bytes,
               sizeof(net->member[0]));
    nicbarrier_rule_init(&net->rule, (uint32_t)n, sends, waits);
    net->events = *events;
    net->connected = true;
    return 0;
}

static void memory_enter(nicbarrier_net_t *net, uint64_t epoch)
{
    if (is(MEMORY_ENTERS_BACKWARDS)) {
        net->rule.entered = epoch;
        net->rule.completed = epoch < net->rule.completed ? epoch : net->rule.completed;
    }
    nicbarrier_rule_enter(&net->rule, epoch);
    advance(net);
}

static uint64_t memory_completed(const nicbarrier_net_t *net)
{
    return net->rule.completed;
}

static int memory_progress(nicbarrier_net_t *net)
{
    for (int i = 0; i < memory.flights; i++) {
        if (memory.flight[i].to == net) {
            deliver(i);
            return 1;
        }
    }
    return 0;
}

static void memory_disconnect(nicbarrier_net_t *net)
{
    net->gone = true;
    net->events = (nicbarrier_net_events_t){NULL};
}

static bool memory_failed(const nicbarrier_net_t *net)
{
    return net->rule.failed;
}

static void memory_fail(nicbarrier_net_t *net)
{
    nicbarrier_rule_fail(&net->rule);
    advance(net);
}

const nicbarrier_engine_t nicbarrier_engine_memory = {
    .name = "memory",
    .what = "words through the memory of one process, for tests",
    .score = memory_score,
    .open = memory_open,
    .close = memory_close,
    .prepare = memory_prepare,
    .connect = memory_connect,
    .enter = memory_enter,
    .completed = memory_completed,
    .progress = memory_progress,
    .disconnect = memory_disconnect,
    .failed = memory_failed,
    .fail = memory_fail,
};
