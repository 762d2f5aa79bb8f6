/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Requests from creation to completion. */
#include "pml_superpipe/protocols/process.h"

#include <stdlib.h>
#include <string.h>

#include "ompi/mca/pml/base/pml_base_bsend.h"

#include "common/support/clock.h"
#include "common/support/help.h"
#include "common/transport/shm/rings.h"

_Static_assert(sizeof(onic_ticket_t) == SUPERPIPE_TICKET_BYTES, "the ticket's room in messages");

superpipe_counters_t superpipe_counters;
superpipe_process_t superpipe;

static int free_request(ompi_request_t **request)
{
    superpipe_request_t *r = (superpipe_request_t *)*request;

    *request = MPI_REQUEST_NULL;
    SUPERPIPE_TAKES_UP(r);
    superpipe_request_drop(r);
    return OMPI_SUCCESS;
}

/** Sends are not cancelled: MPI leaves that open, and has deprecated it. */
static int cancel_request(ompi_request_t *request, int complete)
{
    superpipe_request_t *r = (superpipe_request_t *)request;

    (void)complete;
    if (r->sends)
        return OMPI_SUCCESS;
    onic_transport_lock();
    if (!r->state.done && r->peer == NULL &&
        superpipe_match_cancel(&superpipe.match, &r->receive)) {
        r->super.req_status._cancelled = true;
        superpipe_fail_locked(r, OMPI_SUCCESS);
    }
    onic_transport_unlock();
    return OMPI_SUCCESS;
}

static void construct(superpipe_request_t *r)
{
    r->super.req_type = OMPI_REQUEST_PML;
    r->super.req_free = free_request;
    r->super.req_cancel = cancel_request;
}

OBJ_CLASS_INSTANCE(superpipe_request_t, ompi_request_t, construct, NULL);

superpipe_request_t *superpipe_request_new(ompi_communicator_t *comm, ompi_datatype_t *datatype,
                                           void *buffer, size_t count, int rank, int tag,
                                           bool sends)
{
    superpipe_request_t *r = (superpipe_request_t *)opal_free_list_get(&superpipe.requests);

    if (r == NULL)
        return NULL;
    SUPERPIPE_TAKES_UP(r);
    OMPI_REQUEST_INIT(&r->super, false);
    r->super.req_mpi_object.comm = comm;
    r->super.req_start = mca_pml.pml_start;
    __atomic_store_n(&r->refs, 1, __ATOMIC_RELAXED);
    r->sends = sends;
    r->internal = false;
    OBJ_RETAIN(comm);
    r->comm = comm;
    OMPI_DATATYPE_RETAIN(datatype);
    r->datatype = datatype;
    r->base = buffer;
    r->count = count;
    r->rank = rank;
    r->tag = tag;
    r->mode = MCA_PML_BASE_SEND_STANDARD;
    r->state.done = true; /* nothing is in flight */
    onic_layout_set(&r->layout, 0);
    return r;
}

superpipe_request_t *superpipe_request_copy(superpipe_request_t *r, bool in_buffer)
{
    const size_t bytes = r->layout.size, room = bytes > 0 ? bytes : 1;
    superpipe_request_t *copy =
        superpipe_request_new(r->comm, r->datatype, NULL, r->count, r->rank, r->tag, true);
    onic_cursor_t cursor;

    if (copy == NULL)
        return NULL;
    copy->in_buffer = in_buffer;
    copy->base = in_buffer ? ONIC_BSEND_ALLOC(r->comm, room) : malloc(room);
    if (copy->base == NULL) {
        superpipe_request_drop(copy);
        return NULL;
    }
    onic_cursor_init(&cursor, &r->layout, 0);
    (void)onic_pack(&cursor, r->base, copy->base, bytes);
    copy->internal = true;
    onic_layout_set(&copy->layout, bytes);
    superpipe_request_begin(copy);
    return copy;
}

int superpipe_describe_any(const void *buffer, size_t count, const ompi_datatype_t *datatype,
                           onic_layout_t *layout)
{
    const int rc = onic_flatten(datatype, count, layout, NULL);

    if (rc != OMPI_SUCCESS || !onic_layout_on_device(buffer, layout))
        return rc;
    onic_layout_fini(layout);
    onic_help(SUPERPIPE_HELP_FILE, "device-memory");
    return MPI_ERR_BUFFER;
}

