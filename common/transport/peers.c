/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The processes that this one has to do with: a record of each, found by name. It stays
 *  until the transport is closed. */
#include "common/transport/internal.h"

#include <stdlib.h>
#include <string.h>

#include "ompi/constants.h"
#include "opal/util/proc.h"

/* ---- those whose end can be seen (loss.c) ---------------------------------------------------- */

static void watch(onic_peer_t *peer)
{
    if (peer->self || !onic_same_place(&peer->cma_id, &onic_here.id))
        return;
    TAILQ_INSERT_TAIL(&onic_transport.near, peer, near);
    peer->watched = true;
}

/* ---- their addresses in memory that the node shares (addresses.c) -------------------------- */

struct onic_table {
    onic_table_t *next;
    onic_segment_t segment;
    size_t stride; /**< bytes of a row; the rows are sorted by name */
};

/** The record in one table; NULL where it is not there. */
static const void *look(const onic_table_t *table, uint64_t name, size_t *len_p)
{
    const onic_segment_t *s = &table->segment;
    const onic_address_row_t *row =
        bsearch(&name, s->base, s->size / table->stride, table->stride, onic_address_row_compare);

    if (row == NULL || row->len > table->stride - sizeof(*row))
        return NULL;
    *len_p = (size_t)row->len;
    return row->record;
}

static const void *find_in_tables(uint64_t name, size_t *len_p)
{
    const void *record = NULL;

    for (onic_table_t *t = onic_transport.tables; t != NULL && record == NULL; t = t->next)
        record = look(t, name, len_p);
    return record;
}

bool onic_table_add(const onic_segment_t *segment, size_t stride)
{
    onic_table_t *table = malloc(sizeof(*table));

    if (table == NULL)
        return false;
    onic_transport_lock();
    *table = (onic_table_t){onic_transport.tables, *segment, stride};
    onic_transport.tables = table;
    onic_transport_unlock();
    return true;
}

/* ---- the records --------------------------------------------------------------------------- */

/** The peer of that name that has a record, or NULL. */
static onic_peer_t *find_peer(uint64_t name)
{
    void *peer = NULL;
    return opal_hash_table_get_value_uint64(&onic_transport.peers, name, &peer) == OPAL_SUCCESS
               ? peer
               : NULL;
}

/** The credit of a new peer, by whose address this process may send so many bytes at first. */
static void open_account(onic_peer_t *peer, uint64_t published)
{
    /* Processes of other jobs come on top of the memory that those of the job share. */
    const uint64_t mine = peer->foreign ? ONIC_CREDIT_LEAST : onic_transport.window;

    peer->account.credit.limit = peer->foreign ? ONIC_CREDIT_LEAST : published;
    peer->account.sender = (onic_credit_user_t){.window = mine, .told = mine};
}

/** The peer of that address, added if need be. NULL where memory is exhausted. */
static onic_peer_t *add_peer(const onic_address_t *a)
{
    onic_peer_t *peer = find_peer(a->name);
    if (peer != NULL || (peer = calloc(1, sizeof(*peer) + a->ucx_len)) == NULL)
        return peer;
    peer->name = a->name;
    peer->self = a->name == onic_here.name;
    peer->foreign = a->name >> 32 != onic_here.name >> 32;
    open_account(peer, a->credit);
    peer->cma_id = a->cma_id;
    peer->queues = a->queues;
    memcpy(peer->address, a->ucx, a->ucx_len);
    if (opal_hash_table_set_value_uint64(&onic_transport.peers, peer->name, peer) != OPAL_SUCCESS) {
        free(peer);
        return NULL;
    }
    watch(peer);
    return peer;
}

onic_peer_t *onic_peer_named(uint64_t name)
{
    onic_peer_t *peer = find_peer(name);
    size_t len;
    const void *record = peer == NULL ? find_in_tables(name, &len) : NULL;
    onic_address_t a;
    if (record != NULL && onic_address_read(record, len, &a))
        peer = add_peer(&a);
    return peer;
}

bool onic_peer_is_known(uint64_t name)
{
    size_t len;
    return find_peer(name) != NULL || find_in_tables(name, &len) != NULL;
}

void **onic_peer_slot(onic_peer_t *peer, unsigned am_id)
{
    return &peer->slot[am_id];
}

uint64_t onic_transport_me(void)
{
    return onic_here.name;
}

uint64_t onic_peer_name(const onic_peer_t *peer)
{
    return peer->name;
}

bool onic_peer_is_self(const onic_peer_t *peer)
{
    return peer->self;
}

static onic_address_t my_address(void)
{
    onic_address_t a = {
        .name = onic_here.name, .credit = onic_transport.window, .cma_id = onic_here.id};

    for (const onic_row_t *const *row = onic_rows; *row != NULL; row++)
        (*row)->describe(&a);
    return a;
}

size_t onic_address_record_size(void)
{
    const onic_address_t mine = my_address();
    return onic_address_size(&mine);
}

size_t onic_address_record(void *bytes, size_t cap)
{
    const onic_address_t mine = my_address();
    return onic_address_write(&mine, bytes, cap);
}

onic_peer_t *onic_learn_peer(const void *bytes, size_t len)
{
    onic_address_t a;
    return onic_address_read(bytes, len, &a) ? add_peer(&a) : NULL;
}

int onic_peers_start(void)
{
    OBJ_CONSTRUCT(&onic_transport.peers, opal_hash_table_t);
    TAILQ_INIT(&onic_transport.near);
    const onic_address_t mine = my_address();
    if (opal_hash_table_init(&onic_transport.peers, 64) != OPAL_SUCCESS ||
        add_peer(&mine) == NULL) {
        OBJ_DESTRUCT(&onic_transport.peers);
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    return OMPI_SUCCESS;
}

static void free_peer(onic_peer_t *peer)
{
    for (const onic_row_t *const *row = onic_rows; *row != NULL; row++)
        (*row)->free_peer(peer);
    free(peer);
}

void onic_peers_stop(void)
{
    uint64_t name;
    onic_peer_t *peer;
    OPAL_HASH_TABLE_FOREACH(name, uint64, peer, &onic_transport.peers)
    {
        free_peer(peer);
    }
    for (onic_table_t *t; (t = onic_transport.tables) != NULL;) {
        onic_transport.tables = t->next;
        onic_segment_unmap(&t->segment);
        free(t);
    }
    OBJ_DESTRUCT(&onic_transport.peers);
    TAILQ_INIT(&onic_transport.near);
    atomic_store(&onic_transport.job_is_broken, false);
}
