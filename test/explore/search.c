/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file All orders of a target's steps, depth first: each run begins anew and follows the choices
 *  before the last one that has a branch left.
 *
 *  Of orders that only differ in steps which do not touch the same, one is run: where two steps
 *  that touch the same and are not ordered otherwise are found, a branch is added that takes the
 *  later one first (source sets and sleep sets: Abdulla, Aronis, Jonsson and Sagonas, Optimal
 * dynamic partial order reduction, POPL 2014). With a bound of preemptions all orders within it are
 *  run. */
#define _GNU_SOURCE
#include "test/explore/engine.h"

#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_ENDS 4096
#define BIT(i)   (1U << (i))
#define ALL      (BIT(NPROCS) - 1)

/** A choice: of the next to take a step, or of a branch. */
typedef struct node {
    bool branch;
    uint8_t chosen;
    uint8_t n; /**< branches */
    uint8_t enabled, done, todo, sleep;
    uint8_t last; /**< who took the step before */
    unsigned preempted;
} node_t;

/** A step that was taken. Numbers of steps begin with 1. */
typedef struct step {
    unsigned proc, node;
    uint16_t after[NPROCS]; /**< the last steps of each that come before it in all such orders */
} step_t;

/** Who has touched a location last. */
typedef struct touched {
    uint16_t write, read[NPROCS];
} touched_t;

explore_model_t search_model;
bool search_tracing;

/* All of this outlives a run; the pointer is put back as it was, being so before the first. */
typedef struct search {
    const explore_target_t *target;
    unsigned bound;
    node_t node[2 * MAX_STEPS];
    unsigned nnodes, depth;
    step_t step[MAX_STEPS + 1];
    unsigned nsteps;
    uint16_t after[NPROCS][NPROCS];
    touched_t touched[MAX_LOCS];
    unsigned race[NPROCS + 1], nraces;
    const char *replay;
    explore_model_t model;
    bool tracing;
    uint64_t random; /**< 0: all orders, one after the other; else the state of random ones */
    unsigned long long runs, redundant;
    jmp_buf failed;
    char why[400];
    uint64_t end[MAX_ENDS]; /**< 0: none */
    unsigned nends;
    /* The program's data, put back before each run. */
    char *begin, *copy;
    size_t len;
} search_t;

static search_t *s;

/* ---- the program's data ---------------------------------------------------------------------- */

extern char __data_start[], _end[];

static void keep_data(void)
{
    s->begin = __data_start;
    s->len = (size_t)(_end - __data_start);
    s->copy = malloc(s->len);
    memcpy(s->copy, s->begin, s->len);
}

static void put_back_data(void)
{
    memcpy(s->begin, s->copy, s->len);
}

/* ---- what a run says ------------------------------------------------------------------------- */

void search_trace(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (search_tracing)
        vprintf(format, args);
    va_end(args);
}

void search_fail(const char *what)
{
    snprintf(s->why, sizeof(s->why), "%s", what);
    machine_inside = false;
    longjmp(s->failed, 1);
}

void explore_fail(const char *file, int line, const char *what)
{
    char text[300];
    const unsigned me = explore_me();
    snprintf(text, sizeof(text), "%s:%d: not so: %s (thread %c)", file, line, what,
             me == MAIN ? '-' : (char)('0' + me));
    search_fail(text);
}

/* ---- steps that touch the same --------------------------------------------------------------- */

static bool comes_before(unsigned i, const uint16_t *after)
{
    return after[s->step[i].proc] >= i;
}

/** Step `i` and the newest one touch the same, and no other orders them. */
static void add_race(unsigned i)
{
    for (unsigned k = 0; k < s->nraces; k++)
        if (s->race[k] == i)
            return;
    if (s->nraces < sizeof(s->race) / sizeof(s->race[0]))
        s->race[s->nraces++] = i;
}

