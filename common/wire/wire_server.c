/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The server thread: passive-target progress while the MPI threads compute.
 *
 * It sleeps in poll(), always, and its pipe (the door) ends that. Who waits for this process and
 * sees that it is away from MPI knocks there: the thread then does what there is to do and sleeps
 * again. It has no timer for that and takes nothing over.
 *
 * Not all can knock: not those on other nodes. Where such a one may wait, the thread is wanted
 * (onic_wire_want_server): it looks every idle_usec whether the MPI threads' tick counter moves.
 * Where they have been away for a whole such time it takes over, and sleeps until the network or a
 * returning MPI thread wakes it. Transports are armed only then, because an armed shared-memory
 * queue costs its senders a system call. Without being wanted it looks as often only while this
 * process has left work undone, such as messages not yet sent.
 *
 * The thread never waits for the wire lock: where that is taken, an MPI thread is at work.
 */
#define _GNU_SOURCE
#include "common/wire/wire_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "common/support/clock.h"
#include "common/support/helper_thread.h"
#include "common/support/pause.h"
#include "common/support/say.h"
#include "ompi/constants.h"
#include "opal/util/output.h"

/** Progress calls in one holding of the lock. */
#define SLICE 16
/** Naps while work is left that no event will announce, in microseconds. */
#define NAP_MIN 20
#define NAP_MAX 1000
/** Who has knocked may have more to send when it has an answer; it waits in MPI, so that comes
 *  soon or not at all. */
#define LINGER_USEC 5
/** But an MPI thread that was there so few microseconds ago has lost its processor, to this thread
 *  perhaps, rather than that it computes: then it gets it back at once. */
#define RECENT_USEC 50
/** However much there is to do, it sleeps now and then, so that threads on the same processor have
 *  their turns. */
#define STAY_USEC 200
/** Looks for work of our own that cannot be done come more and more seldom, up to so many times
 *  idle_usec. */
#define LOOKS_MAX 16
/** Looks that find nothing before it sleeps without a timer. A program that puts work off does so
 *  again and again, and waking the thread each time would take longer than the work. */
#define LOOKS_IDLE 16

#define FOREVER UINT_MAX

/** What is written to the door: by others, and by this process to its own thread. */
enum { KNOCK = 'k', WAKE = 'w' };

typedef enum slice_result {
    SLICE_MORE,  /**< events were handled: there may be more */
    SLICE_IDLE,  /**< nothing to do */
    SLICE_ARMED, /**< nothing to do; the next event makes the descriptor readable */
    SLICE_STUCK, /**< nothing could be done, but something is left */
    SLICE_LEAVE  /**< an MPI thread is at work */
} slice_result_t;

/* ---- the door ------------------------------------------------------------------------------- */

/** A full pipe is as good: somebody has knocked already. */
static void write_door(int fd, char what)
{
    while (write(fd, &what, 1) < 0 && errno == EINTR) {
    }
}

void onic_server_wake(void)
{
    /* Only the first needs to. */
    if (atomic_exchange(&onic_wire.server.sleep, ONIC_SERVER_LOOKS) != ONIC_SERVER_LOOKS) {
        write_door(onic_wire.server.door[1], WAKE);
    }
}

void onic_door_knock(int fd)
{
    write_door(fd, KNOCK);
}

/** Takes what was written; true where others have. */
static bool read_door(onic_server_t *s)
{
    char bytes[64];
    bool knocked = false;
    for (;;) {
        const ssize_t n = read(s->door[0], bytes, sizeof(bytes));
        if (n > 0) {
            knocked = knocked || memchr(bytes, KNOCK, (size_t)n) != NULL;
        } else if (n == 0 || errno != EINTR) {
            return knocked;
        }
    }
}

/** Sleeps up to `usec` or until somebody is at the door, or, armed, something comes by the network.
 *  True where another process has knocked. */
static bool look_out(onic_server_t *s, unsigned usec, bool armed)
{
    struct pollfd fds[2] = {{.fd = s->door[0], .events = POLLIN},
                            {.fd = s->worker_fd, .events = POLLIN}};
    const struct timespec time = onic_timespec(UINT64_C(1000) * usec);
    if (ppoll(fds, armed ? 2 : 1, usec != FOREVER ? &time : NULL, NULL) <= 0) {
        return false;
    }
    return fds[0].revents != 0 && read_door(s);
}

/* ---- standing in for the MPI threads -------------------------------------------------------- */

/** True while the server is wanted and no MPI thread has shown up since `seen`. */
static bool in_charge(onic_server_t *s, uint64_t seen)
{
    return onic_is_away(seen, atomic_load(&onic_wire.mpi_ticks)) && atomic_load(&s->want) > 0 &&
           !atomic_load(&s->stop);
}

/** Progress and arm by turns. Arming fails once after each event, whose signal it takes away. It
 *  announces only what completes later: verbs say nothing of what came in between the last look
 *  and the arming, so there is one more look after it. */
