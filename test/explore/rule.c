/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The rule of barriers over a network, and the requests to repeat: every state that two to
 * four members come to, with messages in any order, lost, doubled and late, and timers that run out
 *  at any time, and with a member that stops and one that finds that out.
 *
 *  A message that was ever sent may come at any time, any number of times, or never: so the network
 *  is the set of them. Threads play no part, so states are kept, and each is looked at once. What
 *  holds in each: no epoch is complete that a member has not entered, and from there, with nothing
 *  on its way and no further loss, all epochs become complete, or the failure known. */
#define _GNU_SOURCE
#include "test/explore/explore.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coll_nicbarrier/epoch/nack.c"
#include "coll_nicbarrier/schedule/schedule.c"
#include "test/explore/kernel.h"

#define MEMBERS 4
#define STEPS   4
/** Words are epochs up to 3, and the same with a failure. */
#define WORDS  8
#define FAILED 4
/** What travels; of each kind and step the words that were ever sent. */
typedef enum kind { EPOCH, NACK, KINDS } kind_t;

/** What the page of a member whose kernel takes the steps has beside the rule. */
typedef struct orders {
    bool on; /**< the kernel takes them, not (any more) the process */
    uint8_t enter;
    uint8_t take[STEPS]; /**< short words */
} orders_t;

typedef struct member {
    nicbarrier_rule_t rule;
    nicbarrier_nacks_t nacks;
    orders_t kernel;
    bool stopped;
    /** By the step of the member that it is for: for all but NACK of whom it sends to. */
    uint8_t sent[KINDS][STEPS];
} member_t;

typedef struct state {
    member_t member[MEMBERS];
} state_t;

#include "test/explore/states.h"

static int n, nsteps[MEMBERS];
static nicbarrier_step_t step[MEMBERS][NICBARRIER_STEPS_MAX];
static unsigned epochs;
static bool with_nacks, with_failure, with_kernel;

/* ---- words ----------------------------------------------------------------------------------- */

static unsigned short_word(uint64_t word)
{
    return (unsigned)(word & 3) | (word >> 63 ? FAILED : 0);
}

static uint64_t long_word(unsigned word)
{
    return (word & 3) | (word & FAILED ? NICBARRIER_WORD_FAILED : 0);
}

/* ---- states as keys -------------------------------------------------------------------------- */

/** Only whether a timer runs matters, as it may run out at any time. */
static void forget_times(nicbarrier_nacks_t *a)
{
    for (int k = 0; k < STEPS; k++) {
        a->wait[k].since = 0;
        a->wait[k].deadline = a->waits >> k & 1;
    }
    a->deadline = a->waits != 0 ? 1 : NICBARRIER_NEVER;
}

static size_t key_of(const state_t *s, uint8_t key[KEY_BYTES])
{
    size_t at = 0;
    for (int i = 0; i < n; i++) {
        const member_t *m = &s->member[i];
        const nicbarrier_rule_t *r = &m->rule;
        const nicbarrier_nacks_t *a = &m->nacks;
        key[at++] = (uint8_t)(r->entered | r->completed << 2 | (uint64_t)r->failed << 4 |
                              (uint64_t)r->notified << 5 | (uint64_t)m->stopped << 6);
        if (with_kernel) {
            key[at++] = (uint8_t)((unsigned)m->kernel.on | m->kernel.enter << 1);
            memcpy(key + at, m->kernel.take, (size_t)nsteps[i]);
            at += (size_t)nsteps[i];
        }
        for (int k = 0; k < nsteps[i]; k++) {
            key[at++] =
                (uint8_t)(r->sent[k] | r->received[k] << 2 | (uint64_t)(r->blocked >> k & 1) << 4);
            key[at++] = m->sent[EPOCH][k];
            if (!with_nacks)
                continue;
            key[at++] = (uint8_t)(a->waits >> k & 1);
            key[at++] = m->sent[NACK][k];
        }
    }
    return at;
}

