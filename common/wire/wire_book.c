/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Addresses that the members of a communicator have told each other, once for each node: a sorted
 * table in memory that its processes share. Who is first sent to, or first heard of, gets a record
 * of his own from there (wire_peers.c); that is no system call, so handlers may look.
 *
 * A book stays until the wire is closed; but where processes of other jobs are in it, until all of
 * these have ended. What stands in it was written by another process: lengths
 * are checked, and an address is only taken by the name that it bears itself.
 */
#include "common/support/collective.h"
#include "common/wire/wire_internal.h"

#include <stdlib.h>
#include <string.h>

#include "ompi/communicator/communicator.h"
#include "ompi/constants.h"

/** Behind it the entries, sorted by name, and then the records. */
typedef struct head {
    uint64_t n;
    onic_book_entry_t entry[]; /**< `at` is the distance from the begin of the book */
} head_t;

struct onic_book {
    onic_book_t *next;
    onic_segment_t segment;
    bool foreign; /**< processes of other jobs are in it */
};

/** How many entries it has. */
static uint64_t entries(const onic_book_t *book)
{
    const size_t size = book->segment.size;
    const uint64_t n = ((const head_t *)book->segment.base)->n;

    return n <= size / sizeof(onic_book_entry_t) && onic_book_bytes(n, 0) <= size ? n : 0;
}

/** The record in one book; NULL where it is not there. */
static const void *look(const onic_book_t *book, uint64_t name, size_t *len_p)
{
    const head_t *head = book->segment.base;
    const size_t size = book->segment.size;
    uint64_t from = 0, to = entries(book);

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

const void *onic_book_find(uint64_t name, size_t *len_p)
{
    const void *record = NULL;

    for (onic_book_t *book = onic_wire.books; book != NULL && record == NULL; book = book->next) {
        record = look(book, name, len_p);
    }
    return record;
}

static void free_book(onic_book_t **at)
{
    onic_book_t *book = *at;

    *at = book->next;
    onic_wire.foreign_books -= book->foreign;
    onic_segment_unmap(&book->segment);
    free(book);
}

void onic_books_stop(void)
{
    while (onic_wire.books != NULL) {
        free_book(&onic_wire.books);
    }
}

/* ---- those of processes that have ended ------------------------------------------------------ */

static bool has_ended(const onic_book_t *book, uint64_t name)
{
    onic_address_t a;
    size_t len;
    const void *record = look(book, name, &len);

    return record != NULL && onic_address_read(record, len, &a) &&
           onic_same_place(&a.cma_id, &onic_wire.cma_id) && onic_life_is_dead(&a.cma_id.life);
}

/** Have all processes of other jobs ended that are in it? */
static bool is_over(const onic_book_t *book)
{
    const head_t *head = book->segment.base;
    const uint64_t n = entries(book);
    uint64_t i = 0;

    while (i < n &&
           (head->entry[i].name >> 32 == onic_wire.job || has_ended(book, head->entry[i].name))) {
        i++;
    }
    return i == n;
}

/** Gives those of this job that are in it records of their own. */
static bool save_own(const onic_book_t *book)
{
    const head_t *head = book->segment.base;
    const uint64_t n = entries(book);
    uint64_t i = 0;

    while (i < n && (head->entry[i].name >> 32 != onic_wire.job ||
                     onic_peer_named(head->entry[i].name) != NULL)) {
        i++;
    }
    return i == n;
}

void onic_books_forget(void)
{
    for (onic_book_t **at = &onic_wire.books; *at != NULL;) {
        if ((*at)->foreign && is_over(*at) && save_own(*at)) {
            free_book(at);
        } else {
            at = &(*at)->next;
        }
    }
}

/* ---- making one ------------------------------------------------------------------------------ */

/** A member's record as it has come. */
typedef struct came {
    uint64_t name;
    size_t len;
    size_t at;
} came_t;

static int by_name(const void *a, const void *b)
{
    const uint64_t x = ((const came_t *)a)->name, y = ((const came_t *)b)->name;

    return x < y ? -1 : x > y;
}

static void write_book(head_t *head, came_t *came, int n, const char *records)
{
    uint64_t at = onic_book_bytes((uint64_t)n, 0);

    qsort(came, (size_t)n, sizeof(*came), by_name);
    for (int i = 0; i < n; i++) {
        head->entry[i].name = came[i].name;
        head->entry[i].at = at;
        head->entry[i].len = came[i].len;
        memcpy((char *)head + at, records + came[i].at, came[i].len);
        at += came[i].len;
    }
    head->n = (uint64_t)n;
}

/** One for the node, or, where that cannot be had, for this process. */
static onic_book_t *new_book(struct ompi_communicator_t *comm, onic_node_t *node, size_t bytes,
                             bool *shared_p)
{
    onic_book_t *book = calloc(1, sizeof(*book));
    onic_segment_t segment = {NULL, 0};
    onic_made_t made = ONIC_NO_SPACE;

    *shared_p = onic_node_segment(comm, node, bytes, true, &segment, &made) == OMPI_SUCCESS &&
                made == ONIC_MADE;
    if (book != NULL && (*shared_p || onic_segment_private(bytes, &segment))) {
        book->segment = segment;
        return book;
    }
    onic_segment_unmap(&segment);
    free(book);
    return NULL;
}

/** The first of the node has written the book. */
static int tell_written(struct ompi_communicator_t *comm, const onic_node_t *node, int rc)
{
    int written = rc;

    if (node->me > 0) {
        const int heard = onic_hear(comm, node->ranks[0], &written, sizeof(written));
        return rc != OMPI_SUCCESS ? rc : heard != OMPI_SUCCESS ? heard : written;
    }
    for (int i = 1; i < node->n; i++) {
        const int told = onic_tell(comm, node->ranks[i], &written, sizeof(written));
        rc = rc != OMPI_SUCCESS ? rc : told;
    }
    return rc;
}

int onic_wire_keep(struct ompi_communicator_t *comm, onic_node_t *node, const void *records,
                   const int32_t *lens, size_t stride)
{
    const int n = ompi_comm_size(comm);
    came_t *came = malloc((size_t)n * sizeof(*came));
    size_t total = 0;
    bool shared, foreign = false;
    int rc = OMPI_SUCCESS;

    if (came == NULL) {
        onic_cannot_tell(comm, "a table of their addresses");
    }
    for (int i = 0; i < n; i++) {
        const size_t at = (size_t)i * stride;
        const int32_t len = *(const int32_t *)(const void *)((const char *)lens + at);

        came[i] = (came_t){onic_rank_name(comm, i), (size_t)len, at};
        total += (size_t)len;
        foreign = foreign || came[i].name >> 32 != onic_wire.job;
    }
    onic_book_t *book = new_book(comm, node, onic_book_bytes((uint64_t)n, total), &shared);
    if (book == NULL) {
        rc = OMPI_ERR_OUT_OF_RESOURCE;
    } else if (node->me == 0 || !shared) {
        write_book(book->segment.base, came, n, records);
    }
    if (shared) {
        rc = tell_written(comm, node, rc);
    }
    if (book != NULL) {
        onic_wire_lock();
        book->foreign = foreign;
        onic_wire.foreign_books += foreign;
        book->next = onic_wire.books;
        onic_wire.books = book;
        onic_wire_unlock();
    }
    free(came);
    return rc;
}
