/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The synchronisation state against a table of what MPI allows in which situation: all reachable
 * states with all calls.
 */
#include "osc_nicstride/protocol/epoch.h"

#include <string.h>

#include "osc_nicstride/protocol/lockq.h"
#include "test/unit/unit.h"

#define MAX_TARGETS 3

/* ---- the reference: situations, and a table of them ----------------------------------------- */

typedef enum situation {
    CLOSED,
    FENCED,      /* after a fence, nothing done yet */
    FENCED_USED, /* after a fence and communication */
    STARTED,
    LOCKED,
    LOCKED_ALL,
    SITUATIONS
} situation_t;

typedef enum call {
    FENCE,
    FENCE_LAST, /* with MPI_MODE_NOSUCCEED */
    START,
    COMPLETE,
    LOCK,
    UNLOCK,
    LOCK_ALL,
    UNLOCK_ALL,
    ACCESS,
    POST,
    WAIT,
    /* calls that only ask */
    PASSIVE,
    ANY_PASSIVE,
    FREE,
    CALLS
} call_t;

/* no; yes; for named targets; for other targets. Upper case: and only while not exposed. */
static const char table[SITUATIONS][CALLS + 1] = {
    /*                FENCE
     *                | FENCE_LAST
     *                | | START
     *                | | | COMPLETE
     *                | | | | LOCK
     *                | | | | | UNLOCK
     *                | | | | | | LOCK_ALL
     *                | | | | | | | UNLOCK_ALL
     *                | | | | | | | | ACCESS
     *                | | | | | | | | | POST
     *                | | | | | | | | | | WAIT
     *                | | | | | | | | | | | PASSIVE
     *                | | | | | | | | | | | | ANY_PASSIVE
     *                | | | | | | | | | | | | | FREE */
    [CLOSED] = "YYynynynnYynnY",      /**/
    [FENCED] = "YYynynynyYynnY",      /**/
    [FENCED_USED] = "YYnnnnnnyYynnY", /**/
    [STARTED] = "nnnynnnntYynnn",     /**/
    [LOCKED] = "nnnnotnntYytyn",      /**/
    [LOCKED_ALL] = "nnnnnnnyyYyyyn",
};

typedef struct reference {
    situation_t now;
    bool exposed;
    unsigned named; /* bit for each target that is started or locked */
} reference_t;

/* One call with its arguments: a set of targets for START, one target for others. */
typedef struct step {
    call_t call;
    unsigned targets; /* bits; targets that do not exist stand beyond the number of ranks */
    uint8_t type;
} step_t;

static bool reference_allows(const reference_t *r, unsigned n, step_t s)
{
    const char rule = table[r->now][s.call];
    const bool takes_targets = s.call == START || s.call == LOCK || s.call == UNLOCK ||
                               s.call == ACCESS || s.call == PASSIVE;

    if (takes_targets && s.targets >> n != 0)
        return false;
    switch (rule) {
    case 'n':
        return false;
    case 'Y':
        return !r->exposed;
    case 't':
        return (r->named & s.targets) != 0;
    case 'o':
        return (r->named & s.targets) == 0;
    default:
        return true;
    }
}

static void reference_do(reference_t *r, step_t s)
{
    static const situation_t next[CALLS] = {
        [FENCE] = FENCED, [FENCE_LAST] = CLOSED,   [START] = STARTED,    [COMPLETE] = CLOSED,
        [LOCK] = LOCKED,  [LOCK_ALL] = LOCKED_ALL, [UNLOCK_ALL] = CLOSED};

    switch (s.call) {
    case POST:
    case WAIT:
        r->exposed = s.call == POST;
        return;
    case ACCESS:
        if (r->now == FENCED)
            r->now = FENCED_USED;
        return;
    case UNLOCK:
        r->named &= ~s.targets;
        r->now = r->named == 0 ? CLOSED : LOCKED;
        return;
    case LOCK:
        r->named |= s.targets;
        break;
    case START:
        r->named = s.targets;
        break;
    default:
        r->named = 0;
    }
    r->now = next[s.call];
}

/* ---- the code under test, driven by steps --------------------------------------------------- */

