/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file A target that is away from MPI, or goes away, or comes back, and an origin that waits for
 *  its answer: the target's server thread and MPI thread, its signs of life and its pipe, and the
 *  origin's waits and wake-ups are the product's; the ring between them is a number.
 *
 *  Nobody sleeps while there is work: the origin waits with a time limit, so a wake-up may be lost
 *  as long as another one follows, but its waits end soon. Time passes only while it waits. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/support/clock.h"
#include "common/support/pause.h"

static uint64_t time_now(void);
#define onic_now_nsec() (1000 * time_now())

/** The server thread lingers for some microseconds. */
static void stay_awhile(void);
#define onic_pause() stay_awhile()

#include "test/explore/transport.h"

/* ---- the target's page and its pipe ---------------------------------------------------------- */

enum { PAGE = 5, NO_SUCH = -1 };

/** As the kernel keeps them: bit 0: its process has written, bit 1: another one has. */
static _Atomic unsigned pipe_bytes;
static onic_presence_t page;

static ssize_t pipe_write(int fd, const char *what, size_t len)
{
    EXPLORE_ASSERT(fd == PIPE);
    atomic_fetch_or(&pipe_bytes, *what == ONIC_WAKE_PEER ? 2 : 1);
    return (ssize_t)len;
}

static ssize_t pipe_read(int fd, char *bytes, size_t len)
{
    EXPLORE_ASSERT(fd == PIPE && len >= 2);
    const unsigned found = atomic_exchange(&pipe_bytes, 0);
    ssize_t n = 0;
    if (found & 1)
        bytes[n++] = ONIC_WAKE_SELF;
    if (found & 2)
        bytes[n++] = ONIC_WAKE_PEER;
    errno = EAGAIN;
    return n > 0 ? n : -1;
}

#define write(fd, bytes, len)  pipe_write(fd, bytes, len)
#define read(fd, bytes, len)   pipe_read(fd, bytes, len)
#define __builtin_ia32_rdtsc() (1024 * time_now())
#undef _GNU_SOURCE
#include "common/transport/shm/presence.c"
#undef write
#undef read

onic_file_key_t onic_file_offer(int fd)
{
    return (onic_file_key_t){.fd = fd};
}

int onic_file_open(const onic_file_key_t *key, int flags)
{
    (void)flags;
    return key->fd;
}

void onic_close(int fd)
{
    (void)fd;
}

/* ---- time ------------------------------------------------------------------------------------ */

static _Atomic uint64_t now;

static uint64_t time_now(void)
{
    return atomic_load_explicit(&now, memory_order_relaxed);
}

static void stay_awhile(void)
{
    if (explore_pause_for_a_time())
        atomic_fetch_add_explicit(&now, 1, memory_order_relaxed);
}

static bool can_read_pipe(struct pollfd *fds)
{
    fds[0].revents = atomic_load(&pipe_bytes) != 0 ? POLLIN : 0;
    return fds[0].revents != 0;
}

static int poll_stand_in(struct pollfd *fds, nfds_t n, const struct timespec *time)
{
    const uint64_t begun = time_now();
    const uint64_t usec = time == NULL ? 0 : (uint64_t)time->tv_nsec / 1000;
    (void)n;
    while (!can_read_pipe(fds)) {
        if (time != NULL && time_now() - begun >= usec)
            return 0;
        explore_pause();
    }
    return 1;
}

/* ---- messages -------------------------------------------------------------------------------- */

static _Atomic unsigned asked, ring, answers;

static int ring_progress(void)
{
    is_alone();
    if (atomic_load_explicit(&ring, memory_order_acquire) == 0)
        return 0;
    const unsigned n = atomic_exchange_explicit(&ring, 0, memory_order_acquire);
    atomic_fetch_add_explicit(&answers, n, memory_order_release);
    return 1;
}

/** As onic_outbox_park does (ring.c tests that). */
static bool ring_arm(unsigned nap)
{
    atomic_store_explicit(&onic_presence_mine()->parked, nap, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);
    return true;
}

static const onic_row_t ring_row = {
    .progress = ring_progress, .leaves_work = leaves_nothing, .arm = ring_arm};
const onic_row_t *const onic_rows[ONIC_ROWS + 1] = {&ring_row, NULL};

static const onic_file_key_t pipe_of_target = {.fd = PIPE};
static onic_segment_key_t page_of_target = {.size = sizeof(page), .file.fd = PAGE};

