/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE
#include "common/support/component.h"

#include <ctype.h>
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/support/help.h"
#include "ompi/constants.h"
#include "opal/mca/base/mca_base_pvar.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/mca/base/mca_base_var_enum.h"
#include "opal/util/output.h"
#include "opal/util/proc.h"

/* ---- parameters and counters ---------------------------------------------------------------- */

/** What users set: the rest is for those who look further. */
static const char *const basic[] = {"cost",    "engine",    "method",  "priority", "protocol",
                                    "stepper", "show_plan", "verbose", NULL};

static mca_base_var_info_lvl_t level_of(const char *name)
{
    for (int i = 0; basic[i] != NULL; i++)
        if (strcmp(basic[i], name) == 0)
            return OPAL_INFO_LVL_1;
    return OPAL_INFO_LVL_5;
}

static void register_var(const mca_base_component_t *c, const char *name, const char *help,
                         mca_base_var_type_t type, mca_base_var_enum_t *words, void *value)
{
    (void)mca_base_component_var_register(c, name, help, type, words, 0, 0, level_of(name),
                                          MCA_BASE_VAR_SCOPE_READONLY, value);
}

/** A number or a switch as Open MPI's variables have it: an enumerator, since Open MPI itself takes
 * a word for 0, goes on with the default where a switch is wrong, and its own switches take no
 *  enumerator. What is wrong is kept for the component's check, and the default stays. */
typedef struct number {
    mca_base_var_enum_t super;
    const mca_base_component_t *component;
    const onic_param_t *param;
    int initial;
    bool given; /**< and not empty */
    int value;  /**< of a switch: Open MPI's variable, which lives no longer than this */
} number_t;

OBJ_CLASS_INSTANCE(number_t, mca_base_var_enum_t, NULL, NULL);

/** The first wrong values, of all components; those with one are not used. */
static struct wrong {
    const mca_base_component_t *component;
    const onic_param_t *param;
    char text[64];
} wrong[8];
static unsigned n_wrong;

static void note_wrong(const number_t *n, const char *text)
{
    if (n_wrong == sizeof(wrong) / sizeof(wrong[0]))
        return;
    wrong[n_wrong].component = n->component;
    wrong[n_wrong].param = n->param;
    snprintf(wrong[n_wrong++].text, sizeof(wrong[0].text), "%s", text);
}

static bool read_number(const onic_param_t *p, const char *text, int *value)
{
    static const char suffixes[] = "kmg";
    char *end;
    long long given = strtoll(text, &end, 0);
    const char *suffix = *end != '\0' ? strchr(suffixes, tolower((unsigned char)*end)) : NULL;

    if (suffix != NULL && end != text && given >= INT_MIN && given <= INT_MAX) {
        given *= 1LL << 10 * (suffix - suffixes + 1);
        end++;
    }
    *value = (int)given;
    return end != text && *end == '\0' && given >= p->min && given <= p->max;
}

static int from_string(mca_base_var_enum_t *self, const char *text, int *value)
{
    number_t *n = (number_t *)self;

    n->given = true;
    if (n->param->flag != NULL
            ? mca_base_var_enum_bool.value_from_string(self, text, value) != OPAL_SUCCESS
            : !read_number(n->param, text, value)) {
        *value = n->initial;
        note_wrong(n, text);
    }
    return OPAL_SUCCESS;
}

static int string_from_number(mca_base_var_enum_t *self, const int value, char **text)
{
    const onic_param_t *p = ((const number_t *)self)->param;

    if (value < p->min || value > p->max)
        return OPAL_ERR_VALUE_OUT_OF_BOUNDS;
    return text == NULL || asprintf(text, "%d", value) > 0 ? OPAL_SUCCESS
                                                           : OPAL_ERR_OUT_OF_RESOURCE;
}

static int dump_range(mca_base_var_enum_t *self, char **text ONIC_ENUM_DUMP_FORM)
{
    const onic_param_t *p = ((const number_t *)self)->param;

    return asprintf(text, "%d to %d", p->min, p->max) > 0 ? OPAL_SUCCESS : OPAL_ERR_OUT_OF_RESOURCE;
}

