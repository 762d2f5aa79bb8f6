/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The agreement over Open MPI's messages. */
#include "coll_nicbarrier/agree/agree.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coll_nicbarrier/agree/local.h"
#include "coll_nicbarrier/agree/protocol.h"
#include "ompi/constants.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/coll/base/coll_tags.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/request/request.h"
#include "opal/util/output.h"

/** The tag next to those of Open MPI's collectives, which go downwards from the one of allgather.
 * It has none of its own between that and MPI_ANY_TAG. */
#define TAG (MCA_COLL_BASE_TAG_ALLGATHER + 1)
/** Messages on their way out at most; the machine needs two. */
#define SLOTS 8

typedef struct slot {
    ompi_request_t *request; /**< NULL: free */
    unsigned char bytes[NICBARRIER_MESSAGE_MAX];
} slot_t;

struct nicbarrier_agreement {
    nicbarrier_protocol_t protocol;
    nicbarrier_local_t local;
    struct ompi_communicator_t *comm;
    int rc; /**< of messages */
    slot_t slot[SLOTS];
    ompi_request_t *awaited; /**< NULL: none */
    unsigned char bytes[NICBARRIER_TOPIC_SIZE + NICBARRIER_ENDPOINT_MAX];
};

/** For one that finds no memory, so that it can say so. */
static nicbarrier_agreement_t spare;
static atomic_bool spare_used;

/* ---- messages ---------------------------------------------------------------------------------
 */

/** Notes the end of a message; its error, if there is one. */
static int end_of(ompi_request_t **request_p)
{
    ompi_request_t *request = *request_p;
    int rc = request->req_status.MPI_ERROR;
    *request_p = NULL;
    (void)ompi_request_free(&request);
    return rc;
}

/** One that is free, or NULL. */
static slot_t *find_slot(nicbarrier_agreement_t *a)
{
    for (int i = 0; i < SLOTS; i++) {
        if (a->slot[i].request == NULL) {
            return &a->slot[i];
        }
    }
    return NULL;
}

/** Frees the slots of messages that have gone out. True where all have. */
static bool sweep_slots(nicbarrier_agreement_t *a)
{
    bool all = true;
    for (int i = 0; i < SLOTS; i++) {
        slot_t *s = &a->slot[i];
        if (s->request != NULL && REQUEST_COMPLETE(s->request)) {
            int rc = end_of(&s->request);
            a->rc = a->rc == OMPI_SUCCESS ? rc : a->rc;
        }
        all = all && s->request == NULL;
    }
    return all;
}

static nicbarrier_agreement_t *agreement_of(void *local)
{
    return (nicbarrier_agreement_t *)(void *)((char *)local -
                                              offsetof(nicbarrier_agreement_t, local));
}

/** In a slot, which there is: the machine sends one message at a time. */
static void post(nicbarrier_agreement_t *a, slot_t *s, int32_t rank, const void *bytes, size_t len)
{
    int rc = MCA_PML_CALL(isend(bytes, len, &ompi_mpi_byte.dt, rank, TAG,
                                MCA_PML_BASE_SEND_STANDARD, a->comm, &s->request));
    if (rc != OMPI_SUCCESS) {
        s->request = NULL;
        a->rc = rc;
    }
}

static void send_message(void *arg, int32_t rank, const void *bytes, size_t len)
{
    nicbarrier_agreement_t *a = agreement_of(arg);
    slot_t *s = find_slot(a);
    memcpy(s->bytes, bytes, len);
    post(a, s, rank, s->bytes, len);
}

static void send_endpoint(void *arg, int32_t rank, nicbarrier_topic_t topic)
{
    nicbarrier_local_t *local = arg;
    nicbarrier_agreement_t *a = agreement_of(local);
    nicbarrier_outgoing_t *out = local->outgoing[local->attempts - 1];
    slot_t *s = find_slot(a);
    unsigned char *bytes = out != NULL ? out->bytes : s->bytes;
    size_t len = nicbarrier_topic_write(bytes, topic);
    if (out != NULL) {
        len += out->len;
        local->team->prepared |= out->len > 0;
    }
    post(a, s, rank, bytes, len);
}

static const nicbarrier_host_t host = {.send = send_message,
                                       .member = nicbarrier_local_member,
                                       .make = nicbarrier_local_make,
                                       .map = nicbarrier_local_map,
                                       .settle = nicbarrier_local_settle,
                                       .prepare = nicbarrier_local_prepare,
                                       .send_endpoint = send_endpoint,
                                       .keep = nicbarrier_local_keep,
                                       .connect = nicbarrier_local_connect,
                                       .expect = nicbarrier_local_expect,
                                       .trial = nicbarrier_local_trial,
                                       .drop = nicbarrier_local_drop,
                                       .table = nicbarrier_local_table};

/** Takes the message that the machine awaits; false where it has not come. */
static bool receive(nicbarrier_agreement_t *a)
{
    const nicbarrier_protocol_t *m = &a->protocol;
    int32_t source = nicbarrier_protocol_source(m);
    if (a->awaited == NULL && source >= 0) {
        size_t most = nicbarrier_protocol_is_long(m) ? sizeof(a->bytes) : NICBARRIER_MESSAGE_MAX;
        a->rc = MCA_PML_CALL(
            irecv(a->bytes, most, &ompi_mpi_byte.dt, source, TAG, a->comm, &a->awaited));
        if (a->rc != OMPI_SUCCESS) {
            a->awaited = NULL;
        }
    }
    if (a->awaited == NULL || !REQUEST_COMPLETE(a->awaited)) {
        return false;
    }
    size_t len = a->awaited->req_status._ucount;
    int rc = end_of(&a->awaited);
    if (rc != OMPI_SUCCESS && rc != MPI_ERR_TRUNCATE) {
        a->rc = rc;
        return false;
    }
    nicbarrier_protocol_take(&a->protocol, a->bytes, rc == OMPI_SUCCESS ? len : 0);
    return true;
}

