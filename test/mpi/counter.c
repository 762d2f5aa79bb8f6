/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test/mpi/counter.h"

#include <mpi.h>
#include <stdlib.h>

#include "test/mpi/testlib.h"

struct counter {
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
};

counter_t *counter_begin(const char *name)
{
    counter_t *c = tl_alloc(sizeof(*c));
    int level, index, count;

    MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
    MPI_T_pvar_session_create(&c->session);
    /* It counts from when it gets its handle. */
    if (MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index) != MPI_SUCCESS ||
        MPI_T_pvar_handle_alloc(c->session, index, NULL, &c->handle, &count) != MPI_SUCCESS) {
        MPI_T_pvar_session_free(&c->session);
        MPI_T_finalize();
        free(c);
        return NULL;
    }
    return c;
}

unsigned long long counter_read(const counter_t *c)
{
    unsigned long long n = 0;

    if (c != NULL) {
        MPI_T_pvar_read(c->session, c->handle, &n);
    }
    return n;
}

void counter_end(counter_t *c)
{
    if (c == NULL) {
        return;
    }
    MPI_T_pvar_handle_free(c->session, &c->handle);
    MPI_T_pvar_session_free(&c->session);
    MPI_T_finalize();
    free(c);
}
