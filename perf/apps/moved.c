/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file How data was moved, according to MPI_T performance variables. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perf/apps/app.h"

#define PREFIX "osc_nicstride_bytes_"

enum { MOST_METHODS = 16, NAME_BYTES = 64 };

struct app_moved {
    MPI_T_pvar_session session;
    int n;
    MPI_T_pvar_handle handle[MOST_METHODS];
    char name[MOST_METHODS][NAME_BYTES]; /* of the method */
};

static void add(app_moved_t *m, int variable)
{
    char name[NAME_BYTES];
    int size = NAME_BYTES, verbosity, class, bind, readonly, continuous, atomic, no_text = 0, count;
    MPI_Datatype type;
    MPI_T_enum values;
    if (MPI_T_pvar_get_info(variable, name, &size, &verbosity, &class, &type, &values, NULL,
                            &no_text, &bind, &readonly, &continuous, &atomic) != MPI_SUCCESS ||
        strncmp(name, PREFIX, strlen(PREFIX)) != 0 || m->n == MOST_METHODS ||
        MPI_T_pvar_handle_alloc(m->session, variable, NULL, &m->handle[m->n], &count) !=
            MPI_SUCCESS)
        return;
    strcpy(m->name[m->n++], name + strlen(PREFIX));
}

app_moved_t *app_moved_open(void)
{
    app_moved_t *m = bench_alloc(sizeof(*m));
    int level, variables = 0;
    /* Open MPI takes the level requested here for that of the whole process. */
    MPI_Query_thread(&level);
    MPI_T_init_thread(level, &level);
    MPI_T_pvar_session_create(&m->session);
    MPI_T_pvar_get_num(&variables);
    for (int i = 0; i < variables; i++)
        add(m, i);
    return m;
}

void app_moved_text(const app_moved_t *m, MPI_Comm comm, char text[APP_MOVED_TEXT])
{
    double bytes[MOST_METHODS] = {0}, sum = 0;
    for (int i = 0; i < m->n; i++) {
        unsigned long long value = 0;
        MPI_T_pvar_read(m->session, m->handle[i], &value);
        bytes[i] = (double)value;
    }
    MPI_Allreduce(MPI_IN_PLACE, bytes, MOST_METHODS, MPI_DOUBLE, MPI_SUM, comm);
    for (int i = 0; i < m->n; i++)
        sum += bytes[i];
    int used = 0;
    text[0] = '\0';
    for (int done = 0; done < m->n; done++) {
        int most = 0;
        for (int i = 1; i < m->n; i++)
            most = bytes[i] > bytes[most] ? i : most;
        if (bytes[most] < 0.005 * sum || bytes[most] == 0 || used >= APP_MOVED_TEXT - NAME_BYTES)
            break;
        used += snprintf(text + used, (size_t)(APP_MOVED_TEXT - used), "%s%s %.0f%%",
                         used > 0 ? ", " : "", m->name[most], 100 * bytes[most] / sum);
        bytes[most] = 0;
    }
}

void app_moved_close(app_moved_t *m)
{
    for (int i = 0; i < m->n; i++)
        MPI_T_pvar_handle_free(m->session, &m->handle[i]);
    MPI_T_pvar_session_free(&m->session);
    MPI_T_finalize();
    free(m);
}