/** As the sender's wake (shm/inbox.c). Returns how many have asked by then. */
static unsigned ask(void)
{
    const unsigned before = atomic_fetch_add_explicit(&asked, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&ring, 1, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&page.parked, memory_order_relaxed) != 0)
        onic_wake_peer(&pipe_of_target);
    return before + 1;
}

/* ---- the origin's process -------------------------------------------------------------------- */

#include "common/pipeline/pipeline.h"
#include "opal/runtime/opal_progress.h"
#include "osc_nicstride/queue/flow.h"
#include "osc_nicstride/queue/operation.h"
#include "osc_nicstride/queue/wait.h"
#include "osc_nicstride/window/state.h"

static bool yes = true;
static onic_guard_t origin_guard = {.threads = &yes};
static unsigned waits[EXPLORE_THREADS];

static bool origin_trylock(void)
{
    return onic_guard_try(&origin_guard);
}

static void origin_lock(void)
{
    while (!origin_trylock())
        explore_pause();
}

static void origin_unlock(void)
{
    onic_guard_release(&origin_guard);
}

static unsigned answered;

static int origin_progress_locked(void)
{
    const unsigned n = atomic_load_explicit(&answers, memory_order_acquire);
    const int events = (int)(n - answered);
    answered = n;
    return events;
}

/** The target's MPI thread does something all the time; when it last did. */
static bool busy;
static _Atomic uint64_t busy_at;

/** What all else takes, unless something happens. The first such wait is short. */
static void pass_time(void)
{
    unsigned *n = &waits[explore_me()];
    if (!explore_pause_for_a_time())
        return;
    EXPLORE_ASSERT(*n < 12);
    atomic_fetch_add_explicit(&now, (*n)++ == 0 ? 20 : 1000, memory_order_relaxed);
    while (busy && atomic_load(&busy_at) < time_now() && atomic_load(&answers) == 0)
        explore_pause();
}

#define onic_transport_lock()            origin_lock()
#define onic_transport_trylock()         origin_trylock()
#define onic_transport_unlock()          origin_unlock()
#define onic_transport_progress_locked() origin_progress_locked()
#define onic_transport_mark()            ((void)0)
#define onic_pipeline_idle()             (false)
#define opal_progress()                  pass_time()
#define is_away(...)                     target_is_away(__VA_ARGS__)
#include "osc_nicstride/queue/presence.c"
#include "osc_nicstride/queue/wait.c"
#undef onic_transport_lock
#undef onic_transport_trylock
#undef onic_transport_unlock
#undef onic_transport_progress_locked
#undef onic_transport_mark

nicstride_component_t nicstride_component;
nicstride_counters_t nicstride_counters;
static nicstride_peer_t peer;
static nicstride_op_t op;
static const onic_presence_t *mapped;
static bool tried;

/** As neighbour.c: the lock is held at first. */
const onic_presence_t *onic_peer_presence(onic_peer_t *p)
{
    (void)p;
    if (!tried) {
        tried = true;
        mapped = page_of_target.file.fd == PAGE ? &page : NULL;
    }
    return mapped;
}

bool onic_peer_can_wake(onic_peer_t *p)
{
    return onic_peer_presence(p) != NULL &&
           atomic_load_explicit(&mapped->helped, memory_order_acquire);
}

void onic_peer_wake(const onic_peer_t *p)
{
    (void)p;
    onic_wake_peer(&pipe_of_target);
}

uint64_t onic_peer_name(const onic_peer_t *p)
{
    (void)p;
    return 1;
}

bool onic_peer_puts_by_rdma(onic_peer_t *p)
{
    (void)p;
    return false;
}

onic_kind_t onic_distance(uint64_t name)
{
    (void)name;
    return ONIC_NEAR;
}

onic_peer_t *nicstride_onic_peer_locked(const nicstride_module_t *m, int rank)
{
    (void)m, (void)rank;
    return NULL;
}

/* Nothing is queued, and there is no reply line. */

void nicstride_take_answer_locked(nicstride_peer_t *p)
{
    (void)p;
    abort();
}

void nicstride_pump_queue_locked(nicstride_peer_t *p)
{
    (void)p;
    abort();
}

bool nicstride_needs_peer_locked(nicstride_peer_t *p)
{
    (void)p;
    return true;
}