static void join(uint16_t *after, const uint16_t *other)
{
    for (unsigned q = 0; q < NPROCS; q++)
        after[q] = other[q] > after[q] ? other[q] : after[q];
}

bool search_is_before(unsigned step, unsigned other)
{
    return comes_before(step, s->step[other].after);
}

void search_join(unsigned proc, unsigned step)
{
    join(s->after[proc], s->step[step].after);
    join(s->step[s->nsteps].after, s->step[step].after);
}

void search_join_all(unsigned proc)
{
    for (unsigned q = 0; q < NPROCS; q++)
        if (s->after[q][q] != 0)
            search_join(proc, s->after[q][q]);
}

unsigned search_now(void)
{
    return s->nsteps;
}

void search_touch(unsigned proc, unsigned loc, bool writes)
{
    touched_t *t = &s->touched[loc];
    const uint16_t *before = s->step[s->nsteps].after;
    uint16_t *after = s->after[proc];

    /* `before` is what came before this step by its thread alone. */
    if (t->write != 0 && s->step[t->write].proc != proc) {
        if (!comes_before(t->write, before))
            add_race(t->write);
        join(after, s->step[t->write].after);
    }
    for (unsigned q = 0; writes && q < NPROCS; q++) {
        if (q == proc || t->read[q] == 0)
            continue;
        if (!comes_before(t->read[q], before))
            add_race(t->read[q]);
        join(after, s->step[t->read[q]].after);
    }
    if (writes) {
        memset(t->read, 0, sizeof(t->read));
        t->write = (uint16_t)s->nsteps;
    } else {
        t->read[proc] = (uint16_t)s->nsteps;
    }
}

/** Those of which one must be tried at step `i` so that the newest step comes before it. */
static unsigned first_ones(unsigned i)
{
    const unsigned last = s->nsteps;
    unsigned firsts = 0, seen = 0;
    for (unsigned j = i + 1; j <= last; j++) {
        const step_t *step = &s->step[j];
        if (j != last && comes_before(i, step->after))
            continue;
        if (seen & BIT(step->proc))
            continue;
        seen |= BIT(step->proc);
        bool first = true;
        for (unsigned k = i + 1; k < j && first; k++)
            first = comes_before(i, s->step[k].after) || !comes_before(k, step->after);
        if (first)
            firsts |= BIT(step->proc);
    }
    return firsts;
}

static void branch_at(unsigned i)
{
    node_t *n = &s->node[s->step[i].node];
    const unsigned firsts = first_ones(i) & n->enabled, proc = s->step[s->nsteps].proc;
    if (firsts == 0) {
        n->todo = n->enabled;
        return;
    }
    if ((firsts & (n->todo | n->done)) != 0)
        return;
    n->todo |= (firsts & BIT(proc)) != 0 ? (uint8_t)BIT(proc) : (uint8_t)(firsts & -firsts);
}

static void begin_step(unsigned proc, unsigned node)
{
    step_t *step = &s->step[++s->nsteps];
    step->proc = proc;
    step->node = node;
    memcpy(step->after, s->after[proc], sizeof(step->after));
    s->after[proc][proc] = (uint16_t)s->nsteps;
    s->nraces = 0;
}

static void end_step(void)
{
    step_t *step = &s->step[s->nsteps];
    memcpy(step->after, s->after[step->proc], sizeof(step->after));
    if (s->bound == 0 && s->random == 0)
        for (unsigned i = 0; i < s->nraces; i++)
            branch_at(s->race[i]);
}

/* ---- choices --------------------------------------------------------------------------------- */

static node_t *next_node(bool branch, bool *old_p)
{
    node_t *n = &s->node[s->depth];
    *old_p = s->depth < s->nnodes;
    if (!*old_p) {
        if (s->depth == sizeof(s->node) / sizeof(s->node[0]))
            search_fail("does not end");
        memset(n, 0, sizeof(*n));
        n->branch = branch;
        s->nnodes++;
    } else if (n->branch != branch) {
        search_fail("the target does not do the same for the same choices");
    }
    s->depth++;
    return n;
}

