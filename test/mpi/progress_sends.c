/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Cells of the matrix of progress: what a send has begun. */
#include "test/mpi/progress_cells.h"
#include "test/mpi/progress_send_rules.h"

#include <stdlib.h>
#include <unistd.h>

enum { TAG = 7, TAG_FILLER = 8, TAG_BESIDE = 9 };

/* ---- the sender ---- */

typedef struct message {
    p2p_buffer_t buffer;
    MPI_Comm comm;
    int peer;
    MPI_Request request;
} message_t;

/** Both sides have the same communicator: that of all, or one for this cell. */
static message_t message_of(const progress_cell_t *cell, const send_t *s, bool sends)
{
    message_t m = {.comm = progress_base(),
                   .peer = sends ? cell->other : cell->first,
                   .request = MPI_REQUEST_NULL};

    if (send_frees_comm(s->then)) {
        m.comm = progress_new_pair(cell);
        m.peer = progress_peer(cell);
    }
    m.buffer = p2p_buffer(p2p_side(sends ? s->payload->shape : P2P_PLAIN, s->payload->bytes));
    return m;
}

static uint64_t seed_of(const progress_cell_t *cell)
{
    return p2p_seed(cell->first, TAG, cell->number);
}

#define ARGS b->at, b->side.count, b->side.type, m->peer, TAG, m->comm

static void begin(const send_t *s, message_t *m)
{
    const p2p_buffer_t *b = &m->buffer;
    int (*const send[MODES])(const void *, int, MPI_Datatype, int, int,
                             MPI_Comm) = {MPI_Send, MPI_Bsend, MPI_Ssend, MPI_Rsend};
    int (*const isend[MODES])(const void *, int, MPI_Datatype, int, int, MPI_Comm,
                              MPI_Request *) = {MPI_Isend, MPI_Ibsend, MPI_Issend, MPI_Irsend};
    int (*const init[MODES])(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *) = {
        MPI_Send_init, MPI_Bsend_init, MPI_Ssend_init, MPI_Rsend_init};

    progress_step("the send");
    switch (s->call) {
    case BLOCKING:
        TL_MPI(send[s->mode](ARGS));
        break;
    case NONBLOCKING:
        TL_MPI(isend[s->mode](ARGS, &m->request));
        break;
    default:
        TL_MPI(init[s->mode](ARGS, &m->request));
        TL_MPI(MPI_Start(&m->request));
    }
}

/** What is attached for MPI_Bsend; NULL: nothing. */
static void *attached;

static void detach(void)
{
    void *memory;
    int bytes;

    progress_step("MPI_Buffer_detach");
    TL_MPI(MPI_Buffer_detach(&memory, &bytes));
    free(attached);
    attached = NULL;
}

static void attach(void)
{
    enum { BYTES = 8 << 20 };

    if (attached == NULL) {
        attached = tl_alloc(BYTES);
        TL_MPI(MPI_Buffer_attach(attached, BYTES));
    }
}

/** What the sender does then, until the receiver has the message. */
static void stay(const progress_cell_t *cell, const send_t *s, message_t *m)
{
    int flag = 0;

    switch (s->then) {
    case WAITS:
        progress_step("MPI_Wait");
        TL_MPI(MPI_Wait(&m->request, MPI_STATUS_IGNORE));
        break;
    case TESTS:
        progress_step("MPI_Test");
        while (!flag && TL_MPI(MPI_Test(&m->request, &flag, MPI_STATUS_IGNORE))) {
        }
        break;
    case FREES:
    case FREES_POLLS:
        TL_MPI(MPI_Request_free(&m->request));
        break;
    case RECEIVES:
        progress_step("MPI_Recv on another communicator");
        TL_MPI(MPI_Recv(NULL, 0, MPI_BYTE, progress_peer(cell), TAG_BESIDE, progress_pair(cell),
                        MPI_STATUS_IGNORE));
        progress_held(cell);
        return;
    case IN_BARRIER:
        progress_step("MPI_Barrier on another communicator");
        TL_MPI(MPI_Barrier(progress_pair(cell)));
        progress_held(cell);
        return;
    case COMM_FREES:
    case COMM_FREES_POLLS:
        progress_step("MPI_Comm_free");
        TL_MPI(MPI_Comm_free(&m->comm));
        break;
    case DETACHES:
        detach();
        attach();
        break;
    default:
        break;
    }
    progress_hold(cell, send_in_mpi(s->then));
}

/** Short messages that use up what the receiver has for them. */
enum { FILLERS = 600, FILLER_BYTES = 4000 };

static void fill_up(const message_t *m, unsigned char *filler)
{
    progress_step("send messages that nobody receives");
    for (int i = 0; i < FILLERS; i++)
        TL_MPI(MPI_Send(filler, FILLER_BYTES, MPI_BYTE, m->peer, TAG_FILLER, m->comm));
}

static void sender(const progress_cell_t *cell, bool credit)
{
    static unsigned char filler[FILLER_BYTES];
    const send_t s = send_of(cell->index);
    message_t m;

    if (s.then == RECEIVES || s.then == IN_BARRIER)
        progress_pair(cell);
    m = message_of(cell, &s, true);
    if (s.mode == BUFFERED)
        attach();
    p2p_write(&m.buffer, seed_of(cell));
    progress_meet_ready(cell);
    if (!credit)
        fill_up(&m, filler);
    if (s.call == BLOCKING) {
        progress_tell_in(cell);
        begin(&s, &m);
    } else {
        begin(&s, &m);
        progress_tell_in(cell);
    }
    stay(cell, &s, &m);

    progress_meet_end(cell);
    if (m.request != MPI_REQUEST_NULL) {
        progress_step("the last MPI_Wait");
        TL_MPI(MPI_Wait(&m.request, MPI_STATUS_IGNORE));
    }
    if (m.request != MPI_REQUEST_NULL)
        MPI_Request_free(&m.request);
    if (s.mode == BUFFERED)
        detach();
    p2p_free(&m.buffer);
}