void nicstride_peers_each_locked(void (*fn)(nicstride_peer_t *, void *), void *arg)
{
    fn(&peer, arg);
}

/* ---- the program ----------------------------------------------------------------------------- */

static void setup(void)
{
    new_transport();
    atomic_init(&now, 100);
    onic_presence_use(&page);
    page.helped = true;
    TAILQ_INIT(&peer.queue.live);
}

static bool has_answer(void *arg)
{
    return answered >= *(const unsigned *)arg;
}

/** As all that an origin does: it chooses by whether the target is there, and waits for it. */
static void origin(void)
{
    const nicstride_presence_t found = nicstride_presence(&peer);
    EXPLORE_ASSERT(found != NICSTRIDE_ABSENT && nicstride_kind(&peer) == ONIC_NEAR);
    unsigned ticket = ask();
    nicstride_wait(&peer, NICSTRIDE_WAKE, has_answer, &ticket);
}

/* The target computes. */

static void away(unsigned me)
{
    if (me == 0) {
        serve();
        return;
    }
    origin();
    stop_server();
}

/* It leaves MPI just then. */

static void leaves(unsigned me)
{
    if (me == 2)
        (void)onic_transport_progress();
    else
        away(me);
}

/* It takes the lock all the time, and does not look at what has come, as who only sends. */

static void sends_setup(void)
{
    setup();
    busy = true;
}

static void sends(unsigned me)
{
    if (me != 2) {
        away(me);
        return;
    }
    for (;;) {
        const uint64_t before = time_now();
        onic_transport_lock();
        onic_transport_unlock();
        atomic_store(&busy_at, before);
        if (atomic_load(&answers) != 0)
            return;
        if (time_now() == before)
            explore_pause();
    }
}

/* Its server thread stands in, until the target comes back and needs that no more. */

static atomic_bool was_back;

static void served_setup(void)
{
    setup();
    onic_transport.server.want = 1;
}

static void served(unsigned me)
{
    if (me == 0) {
        serve();
    } else if (me == 1) {
        if (explore_choose(2) == 0)
            while (!atomic_load(&was_back))
                pass_time();
        waits[me] = 0;
        away(me);
    } else {
        while (!atomic_load(&page.away) && atomic_load(&answers) == 0)
            explore_pause();
        (void)onic_transport_progress();
        onic_transport_want_server(false);
        atomic_store(&was_back, true);
    }
}

/* The origin waits for a request, in a loop of Open MPI's. */

static void request_setup(void)
{
    setup();
    op.number = 1;
    TAILQ_INSERT_TAIL(&peer.queue.live, &op, of_live);
    nicstride_counters.live_requests = 1;
}

static void request(unsigned me)
{
    if (me == 0) {
        serve();
        return;
    }
    (void)ask();
    for (bool over = false; !over;) {
        (void)nicstride_look_after_peers();
        origin_lock();
        over = origin_progress_locked() > 0;
        origin_unlock();
        if (!over)
            pass_time();
    }
    stop_server();
}

/* Two threads of the origin's process meet the target at the same time, and it shows no page. */

static void meet(unsigned me)
{
    EXPLORE_ASSERT(me == 1 || nicstride_presence(&peer) != NICSTRIDE_ABSENT);
    EXPLORE_ASSERT(nicstride_can_wake(&peer) == (page_of_target.file.fd == PAGE));
    EXPLORE_ASSERT(nicstride_kind(&peer) == ONIC_NEAR);
}

static void unseen_setup(void)
{
    setup();
    page_of_target.file.fd = NO_SUCH;
}

static void end(void)
{
    EXPLORE_ASSERT(answers == asked && ring == 0 && !page.away);
}

static const explore_target_t targets[] = {
    {"presence-away", 2, setup, away, end, 2, 0},
    {"presence-leaves", 3, setup, leaves, end, 1, 0},
    {"presence-sends", 3, sends_setup, sends, end, 1, 0},
    {"presence-served", 3, served_setup, served, end, 1, 0},
    {"presence-request", 2, request_setup, request, end, 2, 0},
    {"presence-meet", 2, setup, meet, NULL, 0, 0},
    {"presence-unseen", 2, unseen_setup, meet, NULL, 0, 0},
};

int main(int argc, char **argv)
{
    return explore_main(argc, argv, targets, sizeof(targets) / sizeof(targets[0]));
}
