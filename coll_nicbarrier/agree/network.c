/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What leaders do in an agreement. From when an engine is connected on, others may need what
 *  it has to say: so all waiting moves it on. */
#include "coll_nicbarrier/agree/agreement.h"

#include <limits.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/support/collective.h"
#include "ompi/constants.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/coll/base/coll_tags.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/op/op.h"
#include "ompi/request/request.h"
#include "opal/runtime/opal_progress.h"

/** The tag next to those of Open MPI's collectives, which go downwards from the one of allgather.
 * It has none of its own between that and MPI_ANY_TAG. */
#define TAG (MCA_COLL_BASE_TAG_ALLGATHER + 1)

/** Engines, and their groups, are made by one thread at a time. */
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
static bool is_open[NICBARRIER_ENGINES_MAX];

int nicbarrier_open_engine(int engine, const nicbarrier_engine_settings_t *settings,
                           nicbarrier_reason_t *why)
{
    pthread_mutex_lock(&making);
    if (!is_open[engine]) {
        is_open[engine] = nicbarrier_engines[engine]->open(settings, why) == 0;
    }
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

bool nicbarrier_make_mail(nicbarrier_agreement_t *a)
{
    int32_t partner[NICBARRIER_PARTNERS_MAX];
    const int n = nicbarrier_plan_partners(
        &a->plan, (nicbarrier_schedule_kind_t)a->config->engines.schedule, partner);
    free(a->mail);
    a->mail = malloc(sizeof(*a->mail) + (size_t)n * sizeof(a->mail->theirs[0]));
    if (a->mail == NULL) {
        return false;
    }
    a->mail->partners = n;
    memcpy(a->mail->partner, partner, (size_t)n * sizeof(*partner));
    return true;
}

/* ---- messages ---------------------------------------------------------------------------------
 */

/** Waits for a message; its error. */
static int await(nicbarrier_agreement_t *a, ompi_request_t **request_p)
{
    while (!REQUEST_COMPLETE(*request_p)) {
        if (a->connected) {
            (void)nicbarrier_team_progress(a->team);
        }
        opal_progress();
    }
    const int rc = (*request_p)->req_status.MPI_ERROR;
    (void)ompi_request_free(request_p);
    *request_p = NULL;
    return rc;
}

/** Waits for messages from and into the mail, unless there is an error: then the others may never
 *  come. */
static int await_mail(nicbarrier_agreement_t *a, ompi_request_t **requests, int n, int rc)
{
    for (int i = 0; i < n && rc == OMPI_SUCCESS; i++) {
        rc = await(a, &requests[i]);
    }
    if (rc == OMPI_SUCCESS) {
        return rc;
    }
    for (int i = 0; i < n; i++) {
        if (requests[i] != NULL) {
            (void)ompi_request_cancel(requests[i]);
            (void)ompi_request_free(&requests[i]);
        }
    }
    a->mail = NULL;
    return rc;
}

static int post(const nicbarrier_agreement_t *a, int32_t leader, const void *bytes, size_t len,
                ompi_request_t **request_p)
{
    const int rc = MCA_PML_CALL(isend(bytes, len, &ompi_mpi_byte.dt, a->plan.rank[leader], TAG,
                                      MCA_PML_BASE_SEND_STANDARD, a->comm, request_p));
    *request_p = rc == OMPI_SUCCESS ? *request_p : NULL;
    return rc;
}

static int receive(const nicbarrier_agreement_t *a, int32_t leader, void *bytes, size_t len,
                   ompi_request_t **request_p)
{
    const int rc = MCA_PML_CALL(
        irecv(bytes, len, &ompi_mpi_byte.dt, a->plan.rank[leader], TAG, a->comm, request_p));
    *request_p = rc == OMPI_SUCCESS ? *request_p : NULL;
    return rc;
}

/** By the module below, nonblocking. */
static int agree_moving(nicbarrier_agreement_t *a, int *words, int n)
{
    const struct mca_coll_base_comm_coll_t *c = a->comm->c_coll;
    ompi_request_t *request;
    const int rc = c->coll_iallreduce(MPI_IN_PLACE, words, n, &ompi_mpi_int.dt, &ompi_mpi_op_min.op,
                                      a->comm, &request, c->coll_iallreduce_module);
    return rc == OMPI_SUCCESS ? await(a, &request) : rc;
}

int nicbarrier_say(nicbarrier_agreement_t *a, int *words, int n)
{
    const bool complains = a->why.text[0] != '\0';
    int all[NICBARRIER_WORDS_MAX + 1] = {complains ? ompi_comm_rank(a->comm) : INT_MAX};
    memcpy(all + 1, words, (size_t)n * sizeof(*words));
    const int rc =
        a->plan.leaders > 1 ? agree_moving(a, all, n + 1) : onic_agree_all(a->comm, all, n + 1);
    a->speaker = all[0];
    memcpy(words, all + 1, (size_t)n * sizeof(*words));
    return rc;
}

/* ---- one engine -------------------------------------------------------------------------------
 */

static bool prepare(nicbarrier_agreement_t *a, int engine, unsigned attempt)
{
    /* Of two attempts the words must not be taken for each other's. */
    const uint64_t key = a->facts[0].key + 0x9e3779b97f4a7c15u * attempt;
    const nicbarrier_group_t group = {key != 0 ? key : 1, a->plan.leaders, a->plan.leader};
    nicbarrier_letter_t *mine = &a->mail->mine;
    nicbarrier_reason_t why = {""};
    mine->len = 0;
    a->team->kind = engine;
    a->team->engine = nicbarrier_engines[engine];
    pthread_mutex_lock(&making);
    const int rc = nicbarrier_team_prepare(a->team, &group, mine->bytes, &mine->len, &why);
    pthread_mutex_unlock(&making);
    if (rc != 0) {
        a->why = why;
        mine->len = 0;
    }
    return rc == 0;
}

/** Endpoints go to the partners, and theirs come. */
static int exchange(nicbarrier_agreement_t *a)
{
    nicbarrier_mail_t *mail = a->mail;
    ompi_request_t *requests[2 * NICBARRIER_PARTNERS_MAX];
    int rc = OMPI_SUCCESS, n = 0;
    for (int i = 0; i < mail->partners && rc == OMPI_SUCCESS; i++) {
        rc =
            receive(a, mail->partner[i], &mail->theirs[i], sizeof(mail->theirs[i]), &requests[n++]);
    }
    for (int i = 0; i < mail->partners && rc == OMPI_SUCCESS; i++) {
        rc = post(a, mail->partner[i], &mail->mine,
                  offsetof(nicbarrier_letter_t, bytes) + mail->mine.len, &requests[n++]);
    }
    return await_mail(a, requests, n, rc);
}

/** With those whose endpoints have come, if all have. */
static bool join(nicbarrier_agreement_t *a)
{
    const nicbarrier_mail_t *mail = a->mail;
    nicbarrier_endpoint_t list[NICBARRIER_PARTNERS_MAX];
    nicbarrier_endpoints_t all = {mail->partners, list};
    nicbarrier_reason_t why = {""};
    for (int i = 0; i < mail->partners; i++) {
        const nicbarrier_letter_t *l = &mail->theirs[i];
        if (l->len == 0 || l->len > sizeof(l->bytes)) {
            return false;
        }
        list[i] = (nicbarrier_endpoint_t){mail->partner[i], l->len, l->bytes};
    }
    pthread_mutex_lock(&making);
    const int rc = nicbarrier_team_connect(a->team, &all, &why);
    pthread_mutex_unlock(&making);
    if (rc != 0) {
        a->why = why;
        return false;
    }
    a->connected = true;
    return true;
}

static int get_ready(nicbarrier_agreement_t *a, int engine, unsigned attempt, int *able_p)
{
    *able_p = prepare(a, engine, attempt);
    const int rc = exchange(a);
    *able_p = rc == OMPI_SUCCESS && *able_p && join(a);
    return rc;
}

/** Watches the trial to its end, or until the leader before me says that there will be none. */
static bool watch(nicbarrier_agreement_t *a, ompi_request_t *word)
{
    for (;;) {
        if (nicbarrier_team_trial_done(a->team)) {
            return true;
        }
        if (nicbarrier_team_trial_hopeless(a->team, &a->why) ||
            (REQUEST_COMPLETE(word) && a->mail->heard == 0)) {
            return false;
        }
        opal_progress();
    }
}

/** All leaders are connected. Each tells the next what has come of its trial, as soon as it knows:
 *  where one gives up the others need not wait for it. */
static int try_out(nicbarrier_agreement_t *a, int *able_p)
{
    nicbarrier_mail_t *mail = a->mail;
    const int32_t n = a->plan.leaders, me = a->plan.leader;
    ompi_request_t *requests[2] = {NULL, NULL};
    mail->heard = 0;
    nicbarrier_team_begin_trial(a->team);
    __atomic_fetch_add(a->config->trials, 1, __ATOMIC_RELAXED);
    int rc = receive(a, (me + n - 1) % n, &mail->heard, sizeof(mail->heard), &requests[0]);
    if (rc == OMPI_SUCCESS) {
        mail->said = watch(a, requests[0]);
        rc = post(a, (me + 1) % n, &mail->said, sizeof(mail->said), &requests[1]);
    }
    rc = await_mail(a, requests, 2, rc);
    *able_p = rc == OMPI_SUCCESS && mail->said != 0 && mail->heard != 0;
    return rc;
}

static int attempt_engine(nicbarrier_agreement_t *a, int engine, unsigned attempt, bool *done_p)
{
    const bool leads = a->plan.leader >= 0;
    int able = true;
    int rc = leads ? get_ready(a, engine, attempt, &able) : OMPI_SUCCESS;
    rc = rc == OMPI_SUCCESS ? nicbarrier_say(a, &able, 1) : rc;
    if (rc == OMPI_SUCCESS && able) {
        rc = leads ? try_out(a, &able) : OMPI_SUCCESS;
        rc = rc == OMPI_SUCCESS ? nicbarrier_say(a, &able, 1) : rc;
    }
    *done_p = rc == OMPI_SUCCESS && able;
    return rc;
}

int nicbarrier_set_up_network(nicbarrier_agreement_t *a)
{
    unsigned tried = 0, attempt = 0;
    for (;;) {
        const int engine = nicbarrier_choose(&a->plan, &a->wishes, tried);
        if (engine == NICBARRIER_ANY_ENGINE) {
            break;
        }
        bool done;
        const int rc = attempt_engine(a, engine, attempt++, &done);
        if (rc != OMPI_SUCCESS || done) {
            a->engine = done ? engine : NICBARRIER_ANY_ENGINE;
            return rc;
        }
        nicbarrier_team_drop_network(a->team);
        a->connected = false;
        tried |= 1U << engine;
    }
    if (a->why.text[0] == '\0') {
        nicbarrier_reason(&a->why, "no engine serves these processes: %d nodes%s",
                          (int)a->plan.nodes, a->plan.jobs ? ", several jobs" : "");
    }
    return OMPI_SUCCESS;
}
