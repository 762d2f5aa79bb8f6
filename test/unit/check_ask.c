/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * When keys are asked for once more: windows that share a connection to one
 * target, which answers in any order, and may have no memory for some of them, or no connections;
 * connections go, windows are freed and made.
 */
#include "osc_nicstride/methods/verbs_ask.h"

#include <string.h>

#include "test/unit/unit.h"

enum { WINDOWS = 4, ROUNDS = 3000, STEPS = 200 };

typedef struct window {
    bool asked, refused, has_keys, has_mine; /**< keys of any method; of the one that connects */
    bool has_memory;                         /**< the target's, to be registered */
    bool busy;
} window_t;

static struct {
    window_t window[WINDOWS];
    nicstride_connection_t connection;
    int asker;
    bool given_up, serves; /**< the target has connections */
    int questions;         /**< ever */
} s;

/** A question of a window takes this side's end along, if there can be one. */
static void ask(int w)
{
    window_t *v = &s.window[w];

    UNIT_CHECK(!v->asked && !v->refused);
    if (s.connection == NICSTRIDE_UNCONNECTED && !s.given_up)
        s.connection = NICSTRIDE_OFFERED;
    if (s.connection == NICSTRIDE_OFFERED)
        s.asker = w;
    v->asked = true;
    s.questions++;
}

static void answer(int w)
{
    window_t *v = &s.window[w];

    UNIT_CHECK(v->asked);
    v->asked = false;
    v->has_keys = v->has_memory;
    v->refused = !v->has_memory;
    v->has_mine = v->has_memory && s.serves && !s.given_up;
    if (v->has_mine && s.connection == NICSTRIDE_OFFERED)
        s.connection = NICSTRIDE_CONNECTED;
}

static bool goes(int w)
{
    return s.window[w].has_mine && s.connection == NICSTRIDE_CONNECTED;
}

/** A transfer of a window: does it go by the method? */
static bool use(int w)
{
    window_t *v = &s.window[w];
    nicstride_asking_t a = {.connection = s.connection,
                            .given_up = s.given_up,
                            .had = s.asker >= 0 && !s.window[s.asker].refused,
                            .asked = v->asked,
                            .refused = v->refused,
                            .busy = v->busy};

    if (goes(w))
        return true;
    if (!v->has_keys && !v->asked && !v->refused) {
        ask(w);
        return false;
    }
    for (int i = 0; i < WINDOWS; i++)
        a.any |= s.window[i].asked;
    switch (nicstride_ask_again(&a)) {
    case NICSTRIDE_ASK_GIVE_UP:
        /* Only a target that has none is given up. */
        UNIT_CHECK(!s.serves);
        s.given_up = true;
        s.connection = NICSTRIDE_UNCONNECTED;
        break;
    case NICSTRIDE_ASK_LEAVE:
        UNIT_CHECK(s.connection == NICSTRIDE_OFFERED && !a.any);
        s.connection = NICSTRIDE_UNCONNECTED;
        break;
    case NICSTRIDE_ASK_ANEW:
        UNIT_CHECK(!v->busy && !s.given_up);
        v->has_keys = v->has_mine = false;
        ask(w);
        break;
    default:
        break;
    }
    return false;
}

static void step(unit_random_t *r)
{
    const int w = (int)unit_below(r, WINDOWS);
    window_t *v = &s.window[w];

    switch (unit_below(r, 8)) {
    case 0:
        if (s.connection == NICSTRIDE_CONNECTED)
            s.connection = NICSTRIDE_UNCONNECTED;
        break;
    case 1:
        /* Freed, and another one made. An answer to the old one reaches nobody. */
        *v = (window_t){.has_memory = unit_below(r, 4) > 0};
        s.asker = s.asker == w ? -1 : s.asker;
        break;
    case 2:
        v->busy = goes(w) && !v->busy;
        break;
    case 3:
    case 4:
        if (v->asked)
            answer(w);
        break;
    default:
        (void)use(w);
    }
}

/** In the end all windows that have memory go by the method, or none where the target cannot, and
 *  no further question is asked. */
static void check_settles(void)
{
    int asked;

    for (int turn = 0; turn < 8; turn++) {
        for (int w = 0; w < WINDOWS; w++) {
            s.window[w].busy = false;
            (void)use(w);
        }
        for (int w = 0; w < WINDOWS; w++)
            if (s.window[w].asked)
                answer(w);
    }
    asked = s.questions;
    for (int w = 0; w < WINDOWS; w++)
        UNIT_CHECK(use(w) == (s.serves && s.window[w].has_memory));
    UNIT_CHECK(s.questions == asked);
}

START_TEST(settles_from_anywhere)
{
    unit_random_t r = {unit_seed()};

    for (int round = 0; round < ROUNDS; round++) {
        memset(&s, 0, sizeof(s));
        s.asker = -1;
        s.serves = unit_below(&r, 3) > 0;
        for (int w = 0; w < WINDOWS; w++)
            s.window[w].has_memory = unit_below(&r, 4) > 0;
        for (int i = 0; i < STEPS; i++)
            step(&r);
        check_settles();
    }
}
END_TEST

int main(void)
{
    return UNIT_RUN("ask", UNIT_ONCE(settles_from_anywhere));
}
