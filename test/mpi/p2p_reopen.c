/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* apart: transport */
/* internal */
/**
 * @file
 * pml_superpipe is closed and opened again in one process, as MPI that is initialised twice does
 * it: with the transport, and while another component keeps that open. Messages pass each time,
 * over communicators that it has beside the layer that MPI itself uses, and nothing of it is left
 * in the records of peers.
 */
#define _GNU_SOURCE
#include "common/ompi_compat.h"
#include "test/mpi/testlib.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/communicator/communicator.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/proc/proc.h"

#include "common/transport/transport.h"
#include "test/mpi/peers.h"

enum { ROUNDS = 6, MESSAGES = 12, SHORT = 3, LONG = 100000 };

static mca_pml_base_component_t *component;

/** The component of this build: it stands beside the library that this program is linked with. */
static void load(void)
{
    Dl_info library;
    char path[PATH_MAX];
    void *handle = NULL;

    if (dladdr((void *)(uintptr_t)onic_transport_open, &library) != 0) {
        snprintf(path, sizeof(path), "%s", library.dli_fname);
        char *slash = strrchr(path, '/');
        snprintf(slash, sizeof(path) - (size_t)(slash - path), "/mca_pml_superpipe.so");
        handle = dlopen(path, RTLD_NOW);
    }
    component = handle != NULL ? dlsym(handle, "mca_pml_superpipe_component") : NULL;
    if (component == NULL || component->pmlm_version.mca_register_component_params() != 0 ||
        component->pmlm_version.mca_open_component() != 0)
        tl_die("the component cannot be loaded");
}

static void exchange(const mca_pml_base_module_t *m, ompi_communicator_t *comm, int round)
{
    const int next = (tl_rank() + 1) % tl_size(), before = (tl_rank() + tl_size() - 1) % tl_size();
    long *out = tl_alloc(LONG * sizeof(long)), *in = tl_alloc(LONG * sizeof(long));

    for (int i = 0; i < MESSAGES; i++) {
        const size_t count = i % 4 == 3 ? LONG : SHORT;
        ompi_request_t *send, *receive;

        out[0] = 1000L * round + 10 * i + tl_rank();
        out[count - 1] = -out[0];
        TL_CHECK(m->pml_irecv(in, count, MPI_LONG, i % 3 ? before : MPI_ANY_SOURCE, i, comm,
                              &receive) == OMPI_SUCCESS,
                 "a receive");
        TL_CHECK(m->pml_isend(out, count, MPI_LONG, next, i, MCA_PML_BASE_SEND_STANDARD, comm,
                              &send) == OMPI_SUCCESS,
                 "a send");
        TL_CHECK(ompi_request_wait(&receive, MPI_STATUS_IGNORE) == OMPI_SUCCESS &&
                     ompi_request_wait(&send, MPI_STATUS_IGNORE) == OMPI_SUCCESS,
                 "a wait");
        TL_CHECK(in[0] == 1000L * round + 10 * i + before && in[count - 1] == -in[0],
                 "round %d, message %d: %ld", round, i, in[0]);
    }
    free(in);
    free(out);
}

static void check_slots(onic_peer_t **peers)
{
    for (int i = 0; i < tl_size(); i++)
        TL_CHECK(*onic_peer_slot(peers[i], ONIC_AM_PML) == NULL, "peer %d is still known", i);
}

/** Exchanges what the layer in use keeps with each process for what is in `kept`: pml/ucx keeps it
 *  in the same place. */
static void swap_endpoints(ompi_proc_t **procs, size_t nprocs, void **kept)
{
    for (size_t i = 0; i < nprocs; i++) {
        void *theirs = procs[i]->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML];

        procs[i]->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML] = kept[i];
        kept[i] = theirs;
    }
}

static void run(int round, bool kept)
{
    int priority;
    const mca_pml_base_module_t *m = component->pmlm_init(&priority, false, false);
    onic_peer_t **peers = tl_alloc((size_t)tl_size() * sizeof(onic_peer_t *));
    MPI_Comm comm;
    size_t nprocs;
    ompi_proc_t **procs = ompi_proc_get_allocated(&nprocs);
    void **endpoints = calloc(nprocs, sizeof(*endpoints));

    if (m == NULL)
        tl_die("the component cannot be opened");
    /* What is published of the transport is that of the first time. */
    TL_CHECK(peers_get(MPI_COMM_WORLD, peers) == OMPI_SUCCESS, "no peers");
    TL_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    ompi_communicator_t *c = (ompi_communicator_t *)comm;
    struct mca_pml_comm_t *theirs = c->c_pml_comm;
    c->c_pml_comm = NULL;
    swap_endpoints(procs, nprocs, endpoints);
    TL_CHECK(m->pml_add_comm(c) == OMPI_SUCCESS, "no communicator");
    exchange(m, c, round);
    TL_CHECK(m->pml_del_comm(c) == OMPI_SUCCESS, "the communicator stays");
    c->c_pml_comm = theirs;
    TL_CHECK(m->pml_del_procs(procs, nprocs) == OMPI_SUCCESS, "processes stay");
    swap_endpoints(procs, nprocs, endpoints);
    free(endpoints);
    free(procs);
    TL_MPI(MPI_Comm_free(&comm));
    MPI_Barrier(MPI_COMM_WORLD);
    TL_CHECK(component->pmlm_finalize() == OMPI_SUCCESS, "the component cannot be closed");
    if (kept)
        check_slots(peers);
    free(peers);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    const onic_transport_config_t config = {.single_copy = true, .queues = 4 << 20};

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    load();
    for (int round = 0; round < ROUNDS; round++) {
        const bool kept = round / 2 % 2 == 1;

        if (kept && onic_transport_open(&config) != OMPI_SUCCESS)
            tl_die("the transport cannot be opened");
        run(round, kept);
        if (kept) {
            run(round, kept);
            (void)onic_transport_close();
        }
    }
    return tl_finish();
}
