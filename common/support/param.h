/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Rows of a component's tables: an MCA parameter, which is a number, a word of a list, a
 * text or a switch, and an MPI_T performance variable. Values stand where the pointers say. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef struct onic_param {
    const char *name; /**< NULL ends a table */
    const char *help; /**< without a full stop; the range of a number is added */
    bool same;        /**< rank 0's value holds for the job */
    int *number;      /**< a number, or the index of the word; first the default */
    int min, max;     /**< of a number */
    size_t *size;     /**< or a number, in units of 1 << shift of those given: */
    unsigned shift;
    int value;                   /**< the default */
    const char *const *words;    /**< the words, ended by NULL; NULL: this is no word */
    const char *former, *latter; /**< what one of them was called before, and that one */
    bool *flag;                  /**< a switch, */
    bool on;                     /**< and its default */
    const char **text;           /**< the text or word; NULL where it is empty */
    const char *initial;         /**< the text's default; of a word its first one */
} onic_param_t;

/** Rows of a component whose values are members of `of`, which have the names of parameters. */
#define ONIC_SIZE(of, param, shift_, initial_, min_, max_, text_)                                  \
    {                                                                                              \
        .name = #param, .help = text_, .size = &(of).param, .shift = shift_, .value = initial_,    \
        .min = min_, .max = max_                                                                   \
    }
#define ONIC_SWITCH(of, param, on_, text_)                                                         \
    {                                                                                              \
        .name = #param, .help = text_, .flag = &(of).param, .on = on_                              \
    }

typedef struct onic_counter {
    const char *name, *help;
    unsigned long long *counter;
    int class; /**< MCA_BASE_PVAR_CLASS_*; 0: a counter */
} onic_counter_t;

/** Adds to a counter at the cost of a plain addition: if two threads add at once, one may be lost.
 */
static inline void onic_count(unsigned long long *counter, unsigned long long n)
{
    __atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + n, __ATOMIC_RELAXED);
}