/* ---- the network -------------------------------------------------------------------------------
 */

/** Messages since the network was last lossless and empty, for the way to the end. */
typedef struct on_way {
    int to, at;
    kind_t kind;
    unsigned word;
} on_way_t;

static on_way_t *line;
static unsigned line_len;

/** `k`: the step of the sender. NACK goes to whom it waits for. */
static void send_out(state_t *s, int from, kind_t kind, unsigned k, unsigned word)
{
    const nicbarrier_step_t *st = &step[from][k];
    s->member[from].sent[kind][k] |= (uint8_t)(1U << word);
    if (line != NULL && line_len < 4096) {
        const bool up = kind == NACK;
        line[line_len++] = (on_way_t){.to = up ? st->wait_for : st->send_to,
                                      .at = up ? st->wait_at : st->send_at,
                                      .kind = kind,
                                      .word = word};
    }
}

/* ---- the kernel takes the steps ----------------------------------------------------------------
 */

/** The state in which a program runs. */
static state_t *running;

static void kernel_sends(unsigned member, const nicbarrier_packet_t *p)
{
    send_out(running, (int)member, EPOCH, p->from_at, short_word(p->epoch));
}

static void kernel_lock(unsigned member)
{
    (void)member;
}

static void kernel_unlock(unsigned member)
{
    (void)member;
}

static nicbarrier_bpf_page_t page;

static void open_page(state_t *s, int i)
{
    const member_t *m = &s->member[i];
    running = s;
    memset(&page, 0, sizeof(page));
    page.key = KERNEL_KEY;
    page.rule = m->rule;
    page.word = m->rule.completed | (m->rule.failed ? NICBARRIER_WORD_FAILED : 0);
    page.enter = m->kernel.enter;
    memcpy(page.named, kernel_named[i], sizeof(page.named));
    for (int k = 0; k < STEPS; k++)
        page.take[k] = long_word(m->kernel.take[k]);
    kernel_page[i] = &page;
}

static void close_page(state_t *s, int i)
{
    member_t *m = &s->member[i];
    m->rule = page.rule;
    kernel_page[i] = NULL;
    if (page.word != (m->rule.completed | (m->rule.failed ? NICBARRIER_WORD_FAILED : 0)) ||
        page.version % 2 != 0)
        broken = "the page does not show the state";
}

/** As client.c: a process rings, and the program finds its orders. */
static void ring(state_t *s, int i)
{
    static kernel_skb_t skb;
    open_page(s, i);
    kernel_out(&skb, (unsigned)i);
    close_page(s, i);
}

/** True where the word goes on to the process. */
static bool comes_to_kernel(state_t *s, int i, unsigned k, unsigned word)
{
    static kernel_skb_t skb;
    const nicbarrier_step_t *st = &step[i][k];
    const nicbarrier_step_t theirs = {.send_to = i, .send_at = (uint8_t)k};
    const nicbarrier_packet_t p = kernel_packet(&theirs, (unsigned)st->wait_for, st->wait_at,
                                                NICBARRIER_PACKET_EPOCH, long_word(word));
    open_page(s, i);
    const bool up = kernel_in(&skb, (unsigned)i, (unsigned)st->wait_for, &p);
    close_page(s, i);
    return up;
}

/* ---- what a member does (as coll_nicbarrier/engines/datagram) ----------------------------------
 */

static void follow(state_t *s, int i)
{
    member_t *m = &s->member[i];
    const uint64_t out = m->kernel.on ? 0 : nicbarrier_rule_advance(&m->rule);
    for (unsigned k = 0; out >> k != 0; k++)
        if (out >> k & 1)
            send_out(s, i, EPOCH, k, short_word(nicbarrier_rule_word(&m->rule, k)));
    if (with_nacks)
        nicbarrier_nacks_follow(&m->nacks, &m->rule, 0);
}

