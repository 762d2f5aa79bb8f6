/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Agreement on the component.
 *
 * Open MPI lets each process choose by itself who serves a window, and nothing tells a process that
 * another chose differently: they then wait for each other for ever, or worse. The choice differs
 * where a host has another version of this component, or none, or other parameters. So each process
 * publishes during MPI_Init what it has; one that finds a member of the window to have anything
 * else declines. As equality is the same seen from both sides, all decline or none.
 */
#include <stddef.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "osc_nicstride/window/window.h"
#include "osc_nicstride/window/component.h"
#include "osc_nicstride/window/control.h"
#include "osc_nicstride/window/module.h"
#include "common/config.h"
#include "common/support/help.h"
#include "common/support/modex.h"

#include "ompi/group/group.h"
#include "ompi/mca/osc/base/base.h"
#include "ompi/proc/proc.h"
#include "opal/class/opal_hash_table.h"
#include "opal/util/proc.h"

#define KEY      "ompi-nic.osc_nicstride"
#define TEXT_MAX 128

static char mine[TEXT_MAX];

/** Processes that were found to agree. Names as 64 bits; the values mean nothing. */
static opal_hash_table_t agreed;
static bool has_table;
static pthread_mutex_t agreed_mutex = PTHREAD_MUTEX_INITIALIZER;

/** What the user lets Open MPI choose from. */
static const char *selection(void)
{
    const char *text = ompi_osc_base_framework.framework_selection;

    return text != NULL && text[0] != '\0' ? text : "all";
}

/** Has the user asked for this component? With the initial priority another one is chosen as long
 *  as there is one, and nobody needs to be asked or told anything. */
static bool wanted(void)
{
    return mca_osc_nicstride_component.params.priority > NICSTRIDE_PRIORITY_INITIAL ||
           (strstr(selection(), "nicstride") != NULL && selection()[0] != '^');
}

/** All that must be the same for the choice of component and for the collective steps of making a
 *  window to be the same. The sizes stand for what builds of one version may differ in. */
static void describe(char *text, size_t size)
{
    const nicstride_params_t *p = &mca_osc_nicstride_component.params;

    snprintf(text, size, "version %s.%zu.%zu, osc %s, priority %d, node %d", OMPI_NIC_VERSION,
             sizeof(nicstride_rank_info_t), nicstride_ctl_bytes(2, 1), selection(), p->priority,
             p->node);
}

int nicstride_agreement_init(void)
{
    describe(mine, sizeof(mine));
    /* Where there is no exchange there are no others either; if there are, they will decline. */
    (void)onic_modex_put(KEY, mine);
    OBJ_CONSTRUCT(&agreed, opal_hash_table_t);
    has_table = true;
    return opal_hash_table_init(&agreed, 64);
}

void nicstride_agreement_fini(void)
{
    /* A component whose opening failed is closed all the same. */
    if (has_table)
        OBJ_DESTRUCT(&agreed);
    has_table = false;
}

static uint64_t key_of(opal_process_name_t name)
{
    return (uint64_t)name.jobid << 32 | name.vpid;
}

/** By one process of each host. */
static void say_differs(const opal_proc_t *proc, const char *theirs)
{
    static bool said;
    const char *host = opal_get_proc_hostname(proc);

    if (said || opal_process_info.my_local_rank != 0)
        return;
    said = true;
    onic_help("help-osc-nicstride.txt", "peer-differs", opal_process_info.nodename, mine,
              host != NULL ? host : "(unknown)",
              theirs[0] != '\0' ? theirs : "none, or one that is not to be used",
              (unsigned)proc->proc_name.vpid);
}

/** Asks about a process that is not known to agree. */
static bool ask(ompi_communicator_t *comm, int rank, uint64_t key)
{
    char theirs[TEXT_MAX];

    if (rank == ompi_comm_rank(comm) ||
        (onic_modex_get(ompi_group_get_proc_name(comm->c_local_group, rank), KEY, theirs,
                        sizeof(theirs)) &&
         strcmp(theirs, mine) == 0))
        return opal_hash_table_set_value_uint64(&agreed, key, &agreed) == OPAL_SUCCESS;
    say_differs(&ompi_group_peer_lookup(comm->c_local_group, rank)->super, theirs);
    return false;
}

bool nicstride_all_agree(ompi_communicator_t *comm)
{
    bool same = true;

    if (!wanted())
        return true;
    pthread_mutex_lock(&agreed_mutex);
    for (int i = 0; i < ompi_comm_size(comm) && same; i++) {
        uint64_t key = key_of(ompi_group_get_proc_name(comm->c_local_group, i));
        void *known;

        if (opal_hash_table_get_value_uint64(&agreed, key, &known) != OPAL_SUCCESS)
            same = ask(comm, i, key);
    }
    pthread_mutex_unlock(&agreed_mutex);
    return same;
}
