/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/queue/request.h"

#include "common/transport/transport.h"
#include "osc_nicstride/check/check.h"
#include "osc_nicstride/window/state.h"

/* Requests that are done but not yet handed to MPI; transport lock. */
static nicstride_request_t *done_head;

static void release(nicstride_request_t *r)
{
    OMPI_REQUEST_FINI(&r->super);
    OBJ_RELEASE(r);
    __atomic_fetch_sub(&nicstride_counters.live_requests, 1, __ATOMIC_RELAXED);
}

static int request_free(ompi_request_t **request)
{
    nicstride_request_t *r = (nicstride_request_t *)*request;
    bool over;

    onic_transport_lock();
    over = r->done;
    r->freed = true;
    onic_transport_unlock();
    if (r->noted != 0)
        nicstride_check_returned(r->window, r->noted);
    if (over)
        release(r);
    *request = MPI_REQUEST_NULL;
    return OMPI_SUCCESS;
}

static int request_cancel(ompi_request_t *request, int flag)
{
    (void)request;
    (void)flag;
    return MPI_ERR_REQUEST; /* one-sided communication cannot be cancelled */
}

static void request_construct(nicstride_request_t *r)
{
    r->super.req_type = OMPI_REQUEST_WIN;
    r->super.req_free = request_free;
    r->super.req_cancel = request_cancel;
    r->next_done = NULL;
    r->noted = 0;
    r->freed = false;
    r->done = false;
}

OBJ_CLASS_INSTANCE(nicstride_request_t, ompi_request_t, request_construct, NULL);

nicstride_request_t *nicstride_request_new(ompi_win_t *win)
{
    nicstride_request_t *r = OBJ_NEW(nicstride_request_t);

    if (r == NULL)
        return NULL;
    OMPI_REQUEST_INIT(&r->super, false);
    r->super.req_mpi_object.win = win;
    r->super.req_state = OMPI_REQUEST_ACTIVE;
    r->super.req_status.MPI_ERROR = MPI_SUCCESS;
    r->super.req_status.MPI_SOURCE = MPI_ANY_SOURCE;
    r->super.req_status.MPI_TAG = MPI_ANY_TAG;
    r->super.req_status._ucount = 0;
    r->super.req_status._cancelled = 0;
    __atomic_fetch_add(&nicstride_counters.live_requests, 1, __ATOMIC_RELAXED);
    return r;
}

int nicstride_request_finish(nicstride_request_t *r, int rc, bool done, ompi_request_t **request_p)
{
    if (rc != OMPI_SUCCESS) {
        if (r != NULL)
            release(r);
        return rc;
    }
    if (done) {
        r->done = true;
        ompi_request_complete(&r->super, true);
    }
    *request_p = &r->super;
    return OMPI_SUCCESS;
}

void nicstride_request_end_locked(nicstride_request_t *r, int error)
{
    r->super.req_status.MPI_ERROR = error;
    r->next_done = done_head;
    done_head = r;
    onic_transport_ask(ONIC_AM_OSC, ONIC_MPI);
}

int nicstride_requests_complete(void)
{
    nicstride_request_t *list;
    int n = 0;

    for (unsigned i = 0; i < NICSTRIDE_METHODS_MAX; i++) {
        const nicstride_method_row_t *row = nicstride_component.methods[i];

        n += row != NULL && row->finish != NULL ? row->finish() : 0;
    }
    onic_transport_lock();
    list = done_head;
    done_head = NULL;
    while (list != NULL) {
        nicstride_request_t *r = list;

        list = r->next_done;
        n++;
        if (r->freed) {
            release(r);
            continue;
        }
        /* Set under the lock, so that a free in another thread finds the request either done or
         * not begun. */
        r->done = true;
        ompi_request_complete(&r->super, true);
    }
    onic_transport_unlock();
    return n;
}