/* State with its memory beside it, to be copied and compared as a whole. */
typedef struct subject {
    nicstride_epoch_t epoch;
    uint8_t target[MAX_TARGETS];
} subject_t;

static void subject_copy(subject_t *to, const subject_t *from)
{
    memcpy(to, from, sizeof(*to));
    to->epoch.target = to->target;
}

static bool subject_equal(const subject_t *a, const subject_t *b)
{
    return a->epoch.access == b->epoch.access && a->epoch.used == b->epoch.used &&
           a->epoch.exposed == b->epoch.exposed && a->epoch.n == b->epoch.n &&
           a->epoch.locks == b->epoch.locks && memcmp(a->target, b->target, a->epoch.n) == 0;
}

static const char *subject_start(nicstride_epoch_t *e, unsigned targets)
{
    int ranks[32], n = 0;

    /* Downwards, so that a target that does not exist comes first or last in turn. */
    for (int i = 31; i >= 0; i--)
        if ((targets >> i & 1) != 0)
            ranks[n++] = i;
    if (n > 1 && (targets & 1) != 0) {
        const int last = ranks[n - 1];
        ranks[n - 1] = ranks[0];
        ranks[0] = last;
    }
    return nicstride_epoch_start(e, ranks, n);
}

static const char *subject_wait(nicstride_epoch_t *e)
{
    const char *why = nicstride_epoch_exposed(e);

    /* Ending an exposure epoch that is not there is harmless. */
    nicstride_epoch_unexpose(e);
    return why;
}

static const char *subject_do(nicstride_epoch_t *e, step_t s)
{
    static const int every[MAX_TARGETS] = {0, 1, 2};
    const uint32_t target = (uint32_t)__builtin_ctz(s.targets | 1u << 31);
    const char *why;

    switch (s.call) {
    case FENCE:
        return nicstride_epoch_fence(e, false);
    case FENCE_LAST:
        return nicstride_epoch_fence(e, true);
    case START:
        return subject_start(e, s.targets);
    case COMPLETE:
        why = nicstride_epoch_started(e);
        if (why == NULL)
            nicstride_epoch_complete(e, every, (int)e->n);
        return why;
    case LOCK:
        return nicstride_epoch_lock(e, target, s.type);
    case UNLOCK:
        why = nicstride_epoch_locked(e, target);
        if (why == NULL)
            nicstride_epoch_unlock(e, target);
        return why;
    case LOCK_ALL:
        return nicstride_epoch_lock_all(e);
    case UNLOCK_ALL:
        why = nicstride_epoch_locked_all(e);
        if (why == NULL)
            nicstride_epoch_unlock_all(e);
        return why;
    case ACCESS:
        return nicstride_epoch_access(e, target);
    case POST:
        return nicstride_epoch_post(e);
    case WAIT:
        return subject_wait(e);
    case PASSIVE:
        return nicstride_epoch_passive(e, target);
    case ANY_PASSIVE:
        return nicstride_epoch_any_passive(e);
    case FREE:
        return nicstride_epoch_free(e);
    case CALLS:
        break;
    }
    return "no such call";
}

/* ---- driving both --------------------------------------------------------------------------- */

/* All steps worth trying with n ranks, also those with bad arguments. */
static size_t all_steps(step_t *steps, unsigned n)
{
    static const uint8_t types[] = {NICSTRIDE_LOCK_SHARED, NICSTRIDE_LOCK_EXCLUSIVE,
                                    NICSTRIDE_TARGET_NOT_LOCKED};
    const unsigned targets = n + 1;
    size_t k = 0;

    for (unsigned set = 0; set < 1u << targets; set++)
        steps[k++] = (step_t){START, set, 0};
    for (unsigned t = 0; t < targets; t++) {
        for (size_t i = 0; i < sizeof(types); i++)
            steps[k++] = (step_t){LOCK, 1u << t, types[i]};
        steps[k++] = (step_t){UNLOCK, 1u << t, 0};
        steps[k++] = (step_t){ACCESS, 1u << t, 0};
        steps[k++] = (step_t){PASSIVE, 1u << t, 0};
    }
    for (call_t c = 0; c < CALLS; c++)
        if (c != START && c != LOCK && c != UNLOCK && c != ACCESS && c != PASSIVE)
            steps[k++] = (step_t){c, 0, 0};
    return k;
}