static void enter(state_t *s, int i, uint64_t epoch)
{
    member_t *m = &s->member[i];
    if (m->kernel.on) {
        m->kernel.enter = epoch > m->kernel.enter ? (uint8_t)epoch : m->kernel.enter;
        ring(s, i);
    } else {
        nicbarrier_rule_enter(&m->rule, epoch);
    }
    follow(s, i);
}

/** A word has come to the process, or is made up by it. */
static void word_for_process(state_t *s, int i, unsigned k, uint64_t word)
{
    member_t *m = &s->member[i];
    if (!m->kernel.on) {
        (void)nicbarrier_rule_receive(&m->rule, k, word);
        return;
    }
    const uint8_t epoch = (uint8_t)(word & ~NICBARRIER_WORD_FAILED);
    const uint8_t before = m->kernel.take[k], last = before & (FAILED - 1);
    m->kernel.take[k] =
        (uint8_t)((epoch > last ? epoch : last) | ((before | short_word(word)) & FAILED));
    ring(s, i);
    if (m->rule.received[k] < epoch || m->rule.failed < word >> 63)
        broken = "the kernel has not done what it was told";
}

static void fail(state_t *s, int i)
{
    const nicbarrier_rule_t *r = &s->member[i].rule;
    const unsigned k = (unsigned)__builtin_ctzll(r->waits);
    if (!r->failed)
        word_for_process(s, i, k, r->received[k] | NICBARRIER_WORD_FAILED);
    follow(s, i);
}

/** The kernel does nothing more for the group, and the process goes on. */
static void fall_back(state_t *s, int i)
{
    s->member[i].kernel = (orders_t){.on = false};
    follow(s, i);
}

/** `repeated`: in answer to a NACK, so that it comes to the process. */
static void take(state_t *s, int i, unsigned k, kind_t kind, unsigned word, bool repeated)
{
    member_t *m = &s->member[i];
    if (m->stopped)
        return;
    if (kind == NACK) {
        if (nicbarrier_nacks_answer(&m->rule, k, word))
            send_out(s, i, EPOCH, k, short_word(nicbarrier_rule_word(&m->rule, k)));
    } else if (!m->kernel.on || repeated || comes_to_kernel(s, i, k, word)) {
        if (nicbarrier_rule_judge(&m->rule, k, long_word(word)) == NICBARRIER_WORD_NEW) {
            word_for_process(s, i, k, long_word(word));
            if (with_nacks)
                nicbarrier_nacks_received(&m->nacks, k);
        }
    }
    follow(s, i);
}

/** The timer of one step runs out, or that of all. */
static void expire(state_t *s, int i, int only)
{
    member_t *m = &s->member[i];
    for (int k = 0; k < nsteps[i]; k++)
        m->nacks.wait[k].deadline = only < 0 || k == only ? 1 : 1000;
    m->nacks.deadline = 1;
    const uint64_t asks = nicbarrier_nacks_expire(&m->nacks, &m->rule, 1);
    for (unsigned k = 0; k < STEPS; k++)
        if (asks >> k & 1)
            send_out(s, i, NACK, k, (unsigned)m->rule.received[k] + 1);
    follow(s, i);
}

/* ---- what must hold -------------------------------------------------------------------------- */

static void check_safe(const state_t *s)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            if (s->member[i].rule.completed > s->member[j].rule.entered)
                broken = "an epoch is complete that not all have entered";
}

static bool is_over(const state_t *s)
{
    for (int i = 0; i < n; i++)
        if (!s->member[i].stopped && s->member[i].rule.completed != epochs &&
            !s->member[i].rule.failed)
            return false;
    return true;
}

/** Who is silent for long is taken for lost by who waits for it. */
static bool waits_for_stopped(const state_t *s, int i)
{
    for (int k = 0; k < nsteps[i]; k++)
        if ((s->member[i].rule.blocked >> k & 1) && s->member[step[i][k].wait_for].stopped)
            return true;
    return false;
}

