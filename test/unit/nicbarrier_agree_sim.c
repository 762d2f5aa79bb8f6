/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file See nicbarrier_agree_sim.h. */
#include "test/unit/nicbarrier_agree_sim.h"

#include <stdlib.h>
#include <string.h>

#include "common/support/bytes.h"

/* ---- messages ---------------------------------------------------------------------------------
 */

static uint32_t new_message(sim_t *sim)
{
    if (sim->pool_free != 0) {
        const uint32_t at = sim->pool_free;
        sim->pool_free = sim->pool[at - 1].next;
        return at;
    }
    if (sim->pool_used == sim->pool_size) {
        sim->pool_size = sim->pool_size > 0 ? 2 * sim->pool_size : 1024;
        sim->pool = realloc(sim->pool, sim->pool_size * sizeof(*sim->pool));
        ck_assert_ptr_nonnull(sim->pool);
    }
    return ++sim->pool_used;
}

static void wake(sim_t *sim, int32_t rank)
{
    if (!sim->rank[rank].listed) {
        sim->rank[rank].listed = true;
        sim->list[sim->listed++] = rank;
    }
}

static void post(sim_t *sim, int32_t from, int32_t to, const void *bytes, size_t len)
{
    sim_rank_t *r = &sim->rank[to];
    const uint32_t at = new_message(sim);
    sim_message_t *message = &sim->pool[at - 1];

    UNIT_CHECK(len <= sizeof(message->bytes));
    *message = (sim_message_t){.from = from, .len = (uint16_t)len};
    memcpy(message->bytes, bytes, len);
    if (r->mail == 0)
        r->mail = at;
    else
        sim->pool[r->last_mail - 1].next = at;
    r->last_mail = at;
    wake(sim, to);
}

/** Does something to the message. */
static void harm(sim_t *sim, int32_t from, int32_t to, unsigned char *bytes, size_t *len)
{
    unsigned char stale[NICBARRIER_MESSAGE_MAX];

    sim->harm_done = true;
    sim->harm_to = to;
    switch (sim->harm) {
    case SIM_STALE:
        memcpy(stale, bytes, *len);
        onic_put32(stale + 4, onic_get32(bytes + 4) - 1);
        post(sim, from, to, stale, *len);
        break;
    case SIM_CUT:
        *len = unit_below(&sim->random, *len);
        break;
    case SIM_LONG:
        *len = 0;
        break;
    default:
        bytes[unit_below(&sim->random, 4)] ^= (unsigned char)(1 + unit_below(&sim->random, 255));
    }
}

static void send(void *arg, int32_t to, const void *bytes, size_t len)
{
    sim_rank_t *r = arg;
    sim_t *sim = r->sim;
    unsigned char copy[NICBARRIER_MESSAGE_MAX];

    UNIT_CHECK(to >= 0 && to < sim->n && to != r->me && len <= sizeof(copy));
    r->sent++;
    sim->messages++;
    sim->bytes += len;
    if (sim->harm != SIM_SOUND && !sim->harm_done && sim->harmed(bytes) && sim->harm_at-- == 0) {
        memcpy(copy, bytes, len);
        harm(sim, r->me, to, copy, &len);
        bytes = copy;
    }
    post(sim, r->me, to, bytes, len);
}

/** Takes the first message of that rank out of the mail; 0: there is none. */
static uint32_t take_out(sim_t *sim, sim_rank_t *r, int32_t from)
{
    uint32_t before = 0;

    for (uint32_t at = r->mail; at != 0; before = at, at = sim->pool[at - 1].next) {
        if (sim->pool[at - 1].from != from)
            continue;
        if (before == 0)
            r->mail = sim->pool[at - 1].next;
        else
            sim->pool[before - 1].next = sim->pool[at - 1].next;
        r->last_mail = r->last_mail == at ? before : r->last_mail;
        return at;
    }
    return 0;
}

/* ---- the host ---------------------------------------------------------------------------------
 */

static int32_t member(void *arg, int32_t after)
{
    const sim_rank_t *r = arg;

    UNIT_CHECK(after >= 0);
    return r->sim->rank[after].next;
}

static bool make(void *arg, int32_t n, int32_t limit, bool named, unsigned char *key)
{
    const sim_rank_t *r = arg;

    UNIT_CHECK(n >= 2 && limit >= 2 && limit <= n && r->m.setup.first == r->me);
    memset(key, 0, NICBARRIER_SEGMENT_KEY);
    onic_put32(key, (uint32_t)r->me);
    key[4] = named;
    return !r->faults.make;
}

