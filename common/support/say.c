/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Texts of any thread; see say.h. */
#define _GNU_SOURCE
#include "common/support/say.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "opal/util/output.h"

typedef struct text {
    struct text *next;
    char *line;
} text_t;

atomic_uint onic_say_count;

/** The last first. */
static _Atomic(text_t *) waiting;
static _Thread_local bool later;

void onic_say_later(void)
{
    later = true;
}

bool onic_says_later(void)
{
    return later;
}

/** Takes over `line`. */
static void enqueue(char *line)
{
    text_t *text = malloc(sizeof(*text));
    if (text == NULL || atomic_fetch_add(&onic_say_count, 1) >= ONIC_SAY_MAX) {
        if (text != NULL) {
            atomic_fetch_sub(&onic_say_count, 1);
        }
        free(text);
        free(line);
        return;
    }
    text->line = line;
    text->next = atomic_load(&waiting);
    while (!atomic_compare_exchange_weak(&waiting, &text->next, text)) {
    }
}

void onic_say(const char *format, ...)
{
    char *line = NULL;
    va_list args;
    va_start(args, format);
    const int len = vasprintf(&line, format, args);
    va_end(args);
    if (len < 0) {
        return;
    }
    if (later) {
        enqueue(line);
        return;
    }
    opal_output(0, "%s", line);
    free(line);
}

void onic_say_waiting_texts(void)
{
    text_t *last = atomic_exchange(&waiting, NULL), *first = NULL;
    while (last != NULL) {
        text_t *next = last->next;
        last->next = first;
        first = last;
        last = next;
    }
    while (first != NULL) {
        text_t *next = first->next;
        opal_output(0, "%s", first->line);
        atomic_fetch_sub(&onic_say_count, 1);
        free(first->line);
        free(first);
        first = next;
    }
}