static int *value_of(number_t *n)
{
    const onic_param_t *p = n->param;

    /* Of a size it is in the table, which is one that can change then. */
    return p->flag != NULL ? &n->value : p->size != NULL ? (int *)(uintptr_t)&p->value : p->number;
}

static void register_number(const mca_base_component_t *c, const onic_param_t *p)
{
    number_t *n = OBJ_NEW(number_t);
    char help[1024];

    if (n == NULL)
        return;
    n->super.value_from_string = from_string;
    n->component = c;
    n->param = p;
    n->given = false;
    if (p->flag != NULL) {
        n->super.get_count = mca_base_var_enum_bool.get_count;
        n->super.get_value = mca_base_var_enum_bool.get_value;
        n->super.string_from_value = mca_base_var_enum_bool.string_from_value;
        n->super.dump = mca_base_var_enum_bool.dump;
        n->value = p->on;
        snprintf(help, sizeof(help), "%s", p->help);
    } else {
        n->super.string_from_value = string_from_number;
        n->super.dump = dump_range;
        snprintf(help, sizeof(help), "%s. Range %d to %d", p->help, p->min, p->max);
    }
    n->initial = *value_of(n);
    register_var(c, p->name, help, MCA_BASE_VAR_TYPE_INT, &n->super, value_of(n));
    /* Open MPI takes an empty value for 0, too, and does not even ask. */
    if (!n->given)
        *value_of(n) = n->initial;
    if (p->flag != NULL)
        *p->flag = n->value != 0;
    OBJ_RELEASE(n);
}

/** Open MPI takes a name that is misspelt in silence. */
static void say_unknown(const mca_base_component_t *c)
{
    char prefix[96], name[64];
    const int n = snprintf(prefix, sizeof(prefix), "OMPI_MCA_%s_%s_", c->mca_type_name,
                           c->mca_component_name);

    for (char **e = environ; e != NULL && *e != NULL; e++) {
        if (strncmp(*e, prefix, (size_t)n) != 0)
            continue;
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(*e + n, "="), *e + n);
        if (mca_base_var_find(NULL, c->mca_type_name, c->mca_component_name, name) >= 0)
            continue;
        onic_say_once("%s_%s has no parameter \"%s\": it is ignored. ompi_info --param %s %s "
                      "--level 9 lists those that there are",
                      c->mca_type_name, c->mca_component_name, name, c->mca_type_name,
                      c->mca_component_name);
    }
}

int onic_check_given(const mca_base_component_t *c, const char *help_file)
{
    int rc = OMPI_SUCCESS;

    say_unknown(c);
    for (unsigned i = 0; i < n_wrong; i++) {
        const onic_param_t *p = wrong[i].param;

        if (wrong[i].component != c)
            continue;
        if (p->flag != NULL)
            onic_help(help_file, "bad-switch", p->name, wrong[i].text);
        else
            onic_help(help_file, "bad-number", p->name, wrong[i].text, p->min, p->max);
        /* MPI may be initialized again, and is told anew then. */
        wrong[i].component = NULL;
        rc = OMPI_ERR_BAD_PARAM;
    }
    return rc;
}

static void register_text(const mca_base_component_t *c, const onic_param_t *p)
{
    const char *initial = p->words != NULL ? p->words[0] : p->initial;

    /* Where MPI is initialized again Open MPI has put NULL there. */
    *p->text = initial;
    register_var(c, p->name, p->help, MCA_BASE_VAR_TYPE_STRING, NULL, p->text);
    /* It does so where the value is empty, too, which is the default then, as of numbers. It frees
     * what is there. */
    if (initial != NULL && *p->text == NULL)
        *p->text = strdup(initial);
}

void onic_param_register(const mca_base_component_t *c, const onic_param_t *p)
{
    if (p->text != NULL)
        register_text(c, p);
    else
        register_number(c, p);
}