static void sender_with_credit(const progress_cell_t *cell)
{
    sender(cell, true);
}

static void sender_without_credit(const progress_cell_t *cell)
{
    sender(cell, false);
}

/* ---- one after the other, to be received when their sender is elsewhere ---- */

/** Of short ones no more than a first credit holds. */
static bool among(const send_t *s, bool buffered)
{
    return s->where == WAITING && s->then == SLEEPS && s->payload->bytes != MOST_SHORT &&
           (s->payload->is_short ? s->mode == STANDARD || s->mode == BUFFERED
                                 : buffered && s->mode == BUFFERED);
}

void progress_send_all(MPI_Comm comm, int peer, bool buffered)
{
    attach();
    for (int i = 0; i < SENDS; i++) {
        const send_t s = send_of(i);
        message_t m = {.comm = comm, .peer = peer, .request = MPI_REQUEST_NULL};

        if (!among(&s, buffered))
            continue;
        m.buffer = p2p_buffer(p2p_side(s.payload->shape, s.payload->bytes));
        p2p_write(&m.buffer, p2p_seed(0, TAG, i));
        begin(&s, &m);
        TL_MPI(MPI_Wait(&m.request, MPI_STATUS_IGNORE));
        if (m.request != MPI_REQUEST_NULL)
            MPI_Request_free(&m.request);
        p2p_free(&m.buffer);
    }
}

void progress_receive_all(MPI_Comm comm, int peer, bool buffered, const char *what)
{
    for (int i = 0; i < SENDS; i++) {
        const send_t s = send_of(i);
        p2p_buffer_t b;

        if (among(&s, buffered)) {
            b = p2p_buffer(p2p_side(P2P_PLAIN, s.payload->bytes));
            TL_MPI(MPI_Recv(b.at, b.side.count, b.side.type, peer, TAG, comm, MPI_STATUS_IGNORE));
            p2p_check(&b, b.bytes, p2p_seed(0, TAG, i), what);
            p2p_free(&b);
        }
    }
}

/* ---- the receiver ---- */

static void receive(const send_t *s, message_t *m, MPI_Status *status)
{
    const p2p_buffer_t *b = &m->buffer;
    int flag = 0;

    switch (s->where) {
    case POSTED:
        progress_step("MPI_Wait for the receive");
        TL_MPI(MPI_Wait(&m->request, status));
        return;
    case TESTING:
        progress_step("MPI_Test of the receive");
        while (!flag && TL_MPI(MPI_Test(&m->request, &flag, status))) {
        }
        return;
    case PROBING:
        progress_step("MPI_Probe");
        TL_MPI(MPI_Probe(m->peer, TAG, m->comm, status));
        break;
    default:
        break;
    }
    progress_step("MPI_Recv");
    TL_MPI(MPI_Recv(ARGS, status));
}

static void receiver(const progress_cell_t *cell, bool credit)
{
    static unsigned char filler[FILLER_BYTES];
    const send_t s = send_of(cell->index);
    MPI_Comm beside = MPI_COMM_NULL;
    MPI_Status status;
    message_t m;

    if (s.then == RECEIVES || s.then == IN_BARRIER)
        beside = progress_pair(cell);
    m = message_of(cell, &s, false);
    if (s.where == POSTED || s.where == TESTING) {
        const p2p_buffer_t *b = &m.buffer;

        TL_MPI(MPI_Irecv(b->at, b->side.count, b->side.type, m.peer, TAG, m.comm, &m.request));
    }
    progress_tell_ready(cell);
    if (s.where == POSTED || s.where == LATE || s.where == LATE_POLLING)
        progress_await_in(cell, s.where == LATE_POLLING);
    progress_step("receive what has used up the credit");
    for (int i = 0; !credit && i < FILLERS; i++) {
        TL_MPI(MPI_Recv(filler, FILLER_BYTES, MPI_BYTE, m.peer, TAG_FILLER, m.comm,
                        MPI_STATUS_IGNORE));
    }
    receive(&s, &m, &status);
    p2p_check_status(&status, m.peer, TAG, m.buffer.bytes, cell->name);
    p2p_check(&m.buffer, m.buffer.bytes, seed_of(cell), cell->name);

    progress_tell_seen(cell);
    if (s.then == RECEIVES) {
        progress_step("a send on the other communicator");
        TL_MPI(MPI_Send(NULL, 0, MPI_BYTE, progress_peer(cell), TAG_BESIDE, beside));
    } else if (s.then == IN_BARRIER) {
        progress_step("MPI_Barrier");
        TL_MPI(MPI_Barrier(beside));
    } else if (send_frees_comm(s.then)) {
        progress_step("MPI_Comm_free");
        TL_MPI(MPI_Comm_free(&m.comm));
    }
    progress_meet_end(cell);
    p2p_free(&m.buffer);
}

static void receiver_with_credit(const progress_cell_t *cell)
{
    receiver(cell, true);
}

static void receiver_without_credit(const progress_cell_t *cell)
{
    receiver(cell, false);
}

static void describe_with_credit(progress_cell_t *cell, const progress_context_t *context)
{
    send_describe(cell, context, true);
}

static void describe_without_credit(progress_cell_t *cell, const progress_context_t *context)
{
    send_describe(cell, context, false);
}

const progress_family_t progress_sends = {
    "sends", SENDS, 16, describe_with_credit, sender_with_credit, receiver_with_credit};
const progress_family_t progress_sends_without_credit = {
    "sends_without_credit", SENDS, 4, describe_without_credit, sender_without_credit,
    receiver_without_credit};
