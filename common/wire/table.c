/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Addresses of processes of this job, once for each node: sorted tables in memory that its
 * processes share. A process that this one first sends to, or first gets a message from, gets a
 * record of its own from there (peers.c); that is no system call, so handlers may look.
 *
 * A table stays until the wire is closed. What stands in it was written by another process: lengths
 * are checked, and an address is only taken by the name that it bears itself.
 */
#include "common/wire/wire_internal.h"

#include <stdlib.h>
#include <string.h>

struct onic_table {
    onic_table_t *next;
    onic_segment_t segment;
};

/** Behind it the entries, sorted by name, and then the records. */
typedef struct head {
    uint64_t n;
    onic_table_entry_t entry[]; /**< `at` is the distance from the begin of the table */
} head_t;

/** The record in one table; NULL where it is not there. */
static const void *look(const onic_table_t *table, uint64_t name, size_t *len_p)
{
    const head_t *head = table->segment.base;
    const size_t size = table->segment.size;
    const uint64_t n = head->n;
    uint64_t from = 0, to = n;

    if (n > size / sizeof(onic_table_entry_t) || onic_table_bytes(n, 0) > size) {
        return NULL;
    }
    while (from < to) {
        const uint64_t i = from + (to - from) / 2;
        const uint64_t its = head->entry[i].name, at = head->entry[i].at, len = head->entry[i].len;
        if (its == name) {
            *len_p = (size_t)len;
            return at <= size && len <= size - at ? (const char *)head + at : NULL;
        }
        from = its < name ? i + 1 : from;
        to = its < name ? to : i;
    }
    return NULL;
}

const void *onic_table_find(uint64_t name, size_t *len_p)
{
    const void *record = NULL;

    for (onic_table_t *t = onic_wire.tables; t != NULL && record == NULL; t = t->next) {
        record = look(t, name, len_p);
    }
    return record;
}

static int by_name(const void *a, const void *b)
{
    const uint64_t x = ((const onic_table_entry_t *)a)->name,
                   y = ((const onic_table_entry_t *)b)->name;

    return x < y ? -1 : x > y;
}

void onic_table_write(const onic_segment_t *segment, onic_table_entry_t *entries, int n,
                      const char *records)
{
    head_t *head = segment->base;
    uint64_t at = onic_table_bytes((uint64_t)n, 0);

    qsort(entries, (size_t)n, sizeof(*entries), by_name);
    for (int i = 0; i < n; i++) {
        head->entry[i] = (onic_table_entry_t){entries[i].name, at, entries[i].len};
        memcpy((char *)head + at, records + entries[i].at, entries[i].len);
        at += entries[i].len;
    }
    head->n = (uint64_t)n;
}

bool onic_table_add(const onic_segment_t *segment)
{
    onic_table_t *table = malloc(sizeof(*table));

    if (table == NULL) {
        return false;
    }
    onic_wire_lock();
    *table = (onic_table_t){onic_wire.tables, *segment};
    onic_wire.tables = table;
    onic_wire_unlock();
    return true;
}

void onic_tables_stop(void)
{
    for (onic_table_t *t; (t = onic_wire.tables) != NULL;) {
        onic_wire.tables = t->next;
        onic_segment_unmap(&t->segment);
        free(t);
    }
}