/** What stands in the replay for this choice; -1: nothing. */
static int replayed(void)
{
    if (s->replay == NULL || *s->replay == '\0')
        return -1;
    const char c = *s->replay++;
    return c >= '0' && c <= '9' ? c - '0' : c - 'a';
}

/** Mostly 0: what would be done without a choice. */
static unsigned at_random(unsigned n)
{
    s->random = s->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    const unsigned r = (unsigned)(s->random >> 33);
    return r % 4 != 0 ? 0 : r / 4 % n;
}

unsigned search_choose(unsigned n)
{
    bool old;
    if (n <= 1)
        return 0;
    node_t *node = next_node(true, &old);
    if (!old) {
        const int given = replayed();
        node->n = (uint8_t)n;
        node->chosen = (uint8_t)(given >= 0 ? (unsigned)given : s->random != 0 ? at_random(n) : 0);
    }
    if (node->n != n || node->chosen >= n)
        search_fail("the target does not do the same for the same choices");
    return node->chosen;
}

static unsigned lowest(unsigned mask)
{
    return (unsigned)__builtin_ctz(mask);
}

static unsigned preempted(const node_t *n, unsigned proc)
{
    return n->preempted + (proc != n->last && n->last < NPROCS && (n->enabled >> n->last & 1) &&
                           machine_next(n->last)->kind != OP_PAUSE);
}

/** Which of these take the next step: false where all that can would only do again what was done.
 */
static bool choose_proc(unsigned enabled, unsigned sleep, unsigned last, unsigned so_far,
                        unsigned *proc_p)
{
    bool old;
    node_t *n = next_node(false, &old);
    if (!old) {
        const int given = replayed();
        n->enabled = (uint8_t)enabled;
        n->sleep = (uint8_t)(sleep & enabled);
        n->last = (uint8_t)last;
        n->preempted = so_far;
        const unsigned left = enabled & ~sleep;
        if (given < 0 && left == 0)
            return false;
        n->chosen = (uint8_t)(given >= 0                            ? (unsigned)given
                              : last < NPROCS && (left >> last & 1) ? last
                                                                    : lowest(left));
        for (unsigned more = s->random != 0 && given < 0 ? at_random(NPROCS) : 0; more > 0; more--)
            do
                n->chosen = (uint8_t)((n->chosen + 1U) % NPROCS);
            while (!(left >> n->chosen & 1));
        n->todo = (uint8_t)BIT(n->chosen);
        for (unsigned p = 0; s->bound != 0 && p < NPROCS; p++)
            if ((enabled >> p & 1) && preempted(n, p) <= s->bound)
                n->todo |= (uint8_t)BIT(p);
    }
    if (n->enabled != enabled || !(enabled >> n->chosen & 1))
        search_fail("the target does not do the same for the same choices");
    *proc_p = n->chosen;
    return true;
}

/** The next run's choices; false where none is left. */
static bool next_run(void)
{
    while (s->nnodes > 0) {
        node_t *n = &s->node[s->nnodes - 1];
        if (n->branch) {
            if (++n->chosen < n->n)
                return true;
        } else {
            n->done |= (uint8_t)BIT(n->chosen);
            const unsigned left = n->todo & ~n->done & ~n->sleep & ALL;
            if (left != 0) {
                n->chosen = (uint8_t)lowest(left);
                return true;
            }
        }
        s->nnodes--;
    }
    return false;
}

/* ---- a run ----------------------------------------------------------------------------------- */

static void say_stuck(void)
{
    char text[sizeof(s->why)];
    size_t at = (size_t)snprintf(text, sizeof(text), "nobody can go on:");
    for (unsigned p = 0; p < s->target->nthreads && at < sizeof(text); p++) {
        char what[120];
        machine_describe(p, what, sizeof(what));
        at += (size_t)snprintf(text + at, sizeof(text) - at, " %u %s;", p, what);
    }
    search_fail(text);
}

