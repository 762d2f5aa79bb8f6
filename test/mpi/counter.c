/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test/mpi/counter.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "test/mpi/testlib.h"

struct counter {
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
};

/** Of the control variable or performance variable `i`; empty where it has none. */
static void name_of(int i, bool performance, char *name, int size)
{
    int verbosity, class, bind, scope, readonly, continuous, atomic, no_text = 0;
    MPI_Datatype type;
    MPI_T_enum values;

    const int rc = performance
                       ? MPI_T_pvar_get_info(i, name, &size, &verbosity, &class, &type, &values,
                                             NULL, &no_text, &bind, &readonly, &continuous, &atomic)
                       : MPI_T_cvar_get_info(i, name, &size, &verbosity, &type, &values, NULL,
                                             &no_text, &bind, &scope);
    if (rc != MPI_SUCCESS)
        name[0] = '\0';
}

bool counter_loaded(const char *name)
{
    const char *framework_end = strchr(name, '_');
    const char *end = framework_end != NULL ? strchr(framework_end + 1, '_') : NULL;
    int numbers[2] = {0, 0};

    if (end == NULL)
        return false;
    MPI_T_cvar_get_num(&numbers[0]);
    MPI_T_pvar_get_num(&numbers[1]);
    for (int performance = 0; performance < 2; performance++) {
        for (int i = 0; i < numbers[performance]; i++) {
            char other[256];

            name_of(i, performance, other, sizeof(other));
            if (strncmp(name, other, (size_t)(end - name) + 1) == 0)
                return true;
        }
    }
    return false;
}

bool counter_find(const char *name, int *index_p)
{
    if (MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, index_p) == MPI_SUCCESS ||
        MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_LEVEL, index_p) == MPI_SUCCESS ||
        MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_HIGHWATERMARK, index_p) == MPI_SUCCESS)
        return true;
    TL_CHECK(!counter_loaded(name), "the component has no variable %s", name);
    return false;
}

counter_t *counter_begin(const char *name)
{
    counter_t *c = tl_alloc(sizeof(*c));
    int level, index, count;

    /* Open MPI takes what is asked for here for the level of the whole process. */
    MPI_Query_thread(&level);
    MPI_T_init_thread(level, &level);
    MPI_T_pvar_session_create(&c->session);
    /* It counts from when it gets its handle. */
    if (!counter_find(name, &index) ||
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

    if (c != NULL)
        MPI_T_pvar_read(c->session, c->handle, &n);
    return n;
}

void counter_end(counter_t *c)
{
    if (c == NULL)
        return;
    MPI_T_pvar_handle_free(c->session, &c->handle);
    MPI_T_pvar_session_free(&c->session);
    MPI_T_finalize();
    free(c);
}

void counter_check_pool(const char *name)
{
    /* Time for what is over, but not yet noticed: a request that was freed before its end. */
    const double end = MPI_Wtime() + TL_PATIENCE;
    counter_t *c = counter_begin(name);
    int flag;

    while (counter_read(c) != 0 && MPI_Wtime() < end)
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
    TL_CHECK(counter_read(c) == 0, "%s is %llu at the end", name, counter_read(c));
    counter_end(c);
}
