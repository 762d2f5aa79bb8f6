/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/channel/wait.h"
#include "osc_nicstride/channel/reply.h"

#include "common/mover/mover.h"
#include "opal/runtime/opal_progress.h"

void nicstride_progress(void)
{
    opal_progress();
}

/* Turns of the wire between two turns of everything else, which cost several times as much. */
#define WIRE_TURNS 32
/* And between two signs of life. */
#define BEAT_TURNS 4

/** `wakes`: `p` is woken. `always`: what is waited for may come without an event. */
static void wait_until(nicstride_peer_t *p, bool wakes, bool always, bool (*done)(void *arg),
                       void *arg)
{
    onic_patience_t patience;
    bool waited = false;

    onic_patience_begin(&patience);
    for (;;) {
        /* What goes through slots is moved without the lock, by this thread, too. */
        const int turns = onic_mover_idle() ? WIRE_TURNS : 1;
        bool over = false;
        int events = 1;

        onic_wire_lock();
        for (int turn = 0; turn < turns; turn++) {
            /* What is waited for comes with an event, or is in the slot. */
            if (p != NULL && nicstride_look_locked(p))
                events = 1;
            over = (always || events != 0) && done(arg);
            if (over)
                break;
            if (turn % BEAT_TURNS == 0)
                onic_presence_mark();
            waited = true;
            events = onic_wire_progress_locked();
        }
        onic_wire_unlock();
        if (over) {
            if (waited)
                onic_presence_mark();
            return;
        }
        if (turns == 1 && onic_mover_progress() > 0)
            continue;
        if (wakes)
            nicstride_wake_waited(&patience, p);
        opal_progress();
    }
}

void nicstride_wait_until(nicstride_peer_t *p, bool (*done)(void *arg), void *arg)
{
    wait_until(p, p != NULL, false, done, arg);
}

void nicstride_wait_patiently(nicstride_peer_t *p, bool (*done)(void *arg), void *arg)
{
    wait_until(p, false, false, done, arg);
}

void nicstride_wait_polling(bool (*done)(void *arg), void *arg)
{
    wait_until(NULL, false, true, done, arg);
}