static void run(void)
{
    put_back_data();
    search_model = s->model;
    search_tracing = s->tracing;
    memory_reset();
    machine_reset();
    s->depth = s->nsteps = 0;
    memset(s->after, 0, sizeof(s->after));
    memset(s->touched, 0, sizeof(s->touched));
    machine_me = MAIN;
    machine_inside = true;
    if (s->target->setup != NULL)
        s->target->setup();
    machine_inside = false;
    machine_start(s->target);

    unsigned sleep = 0, last = NPROCS, so_far = 0;
    while (!machine_over()) {
        const unsigned enabled = machine_enabled(), at = s->depth;
        unsigned proc;
        if (enabled == 0)
            say_stuck();
        if (s->nsteps == MAX_STEPS)
            search_fail("does not end");
        if (!choose_proc(enabled, sleep, last, so_far, &proc)) {
            s->redundant++;
            return;
        }
        const node_t *n = &s->node[at];
        /* Who sleeps was tried here before, and does the same as long as nothing that it touches
         * changes. */
        const op_t op = *machine_next(proc);
        unsigned still = 0;
        for (unsigned q = 0; s->bound == 0 && q < NPROCS; q++)
            if (q != proc && ((n->sleep | n->done) >> q & 1) &&
                machine_independent(machine_next(q), &op))
                still |= BIT(q);
        so_far = s->bound != 0 ? preempted(n, proc) : 0;
        begin_step(proc, at);
        machine_step(proc);
        end_step();
        sleep = still;
        last = proc;
    }
    machine_finish();
    machine_me = MAIN;
    machine_inside = true;
    if (s->target->finish != NULL)
        s->target->finish();
    machine_inside = false;
}

/* ---- main ------------------------------------------------------------------------------------ */

static const char *const model_name[] = {"sc", "tso", "weak"};

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void print_choices(void)
{
    printf("  --replay ");
    for (unsigned i = 0; i < s->nnodes; i++)
        putchar(s->node[i].branch ? 'a' + s->node[i].chosen : '0' + s->node[i].chosen);
    printf("\n");
}

typedef struct options {
    const char *target, *model, *replay;
    double seconds;
    unsigned long long runs;
    bool all;
} options_t;

/** False: a property is broken, or is not where that is expected. */
static bool search(const explore_target_t *t, explore_model_t model, const options_t *o)
{
    const double begun = seconds();
    const bool expected = (t->broken >> model & 1) != 0 && o->replay == NULL;
    volatile bool more = true;
    s->target = t;
    s->bound = o->all ? 0 : t->preemptions;
    s->runs = s->redundant = s->nnodes = 0;
    s->random = 0;
    s->replay = o->replay;
    s->model = model;
    s->tracing = o->replay != NULL;
    if (setjmp(s->failed) != 0) {
        printf("%-24s %-5s %9llu runs %8.2f s  broken%s: %s\n", t->name, model_name[model],
               s->runs + 1, seconds() - begun, expected ? ", as expected" : "", s->why);
        if (!expected)
            print_choices();
        return expected;
    }
    while (more) {
        run();
        s->runs++;
        more = o->replay == NULL && next_run();
        if (more && (s->runs % 256 == 0) &&
            ((o->seconds > 0 && seconds() - begun > o->seconds) ||
             (o->runs > 0 && s->runs >= o->runs)))
            break;
    }
    /* The others are far from those that were first: some of them at random. */
    const unsigned long long rest = more ? s->runs / 2 : 0;
    s->random = rest > 0;
    for (unsigned long long i = 0; i < rest; i++) {
        s->nnodes = 0;
        run();
        s->runs++;
    }
    s->random = 0;
    char extent[60] = "all";
    if (more)
        snprintf(extent, sizeof(extent), "not all; %llu of them at random", rest);
    else if (s->bound != 0)
        snprintf(extent, sizeof(extent), "all with %u preemptions", s->bound);
    printf("%-24s %-5s %9llu runs %8.2f s  %s%s\n", t->name, model_name[model],
           s->runs - s->redundant, seconds() - begun, extent,
           expected ? ", but is to be broken" : "");
    fflush(stdout);
    return !expected;
}

