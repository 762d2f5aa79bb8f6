/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * One exchange between neighbours, by each synchronisation that MPI has for it.
 *
 * `fence` and `pscw` are MPI's own. `flush` is what Coarray programs are compiled to: everything is
 * flushed, then each neighbour is told by an empty message. Such an exchange says only that data
 * has come: who is allowed to overwrite what the program itself must see to, by what came before or
 * by two copies of the data.
 */
#pragma once

#include <mpi.h>
#include <stdbool.h>

typedef enum app_sync { APP_FENCE, APP_PSCW, APP_FLUSH, APP_SYNCS } app_sync_t;

extern const char *const app_sync_names[APP_SYNCS];

/** Who takes part in an exchange with this rank: those whose windows it accesses, and those that
 * access its own. */
typedef struct app_peers {
    int nto, nfrom;
    int *to, *from; /**< ranks, each once */
    MPI_Group to_group, from_group;
    MPI_Request *request; /**< room for all messages */
} app_peers_t;

/** Local. Ranks may occur several times in `to` and `from`. */
void app_peers_make(app_peers_t *p, MPI_Comm comm, const int *to, int nto, const int *from,
                    int nfrom);
void app_peers_free(app_peers_t *p);

typedef struct app_epochs {
    MPI_Comm comm;
    MPI_Win win;
    app_sync_t sync;
} app_epochs_t;

/** Collective; the first exchange comes after the first, the last before the second. */
void app_epochs_open(app_epochs_t *e, MPI_Comm comm, MPI_Win win, app_sync_t sync);
void app_epochs_close(app_epochs_t *e);

/**
 * Puts may be called between the two; behind the second those of `from` have arrived here. All
 * ranks call them with `fence`.
 */
void app_puts_begin(const app_epochs_t *e, const app_peers_t *p);
void app_puts_end(const app_epochs_t *e, const app_peers_t *p);

/** The same for gets: behind the first, what `to` have written before theirs may be got; behind the
 * second it has come. */
void app_gets_begin(const app_epochs_t *e, const app_peers_t *p);
void app_gets_end(const app_epochs_t *e, const app_peers_t *p);
