/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Have all ranks the same settings? Ranks that do not agree on which call sets up the engine, or on
 * which component does the barriers, would wait for each other in different things and for ever.
 *
 * Each process tells its settings in Open MPI's exchange during MPI_Init. In MPI_COMM_WORLD, while
 * MPI_Init may still wait, each looks up rank 0, whose parameters hold for all ranks of the job;
 * and, where those ask for this component, the first process of each node: they must have the same
 * version, or the component stays out of everything on all ranks. Of other jobs rank 0 is looked up
 * when there is an intercommunicator with them, before there can be a communicator of both; they
 * must have the same settings. What is made later is decided by what is known.
 */
#include "coll_nicbarrier/component/module.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/config.h"
#include "common/support/help.h"
#include "common/support/modex.h"
#include "ompi/group/group.h"
#include "opal/util/proc.h"

#define KEY      "ompi-nic.coll.nicbarrier"
#define TEXT_MAX 320
#define HELP     "help-coll-nicbarrier.txt"

/** What is known of a job. */
typedef struct job {
    struct job *next;
    uint32_t id;
    bool agrees; /**< it has the settings of mine */
} job_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static job_t *jobs; /**< others */
static char mine[TEXT_MAX];
/** Of my job: those of rank 0. */
static char adopted[TEXT_MAX];
static atomic_bool world_agrees;

void nicbarrier_settings_publish(void)
{
    int n = snprintf(mine, sizeof(mine), "version %s", OMPI_NIC_VERSION);
    nicbarrier_params_describe(mine + n, sizeof(mine) - (size_t)n);
    /* Where there is no exchange there are no others either; if there are, they will decline. */
    (void)onic_modex_put(KEY, mine);
}

/** What a process has told; its name need not belong to a process that Open MPI knows more of. */
static void look_up(opal_process_name_t name, char text[TEXT_MAX])
{
    if (name.jobid == OPAL_PROC_MY_NAME.jobid && name.vpid == OPAL_PROC_MY_NAME.vpid) {
        memcpy(text, mine, TEXT_MAX);
    } else {
        (void)onic_modex_get(name, KEY, text, TEXT_MAX);
    }
}

/* ---- my job ---------------------------------------------------------------------------------- */

/** The first nodes of my version and of another one. */
typedef struct versions {
    bool same_seen, other_seen;
    opal_process_name_t same, other;
    char text[TEXT_MAX]; /**< of the other */
} versions_t;

static bool same_version(const char *text)
{
    size_t n = strcspn(mine, ",");
    return strncmp(text, mine, n) == 0 && (text[n] == ',' || text[n] == '\0');
}

static bool note_version(opal_process_name_t name, void *arg)
{
    versions_t *v = arg;
    char text[TEXT_MAX];
    look_up(name, text);
    if (same_version(text)) {
        v->same = v->same_seen ? v->same : name;
        v->same_seen = true;
    } else if (!v->other_seen) {
        v->other_seen = true;
        v->other = name;
        memcpy(v->text, text, sizeof(text));
    }
    return !(v->same_seen && v->other_seen);
}

/** Without a launcher that tells who is where, all are looked up. */
static void note_all(struct ompi_communicator_t *comm, versions_t *v)
{
    bool more = true;
    for (int i = 0; i < ompi_comm_size(comm) && more; i++) {
        more = note_version(ompi_group_get_proc_name(comm->c_local_group, i), v);
    }
}

/** One process of those that have my version speaks. */
static void say_differs(struct ompi_communicator_t *comm, const versions_t *v)
{
    char host[256] = "?";
    if (!v->same_seen || v->same.vpid != OPAL_PROC_MY_NAME.vpid) {
        return;
    }
    const char *other = opal_get_proc_hostname(
        &ompi_group_peer_lookup(comm->c_local_group, (int)v->other.vpid)->super);
    (void)gethostname(host, sizeof(host) - 1);
    onic_help(HELP, "peer-differs", ompi_comm_rank(comm), host, OMPI_NIC_VERSION,
              (int)v->other.vpid, other != NULL ? other : "(unknown)",
              v->text[0] != '\0' ? v->text : "none, or not this component");
}

static void adopt(void)
{
    char host[256] = "?";
    if (strcmp(adopted, mine) == 0 || !nicbarrier_params_adopt(adopted)) {
        return;
    }
    nicbarrier_announce();
    (void)gethostname(host, sizeof(host) - 1);
    onic_help(HELP, "adopted", host, mine, adopted);
}

/** MPI_COMM_WORLD: its ranks are those of the job. */
static bool world_may(struct ompi_communicator_t *comm)
{
    const opal_process_name_t root = {OPAL_PROC_MY_NAME.jobid, 0};
    versions_t v = {.same_seen = false};
    look_up(root, adopted);
    if (same_version(adopted)) {
        adopt();
    }
    /* What nobody has asked for is below other components on those ranks where it is in use. */
    if (!nicbarrier_params_wanted()) {
        return same_version(adopted);
    }
    if (!onic_modex_nodes(note_version, &v)) {
        note_all(comm, &v);
    }
    if (v.other_seen) {
        say_differs(comm, &v);
    }
    return !v.other_seen && same_version(adopted);
}

/* ---- other jobs -------------------------------------------------------------------------------
 */

/** Has that job the settings of mine? Looks it up where it may, and then keeps the answer. */
static bool job_agrees(uint32_t id, bool may_look)
{
    char theirs[TEXT_MAX];
    pthread_mutex_lock(&lock);
    job_t *job = jobs;
    while (job != NULL && job->id != id) {
        job = job->next;
    }
    if (job == NULL && may_look && (job = malloc(sizeof(*job))) != NULL) {
        look_up((opal_process_name_t){id, 0}, theirs);
        *job = (job_t){jobs, id, strcmp(theirs, adopted) == 0};
        jobs = job;
    }
    const bool agrees = job != NULL && job->agrees;
    pthread_mutex_unlock(&lock);
    return agrees;
}

static bool group_agrees(ompi_group_t *group, bool may_look)
{
    uint32_t last = OPAL_PROC_MY_NAME.jobid;
    bool agrees = true;
    for (int i = 0; i < ompi_group_size(group); i++) {
        const uint32_t id = ompi_group_get_proc_name(group, i).jobid;
        if (id != last && id != OPAL_PROC_MY_NAME.jobid) {
            agrees = job_agrees(id, may_look) && agrees;
        }
        last = id;
    }
    return agrees;
}

bool nicbarrier_settings_agree(struct ompi_communicator_t *comm)
{
    const bool inter = OMPI_COMM_IS_INTER(comm);
    if (comm == MPI_COMM_WORLD) {
        atomic_store(&world_agrees, world_may(comm));
    }
    bool agrees = group_agrees(comm->c_local_group, inter);
    if (inter) {
        agrees = group_agrees(comm->c_remote_group, true) && agrees;
    }
    return agrees && atomic_load(&world_agrees);
}
