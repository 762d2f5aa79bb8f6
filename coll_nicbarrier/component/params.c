/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * MCA parameters of coll_nicbarrier: names, units, ranges, checks.
 */
#include "coll_nicbarrier/component/module.h"

#include "common/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/support/help.h"
#include "common/support/variables.h"
#include "ompi/constants.h"

#define HELP_FILE "help-coll-nicbarrier.txt"
/** Below those of the components that come with Open MPI. */
#define PRIORITY_INITIAL 5

static nicbarrier_params_t *params(void)
{
    return &mca_coll_nicbarrier_component.params;
}

/* ---- the component's own ----------------------------------------------------------------------
 */

static struct {
    int priority, setup_call, ppn, spin, schedule, engine;
    bool thread, skew;
    const char *schedule_word, *engine_word;
} set = {.priority = PRIORITY_INITIAL,
         .setup_call = 8,
         .spin = 1000,
         .thread = true,
         .schedule_word = "dissemination",
         .engine_word = "auto"};

static const char *const schedules[] = {"dissemination", "pairwise", "gather", NULL};
/** "auto", then the engines' names. */
static const char *engine_words[NICBARRIER_ENGINES_MAX + 2] = {"auto"};
static char engine_help[1024];

static const nicbarrier_param_t own[] = {
    {.name = "priority",
     .help = "Priority among the coll components. The default is below that of the components that "
             "come with Open MPI (tuned has 30): give 90 to use this one",
     .same = true,
     .number = &set.priority,
     .max = 100},
    {.name = "setup_call",
     .help = "Which barrier of a communicator sets up the engine, or the next MPI_Barrier if it is "
             "an MPI_Ibarrier; those before go to the module below, so that communicators of a "
             "short life pay nothing. A persistent barrier is set up when it is made. 0: so are "
             "communicators, unless processes have MPI_THREAD_MULTIPLE, where only MPI_COMM_WORLD "
             "is",
     .same = true,
     .number = &set.setup_call,
     .max = 1000000000},
    {.name = "ppn",
     .help = "Most processes of a node that gather in shared memory behind one leader for the "
             "network engines; 0: all of them (a network engine that is asked for where there is "
             "one node takes 1)",
     .same = true,
     .number = &set.ppn,
     .max = 1000000},
    {.name = "spin",
     .help = "How often a waiting process looks at the flags before it yields its processor, while "
             "nobody else wants that; where others do, it yields at once",
     .number = &set.spin,
     .max = 1000000},
    {.name = "engine",
     .help = engine_help,
     .same = true,
     .number = &set.engine,
     .words = engine_words,
     .text = &set.engine_word},
    {.name = "schedule",
     .help = "Who tells whom in the network engines: dissemination, pairwise or gather",
     .same = true,
     .number = &set.schedule,
     .words = schedules,
     .text = &set.schedule_word},
    {.name = "thread",
     .help = "Run a helper thread that moves barriers on while the application is away from MPI; "
             "it sleeps in the kernel otherwise. Without it nonblocking barriers between nodes "
             "make progress only inside MPI calls, and windows of osc_nicstride are not served "
             "outside of them if engine put is the first to start UCX",
     .flag = &set.thread},
    {.name = "skew",
     .help = "Measure the time from the first arrival to the last one on the node (see the "
             "performance variables coll_nicbarrier_skew_*). Costs two readings of the clock for "
             "each barrier",
     .flag = &set.skew},
    {.name = NULL},
};

static void describe_engines(void)
{
    size_t n = (size_t)snprintf(engine_help, sizeof(engine_help),
                                "What carries barriers: auto (shm where all processes share "
                                "memory; otherwise put where all machines have an RDMA adapter "
                                "that is up and that UCX_TLS and UCX_NET_DEVICES allow, else "
                                "datagram)");
    for (int i = 0; nicbarrier_engines[i] != NULL && n < sizeof(engine_help); i++) {
        engine_words[i + 1] = nicbarrier_engines[i]->name;
        n += (size_t)snprintf(engine_help + n, sizeof(engine_help) - n, ", %s (%s)",
                              nicbarrier_engines[i]->name, nicbarrier_engines[i]->what);
    }
    if (n < sizeof(engine_help)) {
        snprintf(engine_help + n, sizeof(engine_help) - n,
                 ". Between nodes one leader for each node takes part, the others gather behind it "
                 "in shared memory");
    }
}

/* ---- tables ------------------------------------------------------------------------------------
 */

/** Calls a function for each parameter of the component and of its engines, until one does not
 *  return OMPI_SUCCESS. */
static int each(int (*function)(const nicbarrier_param_t *p, void *arg), void *arg)
{
    int rc = OMPI_SUCCESS;
    for (int i = -1; i < 0 || nicbarrier_engines[i] != NULL; i++) {
        const nicbarrier_param_t *p = i < 0 ? own : nicbarrier_engines[i]->params;
        for (; p != NULL && p->name != NULL && rc == OMPI_SUCCESS; p++) {
            rc = function(p, arg);
        }
    }
    return rc;
}

static int register_one(const nicbarrier_param_t *p, void *arg)
{
    const mca_base_component_t *c = arg;
    if (p->flag != NULL) {
        (void)onic_register_bool(c, p->name, *p->flag, p->flag, p->help);
    } else if (p->text != NULL) {
        (void)onic_register_string(c, p->name, p->words != NULL ? p->words[0] : NULL, p->text,
                                   p->help);
    } else {
        (void)onic_register_int(c, p->name, p->help, p->min, p->max, p->number);
    }
    return OMPI_SUCCESS;
}

