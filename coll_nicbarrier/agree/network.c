/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What leaders do in an agreement. From when an engine is connected on, partners may need
 *  answers: the engine's helper thread or Open MPI's progress gives them. */
#include "coll_nicbarrier/agree/agree.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/support/clock.h"
#include "common/support/collective.h"
#include "ompi/constants.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/coll/base/coll_tags.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/request/request.h"
#include "opal/runtime/opal_progress.h"

/** The tag next to those of Open MPI's collectives, which go downwards from the one of allgather.
 * It has none of its own between that and MPI_ANY_TAG. */
#define TAG (MCA_COLL_BASE_TAG_ALLGATHER + 1)

/** An endpoint. Length 0: there is none. */
typedef struct endpoint {
    uint32_t len;
    unsigned char bytes[NICBARRIER_ENDPOINT_MAX];
} endpoint_t;

struct nicbarrier_exchange {
    int partners;
    int32_t partner[NICBARRIER_PARTNERS_MAX];
    endpoint_t mine;
    endpoint_t theirs[];
};

/** Engines, and their groups, are made by one thread at a time. */
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
static bool is_open[NICBARRIER_ENGINES_MAX];
/** When an engine is tried again whose last trial has failed: a trial that fails takes long. */
static _Atomic uint64_t barred_until[NICBARRIER_ENGINES_MAX];
#define BARRED_NSEC UINT64_C(60000000000)

int nicbarrier_open_engine(int engine, const nicbarrier_engine_settings_t *settings,
                           nicbarrier_reason_t *why)
{
    if (onic_now_nsec() < atomic_load(&barred_until[engine])) {
        nicbarrier_reason(why,
                          "engine %s has not got through between some leaders a short while "
                          "ago",
                          nicbarrier_engines[engine]->name);
        return -1;
    }
    pthread_mutex_lock(&making);
    if (!is_open[engine])
        is_open[engine] = nicbarrier_engines[engine]->open(settings, why) == 0;
    const bool done = is_open[engine];
    pthread_mutex_unlock(&making);
    return done ? 0 : -1;
}

void nicbarrier_close_engines(void)
{
    for (int i = 0; nicbarrier_engines[i] != NULL; i++) {
        if (is_open[i]) {
            nicbarrier_engines[i]->close();
            is_open[i] = false;
        }
    }
}

bool nicbarrier_make_exchange(nicbarrier_agreement_t *a)
{
    int32_t partner[NICBARRIER_PARTNERS_MAX];
    const int n = nicbarrier_plan_partners(
        &a->plan, (nicbarrier_schedule_kind_t)a->config->engines.schedule, partner);
    free(a->exchange);
    a->exchange = malloc(sizeof(*a->exchange) + (size_t)n * sizeof(a->exchange->theirs[0]));
    if (a->exchange == NULL)
        return false;
    a->exchange->partners = n;
    memcpy(a->exchange->partner, partner, (size_t)n * sizeof(*partner));
    return true;
}

/* ---- messages ------------------------------------------------------------------------------- */

int nicbarrier_least(nicbarrier_agreement_t *a, int *value_p)
{
    int values[] = {a->why.text[0] != '\0' ? ompi_comm_rank(a->comm) : INT_MAX, *value_p};
    const int rc = onic_agree_all(a->comm, values, 2);
    a->reporter = values[0];
    *value_p = values[1];
    return rc;
}

/** Endpoints go to the partners, and theirs come. */
static int exchange(nicbarrier_agreement_t *a)
{
    nicbarrier_exchange_t *x = a->exchange;
    ompi_request_t *requests[2 * NICBARRIER_PARTNERS_MAX];
    int rc = OMPI_SUCCESS, n = 0;
    for (int i = 0; i < 2 * x->partners && rc == OMPI_SUCCESS; i++) {
        const int k = i % x->partners, rank = a->plan.rank[x->partner[k]];
        rc = i < x->partners
                 ? MCA_PML_CALL(irecv(&x->theirs[k], sizeof(x->theirs[k]), &ompi_mpi_byte.dt, rank,
                                      TAG, a->comm, &requests[n]))
                 : MCA_PML_CALL(isend(&x->mine, offsetof(endpoint_t, bytes) + x->mine.len,
                                      &ompi_mpi_byte.dt, rank, TAG, MCA_PML_BASE_SEND_STANDARD,
                                      a->comm, &requests[n]));
        n += rc == OMPI_SUCCESS;
    }
    for (int i = 0; i < n && rc == OMPI_SUCCESS; i++)
        rc = ompi_request_wait(&requests[i], MPI_STATUS_IGNORE);
    if (rc == OMPI_SUCCESS)
        return rc;
    /* The others may never come. */
    for (int i = 0; i < n; i++) {
        if (requests[i] != MPI_REQUEST_NULL) {
            (void)ompi_request_cancel(requests[i]);
            (void)ompi_request_free(&requests[i]);
        }
    }
    a->exchange = NULL;
    return rc;
}

