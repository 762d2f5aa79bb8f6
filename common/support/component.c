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

/** All variables are texts to Open MPI: where it reads numbers and switches itself it takes a word
 *  for 0, an empty value, too, and goes on with the default where a switch is wrong. It frees the
 *  text that is there. */
static void register_var(const mca_base_component_t *c, const char *name, const char *help,
                         void *text)
{
    (void)mca_base_component_var_register(c, name, help, MCA_BASE_VAR_TYPE_STRING, NULL, 0, 0,
                                          level_of(name), MCA_BASE_VAR_SCOPE_READONLY, text);
}

/** The numbers and switches of all components. */
static struct number {
    const mca_base_component_t *component;
    const onic_param_t *param;
    char *text;
    bool wrong;
} numbers[128];
static unsigned n_numbers;

/** The same one where MPI is initialized again; NULL if there are too many. */
static struct number *place_of(const mca_base_component_t *c, const onic_param_t *p)
{
    unsigned i = 0;

    while (i < n_numbers && numbers[i].param != p)
        i++;
    if (i == sizeof(numbers) / sizeof(numbers[0]))
        return NULL;
    n_numbers += i == n_numbers;
    numbers[i] = (struct number){.component = c, .param = p};
    return &numbers[i];
}

static void set_number(const onic_param_t *p, int number)
{
    if (p->size != NULL)
        *p->size = (size_t)number << p->shift;
    else
        *p->number = number;
}

static bool read_number(const onic_param_t *p, const char *text)
{
    static const char suffixes[] = "kmg";
    char *end;
    long long number = strtoll(text, &end, 0);
    const char *suffix = *end != '\0' ? strchr(suffixes, tolower((unsigned char)*end)) : NULL;

    if (suffix != NULL && end != text && number >= INT_MIN && number <= INT_MAX) {
        number *= 1LL << 10 * (suffix - suffixes + 1);
        end++;
    }
    if (end == text || *end != '\0' || number < p->min || number > p->max)
        return false;
    set_number(p, (int)number);
    return true;
}

static bool read_switch(const onic_param_t *p, const char *text)
{
    int value;

    if (mca_base_var_enum_bool.value_from_string(&mca_base_var_enum_bool, text, &value) !=
        OPAL_SUCCESS)
        return false;
    *p->flag = value != 0;
    return true;
}

static void register_number(const mca_base_component_t *c, const onic_param_t *p)
{
    struct number *n = place_of(c, p);
    char help[1024], initial[16];

    if (n == NULL)
        return;
    if (p->flag != NULL) {
        *p->flag = p->on;
        snprintf(initial, sizeof(initial), "%s", p->on ? "true" : "false");
        snprintf(help, sizeof(help), "%s", p->help);
    } else {
        const int first = p->size != NULL ? p->value : *p->number;
        set_number(p, first);
        snprintf(initial, sizeof(initial), "%d", first);
        snprintf(help, sizeof(help), "%s. Range %d to %d", p->help, p->min, p->max);
    }
    n->text = initial;
    register_var(c, p->name, help, &n->text);
    /* An empty value, which Open MPI has made NULL, is the default, and shown as that. */
    if (n->text == NULL)
        n->text = strdup(initial);
    n->wrong = n->text != NULL && n->text[0] != '\0' &&
               !(p->flag != NULL ? read_switch : read_number)(p, n->text);
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
    for (const struct number *n = numbers; n < numbers + n_numbers; n++) {
        const onic_param_t *p = n->param;

        if (n->component != c || !n->wrong)
            continue;
        if (p->flag != NULL)
            onic_help(help_file, "bad-switch", p->name, n->text);
        else
            onic_help(help_file, "bad-number", p->name, n->text, p->min, p->max);
        rc = OMPI_ERR_BAD_PARAM;
    }
    return rc;
}

static void register_text(const mca_base_component_t *c, const onic_param_t *p)
{
    const char *initial = p->words != NULL ? p->words[0] : p->initial;

    /* Where MPI is initialized again Open MPI has put NULL there. */
    *p->text = initial;
    register_var(c, p->name, p->help, p->text);
    /* It does so where the value is empty, too, which is the default then, as of numbers. */
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

static void register_counter(const mca_base_component_t *c, const char *name, const char *help,
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
        register_counter(c, t->name, t->help,
                         t->class != 0 ? t->class : MCA_BASE_PVAR_CLASS_COUNTER, t->counter);
    }
}

void onic_register_counter_of(const mca_base_component_t *c, const char *prefix, const char *row,
                              const char *help, unsigned long long *counter)
{
    char name[64], text[128];
    snprintf(name, sizeof(name), "%s_%s", prefix, row);
    snprintf(text, sizeof(text), "%s %s", help, row);
    register_counter(c, name, text, MCA_BASE_PVAR_CLASS_COUNTER, counter);
}