int nicbarrier_params_register(const mca_base_component_t *c)
{
    describe_engines();
    return each(register_one, (void *)(uintptr_t)c);
}

/* ---- checks ------------------------------------------------------------------------------------
 */

/** Finds the word in its list. */
static int check_word(const nicbarrier_param_t *p)
{
    char list[128] = "";
    for (int i = 0; p->words[i] != NULL; i++) {
        if (*p->text != NULL && strcmp(*p->text, p->words[i]) == 0) {
            *p->number = i;
            return OMPI_SUCCESS;
        }
        snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s", i > 0 ? ", " : "",
                 p->words[i]);
    }
    onic_help(HELP_FILE, "bad-word", p->name, *p->text != NULL ? *p->text : "", list);
    return OMPI_ERR_BAD_PARAM;
}

static int check_text(const nicbarrier_param_t *p)
{
    if (*p->text != NULL && (*p->text)[0] == '\0') {
        *p->text = NULL;
    }
    if (*p->text != NULL && p->valid != NULL && !p->valid(*p->text)) {
        onic_help(HELP_FILE, p->topic, *p->text);
        return OMPI_ERR_BAD_PARAM;
    }
    return OMPI_SUCCESS;
}

static int check_one(const nicbarrier_param_t *p, void *arg)
{
    (void)arg;
    if (p->words != NULL) {
        return check_word(p);
    }
    if (p->text != NULL) {
        return check_text(p);
    }
    if (p->number != NULL && (*p->number < p->min || *p->number > p->max)) {
        onic_help(HELP_FILE, "bad-number", p->name, *p->number, p->min, p->max);
        return OMPI_ERR_BAD_PARAM;
    }
    return OMPI_SUCCESS;
}

/** FNV-1a. */
static uint64_t hash(uint64_t h, const void *bytes, size_t n)
{
    const unsigned char *b = bytes;

    for (size_t i = 0; i < n; i++) {
        h = (h ^ b[i]) * 0x100000001b3u;
    }
    return h;
}

static int add_to_fingerprint(const nicbarrier_param_t *p, void *arg)
{
    uint64_t *h = arg;
    if (p->same) {
        *h = hash(*h, p->number, sizeof(*p->number));
    }
    return OMPI_SUCCESS;
}

typedef struct text {
    char *at;
    size_t left;
} text_t;

static int describe_one(const nicbarrier_param_t *p, void *arg)
{
    text_t *t = arg;
    if (!p->same || t->left == 0) {
        return OMPI_SUCCESS;
    }
    int n = p->words != NULL ? snprintf(t->at, t->left, ", %s %s", p->name, p->words[*p->number])
                             : snprintf(t->at, t->left, ", %s %d", p->name, *p->number);
    size_t written = (size_t)n < t->left ? (size_t)n : t->left;
    t->at += written;
    t->left -= written;
    return OMPI_SUCCESS;
}

void nicbarrier_params_describe(char *text, size_t size)
{
    text_t t = {text, size};
    (void)each(describe_one, &t);
}

bool nicbarrier_params_wanted(void)
{
    return params()->priority > PRIORITY_INITIAL;
}

/** From the values that have been set. */
static int derive(void)
{
    nicbarrier_params_t *p = params();

    p->engine = set.engine - 1;
    p->priority = set.priority;
    p->setup_call = set.setup_call;
    p->ppn = set.ppn;
    p->spin = set.spin;
    p->skew = set.skew;
    p->settings = (nicbarrier_engine_settings_t){set.schedule, set.thread};
    p->fingerprint = 0xcbf29ce484222325u;
    return each(add_to_fingerprint, &p->fingerprint);
}

int nicbarrier_params_check(void)
{
    int rc = each(check_one, NULL);
    return rc != OMPI_SUCCESS ? rc : derive();
}

/* ---- those of another process -----------------------------------------------------------------
 */

/** The value of a parameter in a text of nicbarrier_params_describe; false where it is not there or
 *  none that can be. */
static bool find_value(const nicbarrier_param_t *p, const char *text, int *value_p)
{
    char label[64], value[32];
    int n = snprintf(label, sizeof(label), ", %s ", p->name);
    const char *at = strstr(text, label);
    size_t len = at != NULL ? strcspn(at + n, ",") : 0;
    if (len == 0 || len >= sizeof(value)) {
        return false;
    }
    memcpy(value, at + n, len);
    value[len] = '\0';
    if (p->words == NULL) {
        char *end;
        long number = strtol(value, &end, 10);
        *value_p = (int)number;
        return *end == '\0' && number >= p->min && number <= p->max;
    }
    for (*value_p = 0; p->words[*value_p] != NULL; ++*value_p) {
        if (strcmp(p->words[*value_p], value) == 0) {
            return true;
        }
    }
    return false;
}

static int look_for(const nicbarrier_param_t *p, void *arg)
{
    int value;
    return !p->same || find_value(p, arg, &value) ? OMPI_SUCCESS : OMPI_ERR_NOT_FOUND;
}

static int adopt_one(const nicbarrier_param_t *p, void *arg)
{
    if (p->same) {
        (void)find_value(p, arg, p->number);
    }
    return OMPI_SUCCESS;
}

bool nicbarrier_params_adopt(const char *text)
{
    void *arg = (void *)(uintptr_t)text;
    return each(look_for, arg) == OMPI_SUCCESS && each(adopt_one, arg) == OMPI_SUCCESS &&
           derive() == OMPI_SUCCESS;
}
