/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test/mpi/progress_send_rules.h"

#include <stdio.h>

static const char *const mode_names[MODES] = {"", "b", "s", "r"};

static const char *const call_names[CALLS] = {"send", "send", "send_start"};

static const payload_t payloads[PAYLOADS] = {
    {"8", P2P_PLAIN, 8, true},          {"derived", P2P_VECTOR_64, 1000, true},
    {"long", P2P_PLAIN, 400000, false}, {"long_derived", P2P_VECTOR_64, 400000, false},
    {"empty", P2P_PLAIN, 0, true},      {"4000", P2P_PLAIN, MOST_SHORT, true},
};

static const char *const then_names[THENS] = {
    "sleeps",  "waits",    "tests",   "frees",      "frees_polls",
    "polls",   "receives", "barrier", "comm_frees", "comm_frees_polls",
    "detaches"};

static const char *const where_names[WHERES] = {"waiting", "posted", "testing",
                                                "probing", "late",   "late_polling"};

send_t send_of(int index)
{
    send_t s;

    s.call = (call_t)progress_digit(&index, CALLS);
    s.mode = (send_mode_t)progress_digit(&index, MODES);
    s.where = (where_t)progress_digit(&index, WHERES);
    s.payload = &payloads[progress_digit(&index, PAYLOADS)];
    s.then = (then_t)index;
    return s;
}

/* ---- rules ---- */

static bool has_request(then_t then)
{
    return then == WAITS || then == TESTS || then == FREES || then == FREES_POLLS;
}

bool send_in_mpi(then_t then)
{
    return then == POLLS || then == RECEIVES || then == IN_BARRIER || then == FREES_POLLS ||
           then == COMM_FREES_POLLS || then == DETACHES;
}

bool send_frees_comm(then_t then)
{
    return then == COMM_FREES || then == COMM_FREES_POLLS;
}

static bool allowed(const send_t *s, bool credit)
{
    if (has_request(s->then) && s->call == BLOCKING)
        return false;
    if (s->then == DETACHES && s->mode != BUFFERED)
        return false;
    /* A receive must be posted, and known to be. */
    if (s->mode == READY && s->where != POSTED && s->where != TESTING)
        return false;
    return credit ? s->where != LATE_POLLING : s->where == LATE_POLLING && s->payload->is_short;
}

void send_describe(progress_cell_t *cell, const progress_context_t *context, bool credit)
{
    const send_t s = send_of(cell->index);
    /* A send that is over, but for what MPI has copied at the user's wish. */
    const bool ended =
        s.mode != BUFFERED && (s.call == BLOCKING || s.then == WAITS || s.then == TESTS);

    if (!allowed(&s, credit)) {
        cell->rule = PROGRESS_NEVER;
        return;
    }
    snprintf(cell->name, sizeof(cell->name), "%s%s%s_%s/%s/%s", s.call == NONBLOCKING ? "i" : "",
             mode_names[s.mode], call_names[s.call], s.payload->name, then_names[s.then],
             where_names[s.where]);
    cell->rule = PROGRESS_MUST;
    if (send_in_mpi(s.then) || ended)
        return;
    if (!credit) {
        cell->rule = PROGRESS_MAY;
        cell->why = "a short message without credit, whose send is not over";
    } else if (s.payload->is_short && context->meets) {
        cell->rule = PROGRESS_MAY;
        cell->why = "the first message to a process of another host, whose send is not over";
    } else if (!s.payload->is_short || context->forced) {
        cell->rule = PROGRESS_MAY;
        cell->why = "a long message, whose send is not over";
    }
}
