/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The table of peers, and how their addresses are exchanged and published.
 *
 * A record stays even when nobody refers to it: its process may be met again in another
 * communicator, and messages of UCX's own may still come by its connection. Only processes of other
 * jobs that have left are forgotten before the wire is closed (wire_forget.c).
 */
#include "common/support/collective.h"
#include "common/support/modex.h"
#include "common/wire/wire_internal.h"

#include <stdlib.h>
#include <string.h>

#include "ompi/communicator/communicator.h"
#include "ompi/constants.h"
#include "ompi/group/group.h"
#include "ompi/proc/proc.h"
#include "opal/util/proc.h"

/** What is published is found by this. */
#define KEY "ompi-nic.wire"

static uint64_t name_key(opal_process_name_t name)
{
    return onic_name(name.jobid, name.vpid);
}

uint64_t onic_rank_name(struct ompi_communicator_t *comm, int rank)
{
    return name_key(ompi_group_get_proc_name(comm->c_local_group, rank));
}

/* ---- the table ------------------------------------------------------------------------------ */

/** One that has a record. */
static onic_peer_t *find_peer(uint64_t name)
{
    void *peer = NULL;
    if (name >> 32 == onic_wire.job && (uint32_t)name < onic_wire.job_size) {
        return onic_wire.of_job[(uint32_t)name];
    }
    return opal_hash_table_get_value_uint64(&onic_wire.peers, name, &peer) == OPAL_SUCCESS ? peer
                                                                                           : NULL;
}

