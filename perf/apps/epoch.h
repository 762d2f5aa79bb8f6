/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * One exchange between neighbours, with each of MPI's synchronisations.
 *
 * `fence` and `pscw` are MPI's own. `flush` is what Coarray programs are compiled to: everything is
 * flushed, then each neighbour gets an empty message. Such an exchange only says that data has
 * come: the program itself must make sure that nothing is overwritten too early, by earlier
 * messages or by two copies of the data.
 */
#pragma once

#include <mpi.h>
#include <stdbool.h>

typedef enum app_sync { APP_FENCE, APP_PSCW, APP_FLUSH, APP_SYNCS } app_sync_t;

extern const char *const app_sync_names[APP_SYNCS];

/** The partners of this rank in an exchange: those whose windows it accesses, and those that access
 *  its own. */
typedef struct app_peers {
    int nto, nfrom;
    int *to, *from; /**< ranks, each once */
    MPI_Group to_group, from_group;
    MPI_Request *request; /**< room for all messages */
} app_peers_t;

/** Local. Ranks may occur repeatedly in `to` and `from`. */
void app_peers_make(app_peers_t *p, MPI_Comm comm, const int *to, int nto, const int *from,
                    int nfrom);
void app_peers_free(app_peers_t *p);

typedef struct app_epochs {
    MPI_Comm comm;
    MPI_Win win;
    app_sync_t sync;
} app_epochs_t;

/** Collective. Open comes before the first exchange, close after the last. */
void app_epochs_open(app_epochs_t *e, MPI_Comm comm, MPI_Win win, app_sync_t sync);
void app_epochs_close(app_epochs_t *e);

/**
 * Puts may be called between the two; after the second the puts of `from` have arrived here. With
 * `fence` all ranks must call both.
 */
void app_puts_begin(const app_epochs_t *e, const app_peers_t *p);
void app_puts_end(const app_epochs_t *e, const app_peers_t *p);

/** The same for gets: after the first, what `to` have written before their call may be got; after
 *  the second, it has come. */
void app_gets_begin(const app_epochs_t *e, const app_peers_t *p);
void app_gets_end(const app_epochs_t *e, const app_peers_t *p);
