/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 3 */
/* p2p: auto */
/**
 * @file
 * A receive that names a process which was never met does not look it up, which could block, unless
 * that process could be seen to die: one of the same machine. What PMIx is asked passes here. Rank
 * 0 takes rank 1 for one of another machine. Only of use with pml_superpipe, on one machine, and
 * with Open MPI 4.1, whose PMIx can be listened to.
 */
#include "common/ompi_compat.h"
#include "test/mpi/p2p.h"

#include <string.h>

#include "ompi/communicator/communicator.h"
#include "ompi/proc/proc.h"
#include "opal/util/proc.h"
#if !ONIC_OMPI_AT_LEAST(5, 0)
#include "opal/mca/pmix/pmix.h"
#endif

enum { FAR = 1, NEAR = 2, TAG = 5 };

static int asked;

#if !ONIC_OMPI_AT_LEAST(5, 0)

static opal_pmix_base_module_get_fn_t real_get;

static int get(const opal_process_name_t *name, const char *key, opal_list_t *info,
               opal_value_t **value)
{
    asked += strcmp(key, "ompi-nic.address") == 0;
    return real_get(name, key, info, value);
}

static void hear_what_is_asked(void)
{
    real_get = opal_pmix.get;
    opal_pmix.get = get;
}

/** Waits for all without a message of theirs, which would introduce its sender. */
static void meet_at_launcher(void)
{
    if (opal_pmix.fence(NULL, 0) != OPAL_SUCCESS)
        tl_die("fence");
}
#else
static void hear_what_is_asked(void)
{
}

static void meet_at_launcher(void)
{
}
#endif

static struct {
    MPI_Request request[2];
    long got[2];
    int asked[2]; /**< when the receives were posted */
} receives;

/** Before anybody meets anybody. */
static void post_both(void)
{
    ompi_proc_t *far = ompi_comm_peer_lookup((ompi_communicator_t *)MPI_COMM_WORLD, FAR);
    const opal_hwloc_locality_t near = far->super.proc_flags;

    hear_what_is_asked();
    far->super.proc_flags = OPAL_PROC_NON_LOCAL;
    MPI_Irecv(&receives.got[0], 1, MPI_LONG, FAR, TAG, MPI_COMM_WORLD, &receives.request[0]);
    receives.asked[0] = asked;
    MPI_Irecv(&receives.got[1], 1, MPI_LONG, NEAR, TAG, MPI_COMM_WORLD, &receives.request[1]);
    receives.asked[1] = asked;
    far->super.proc_flags = near;
}

/* In place of the library's: tl_init calls it, and lets processes meet afterwards. */
int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    const int code = PMPI_Init_thread(argc, argv, required, provided);
    int rank, size;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0 && size > NEAR)
        post_both();
    meet_at_launcher();
    return code;
}

static void wait_for_both(void)
{
    const long one = 1;

    TL_CHECK(receives.asked[0] == 0, "a process of another machine is looked up");
    TL_CHECK(receives.asked[1] == 1 || ONIC_OMPI_AT_LEAST(5, 0),
             "one of this machine is not looked up");
    /* The far one sends when it has heard of the near one. */
    TL_MPI(MPI_Send(&one, 1, MPI_LONG, NEAR, TAG, MPI_COMM_WORLD));
    TL_MPI(MPI_Waitall(2, receives.request, MPI_STATUSES_IGNORE));
    TL_CHECK(receives.got[0] == 2 && receives.got[1] == 3, "%ld and %ld", receives.got[0],
             receives.got[1]);
}

static void pass_on(int from, int to, long value)
{
    long got = 0;

    TL_MPI(MPI_Recv(&got, 1, MPI_LONG, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    TL_CHECK(got == 1, "%ld", got);
    TL_MPI(MPI_Send(&value, 1, MPI_LONG, to, TAG, MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    const long one = 1;

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(NEAR + 1, NEAR + 1);
    if (!p2p_layer("superpipe"))
        tl_skip("this layer looks nobody up");
    switch (tl_rank()) {
    case 0:
        wait_for_both();
        break;
    case NEAR:
        pass_on(0, 0, 3);
        TL_MPI(MPI_Send(&one, 1, MPI_LONG, FAR, TAG, MPI_COMM_WORLD));
        break;
    default:
        pass_on(NEAR, 0, 2);
    }
    return tl_finish();
}