/* ---- ends ------------------------------------------------------------------------------------ */

void explore_end_with(uint64_t value)
{
    const uint64_t mixed = (value + 1) * UINT64_C(0x9e3779b97f4a7c15) | 1;
    unsigned at = (unsigned)(mixed >> 40) % MAX_ENDS;
    while (s->end[at] != 0 && s->end[at] != mixed)
        at = (at + 1) % MAX_ENDS;
    if (s->end[at] == 0 && ++s->nends == MAX_ENDS)
        search_fail("too many ends for the engine");
    s->end[at] = mixed;
}

unsigned explore_ends(const explore_target_t *target, explore_model_t model, bool reduce,
                      uint64_t *sum_p)
{
    memset(s->end, 0, sizeof(s->end));
    s->nends = s->nnodes = 0;
    s->target = target;
    s->model = model;
    s->bound = reduce ? 0 : MAX_STEPS;
    if (setjmp(s->failed) != 0) {
        printf("%s\n", s->why);
        return 0;
    }
    do
        run();
    while (next_run());
    *sum_p = 0;
    for (unsigned i = 0; i < MAX_ENDS; i++)
        *sum_p += s->end[i] * (s->end[i] >> 7);
    return s->nends;
}

static int usage(const char *name, int status)
{
    printf("usage: %s [--target NAME] [--model sc|tso|weak] [--seconds N] [--runs N] [--all]\n"
           "       [--replay CHOICES] [--list]\n"
           "  --all     without a bound of preemptions, where a target has one\n"
           "  --replay  one run, step by step; with --target and --model\n",
           name);
    return status;
}

static bool is_chosen(const explore_target_t *t, const options_t *o, unsigned model)
{
    return (o->target == NULL || strcmp(o->target, t->name) == 0) &&
           (o->model == NULL || strcmp(o->model, model_name[model]) == 0);
}

void explore_init(void)
{
    if (s != NULL)
        return;
    s = calloc(1, sizeof(*s));
    memory_init();
    machine_init();
    /* The engine's own words lie there, too, and are none of those that a run changes. */
    keep_data();
}

int explore_main(int argc, char **argv, const explore_target_t *targets, unsigned ntargets)
{
    options_t o = {.seconds = 0};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--all") == 0) {
            o.all = true;
            continue;
        }
        if (strcmp(argv[i], "--list") == 0) {
            for (unsigned k = 0; k < ntargets; k++)
                printf("%s\n", targets[k].name);
            return 0;
        }
        if (strcmp(argv[i], "--help") == 0 || value == NULL)
            return usage(argv[0], value == NULL ? 2 : 0);
        if (strcmp(argv[i], "--target") == 0)
            o.target = value;
        else if (strcmp(argv[i], "--model") == 0)
            o.model = value;
        else if (strcmp(argv[i], "--replay") == 0)
            o.replay = value;
        else if (strcmp(argv[i], "--seconds") == 0)
            o.seconds = atof(value);
        else if (strcmp(argv[i], "--runs") == 0)
            o.runs = strtoull(value, NULL, 10);
        else
            return usage(argv[0], 2);
        i++;
    }
    explore_init();
    unsigned ran = 0, broken = 0;
    for (unsigned k = 0; k < ntargets; k++) {
        for (unsigned model = EXPLORE_SC; model <= EXPLORE_WEAK; model++) {
            if (!is_chosen(&targets[k], &o, model))
                continue;
            ran++;
            broken += !search(&targets[k], (explore_model_t)model, &o);
        }
    }
    if (ran == 0)
        printf("no such target or model\n");
    return ran == 0 ? 2 : broken > 0;
}
