/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coll_nicbarrier/agree/exchange.h"

#include <stdlib.h>
#include <string.h>

#include "ompi/constants.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/coll/base/coll_tags.h"
#include "ompi/mca/pml/pml.h"

/** The tag next to those of Open MPI's collectives, which go downwards from the one of allgather.
 * It has none of its own between that and MPI_ANY_TAG. */
#define TAG (MCA_COLL_BASE_TAG_ALLGATHER + 1)

static int rank_at(const nicbarrier_exchange_t *x, int index)
{
    int i = ((index % x->n) + x->n) % x->n;
    return x->ranks != NULL ? x->ranks[i] : i;
}

/** Sends what I have to the member `have` before me, and gets as much from the one behind me. */
static int start_round(nicbarrier_exchange_t *x)
{
    int left = x->n - x->have;
    x->coming = x->have < left ? x->have : left;
    size_t bytes = (size_t)x->coming * x->len;
    int rc = MCA_PML_CALL(irecv(x->work + (size_t)x->have * x->len, bytes, &ompi_mpi_byte.dt,
                                rank_at(x, x->me + x->have), TAG, x->comm, &x->request[0]));
    if (rc == OMPI_SUCCESS) {
        rc = MCA_PML_CALL(isend(x->work, bytes, &ompi_mpi_byte.dt, rank_at(x, x->me - x->have), TAG,
                                MCA_PML_BASE_SEND_STANDARD, x->comm, &x->request[1]));
    }
    return rc;
}

/** The records in the order of the members. */
static void unroll(nicbarrier_exchange_t *x)
{
    size_t tail = (size_t)(x->n - x->me) * x->len, head = (size_t)x->me * x->len;
    memcpy(x->all + head, x->work, tail);
    memcpy(x->all, x->work + tail, head);
}

static int finish(nicbarrier_exchange_t *x, int rc)
{
    bool busy = false;
    for (int i = 0; i < 2; i++) {
        if (x->request[i] != NULL) {
            ompi_request_free(&x->request[i]);
            x->request[i] = NULL;
            busy = true;
        }
    }
    /* After an error of one message the other may still be written to or read from: it keeps it. */
    if (!busy) {
        free(x->work);
    }
    x->work = NULL;
    return rc;
}

int nicbarrier_exchange_start(nicbarrier_exchange_t *x, struct ompi_communicator_t *comm,
                              const int *ranks, int n, int me, const void *mine, size_t len,
                              void *all)
{
    *x = (nicbarrier_exchange_t){.comm = comm, .ranks = ranks, .n = n, .me = me, .len = len};
    x->all = all;
    x->work = malloc((size_t)n * len);
    if (x->work == NULL) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    memcpy(x->work, mine, len);
    x->have = 1;
    int rc = n > 1 ? start_round(x) : OMPI_SUCCESS;
    return rc == OMPI_SUCCESS ? rc : finish(x, rc);
}

/** 1 where both messages are through. */
static int round_over(nicbarrier_exchange_t *x)
{
    for (int i = 0; i < 2; i++) {
        ompi_request_t *request = x->request[i];
        if (request == NULL) {
            continue;
        }
        if (!REQUEST_COMPLETE(request)) {
            return 0;
        }
        int rc = request->req_status.MPI_ERROR;
        ompi_request_free(&request);
        x->request[i] = NULL;
        if (rc != OMPI_SUCCESS) {
            return rc;
        }
    }
    return 1;
}

int nicbarrier_exchange_progress(nicbarrier_exchange_t *x)
{
    while (x->have < x->n) {
        int rc = round_over(x);
        if (rc == 1) {
            x->have += x->coming;
            rc = x->have < x->n ? start_round(x) : OMPI_SUCCESS;
        } else if (rc == 0) {
            return 0;
        }
        if (rc != OMPI_SUCCESS) {
            return finish(x, rc);
        }
    }
    unroll(x);
    return finish(x, 1);
}