/** Adds a peer unless it is there already. */
static int add_peer(const onic_address_t *a)
{
    if (find_peer(a->name) != NULL) {
        return OMPI_SUCCESS;
    }
    onic_peer_t *peer = calloc(1, sizeof(*peer) + a->ucx_len);
    if (peer == NULL) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    peer->name = a->name;
    peer->self = onic_wire.self == NULL;
    peer->failed = UCS_OK;
    peer->cma_id = a->cma_id;
    peer->queues = a->queues;
    peer->rndv_max = a->rndv_max < onic_wire.rndv_max ? a->rndv_max : onic_wire.rndv_max;
    peer->credit = a->credit;
    peer->address_len = a->ucx_len;
    memcpy(peer->address, a->ucx, a->ucx_len);
    if (opal_hash_table_set_value_uint64(&onic_wire.peers, peer->name, peer) != OPAL_SUCCESS) {
        free(peer);
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    if (a->name >> 32 == onic_wire.job && (uint32_t)a->name < onic_wire.job_size) {
        onic_wire.of_job[(uint32_t)a->name] = peer;
    }
    if (peer->self) {
        onic_wire.self = peer;
    }
    onic_wire.foreign += a->name >> 32 != onic_wire.job;
    onic_dead_watch(peer);
    return OMPI_SUCCESS;
}

onic_peer_t *onic_peer_named(uint64_t name)
{
    onic_peer_t *peer = find_peer(name);
    size_t len;
    const void *record = peer == NULL ? onic_book_find(name, &len) : NULL;
    onic_address_t a;
    if (record != NULL && onic_address_read(record, len, &a) && a.name == name &&
        add_peer(&a) == OMPI_SUCCESS) {
        peer = find_peer(name);
    }
    return peer;
}

onic_peer_t *onic_peer_take(uint64_t name)
{
    onic_peer_t *peer = onic_peer_named(name);
    if (peer != NULL) {
        peer->refs++;
    }
    return peer;
}

void onic_peer_give(onic_peer_t *peer)
{
    peer->refs--;
}

void **onic_peer_slot(onic_peer_t *peer, unsigned am_id)
{
    return &peer->slot[am_id];
}

uint64_t onic_peer_name(const onic_peer_t *peer)
{
    return peer->name;
}

uint64_t onic_peer_credit(const onic_peer_t *peer)
{
    return peer->credit;
}

bool onic_peer_is_self(const onic_peer_t *peer)
{
    return peer->self;
}

static onic_address_t my_address(void)
{
    return (onic_address_t){.name = name_key(OPAL_PROC_MY_NAME),
                            .rndv_max = onic_wire.rndv_max,
                            .credit = onic_wire.credit,
                            .cma_id = onic_wire.cma_id,
                            .queues = *onic_queues_key(),
                            .ucx = onic_wire.address,
                            .ucx_len = onic_wire.address_len};
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
    if (!onic_address_read(bytes, len, &a) || add_peer(&a) != OMPI_SUCCESS) {
        return NULL;
    }
    return onic_peer_named(a.name);
}

int onic_peers_start(void)
{
    OBJ_CONSTRUCT(&onic_wire.peers, opal_hash_table_t);
    if (opal_hash_table_init(&onic_wire.peers, 64) != OPAL_SUCCESS) {
        OBJ_DESTRUCT(&onic_wire.peers);
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    onic_wire.self = NULL;
    onic_wire.foreign = 0;
    onic_wire.job = OPAL_PROC_MY_NAME.jobid;
    onic_wire.job_size = (uint32_t)ompi_proc_world_size();
    onic_wire.of_job = calloc(onic_wire.job_size, sizeof(*onic_wire.of_job));
    const onic_address_t mine = my_address();
    int rc = onic_wire.of_job != NULL ? add_peer(&mine) : OMPI_ERR_OUT_OF_RESOURCE;
    if (rc != OMPI_SUCCESS) {
        free(onic_wire.of_job);
        onic_wire.job_size = 0;
        OBJ_DESTRUCT(&onic_wire.peers);
    }
    return rc;
}

void onic_peers_flush(unsigned usec)
{
    ucp_request_param_t param = {.op_attr_mask = 0};
    uint64_t name;
    onic_peer_t *peer;
    bool in_time = true;
    OPAL_HASH_TABLE_FOREACH(name, uint64, peer, &onic_wire.peers)
    {
        /* UCX complains aloud of a flush to a process that is gone, so never all at once. */
        if (peer->ep != NULL && peer->failed == UCS_OK) {
            in_time =
                onic_wire_wait(ucp_ep_flush_nbx(peer->ep, &param), in_time ? usec : 0) && in_time;
        }
    }
}

void onic_peers_stop(void)
{
    uint64_t name;
    onic_peer_t *peer;
    onic_dead_stop();
    onic_forget_stop();
    OPAL_HASH_TABLE_FOREACH(name, uint64, peer, &onic_wire.peers)
    {
        onic_peer_close_files(peer);
        free(peer);
    }
    OBJ_DESTRUCT(&onic_wire.peers);
    onic_books_stop();
    free(onic_wire.of_job);
    onic_wire.job_size = 0;
    onic_wire.self = NULL;
    onic_wire.foreign = 0;
}

/* ---- addresses that are published ----------------------------------------------------------- */

void onic_address_publish(void)
{
    const onic_address_t mine = my_address();
    const size_t size = onic_address_size(&mine);
    void *bytes = !onic_wire.published ? malloc(size) : NULL;
    if (bytes != NULL && onic_address_write(&mine, bytes, size) > 0) {
        /* Where there is no exchange there is nobody to read it. */
        (void)onic_modex_put_bytes(KEY, bytes, size);
        onic_wire.published = true;
    }
    free(bytes);
}

/** One more reference to a peer that is known, or NULL. */
static onic_peer_t *refer_to(uint64_t name)
{
    onic_wire_lock();
    onic_peer_t *peer = onic_peer_take(name);
    onic_wire_unlock();
    return peer;
}

/** Adds a peer by what it has published, which must be of that name. */
static int learn_published(uint64_t name, const void *bytes, size_t len)
{
    onic_address_t a;
    if (bytes == NULL || !onic_address_read(bytes, len, &a) || a.name != name) {
        return OMPI_ERR_NOT_FOUND;
    }
    onic_wire_lock();
    const int rc = add_peer(&a);
    onic_wire_unlock();
    return rc;
}

onic_peer_t *onic_wire_get_peer(uint64_t name, int *rc_p)
{
    const opal_process_name_t process = {(opal_jobid_t)(name >> 32), (opal_vpid_t)name};
    onic_peer_t *peer = refer_to(name);
    *rc_p = OMPI_SUCCESS;
    if (peer == NULL) {
        size_t len;
        void *bytes = onic_modex_get_bytes(process, KEY, &len);
        *rc_p = learn_published(name, bytes, len);
        free(bytes);
        peer = *rc_p == OMPI_SUCCESS ? refer_to(name) : NULL;
    }
    return peer;
}

/* ---- exchange of addresses ------------------------------------------------------------------ */

bool onic_wire_knows(struct ompi_communicator_t *comm)
{
    const int n = ompi_comm_size(comm);
    bool known = true;
    size_t len;
    onic_wire_lock();
    for (int i = 0; i < n && known; i++) {
        const uint64_t name = onic_rank_name(comm, i);
        known = find_peer(name) != NULL || onic_book_find(name, &len) != NULL;
    }
    onic_wire_unlock();
    return known;
}

/** All tell all their addresses, of at most `most` bytes. */
static int exchange(struct ompi_communicator_t *comm, size_t most)
{
    const size_t begin = sizeof(int64_t), stride = begin + (most + 7) / 8 * 8;
    onic_node_t alone = {.n = 1, .ranks = (int[]){ompi_comm_rank(comm)}};
    char *mine = calloc(1, stride), *all = malloc((size_t)ompi_comm_size(comm) * stride);
    if (mine == NULL || all == NULL) {
        onic_cannot_tell(comm, "a table of their addresses");
    }
    *(int32_t *)(void *)mine = (int32_t)onic_address_record(mine + begin, most);
    int rc = onic_share(comm, mine, (int)stride, all);
    if (rc == OMPI_SUCCESS) {
        rc = onic_wire_keep(comm, &alone, all + begin, (void *)all, stride);
    }
    free(mine);
    free(all);
    return rc;
}

int onic_wire_get_peers(struct ompi_communicator_t *comm, onic_peer_t **peers)
{
    const int n = ompi_comm_size(comm);
    int facts[] = {onic_wire_knows(comm), -(int)onic_address_record_size()};
    int rc = onic_agree_all(comm, facts, 2);
    if (rc == OMPI_SUCCESS && !facts[0]) {
        rc = exchange(comm, (size_t)-facts[1]);
    }
    onic_wire_lock();
    for (int i = 0; i < n && rc == OMPI_SUCCESS; i++) {
        peers[i] = onic_peer_take(onic_rank_name(comm, i));
        rc = peers[i] != NULL ? OMPI_SUCCESS : OMPI_ERR_NOT_FOUND;
    }
    onic_wire_unlock();
    return onic_agree(comm, rc);
}

void onic_wire_put_peers(onic_peer_t **peers, int n)
{
    bool foreign = false;
    onic_wire_lock();
    for (int i = 0; i < n; i++) {
        peers[i]->refs--;
        foreign = foreign || peers[i]->name >> 32 != onic_wire.job;
        peers[i] = NULL;
    }
    onic_wire_unlock();
    if (foreign) {
        onic_wire_forget_left();
    }
}