/* Does the step on both and compares verdict and, where it was refused, that nothing changed.
 * True where something may have changed. */
static bool do_both(subject_t *s, reference_t *r, step_t step)
{
    const bool asks_only = step.call == PASSIVE || step.call == ANY_PASSIVE || step.call == FREE;
    subject_t before;
    const char *why;

    subject_copy(&before, s);
    if (step.call == WAIT && !r->exposed) {
        UNIT_CHECK(subject_do(&s->epoch, step) != NULL);
        UNIT_CHECK(subject_equal(&before, s));
        return false;
    }
    why = subject_do(&s->epoch, step);
    UNIT_CHECK((why == NULL) == reference_allows(r, s->epoch.n, step));
    if (why != NULL || asks_only) {
        UNIT_CHECK(why == NULL || strlen(why) > 10);
        UNIT_CHECK(subject_equal(&before, s));
        return false;
    }
    reference_do(r, step);
    return true;
}

static void subject_init(subject_t *s, unsigned n)
{
    memset(s, 0xa5, sizeof(*s));
    nicstride_epoch_init(&s->epoch, n, s->target);
}

#define MAX_STATES 1000

/* Every state that can be reached, each met with every call. */
START_TEST(reachable_states)
{
    static subject_t state[MAX_STATES];
    static reference_t reference[MAX_STATES];
    step_t steps[128];
    const size_t nsteps = all_steps(steps, MAX_TARGETS);
    size_t n = 1;

    subject_init(&state[0], MAX_TARGETS);
    reference[0] = (reference_t){.now = CLOSED};
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < nsteps; k++) {
            subject_t to;
            reference_t rto = reference[i];
            size_t seen = 0;
            subject_copy(&to, &state[i]);
            do_both(&to, &rto, steps[k]);
            while (seen < n && !subject_equal(&state[seen], &to))
                seen++;
            ck_assert_uint_lt(seen, MAX_STATES);
            if (seen == n) {
                subject_copy(&state[n], &to);
                reference[n++] = rto;
            } else {
                /* Equal states must mean the same, or the code has forgotten something. */
                UNIT_CHECK(reference[seen].now == rto.now);
                UNIT_CHECK(reference[seen].named == rto.named);
                UNIT_CHECK(reference[seen].exposed == rto.exposed);
            }
        }
    }
    /* Four situations without targets, 8 groups, 4^3 - 1 sets of locks; exposed or not; a used
     * fence epoch is as often exposed as any. */
    ck_assert_uint_eq(n, 2 * (4 + 8 + 63));
}
END_TEST

START_TEST(wrong_groups)
{
    uint8_t target[8] = {0}; /* ranks beyond the window look as free as those inside */
    nicstride_epoch_t e;
    const int twice[] = {2, 0, 2}, negative[] = {1, -1}, beyond[] = {3, 4}, good[] = {3, 1};

    nicstride_epoch_init(&e, 4, target);
    ck_assert_ptr_nonnull(nicstride_epoch_start(&e, twice, 3));
    ck_assert_ptr_nonnull(nicstride_epoch_start(&e, negative, 2));
    ck_assert_ptr_nonnull(nicstride_epoch_start(&e, beyond, 2));
    for (int i = 0; i < 8; i++)
        ck_assert_uint_eq(target[i], 0);
    ck_assert_int_eq(e.access, NICSTRIDE_ACCESS_NONE);
    ck_assert_ptr_null(nicstride_epoch_start(&e, good, 2));
    ck_assert_ptr_null(nicstride_epoch_access(&e, 1));
    ck_assert_ptr_nonnull(nicstride_epoch_access(&e, 0));
    ck_assert_ptr_nonnull(nicstride_epoch_access(&e, UINT32_MAX));
    nicstride_epoch_complete(&e, good, 2);
    for (int i = 0; i < 8; i++)
        ck_assert_uint_eq(target[i], 0);
    ck_assert_ptr_null(nicstride_epoch_start(&e, NULL, 0));
    nicstride_epoch_complete(&e, NULL, 0);
}
END_TEST

int main(void)
{
    return UNIT_RUN("epoch", UNIT_ONCE(reachable_states), UNIT_ONCE(wrong_groups));
}