/** Finds the word in its list. */
static bool check_word(const onic_param_t *p, const char *help_file)
{
    char list[128] = "";
    const char *given = *p->text != NULL ? *p->text : "";

    if (p->former != NULL && strcmp(given, p->former) == 0)
        given = p->latter;
    for (int i = 0; p->words[i] != NULL; i++) {
        if (strcmp(given, p->words[i]) == 0) {
            *p->number = i;
            return true;
        }
        const char *before = i == 0 ? "" : p->words[i + 1] != NULL ? ", " : " and ";

        snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s", before, p->words[i]);
    }
    onic_help(help_file, "bad-word", p->name, given, list);
    return false;
}

bool onic_param_check(const onic_param_t *p, const char *help_file)
{
    if (p->size != NULL)
        *p->size = (size_t)p->value << p->shift;
    if (p->words != NULL)
        return check_word(p, help_file);
    if (p->text != NULL && *p->text != NULL && (*p->text)[0] == '\0')
        *p->text = NULL;
    return true;
}

/** All that were registered; the same again where a component is opened again. Open MPI forgets
 * them before it closes the component, which prints them then. */
static struct registered {
    const mca_base_component_t *component;
    char name[32];
    const unsigned long long *counter;
} registered[128];
static unsigned n_registered;

static void note_counter(const mca_base_component_t *c, const char *name,
                         const unsigned long long *counter)
{
    unsigned i = 0;

    while (i < n_registered &&
           (registered[i].component != c || strcmp(registered[i].name, name) != 0))
        i++;
    if (i == sizeof(registered) / sizeof(registered[0]))
        return;
    registered[i] = (struct registered){.component = c, .counter = counter};
    snprintf(registered[i].name, sizeof(registered[i].name), "%s", name);
    n_registered += i == n_registered;
}

void onic_print_counters(const mca_base_component_t *c, int verbose)
{
    const unsigned rank = (unsigned)OPAL_PROC_MY_NAME.vpid;
    char text[4096] = "";
    size_t len = 0;

    if (verbose == 0 || (verbose == 1 && rank != 0))
        return;
    for (unsigned i = 0; i < n_registered && len < sizeof(text); i++) {
        const unsigned long long value = registered[i].component == c ? *registered[i].counter : 0;

        if (value != 0)
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s %s %llu",
                                    len > 0 ? "," : "", registered[i].name, value);
    }
    opal_output(0, "%s_%s: rank %u has counted%s", c->mca_type_name, c->mca_component_name, rank,
                len > 0 ? text : " nothing");
}

void onic_say_idle(const char *parameter, const char *value, const unsigned long long *counts,
                   int n, int forced)
{
    unsigned long long all = 0;

    for (int i = 0; i < n; i++)
        all += counts[i];
    if (all > 0 && counts[forced] == 0)
        onic_say_once("%s is %s, which could do none of the %llu transfers of a process: others "
                      "did them",
                      parameter, value, all);
}

void onic_register_counter(const mca_base_component_t *c, const char *name, const char *help,
                           int class, unsigned long long *counter)
{
    note_counter(c, name, counter);
    (void)mca_base_component_pvar_register(
        c, name, help, OPAL_INFO_LVL_4, class, MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL,
        MPI_T_BIND_NO_OBJECT, MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS, NULL,
        NULL, NULL, counter);
}

void onic_register_counters(const mca_base_component_t *c, const onic_counter_t *table, size_t n)
{
    for (const onic_counter_t *t = table; t < table + n; t++) {
        onic_register_counter(c, t->name, t->help,
                              t->class != 0 ? t->class : MCA_BASE_PVAR_CLASS_COUNTER, t->counter);
    }
}

void onic_register_counter_of(const mca_base_component_t *c, const char *prefix, const char *row,
                              const char *help, unsigned long long *counter)
{
    char name[64], text[128];
    snprintf(name, sizeof(name), "%s_%s", prefix, row);
    snprintf(text, sizeof(text), "%s %s", help, row);
    onic_register_counter(c, name, text, MCA_BASE_PVAR_CLASS_COUNTER, counter);
}