void superpipe_request_begin(superpipe_request_t *r)
{
    if (!r->internal)
        (void)OPAL_THREAD_ADD_FETCH32(&r->refs, 1);
    r->super.req_complete = REQUEST_PENDING;
    r->super.req_state = OMPI_REQUEST_ACTIVE;
    r->super.req_status.MPI_SOURCE = r->rank;
    r->super.req_status.MPI_TAG = r->tag;
    r->super.req_status.MPI_ERROR = MPI_SUCCESS;
    r->super.req_status._ucount = 0;
    r->super.req_status._cancelled = 0;
    r->receive.list = NULL;
    r->peer = NULL;
    superpipe_transfer_begin(&r->state, r->sends, r->layout.size);
    r->protocol = SUPERPIPE_AUTO;
    r->handle = r->theirs = r->address = 0;
    r->cursor.layout = NULL;
    r->move = NULL;
    r->attached = r->counted = false;
    r->error = OMPI_SUCCESS;
}

__attribute__((flatten)) superpipe_request_t *
superpipe_request_receive(ompi_communicator_t *comm, ompi_datatype_t *datatype, void *buffer,
                          size_t count, int rank, int tag, int *rc_p)
{
    superpipe_request_t *r = superpipe_request_new(comm, datatype, buffer, count, rank, tag, false);

    if (r == NULL) {
        *rc_p = OMPI_ERR_OUT_OF_RESOURCE;
        return NULL;
    }
    *rc_p = superpipe_describe_buffer(buffer, count, datatype, &r->layout);
    if (*rc_p == OMPI_SUCCESS) {
        superpipe_request_begin(r);
        return r;
    }
    superpipe_request_drop(r);
    return NULL;
}

void superpipe_request_drop(superpipe_request_t *r)
{
    SUPERPIPE_HANDS_ON(r);
    if (OPAL_THREAD_ADD_FETCH32(&r->refs, -1) != 0)
        return;
    SUPERPIPE_TAKES_UP(r);
    onic_layout_fini(&r->layout);
    OMPI_DATATYPE_RELEASE(r->datatype);
    OBJ_RELEASE(r->comm);
    OMPI_REQUEST_FINI(&r->super);
    SUPERPIPE_HANDS_ON(r);
    opal_free_list_return(&superpipe.requests, &r->super.super);
}

/* ---- under way ------------------------------------------------------------------------------- */

void superpipe_attach_locked(superpipe_request_t *r, superpipe_peer_t *p)
{
    r->peer = p;
    LIST_INSERT_HEAD(&p->requests, r, of_peer);
    r->attached = true;
    superpipe.copies += r->internal;
}

static void detach_locked(superpipe_request_t *r)
{
    if (!r->attached)
        return;
    LIST_REMOVE(r, of_peer);
    r->attached = false;
    superpipe.copies -= r->internal;
}

void superpipe_scatter(superpipe_request_t *r, uint64_t at, const void *data, uint64_t bytes)
{
    if (r->cursor.layout == NULL || r->cursor.pos != at)
        onic_cursor_init(&r->cursor, &r->layout, at);
    (void)onic_unpack(&r->cursor, r->base, data, bytes);
}

static void report(superpipe_request_t *r)
{
    onic_layout_fini(&r->layout);
    if (r->internal)
        return;
    r->super.req_status.MPI_ERROR = r->error;
    r->super.req_status._ucount = r->sends ? r->state.length : r->state.wanted;
    SUPERPIPE_HANDS_ON(r);
    (void)ompi_request_complete(&r->super, true);
}

void superpipe_append_locked(superpipe_queue_t *q, superpipe_request_t *r)
{
    r->next = NULL;
    if (q->first != NULL) {
        q->last->next = r;
    } else {
        /* All are taken at once, so only the first one has to ask for progress. */
        __atomic_store_n(&q->first, r, __ATOMIC_RELAXED);
        onic_transport_ask(ONIC_AM_PML, ONIC_MPI);
    }
    q->last = r;
}

superpipe_request_t *superpipe_take_all_locked(superpipe_queue_t *q)
{
    superpipe_request_t *r = q->first;

    if (r != NULL)
        __atomic_store_n(&q->first, NULL, __ATOMIC_RELAXED);
    return r;
}

/** Receives of this many bytes or more make progress leave the sender's queue: the next message may
 *  be for a receive that the user posts only now. A message that precedes its receive is copied
 *  once more, which from this size on takes longer than one more progress; and calls that post
 *  receives would unpack it before sending their own messages. */
#define ENDS_TURN 2048

void superpipe_complete_locked(superpipe_request_t *r)
{
    if (!r->sends && r->state.wanted >= ENDS_TURN)
        onic_transport_end_turn_locked();
    /* Completes at once if that runs no callback that might take the lock, and the user still has a
     * reference. */
    if (onic_transport_may_complete_locked() && r->refs == 2 && r->super.req_complete_cb == NULL) {
        r->refs = 1;
        report(r);
        return;
    }
    superpipe_append_locked(&superpipe.finished, r);
}

