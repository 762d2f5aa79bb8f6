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
 * each looks up rank 0, whose parameters hold for the whole job, and, if those ask for this
 * component, the first process of each node: all must have the same version, or the component is
 * not used at all on any rank. It is never used for communicators with processes of other jobs.
 */
#include "coll_nicbarrier/component/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/config.h"
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

static const nicbarrier_param_t *shared[SHARED_MAX]; /**< those parameters */
static int n_shared;
static settings_t mine;
static settings_t agreed; /**< the settings of rank 0, for this job */
static atomic_bool world_agrees;

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
    const nicbarrier_param_t *p;
    memset(&mine, 0, sizeof(mine));
    (void)snprintf(mine.version, sizeof(mine.version), "version %s", OMPI_NIC_VERSION);
    n_shared = 0;
    for (int i = 0; (p = nicbarrier_param(i)) != NULL && n_shared < SHARED_MAX; i++) {
        if (p->same) {
            mine.value[n_shared] = *p->number;
            shared[n_shared++] = p;
        }
    }
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

static bool is_same_version(const settings_t *s)
{
    return strcmp(s->version, mine.version) == 0;
}

/* ---- all of the job ------------------------------------------------------------------------- */

/** The first process of my version, and the first of another version. */
typedef struct versions {
    bool same_seen, other_seen;
    opal_process_name_t same, other;
    settings_t settings; /**< of the process with the other version */
} versions_t;

static bool note_version(opal_process_name_t name, void *arg)
{
    versions_t *v = arg;
    const settings_t s = look_up(name);
    if (is_same_version(&s)) {
        v->same = v->same_seen ? v->same : name;
        v->same_seen = true;
    } else if (!v->other_seen) {
        v->other_seen = true;
        v->other = name;
        v->settings = s;
    }
    return !(v->same_seen && v->other_seen);
}

/** If the launcher does not know which processes share nodes, all processes are looked up. */
static void note_all(struct ompi_communicator_t *comm, versions_t *v)
{
    bool more = true;
    for (int i = 0; i < ompi_comm_size(comm) && more; i++)
        more = note_version(ompi_group_get_proc_name(comm->c_local_group, i), v);
}

/** Reports differing versions. Called on one process of those that have my version. */
static void report_versions(struct ompi_communicator_t *comm, const versions_t *v)
{
    char host[256] = "?";
    if (!v->same_seen || v->same.vpid != OPAL_PROC_MY_NAME.vpid)
        return;
    const char *other = opal_get_proc_hostname(
        &ompi_group_peer_lookup(comm->c_local_group, (int)v->other.vpid)->super);
    (void)gethostname(host, sizeof(host) - 1);
    onic_help(HELP, "peer-differs", ompi_comm_rank(comm), host, OMPI_NIC_VERSION,
              (int)v->other.vpid, other != NULL ? other : "(unknown)",
              v->settings.version[0] != '\0' ? v->settings.version : "none, or not this component");
}

/** Takes over the values of rank 0, which has checked them. */
static void adopt(void)
{
    char host[256] = "?";
    if (memcmp(agreed.value, mine.value, sizeof(agreed.value)) == 0)
        return;
    for (int i = 0; i < n_shared; i++)
        *shared[i]->number = agreed.value[i];
    announce();
    (void)gethostname(host, sizeof(host) - 1);
    onic_help(HELP, "adopted", host);
}

/** For MPI_COMM_WORLD, whose ranks are those of the job. */
static bool world_may(struct ompi_communicator_t *comm)
{
    versions_t v = {.same_seen = false};
    agreed = look_up((opal_process_name_t){OPAL_PROC_MY_NAME.jobid, 0});
    if (is_same_version(&agreed))
        adopt();
    /* If the user has not asked for this component, other components rank above it. */
    if (!nicbarrier_params_wanted())
        return is_same_version(&agreed);
    if (!onic_modex_nodes(note_version, &v))
        note_all(comm, &v);
    if (v.other_seen)
        report_versions(comm, &v);
    return !v.other_seen && is_same_version(&agreed);
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