/** All that is on its way is lost; from now on nothing is. */
static void check_ends(const state_t *now)
{
    static on_way_t room[4096];
    state_t s = *now;
    bool any_stopped = false, any_failed = false;
    for (int i = 0; i < n; i++) {
        any_stopped |= s.member[i].stopped;
        any_failed |= s.member[i].rule.failed != 0;
    }
    /* Nobody has found out yet. */
    if (any_stopped && !any_failed)
        return;
    line = room;
    line_len = 0;
    /* Without a loss all that was sent comes. */
    for (int i = 0; i < n && !with_nacks; i++)
        for (unsigned k = 0; k < (unsigned)nsteps[i]; k++)
            for (unsigned word = 0; word < WORDS; word++)
                if (s.member[i].sent[EPOCH][k] >> word & 1)
                    send_out(&s, i, EPOCH, k, word);
    for (int i = 0; i < n; i++) {
        if (s.member[i].stopped)
            continue;
        enter(&s, i, epochs);
    }
    for (int round = 0; round < 40 && !is_over(&s); round++) {
        for (unsigned at = 0; at < line_len; at++)
            take(&s, line[at].to, (unsigned)line[at].at, line[at].kind, line[at].word, false);
        line_len = 0;
        for (int i = 0; i < n; i++) {
            if (s.member[i].stopped)
                continue;
            if (with_nacks)
                expire(&s, i, -1);
            if (round > 20 && waits_for_stopped(&s, i))
                fail(&s, i);
        }
    }
    line = NULL;
    if (!is_over(&s))
        broken = "it does not end, though nothing is lost any more";
}

/* ---- all states ------------------------------------------------------------------------------ */

static void try(const state_t *from, int i, void (*act)(state_t *, int, int, int, int), int a,
                int b, int c)
{
    state_t s = *from;
    act(&s, i, a, b, c);
    for (int k = 0; k < n; k++)
        forget_times(&s.member[k].nacks);
    reach(&s);
}

static void do_enter(state_t *s, int i, int a, int b, int c)
{
    (void)a, (void)b, (void)c;
    enter(s, i, s->member[i].rule.entered + 1);
}

static void do_fall_back(state_t *s, int i, int a, int b, int c)
{
    (void)a, (void)b, (void)c;
    fall_back(s, i);
}

static void do_take(state_t *s, int i, int k, int kind, int word)
{
    take(s, i, (unsigned)k, (kind_t)kind, (unsigned)word, false);
}

static void do_take_repeated(state_t *s, int i, int k, int kind, int word)
{
    take(s, i, (unsigned)k, (kind_t)kind, (unsigned)word, true);
}

static void do_expire(state_t *s, int i, int k, int b, int c)
{
    (void)b, (void)c;
    expire(s, i, k);
}

static void do_stop(state_t *s, int i, int a, int b, int c)
{
    (void)a, (void)b, (void)c;
    s->member[i].stopped = true;
}

static void do_fail(state_t *s, int i, int a, int b, int c)
{
    (void)a, (void)b, (void)c;
    fail(s, i);
}

/** All that member `i` sent in a step, to whom it is for. */
static void deliver(const state_t *s, int i, int k)
{
    for (int kind = 0; kind < (with_nacks ? KINDS : 1); kind++) {
        const bool up = kind == NACK;
        const nicbarrier_step_t *st = &step[i][k];
        const int to = up ? st->wait_for : st->send_to, at = up ? st->wait_at : st->send_at;
        for (int word = 0; word < WORDS; word++)
            if (s->member[i].sent[kind][k] >> word & 1) {
                try(s, to, do_take, at, kind, word);
                if (kind == EPOCH && s->member[to].kernel.on)
                    try(s, to, do_take_repeated, at, kind, word);
            }
    }
}