/** True if nothing of the request is left or in flight; it is then removed from all lists and
 *  tables. */
static bool end_locked(superpipe_request_t *r)
{
    if (!superpipe_transfer_is_over(&r->state))
        return false;
    if (r->counted)
        r->peer->under_way--;
    r->counted = false;
    detach_locked(r);
    if (r->peer != NULL && r->peer->early.receive == r)
        r->peer->early.receive = NULL;
    if (r->handle != 0)
        (void)onic_handle_free(&superpipe.handles, r->handle);
    r->handle = 0;
    return true;
}

void superpipe_finish_locked(superpipe_request_t *r)
{
    if (end_locked(r))
        superpipe_complete_locked(r);
}

void superpipe_fail_locked(superpipe_request_t *r, int error)
{
    r->state.broken = true;
    if (r->error == OMPI_SUCCESS)
        r->error = error;
    superpipe_finish_locked(r);
}

/** The transport or the pipeline no longer uses the request's memory. */
static void finish_with_locked(superpipe_request_t *r, int status)
{
    if (status != OMPI_SUCCESS)
        (void)onic_peer_lost(r->peer->peer); /* reports the reason to the user */
    if (status != OMPI_SUCCESS && r->error == OMPI_SUCCESS)
        r->error = ONIC_ERR_PROC_FAILED;
    superpipe_finish_locked(r);
}

void superpipe_operation_ended(void *request, int status)
{
    superpipe_request_t *r = request;

    superpipe_transfer_ended(&r->state, status == OMPI_SUCCESS);
    finish_with_locked(r, status);
}

void superpipe_moved(void *request, int status)
{
    superpipe_request_t *r = request;

    r->move = NULL;
    superpipe_transfer_moved(&r->state, status == OMPI_SUCCESS);
    finish_with_locked(r, status);
}

void superpipe_request_data_locked(superpipe_request_t *r, const onic_ticket_t *ticket)
{
    struct {
        superpipe_control_t w;
        superpipe_cts_t cts;
    } header = {.w = {.prefix = {.sender = onic_transport_me(),
                                 .kind = SUPERPIPE_KIND_CTS,
                                 .protocol = (uint8_t)r->protocol},
                      .handle = r->theirs,
                      .value = r->state.wanted},
                .cts = {.receive = r->handle}};

    if (ticket != NULL)
        memcpy(header.cts.ticket, ticket, sizeof(*ticket));
    if (onic_peer_send(r->peer->peer, ONIC_AM_PML, &header, sizeof(header), NULL, 0, NULL, NULL) >=
        0)
        return;
    onic_peer_give_up(r->peer->peer);
    /* Requests waiting for a lost peer may have been ended already, so this one is ended here. */
    superpipe_fail_locked(r, ONIC_ERR_PROC_FAILED);
}

/* ---- completion ------------------------------------------------------------------------------ */

static void complete(superpipe_request_t *r)
{
    if (r->internal && r->in_buffer)
        (void)ONIC_BSEND_FREE(r->comm, r->base);
    else if (r->internal)
        free(r->base);
    report(r);
    superpipe_request_drop(r);
}

void superpipe_unlock(superpipe_request_t *r)
{
    const bool ended = end_locked(r);

    onic_transport_unlock();
    if (ended)
        complete(r);
}

/** Releases the lock and completes finished requests; returns how many. */
static int unlock_and_complete(void)
{
    superpipe_request_t *r = superpipe_take_all_locked(&superpipe.finished);
    int n = 0;

    /* Only now, because the server thread finishes copies that only an MPI thread can free. */
    for (const superpipe_request_t *copy = r; copy != NULL; copy = copy->next)
        if (copy->internal && !copy->in_buffer)
            superpipe.buffered -= sizeof(*copy) + copy->state.length;
    onic_transport_unlock();
    for (superpipe_request_t *next; r != NULL; r = next, n++) {
        next = r->next;
        complete(r);
    }
    return n;
}

int superpipe_complete_finished(void)
{
    if (superpipe_is_empty(&superpipe.finished))
        return 0;
    onic_transport_lock();
    return unlock_and_complete();
}

void superpipe_poll(void)
{
    if (!onic_transport_lock_for_messages())
        return;
    (void)onic_transport_poll_locked();
    if (superpipe_is_empty(&superpipe.finished))
        onic_transport_unlock();
    else
        (void)unlock_and_complete();
}