static nicbarrier_mapped_t map(void *arg, const unsigned char *key, int32_t index, int32_t n,
                               int32_t limit)
{
    const sim_rank_t *r = arg;

    UNIT_CHECK((int32_t)onic_get32(key) == r->m.setup.first && index > 0 && index < n &&
               limit <= n);
    if (r->faults.unmapped)
        return NICBARRIER_UNMAPPED;
    return r->faults.unnamed && !key[4] ? NICBARRIER_UNNAMED : NICBARRIER_MAPPED;
}

static bool settle(void *arg, bool shared, bool others)
{
    sim_rank_t *r = arg;

    (void)others;
    r->shared = shared;
    return !r->faults.settle;
}

static bool prepare(void *arg, int engine, const nicbarrier_group_t *group)
{
    sim_rank_t *r = arg;

    UNIT_CHECK(!r->connected && group->n >= 2 && group->me < group->n && group->key != 0);
    UNIT_CHECK(group->key != r->key);
    r->key = group->key;
    r->engine = engine;
    r->index = group->me;
    r->connections = r->connections_xor = 0;
    return (r->faults.prepare & 1U << engine) == 0;
}

static void send_endpoint(void *arg, int32_t to, nicbarrier_topic_t topic)
{
    sim_rank_t *r = arg;
    unsigned char bytes[NICBARRIER_TOPIC_SIZE + SIM_ENDPOINT];
    size_t len = nicbarrier_topic_write(bytes, topic);

    if ((r->faults.prepare & 1U << r->engine) == 0) {
        onic_put64(bytes + len, r->key);
        onic_put32(bytes + len + 8, (uint32_t)r->index);
        onic_put32(bytes + len + 12, (uint32_t)r->engine);
        len += SIM_ENDPOINT;
    }
    send(r, to, bytes, len);
}

static bool keep(void *arg, int32_t leader, const void *bytes, size_t len)
{
    sim_rank_t *r = arg;
    const unsigned char *b = bytes;

    /* One that was cut is found out by the engine. */
    if (len != SIM_ENDPOINT)
        return false;
    UNIT_CHECK(onic_get64(b) == r->key && onic_get32(b + 8) == (uint32_t)leader &&
               onic_get32(b + 12) == (uint32_t)r->engine);
    r->connections++;
    r->connections_xor ^= (uint32_t)leader * 2654435761u;
    return (r->faults.keep & 1U << r->engine) == 0;
}

static bool connect(void *arg)
{
    sim_rank_t *r = arg;

    if ((r->faults.connect & 1U << r->engine) != 0)
        return false;
    UNIT_CHECK(!r->connected);
    r->connected = true;
    r->sim->connected++;
    r->sim->leaders = r->m.leaders;
    return true;
}

static void expect(void *arg)
{
    sim_rank_t *r = arg;

    UNIT_CHECK(r->connected && !r->expects && r->sim->connected == r->sim->leaders);
    r->expects = true;
}

/** Where one fails nobody's comes to an end, unless it was told. */
static int trial(void *arg)
{
    sim_rank_t *r = arg;

    UNIT_CHECK(r->expects);
    if ((r->faults.trial & 1U << r->engine) != 0)
        return unit_once_in(&r->sim->random, 5) ? -1 : 0;
    for (int32_t i = 0; i < r->sim->n && !r->sim->in_order; i++)
        if (r->sim->rank[i].m.leads && (r->sim->rank[i].faults.trial & 1U << r->engine) != 0)
            return 0;
    return 1;
}

static void drop(void *arg)
{
    sim_rank_t *r = arg;

    r->sim->connected -= r->connected;
    r->connected = r->expects = false;
}

static uint32_t *table(void *arg, int32_t n)
{
    sim_rank_t *r = arg;

    r->table = r->faults.table ? NULL : calloc((size_t)n, sizeof(uint32_t));
    return r->table;
}

static const nicbarrier_host_t host = {.send = send,
                                       .member = member,
                                       .make = make,
                                       .map = map,
                                       .settle = settle,
                                       .prepare = prepare,
                                       .send_endpoint = send_endpoint,
                                       .keep = keep,
                                       .connect = connect,
                                       .expect = expect,
                                       .trial = trial,
                                       .drop = drop,
                                       .table = table};