static void look_at(const state_t *s)
{
    bool stopped = false, failed = false;
    check_safe(s);
    check_ends(s);
    for (int i = 0; i < n; i++) {
        stopped |= s->member[i].stopped;
        failed |= s->member[i].rule.failed != 0;
    }
    for (int i = 0; i < n; i++) {
        const member_t *m = &s->member[i];
        for (int k = 0; k < nsteps[i]; k++)
            deliver(s, i, k);
        if (m->stopped)
            continue;
        if (m->rule.entered < epochs)
            try(s, i, do_enter, 0, 0, 0);
        for (int k = 0; with_nacks && k < nsteps[i]; k++)
            if ((m->nacks.waits >> k & 1) != 0)
                try(s, i, do_expire, k, 0, 0);
        if (m->kernel.on)
            try(s, i, do_fall_back, 0, 0, 0);
        if (with_failure && !stopped)
            try(s, i, do_stop, 0, 0, 0);
        if (stopped && !failed)
            try(s, i, do_fail, 0, 0, 0);
    }
}

enum { HOST, KERNEL };

/** With KERNEL the kernels of all but the last member take the steps, until they cease to. */
static bool run_all(const char *name, nicbarrier_schedule_kind_t kind, int members,
                    unsigned nepochs, bool nacks, bool failure, int by)
{
    state_t s;
    char text[80];
    memset(&s, 0, sizeof(s));
    n = members;
    epochs = nepochs;
    with_nacks = nacks;
    with_failure = failure;
    with_kernel = by == KERNEL;
    for (int i = 0; i < n; i++) {
        uint64_t sends, waits;
        nsteps[i] = nicbarrier_schedule(kind, i, n, step[i]);
        nicbarrier_schedule_bits(step[i], nsteps[i], &sends, &waits);
        nicbarrier_rule_init(&s.member[i].rule, (uint32_t)nsteps[i], sends, waits);
        nicbarrier_nacks_init(&s.member[i].nacks, 1);
        forget_times(&s.member[i].nacks);
        s.member[i].kernel.on = with_kernel && (i < n - 1 || n == 2);
        kernel_plan((unsigned)i, step[i], nsteps[i]);
    }
    (void)snprintf(text, sizeof(text), "%-24s %d members, %u epochs%s%s%s", name, members, nepochs,
                   with_kernel ? ", kernel" : "", nacks ? ", losses" : "",
                   failure ? ", a stop" : "");
    return search_states(text, &s);
}

static bool run_kind(const char *name, nicbarrier_schedule_kind_t k, int by, bool all)
{
    /* Whether each kernel ceases, and when, makes many more states. */
    const unsigned less = by == KERNEL && !all ? 1 : 0;
    bool good = run_all(name, k, 2, 3, false, false, by);
    good = good && run_all(name, k, 3, 3 - less, false, false, by);
    good = good && run_all(name, k, 3, 2 - less, false, true, by);
    good = good && run_all(name, k, 4, all ? 3 : 2 - less, false, false, by);
    good = good && run_all(name, k, 2, 2, true, false, by);
    good = good && run_all(name, k, 2, 2 - less, true, true, by);
    if (all) {
        good = good && run_all(name, k, 3, 1, true, true, by);
        good = good && run_all(name, k, 3, 2, true, false, by);
    }
    return good;
}

int main(int argc, char **argv)
{
    static const char *const name[] = {"rule-dissemination", "rule-pairwise", "rule-tree"};
    const bool all = states_options(argc, argv);
    bool good = true;
    for (int by = HOST; by <= KERNEL; by++)
        for (int kind = NICBARRIER_DISSEMINATION; kind <= NICBARRIER_GATHER_BROADCAST; kind++)
            good = good && run_kind(name[kind], (nicbarrier_schedule_kind_t)kind, by, all);
    good = good && run_all(name[0], NICBARRIER_DISSEMINATION, 3, 1, true, false, HOST);
    good = good && run_all(name[2], NICBARRIER_GATHER_BROADCAST, 3, 1, true, true, HOST);
    return states_status(good);
}