static slice_result_t progress_and_arm(void)
{
    int busy = 0;
    for (int i = 0; i < SLICE; i++) {
        if (onic_wire_progress_locked() > 0) {
            continue;
        }
        if (!onic_wire_leaves_work() && ucp_worker_arm(onic_wire.worker) == UCS_OK) {
            if (onic_wire_progress_locked() == 0 && !onic_wire_leaves_work()) {
                return SLICE_ARMED;
            }
            continue;
        }
        if (++busy > 3) {
            return SLICE_STUCK;
        }
    }
    return SLICE_MORE;
}

/** What runs without the lock, after a slice that ended so. No event announces its work. */
static slice_result_t after_slice(slice_result_t result)
{
    const int done = onic_wire_run_unlocked();
    return done > 0 ? SLICE_MORE : done < 0 && result != SLICE_MORE ? SLICE_STUCK : result;
}

static slice_result_t run_slice(void)
{
    if (!onic_wire_trylock()) {
        return SLICE_LEAVE;
    }
    const slice_result_t result = progress_and_arm();
    onic_wire_unlock();
    return after_slice(result);
}

/** Waits for an event of the network, for one who has put a message into a queue, or for an MPI
 *  thread that comes back or leaves work. */
static void park(onic_server_t *s, uint64_t seen)
{
    atomic_store(&s->sleep, ONIC_SERVER_PARKED);
    s->naps += 1U + (s->naps == UINT_MAX); /* never 0 */
    const bool seen_by_all = onic_queues_park(s->naps);
    if (in_charge(s, seen) && atomic_load(&onic_wire.deferred) == 0 &&
        !onic_queues_have_messages()) {
        (void)look_out(s, seen_by_all ? FOREVER : NAP_MAX, true);
    }
    (void)onic_queues_park(0);
    atomic_store(&s->sleep, ONIC_SERVER_LOOKS);
}

static void serve_until_back(onic_server_t *s, uint64_t seen)
{
    onic_naps_t naps = ONIC_NAPS(NAP_MIN, NAP_MAX);
    while (in_charge(s, seen)) {
        switch (run_slice()) {
        case SLICE_MORE:
            onic_naps_shorten(&naps);
            break;
        case SLICE_ARMED:
            park(s, seen);
            onic_naps_shorten(&naps);
            break;
        case SLICE_STUCK:
            (void)look_out(s, naps.now, false);
            onic_naps_lengthen(&naps);
            break;
        default:
            return;
        }
    }
}

/** Stands in for the MPI threads until one of them is back. */
static void stand_in(onic_server_t *s, uint64_t seen)
{
    onic_presence_set_away(true);
    serve_until_back(s, seen);
    onic_presence_set_away(false);
}

/* ---- doing what there is -------------------------------------------------------------------- */

/** Progresses until nothing comes. Never SLICE_ARMED. */
static slice_result_t clear_up(void)
{
    slice_result_t result = SLICE_IDLE;
    int events;
    do {
        if (!onic_wire_trylock()) {
            return SLICE_LEAVE;
        }
        events = 1;
        for (int i = 0; i < SLICE && events > 0; i++) {
            events = onic_wire_progress_locked();
            result = events > 0 ? SLICE_MORE : result;
        }
        if (onic_wire_leaves_work()) {
            result = SLICE_STUCK;
        }
        onic_wire_unlock();
        const slice_result_t after = after_slice(SLICE_IDLE);
        if (after != SLICE_IDLE) {
            result = after;
        }
        events += after == SLICE_MORE;
    } while (events > 0);
    return result;
}

/** Tries again what could not be done, ever more seldom, until an MPI thread can or it is done. */
static void insist(onic_server_t *s)
{
    const uint64_t seen = atomic_load(&onic_wire.mpi_ticks);
    onic_naps_t naps = ONIC_NAPS(NAP_MIN, NAP_MAX);
    slice_result_t result;
    do {
        (void)look_out(s, naps.now, false);
        onic_naps_lengthen(&naps);
        result = clear_up();
    } while (result == SLICE_STUCK && onic_is_away(seen, atomic_load(&onic_wire.mpi_ticks)) &&
             !atomic_load(&s->stop));
}

/** Does what there is for those who have knocked, and what follows at once. MPI threads that come
 *  back do the rest. */
static void answer(onic_server_t *s)
{
    const double usec = onic_ticks_per_usec();
    const uint64_t linger =
        onic_presence_age() < (uint64_t)(RECENT_USEC * usec) ? 0 : (uint64_t)(LINGER_USEC * usec);
    const uint64_t seen = atomic_load(&onic_wire.mpi_ticks), begun = onic_ticks();
    uint64_t did = begun;
    slice_result_t result;
    do {
        result = clear_up();
        if (result == SLICE_MORE) {
            did = onic_ticks();
        }
        onic_pause();
    } while ((result == SLICE_MORE || result == SLICE_IDLE) && onic_ticks() - did < linger &&
             onic_ticks() - begun < (uint64_t)(STAY_USEC * usec) &&
             atomic_load(&onic_wire.mpi_ticks) == seen && !atomic_load(&s->stop));
    /* Who knocked meanwhile has been served, or is now. */
    (void)read_door(s);
    if (clear_up() == SLICE_STUCK) {
        insist(s);
    }
}