/* ---- the world --------------------------------------------------------------------------------
 */

static void put_on_node(sim_t *sim, const int32_t *node, int32_t r, int32_t *first, int32_t *last,
                        int32_t *n)
{
    sim->rank[r].next = -1;
    if (n[node[r]]++ == 0)
        first[node[r]] = r;
    else
        sim->rank[last[node[r]]].next = r;
    last[node[r]] = r;
}

void sim_init(sim_t *sim, int32_t n, const int32_t *node, nicbarrier_setup_t common)
{
    const size_t bytes = (size_t)n * sizeof(int32_t);
    int32_t *first = calloc(1, bytes), *last = calloc(1, bytes), *count = calloc(1, bytes);

    memset(sim, 0, sizeof(*sim));
    sim->n = n;
    sim->rank = calloc((size_t)n, sizeof(*sim->rank));
    sim->list = calloc(1, bytes);
    ck_assert(first != NULL && last != NULL && count != NULL);
    ck_assert(sim->rank != NULL && sim->list != NULL);
    for (int32_t r = 0; r < n; r++)
        put_on_node(sim, node, r, first, last, count);
    for (int32_t r = 0; r < n; r++) {
        nicbarrier_setup_t *s = &sim->rank[r].m.setup;
        *s = common;
        s->size = n;
        s->me = r;
        s->first = first[node[r]];
        s->n = count[node[r]];
        s->key = 1000003u * (uint64_t)r + 17;
        s->candidate[0] = (nicbarrier_candidate_t){NICBARRIER_NEEDS_ONE_NODE, false, 100};
        s->candidate[1] = (nicbarrier_candidate_t){NICBARRIER_NEEDS_ONE_JOB, true, 80};
        s->candidate[2] = (nicbarrier_candidate_t){NICBARRIER_NEEDS_ONE_JOB, true, 50};
        sim->rank[r].me = r;
        sim->rank[r].sim = sim;
    }
    free(first);
    free(last);
    free(count);
}

void sim_fini(sim_t *sim)
{
    for (int32_t r = 0; r < sim->n; r++)
        free(sim->rank[r].table);
    free(sim->rank);
    free(sim->list);
    free(sim->pool);
}

/** One piece of work of a rank; false: there is none until something comes. */
static bool step(sim_t *sim, sim_rank_t *r)
{
    const nicbarrier_turn_t turn = nicbarrier_protocol_turn(&r->m);

    if (turn == NICBARRIER_OVER)
        return false;
    if (turn == NICBARRIER_GO) {
        nicbarrier_protocol_go(&r->m);
        return true;
    }
    const int32_t source = nicbarrier_protocol_source(&r->m);
    const bool look = turn == NICBARRIER_WATCH && unit_once_in(&sim->random, 2);
    const uint32_t at = source < 0 || look ? 0 : take_out(sim, r, source);
    if (at != 0) {
        const sim_message_t message = sim->pool[at - 1];
        sim->pool[at - 1].next = sim->pool_free;
        sim->pool_free = at;
        nicbarrier_protocol_take(&r->m, message.bytes, message.len);
        return true;
    }
    if (turn == NICBARRIER_WATCH)
        nicbarrier_protocol_go(&r->m);
    return turn == NICBARRIER_WATCH;
}

static void begin(sim_t *sim)
{
    for (int32_t i = 0; i < sim->n; i++) {
        sim_rank_t *r = &sim->rank[i];
        nicbarrier_setup_t setup = r->m.setup;
        setup.failed = r->faults.failed;
        if (setup.failed)
            nicbarrier_reason(&r->why, "rank %d has failed", (int)i);
        nicbarrier_protocol_init(&r->m, &setup, &host, r, &r->why);
        wake(sim, i);
    }
}

void sim_run(sim_t *sim)
{
    begin(sim);
    while (sim->listed > 0) {
        const int32_t at = sim->in_order ? sim->listed - 1
                                         : (int32_t)unit_below(&sim->random, (uint64_t)sim->listed);
        sim_rank_t *r = &sim->rank[sim->list[at]];
        if (!step(sim, r)) {
            r->listed = false;
            sim->list[at] = sim->list[--sim->listed];
        }
    }
}

int32_t sim_ended(const sim_t *sim)
{
    int32_t n = 0;

    for (int32_t r = 0; r < sim->n; r++)
        n += nicbarrier_protocol_turn(&sim->rank[r].m) == NICBARRIER_OVER;
    return n;
}