/* ---- one engine ----------------------------------------------------------------------------- */

static bool prepare(nicbarrier_agreement_t *a, int engine, unsigned attempt)
{
    /* Of two attempts the words must not be taken for each other's. */
    const uint64_t key = a->facts[0].key + 0x9e3779b97f4a7c15u * attempt;
    const nicbarrier_group_t group = {key != 0 ? key : 1, a->plan.leaders, a->plan.leader};
    endpoint_t *mine = &a->exchange->mine;
    nicbarrier_reason_t why = {""};
    a->team->kind = engine;
    a->team->engine = nicbarrier_engines[engine];
    pthread_mutex_lock(&making);
    const bool done =
        a->team->engine->prepare(&group, &a->team->net, mine->bytes, &mine->len, &why) == 0;
    pthread_mutex_unlock(&making);
    if (!done) {
        a->why = why;
        mine->len = 0;
    }
    return done;
}

/** With the partners, if all their endpoints have come. */
static bool connect_team(nicbarrier_agreement_t *a)
{
    const nicbarrier_exchange_t *x = a->exchange;
    nicbarrier_endpoint_t list[NICBARRIER_PARTNERS_MAX];
    nicbarrier_endpoints_t all = {x->partners, list};
    nicbarrier_reason_t why = {""};
    for (int i = 0; i < x->partners; i++) {
        const endpoint_t *e = &x->theirs[i];
        if (e->len == 0 || e->len > sizeof(e->bytes))
            return false;
        list[i] = (nicbarrier_endpoint_t){x->partner[i], e->len, e->bytes};
    }
    pthread_mutex_lock(&making);
    const bool connected = nicbarrier_team_connect(a->team, &all, &why) == 0;
    pthread_mutex_unlock(&making);
    if (!connected)
        a->why = why;
    return connected;
}

/** All leaders are connected: does the trial epoch become complete? Where one leader finds that it
 *  will not, the engine notifies the others, or they find it, too. */
static bool passes_trial(nicbarrier_agreement_t *a)
{
    __atomic_fetch_add(a->config->trials, 1, __ATOMIC_RELAXED);
    int end;
    while ((end = nicbarrier_team_try(a->team, &a->why)) == 0)
        opal_progress();
    return end > 0;
}

static int try_engine(nicbarrier_agreement_t *a, int engine, unsigned attempt, bool *done_p)
{
    const bool leads = a->plan.leader >= 0;
    int able = true, rc = OMPI_SUCCESS;
    if (leads) {
        able = prepare(a, engine, attempt);
        rc = exchange(a);
        able = rc == OMPI_SUCCESS && able && connect_team(a);
    }
    rc = rc == OMPI_SUCCESS ? nicbarrier_least(a, &able) : rc;
    if (rc == OMPI_SUCCESS && able) {
        able = !leads || passes_trial(a);
        rc = nicbarrier_least(a, &able);
        if (rc == OMPI_SUCCESS && !able)
            atomic_store(&barred_until[engine], onic_now_nsec() + BARRED_NSEC);
    }
    *done_p = rc == OMPI_SUCCESS && able;
    return rc;
}

int nicbarrier_set_up_network(nicbarrier_agreement_t *a)
{
    unsigned tried = 0, attempt = 0;
    int engine;
    while ((engine = nicbarrier_choose(&a->plan, &a->options, tried)) != NICBARRIER_ANY_ENGINE) {
        bool done;
        const int rc = try_engine(a, engine, attempt++, &done);
        if (rc != OMPI_SUCCESS || done) {
            a->engine = done ? engine : NICBARRIER_ANY_ENGINE;
            return rc;
        }
        nicbarrier_team_drop_network(a->team);
        tried |= 1U << engine;
    }
    if (a->why.text[0] == '\0') {
        nicbarrier_reason(&a->why, "no engine serves these processes: %d nodes",
                          (int)a->plan.nodes);
    }
    return OMPI_SUCCESS;
}