/* ---- life -------------------------------------------------------------------------------------
 */

static nicbarrier_agreement_t *allocate(bool *spare_p)
{
    nicbarrier_agreement_t *a = malloc(sizeof(*a));
    *spare_p = a == NULL && !atomic_exchange(&spare_used, true);
    return *spare_p ? &spare : a;
}

nicbarrier_agreement_t *nicbarrier_agreement_start(struct ompi_communicator_t *comm,
                                                   const nicbarrier_agreement_config_t *config,
                                                   int *rc_p)
{
    bool failed;
    nicbarrier_setup_t setup;
    nicbarrier_agreement_t *a = allocate(&failed);
    *rc_p = a != NULL ? OMPI_SUCCESS : OMPI_ERR_OUT_OF_RESOURCE;
    if (a != NULL) {
        memset(a, 0, sizeof(*a));
        a->comm = comm;
        nicbarrier_local_init(&a->local, comm, config, failed, &setup);
        nicbarrier_protocol_init(&a->protocol, &setup, &host, &a->local, &a->local.why);
    }
    return a;
}

/** A piece of work; false where there is nothing to do until something comes. */
static bool go_on(nicbarrier_agreement_t *a)
{
    nicbarrier_protocol_t *m = &a->protocol;
    nicbarrier_turn_t turn = nicbarrier_protocol_turn(m);
    if (turn == NICBARRIER_AWAIT || turn == NICBARRIER_WATCH) {
        if (receive(a)) {
            return true;
        }
        turn = turn == NICBARRIER_WATCH && a->rc == OMPI_SUCCESS ? turn : NICBARRIER_OVER;
    }
    if (turn == NICBARRIER_OVER || find_slot(a) == NULL) {
        return false;
    }
    nicbarrier_protocol_go(m);
    return nicbarrier_protocol_turn(m) != NICBARRIER_WATCH;
}

int nicbarrier_agreement_progress(nicbarrier_agreement_t *a)
{
    bool all_sent = sweep_slots(a);
    /* Others may still need what my engine has to say. */
    if (a->local.connected) {
        (void)nicbarrier_team_progress(a->local.team);
    }
    while (a->rc == OMPI_SUCCESS && go_on(a)) {
        all_sent = sweep_slots(a);
    }
    if (a->rc != OMPI_SUCCESS) {
        return a->rc;
    }
    if (nicbarrier_protocol_turn(&a->protocol) != NICBARRIER_OVER || !all_sent) {
        return 0;
    }
    return a->protocol.verdict == NICBARRIER_ERROR ? OMPI_ERROR : 1;
}

/** Has it ended in an error here, of which others may not know? */
static bool is_broken(const nicbarrier_agreement_t *a)
{
    return a->protocol.verdict == NICBARRIER_ERROR || a->rc != OMPI_SUCCESS;
}

static void tell(const nicbarrier_agreement_t *a)
{
    static atomic_bool told;
    const nicbarrier_protocol_t *m = &a->protocol;
    const bool broken = is_broken(a);
    const char *why = a->rc != OMPI_SUCCESS ? "a message has failed" : a->local.why.text;
    bool mine = broken || (m->verdict == NICBARRIER_DECLINED &&
                           nicbarrier_protocol_speaker(m) == m->setup.me);
    if (mine && why[0] != '\0' && !atomic_exchange(&told, true)) {
        char name[256] = "?";
        (void)gethostname(name, sizeof(name) - 1);
        opal_output(0, "coll_nicbarrier: barriers of communicator \"%s\" %s: %s (rank %d on %s)",
                    a->comm->c_name,
                    broken ? "fail, because the agreement on an engine has ended in an error"
                           : "are left to the module below",
                    why, (int)m->setup.me, name);
    }
}

/** The team, if there is one. */
static nicbarrier_team_t *take_team(nicbarrier_agreement_t *a)
{
    nicbarrier_team_t *team = a->local.team;
    if (a->protocol.verdict != NICBARRIER_AGREED || a->rc != OMPI_SUCCESS) {
        return NULL;
    }
    a->local.team = NULL;
    team->kind = a->protocol.engine;
    team->engine = nicbarrier_engines[a->protocol.engine];
    return team;
}

/** Lets messages go that are under way; they may still be read from or written to. */
static bool let_go(nicbarrier_agreement_t *a)
{
    bool busy = false;
    for (int i = 0; i <= SLOTS; i++) {
        ompi_request_t **request_p = i < SLOTS ? &a->slot[i].request : &a->awaited;
        if (*request_p != NULL) {
            /* A receive that stays posted would take a message of the next agreement. */
            if (i == SLOTS) {
                (void)ompi_request_cancel(*request_p);
            }
            (void)ompi_request_free(request_p);
            busy = true;
        }
    }
    return busy;
}

nicbarrier_team_t *nicbarrier_agreement_finish(nicbarrier_agreement_t *a)
{
    nicbarrier_team_t *team = take_team(a);
    bool busy = let_go(a);
    if (team == NULL) {
        tell(a);
    }
    if (is_broken(a) && a->local.team != NULL) {
        nicbarrier_team_break(a->local.team);
    }
    if (busy) {
        nicbarrier_local_abandon(&a->local);
        return team;
    }
    nicbarrier_local_fini(&a->local);
    if (a == &spare) {
        atomic_store(&spare_used, false);
    } else {
        free(a);
    }
    return team;
}