/** Is there work of this process that an MPI thread has left behind? */
static bool leaves_work(void)
{
    return atomic_load(&onic_wire.deferred) != 0 || atomic_load(&onic_wire.unlocked_left) ||
           atomic_load_explicit(&onic_wire.sends_out, memory_order_relaxed) != 0;
}

/** Sleeps without a timer where nothing needs one. True where another process has knocked. */
static bool sleep_deep(onic_server_t *s)
{
    bool knocked = false;
    atomic_store(&s->sleep, ONIC_SERVER_ASLEEP);
    if (atomic_load(&s->want) <= 0 && !leaves_work() && !atomic_load(&s->stop)) {
        knocked = look_out(s, FOREVER, false);
    }
    atomic_store(&s->sleep, ONIC_SERVER_LOOKS);
    return knocked;
}

static void *server_main(void *arg)
{
    onic_server_t *s = arg;
    onic_say_later();
    onic_naps_t looks = ONIC_NAPS(1, LOOKS_MAX);
    unsigned idle = LOOKS_IDLE;
    while (!atomic_load(&s->stop)) {
        const uint64_t seen = atomic_load(&onic_wire.mpi_ticks);
        const bool wanted = atomic_load(&s->want) > 0, left = leaves_work();
        bool knocked;
        if (!wanted && !left && idle >= LOOKS_IDLE) {
            onic_naps_shorten(&looks);
            knocked = sleep_deep(s);
            idle = knocked ? LOOKS_IDLE : 0;
        } else {
            idle = wanted || left ? 0 : idle + 1;
            const unsigned idle_usec = atomic_load(&s->idle_usec);
            knocked = look_out(s, wanted ? idle_usec : looks.now * idle_usec, false);
        }
        if (knocked) {
            answer(s);
        } else if (in_charge(s, seen)) {
            stand_in(s, seen);
        } else if (left && onic_is_away(seen, atomic_load(&onic_wire.mpi_ticks)) &&
                   !atomic_load(&s->stop)) {
            (void)clear_up();
            onic_naps_lengthen(&looks);
        } else {
            onic_naps_shorten(&looks);
        }
    }
    return NULL;
}

/* ---- its life ------------------------------------------------------------------------------- */

int onic_door_open(void)
{
    onic_server_t *s = &onic_wire.server;
    if (pipe2(s->door, O_CLOEXEC | O_NONBLOCK) != 0) {
        s->door[0] = s->door[1] = -1;
    }
    return s->door[1];
}

void onic_door_close(void)
{
    onic_server_t *s = &onic_wire.server;
    for (int i = 0; i < 2 && s->door[i] >= 0; i++) {
        close(s->door[i]);
    }
    s->door[0] = s->door[1] = -1;
}

static int start(onic_server_t *s)
{
    ucs_status_t status = UCS_ERR_UNSUPPORTED;
    if (onic_wire.wakes) {
        status = ucp_worker_get_efd(onic_wire.worker, &s->worker_fd);
    }
    if (status != UCS_OK) {
        opal_output(0, "ompi-nic: no passive progress: UCX gives no event descriptor: %s",
                    ucs_status_string(status));
        return onic_ucs_error(status);
    }
    if (s->door[0] < 0) {
        opal_output(0, "ompi-nic: no passive progress: there is no pipe to be had");
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    int rc = onic_helper_start(&s->thread, "onic-server", server_main, s);
    if (rc != 0) {
        opal_output(0, "ompi-nic: no passive progress: cannot start the server thread: %s",
                    strerror(rc));
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    return OMPI_SUCCESS;
}

int onic_server_start(unsigned idle_usec)
{
    onic_server_t *s = &onic_wire.server;
    /* From its next sleep on. */
    atomic_store(&s->idle_usec, idle_usec);
    if (atomic_load(&s->running)) {
        return OMPI_SUCCESS;
    }
    atomic_store(&s->sleep, ONIC_SERVER_LOOKS);
    atomic_store(&s->stop, false);
    atomic_store(&onic_wire_guard.helped, true);
    int rc = start(s);
    atomic_store(&onic_wire_guard.helped, rc == OMPI_SUCCESS);
    if (rc == OMPI_SUCCESS) {
        atomic_store(&s->running, true);
        onic_presence_set_helped(true);
    }
    return rc;
}

void onic_server_stop(void)
{
    onic_server_t *s = &onic_wire.server;
    if (!atomic_load(&s->running)) {
        return;
    }
    onic_presence_set_helped(false);
    atomic_store(&s->stop, true);
    write_door(s->door[1], WAKE);
    pthread_join(s->thread, NULL);
    atomic_store(&s->running, false);
    atomic_store(&onic_wire_guard.helped, false);
}

void onic_wire_want_server(bool want)
{
    onic_server_t *s = &onic_wire.server;
    int before = atomic_fetch_add(&s->want, want ? 1 : -1);
    if (atomic_load(&s->running) && ((want && before == 0) || (!want && before == 1)) &&
        atomic_load(&s->sleep) != ONIC_SERVER_LOOKS) {
        onic_server_wake();
    }
}
