/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Members in processes of their own; see nicbarrier_members.h. */
#include "test/unit/nicbarrier_members.h"

#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "coll_nicbarrier/engines/datagram/state.h"
#include "test/unit/nicbarrier_conformance.h"

enum { MEMBERS_MAX = CONFORMANCE_MEMBERS_MAX };

static const nicbarrier_engine_t *const engine = &nicbarrier_engine_datagram;

/** The endpoints, which the agreement would carry; and what the barriers order. */
typedef struct shared {
    nicbarrier_schedule_kind_t schedule;
    nicbarrier_endpoint_t endpoint[MEMBERS_MAX];
    conformance_notes_t notes;
} shared_t;

typedef enum order {
    PREPARE,
    CONNECT,
    ENTER,
    LOOK,
    PROGRESS,
    RUN,
    FAIL,
    DISCONNECT,
    CLOSE
} order_t;

typedef struct request {
    order_t order;
    uint64_t epoch;
} request_t;

typedef struct reply {
    uint64_t completed;
    bool failed;
} reply_t;

static struct {
    int n;
    shared_t *shared;
    void (*set_up)(int me);
    pid_t pid[MEMBERS_MAX];
    int socket[MEMBERS_MAX];
} members;

/* ---- a member ------------------------------------------------------------------------------- */

typedef struct member {
    int me, n;
    shared_t *shared;
    nicbarrier_net_t *net; /**< NULL before and after */
} member_t;

/** In a member a failed check ends it, and the test that talks to it. */
#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: member %d: %s\n", __FILE__, __LINE__, m->me, #condition);      \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static void prepare(member_t *m)
{
    nicbarrier_group_t group = {.key = 99, .n = m->n, .me = m->me};
    nicbarrier_endpoint_t *mine = &m->shared->endpoint[m->me];
    nicbarrier_reason_t why = {""};

    nicbarrier_group_plan(&group, m->shared->schedule);
    mine->member = m->me;
    EXPECT(engine->prepare(&group, &m->net, mine, &why) == 0);
}

static void connect_member(member_t *m)
{
    const nicbarrier_endpoints_t endpoints = {m->n, m->shared->endpoint};
    nicbarrier_reason_t why = {""};

    if (engine->connect(m->net, &endpoints, NULL, &why) != 0) {
        fprintf(stderr, "member %d: %s\n", m->me, why.text);
        _exit(1);
    }
}

/** Epochs one by one, until this one. */
static void run(member_t *m, uint64_t last)
{
    for (uint64_t epoch = 1; epoch <= last; epoch++) {
        conformance_note(&m->shared->notes, m->me, epoch);
        engine->enter(m->net, epoch);
        for (int k = 0; engine->completed(m->net) < epoch; k++) {
            (void)engine->progress(m->net);
            if (k % 4 == 3)
                sched_yield();
            if (k % 64 == 63 && engine->wait != NULL)
                engine->wait(m->net, 500);
        }
        EXPECT(conformance_noted(&m->shared->notes, m->n, epoch));
    }
}

static void obey(member_t *m, const request_t *q)
{
    switch (q->order) {
    case PREPARE:
        prepare(m);
        break;
    case CONNECT:
        connect_member(m);
        break;
    case ENTER:
        engine->enter(m->net, q->epoch);
        break;
    case LOOK:
        break;
    case PROGRESS:
        (void)engine->progress(m->net);
        break;
    case RUN:
        run(m, q->epoch);
        break;
    case FAIL:
        engine->fail(m->net);
        break;
    case DISCONNECT:
        engine->disconnect(m->net);
        m->net = NULL;
        break;
    case CLOSE:
        engine->close();
        break;
    }
}

static void serve(member_t *m, int socket)
{
    request_t q = {.order = LOOK};

    while (q.order != CLOSE && recv(socket, &q, sizeof(q), 0) == sizeof(q)) {
        reply_t r = {0};
        obey(m, &q);
        if (m->net != NULL) {
            r.completed = engine->completed(m->net);
            r.failed = engine->failed(m->net);
        }
        EXPECT(send(socket, &r, sizeof(r), MSG_NOSIGNAL) == sizeof(r));
    }
}

static void child(int me, int n, int socket)
{
    member_t member = {.me = me, .n = n, .shared = members.shared}, *m = &member;
    nicbarrier_reason_t why = {""};

    alarm(UNIT_SECONDS);
    nicbarrier_datagram_config.nack_usec = 500;
    nicbarrier_datagram_config.drop = 100;
    nicbarrier_datagram_config.interface = "lo";
    members.set_up(me);
    EXPECT(engine->open(true, &why) == 0);
    serve(m, socket);
    _exit(0);
}

/* ---- the test's side ------------------------------------------------------------------------ */

static void ask(int i, order_t order, uint64_t epoch)
{
    const request_t q = {order, epoch};

    UNIT_CHECK(send(members.socket[i], &q, sizeof(q), MSG_NOSIGNAL) == sizeof(q));
}

static reply_t answer(int i)
{
    reply_t r;

    UNIT_CHECK(recv(members.socket[i], &r, sizeof(r), 0) == sizeof(r));
    return r;
}

static reply_t call(int i, order_t order, uint64_t epoch)
{
    ask(i, order, epoch);
    return answer(i);
}

void members_begin(int n, nicbarrier_schedule_kind_t schedule, void (*set_up)(int me))
{
    members.set_up = set_up;
    members.n = n;
    members.shared = mmap(NULL, sizeof(*members.shared), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(members.shared, MAP_FAILED);
    members.shared->schedule = schedule;
    for (int i = 0; i < n; i++) {
        int pair[2];
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
        members.pid[i] = fork();
        if (members.pid[i] == 0) {
            /* So that it ends when the test does. */
            for (int k = 0; k < i; k++)
                close(members.socket[k]);
            close(pair[0]);
            child(i, n, pair[1]);
        }
        ck_assert_int_gt(members.pid[i], 0);
        close(pair[1]);
        members.socket[i] = pair[0];
    }
    for (int i = 0; i < n; i++)
        (void)call(i, PREPARE, 0);
}

void members_connect(int i)
{
    (void)call(i, CONNECT, 0);
}

void members_enter(int i, uint64_t epoch)
{
    (void)call(i, ENTER, epoch);
}

uint64_t members_completed(int i)
{
    return call(i, LOOK, 0).completed;
}

bool members_failed(int i)
{
    return call(i, LOOK, 0).failed;
}

void members_progress(int i)
{
    (void)call(i, PROGRESS, 0);
}

void members_pass(void)
{
    nanosleep(&(struct timespec){0, 300000}, NULL);
}

void members_disconnect(int i)
{
    (void)call(i, DISCONNECT, 0);
}

void members_end(void)
{
    for (int i = 0; i < members.n; i++) {
        int status;
        (void)call(i, CLOSE, 0);
        ck_assert_int_eq(waitpid(members.pid[i], &status, 0), members.pid[i]);
        ck_assert_int_eq(status, 0);
        close(members.socket[i]);
    }
    munmap(members.shared, sizeof(*members.shared));
}

void members_fail(int i)
{
    (void)call(i, FAIL, 0);
}

void members_together(uint64_t last)
{
    for (int i = 0; i < members.n; i++)
        ask(i, RUN, last);
    for (int i = 0; i < members.n; i++)
        (void)answer(i);
}
