/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Makes sure that all ranks have the same settings. Ranks that disagree on which call sets up the
 * engine, or on which component does the barriers, would wait for each other for ever.
 *
 * Each process publishes its settings in Open MPI's exchange during MPI_Init. For MPI_COMM_WORLD
 * each looks up rank 0, whose parameters hold for the whole job. If those ask for this component,
 * the processes of rank 0's version agree along a tree (onic_agree_among): all processes must have
 * that version, or the component is not used at all on any rank. It is never used for communicators
 * with processes of other jobs.
 */
#include "coll_nicbarrier/component/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/config.h"
#include "common/support/collective.h"
#include "common/support/help.h"
#include "common/support/modex.h"
#include "ompi/group/group.h"

#define KEY  "ompi-nic.coll.nicbarrier"
#define HELP "help-coll-nicbarrier.txt"
/** The priority of coll/tuned. With a lower one this component gets nonblocking barriers at most.
 */
#define PRIORITY_OF_STOCK 30
#define SHARED_MAX        8

/** What a process publishes. */
typedef struct settings {
    char version[32];          /**< of this package; empty: the process has published nothing */
    int32_t value[SHARED_MAX]; /**< the parameters whose values on rank 0 hold for the whole job */
} settings_t;

static settings_t mine;
static atomic_bool world_agrees;

/** The i-th of those parameters; NULL past the last. */
static int *shared(int i)
{
    const onic_param_t *p;
    for (int k = 0; (p = nicbarrier_param(k)) != NULL; k++)
        if (p->same && i-- == 0)
            return p->number;
    return NULL;
}

static void announce(void)
{
    const nicbarrier_params_t *p = &nicbarrier_state.params;
    for (int kind = 0; nicbarrier_engines[kind] != NULL; kind++) {
        const nicbarrier_engine_t *engine = nicbarrier_engines[kind];
        const bool by_name = p->agreement.engine == kind + 1;
        const bool possible = p->agreement.engine == 0 && p->priority > PRIORITY_OF_STOCK;
        if (engine->announce != NULL && (by_name || possible))
            engine->announce(by_name);
    }
}

void nicbarrier_settings_publish(void)
{
    memset(&mine, 0, sizeof(mine));
    (void)snprintf(mine.version, sizeof(mine.version), "version %s", OMPI_NIC_VERSION);
    for (int i = 0; i < SHARED_MAX && shared(i) != NULL; i++)
        mine.value[i] = *shared(i);
    /* If there is no exchange, this is the only process. If there are others after all, they will
     * decline. */
    (void)onic_modex_put_bytes(KEY, &mine, sizeof(mine));
    announce();
}

/** The settings of a process, which Open MPI need not have met before. */
static settings_t look_up(opal_process_name_t name)
{
    settings_t found = {.version = ""};
    size_t len = 0;
    if (name.jobid == OPAL_PROC_MY_NAME.jobid && name.vpid == OPAL_PROC_MY_NAME.vpid)
        return mine;
    void *bytes = onic_modex_get_bytes(name, KEY, &len);
    if (bytes != NULL && len == sizeof(found)) {
        memcpy(&found, bytes, sizeof(found));
        found.version[sizeof(found.version) - 1] = '\0';
    }
    free(bytes);
    return found;
}

/* ---- all of the job ------------------------------------------------------------------------- */

/** True if the process has my version. */
static bool joins(struct ompi_communicator_t *comm, int rank)
{
    const settings_t s = look_up(ompi_group_get_proc_name(comm->c_local_group, rank));
    return strcmp(s.version, mine.version) == 0;
}

/** Names the first process of another version. One process of each node prints the text. */
static void report_version(struct ompi_communicator_t *comm)
{
    int odd = 0;
    if (opal_process_info.my_local_rank != 0)
        return;
    while (odd < ompi_comm_size(comm) && joins(comm, odd))
        odd++;
    if (odd == ompi_comm_size(comm))
        return;
    const opal_proc_t *proc = &ompi_group_peer_lookup(comm->c_local_group, odd)->super;
    const settings_t s = look_up(proc->proc_name);
    const char *host = opal_get_proc_hostname(proc);
    onic_help(HELP, "peer-differs", ompi_comm_rank(comm), opal_process_info.nodename,
              OMPI_NIC_VERSION, odd, host != NULL ? host : "(unknown)",
              s.version[0] != '\0' ? s.version : "none, or not this component");
}

/** Takes over the values of rank 0, which has checked them. */
static void adopt(struct ompi_communicator_t *comm)
{
    const settings_t first = look_up(ompi_group_get_proc_name(comm->c_local_group, 0));
    if (memcmp(first.value, mine.value, sizeof(first.value)) == 0)
        return;
    for (int i = 0; i < SHARED_MAX && shared(i) != NULL; i++)
        *shared(i) = first.value[i];
    announce();
    onic_help(HELP, "adopted", opal_process_info.nodename);
}

/** For MPI_COMM_WORLD, whose ranks are those of the job. */
static bool world_may(struct ompi_communicator_t *comm)
{
    const bool like_first = joins(comm, 0);
    if (like_first)
        adopt(comm);
    /* If the user has not asked for this component, other components rank above it. Those of a
     * version that is not rank 0's have their own values, and agree on nothing: none of them is
     * waited for. */
    if (!nicbarrier_params_wanted())
        return like_first;
    if (like_first && onic_agree_among(comm, joins))
        return true;
    report_version(comm);
    return false;
}

bool nicbarrier_settings_agree(struct ompi_communicator_t *comm)
{
    if (comm == MPI_COMM_WORLD)
        atomic_store(&world_agrees, world_may(comm));
    /* The settings of other jobs are not known. */
    for (int i = 0; i < ompi_comm_size(comm); i++)
        if (ompi_group_get_proc_name(comm->c_local_group, i).jobid != OPAL_PROC_MY_NAME.jobid)
            return false;
    return atomic_load(&world_agrees);
}
