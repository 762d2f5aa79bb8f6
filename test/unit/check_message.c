/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Decoding of messages: what is right comes through unchanged, and lengths that are wrong
 *  are refused. */
#include "osc_nicstride/protocol/message.h"

#include <string.h>

#include "osc_nicstride/protocol/lockq.h"
#include "test/unit/unit.h"

#define LAYOUT_LEN 37

/** What a type carries, a letter for each field: d(isp) o(ffset) l(en) h(andle) c(ount) s(tatus)
 *  O(p) t(dtype) L(ayout). */
typedef struct type_rule {
    nicstride_msg_type_t type;
    const char *fields;
    const char *flags;   /* S: slice or name, I: the payload may lie in the message */
    const char *payload; /* "none", "len", "len or none", "pair", "reply", "ticket" */
} type_rule_t;

static const type_rule_t rules[] = {
    {NICSTRIDE_MSG_PUT, "Ldolc", "SI", "len"},
    {NICSTRIDE_MSG_GET, "Ldolhc", "S", "none"},
    {NICSTRIDE_MSG_PUTV, "l", "I", "len"},
    {NICSTRIDE_MSG_GETV, "lh", "I", "len"},
    {NICSTRIDE_MSG_ACC, "LdolOtc", "SI", "len"},
    {NICSTRIDE_MSG_GET_ACC, "LdolOthc", "SI", "len or none"},
    {NICSTRIDE_MSG_CAS, "dlthc", "I", "pair"},
    {NICSTRIDE_MSG_PIPE_PUT, "Ldolc", "S", "ticket"},
    {NICSTRIDE_MSG_PIPE_GET, "Ldolhc", "S", "ticket"},
    {NICSTRIDE_MSG_PIPE_ACC, "LdolOtc", "S", "ticket"},
    {NICSTRIDE_MSG_REPLY, "olhsc", "I", "reply"},
    {NICSTRIDE_MSG_FLUSH, "c", "", "none"},
    {NICSTRIDE_MSG_ACK, "csd", "", "none"},
    {NICSTRIDE_MSG_LOCK, "lO", "I", "len"},
    {NICSTRIDE_MSG_GRANT, "Ocs", "", "none"},
    {NICSTRIDE_MSG_UNLOCK, "O", "", "none"},
    {NICSTRIDE_MSG_LEAVE, "", "", "none"},
    {NICSTRIDE_MSG_POST, "", "", "none"},
    {NICSTRIDE_MSG_COMPLETE, "c", "", "none"},
    {NICSTRIDE_MSG_KEYS, "dlO", "I", "len"},
    {NICSTRIDE_MSG_LAYOUT, "LoOc", "", "none"},
    {NICSTRIDE_MSG_ROWS, "dolhOtc", "I", "len"},
    {(nicstride_msg_type_t)(NICSTRIDE_MSG_LAST - 1), "dolhOtc", "I", "len"},
};
#define NRULES (sizeof(rules) / sizeof(rules[0]))

static bool has(const char *letters, char c)
{
    return strchr(letters, c) != NULL;
}

/** A right message of a type, with all its fields in use but status. */
static nicstride_msg_t right_message(const type_rule_t *rule)
{
    nicstride_msg_t m;

    memset(&m, 0xee, sizeof(m));
    nicstride_msg_init(&m, rule->type, 0xdeadbeef, 7);
    if (has(rule->fields, 'd'))
        m.disp = INT64_MIN;
    if (has(rule->fields, 'o'))
        m.offset = 1ull << 40;
    if (has(rule->fields, 'l'))
        m.len = 1000;
    if (has(rule->fields, 'h'))
        m.handle = UINT64_MAX;
    if (has(rule->fields, 'c'))
        m.count = 12345;
    if (has(rule->fields, 'O'))
        m.op = NICSTRIDE_LOCK_OF_ALL;
    if (has(rule->fields, 't'))
        m.dtype = 40;
    if (has(rule->fields, 'L'))
        m.layout_len = LAYOUT_LEN;
    return m;
}

static uint64_t right_payload(const type_rule_t *rule, const nicstride_msg_t *m)
{
    return strcmp(rule->payload, "none") == 0 || strcmp(rule->payload, "ticket") == 0 ? 0 : m->len;
}

/** Bytes behind the layout of a message whose payload lies beside it. */
static size_t ticket(const nicstride_msg_t *m)
{
    return nicstride_msg_has_ticket(m->type) ? NICSTRIDE_TICKET_BYTES : 0;
}

/** Decodes from unaligned memory that ends with the message. */
static const char *decode(const nicstride_msg_t *m, size_t len, uint64_t payload_len)
{
    const void *layout = NULL;
    nicstride_msg_t got;
    char *memory = malloc(len + 1);

    UNIT_CHECK(memory != NULL);
    memset(memory, 0x5a, len + 1);
    memcpy(memory + 1, m, len < sizeof(*m) ? len : sizeof(*m));
    const char *why = nicstride_msg_decode(memory + 1, len, payload_len, &got, &layout);
    if (why == NULL) {
        UNIT_CHECK(memcmp(&got, m, sizeof(got)) == 0);
        UNIT_CHECK(layout == memory + 1 + sizeof(*m));
    } else {
        UNIT_CHECK(strlen(why) > 5);
    }
    free(memory);
    return why;
}

/** Decodes a message as long as it says it is. */
static bool accepted(const nicstride_msg_t *m, uint64_t payload_len)
{
    return decode(m, sizeof(*m) + m->layout_len + ticket(m), payload_len) == NULL;
}

/** The same with the payload in the message, if it is not too long to try. */
static bool accepted_inline(nicstride_msg_t m, uint64_t beside)
{
    m.flags |= NICSTRIDE_MSG_INLINE;
    return decode(&m, sizeof(m) + m.layout_len + m.len, beside) == NULL;
}

/* Each length but the right one, and each header of it. */
START_TEST(lengths)
{
    const type_rule_t *rule = &rules[_i];
    nicstride_msg_t m = right_message(rule);
    const size_t right = sizeof(m) + m.layout_len + ticket(&m);
    const uint64_t payload = right_payload(rule, &m);

    for (size_t len = 0; len < right + 40; len++)
        UNIT_CHECK((decode(&m, len, payload) == NULL) == (len == right));
    m.layout_len++;
    UNIT_CHECK(decode(&m, right, payload) != NULL);
    m.layout_len = UINT32_MAX;
    UNIT_CHECK(decode(&m, right, payload) != NULL);
    m.layout_len = 0;
    UNIT_CHECK(accepted(&m, payload)); /* contiguous */
}
END_TEST

/* The payload in the message: where it may be so, of the length that is said, and no other. */
START_TEST(inlined)
{
    const type_rule_t *rule = &rules[_i];
    nicstride_msg_t m = right_message(rule);
    const bool may = has(rule->flags, 'I');

    UNIT_CHECK(accepted_inline(m, 0) == may);
    UNIT_CHECK(!accepted_inline(m, m.len > 0 ? m.len : 1));
    m.flags |= NICSTRIDE_MSG_INLINE;
    for (size_t n = 0; n < 1200; n++)
        UNIT_CHECK((decode(&m, sizeof(m) + m.layout_len + n, 0) == NULL) == (may && n == m.len));
    if (may) {
        m.len = UINT64_MAX - m.offset;
        UNIT_CHECK(decode(&m, sizeof(m) + m.layout_len, 0) != NULL);
    }
    if (strcmp(rule->payload, "reply") == 0) {
        m = right_message(rule);
        m.status = 3;
        UNIT_CHECK(!accepted_inline(m, 0));
    }
}
END_TEST

START_TEST(overflows)
{
    const type_rule_t *rule = &rules[_i];
    nicstride_msg_t m = right_message(rule);

    if (has(rule->fields, 'o') && has(rule->fields, 'l')) {
        m.offset = UINT64_MAX - m.len;
        ck_assert(accepted(&m, right_payload(rule, &m)));
        m.offset++;
        ck_assert(!accepted(&m, right_payload(rule, &m)));
    }
}
END_TEST

START_TEST(flags)
{
    const type_rule_t *rule = &rules[_i];
    nicstride_msg_t m = right_message(rule);

    for (unsigned f = 0; f < 256; f++) {
        const unsigned named = NICSTRIDE_MSG_SLICE | NICSTRIDE_MSG_CACHED;
        const unsigned forms = named | NICSTRIDE_MSG_RUNS;

        m.flags = (uint16_t)f;
        UNIT_CHECK(
            accepted(&m, right_payload(rule, &m)) ==
            (f == 0 || ((f & ~forms) == 0 && (f & named) != named && has(rule->flags, 'S'))));
    }
    m.flags = NICSTRIDE_MSG_CACHED;
    m.layout_len = NICSTRIDE_LAYOUT_ID_BYTES;
    UNIT_CHECK(!accepted(&m, right_payload(rule, &m))); /* a name with nothing around the list */
}
END_TEST

/* A ticket lies behind the layout, has one length, and stands for all the data. */
START_TEST(tickets)
{
    const type_rule_t *rule = &rules[_i];
    const bool takes = strcmp(rule->payload, "ticket") == 0;
    nicstride_msg_t m = right_message(rule), out;
    unsigned char bytes[sizeof(m) + LAYOUT_LEN + 2 * NICSTRIDE_TICKET_BYTES];
    const void *layout;

    memset(bytes, 0x5a, sizeof(bytes));
    for (size_t n = 1; n <= 2 * NICSTRIDE_TICKET_BYTES; n++) {
        const size_t len = sizeof(m) + m.layout_len + n;

        memcpy(bytes, &m, sizeof(m));
        UNIT_CHECK((nicstride_msg_decode(bytes, len, 0, &out, &layout) == NULL) ==
                   (takes && n == NICSTRIDE_TICKET_BYTES));
        UNIT_CHECK(nicstride_msg_decode(bytes, len, 1, &out, &layout) != NULL);
    }
    m.len = 0;
    memcpy(bytes, &m, sizeof(m));
    UNIT_CHECK(nicstride_msg_decode(bytes, sizeof(m) + m.layout_len + NICSTRIDE_TICKET_BYTES, 0,
                                    &out, &layout) != NULL);
}
END_TEST

START_TEST(payloads)
{
    const type_rule_t *rule = &rules[_i];
    nicstride_msg_t m = right_message(rule);
    const uint64_t right = right_payload(rule, &m);
    const bool optional = strcmp(rule->payload, "len or none") == 0;
    const bool pair = strcmp(rule->payload, "pair") == 0;

    for (uint64_t n = 0; n < 1200; n++)
        UNIT_CHECK(accepted(&m, n) == (n == right || (n == 0 && optional)));
    UNIT_CHECK(!accepted(&m, UINT64_MAX));
    if (right > 0) {
        m.len = 999;
        UNIT_CHECK(accepted(&m, 999) == !pair);
        m.len = 0;
        UNIT_CHECK(accepted(&m, 0) == !pair);
    }
    if (has(rule->fields, 's')) {
        /* A reply that reports an error brings no bytes, but says which bytes will not come. */
        m = right_message(rule);
        m.status = 57;
        UNIT_CHECK(accepted(&m, 0) && (right == 0 || !accepted(&m, m.len)));
    }
}
END_TEST

START_TEST(types)
{
    nicstride_msg_t m;

    nicstride_msg_init(&m, NICSTRIDE_MSG_POST, 1, 2);
    ck_assert(accepted(&m, 0));
    for (unsigned type = 0; type <= UINT16_MAX; type++) {
        m.type = (uint16_t)type;
        UNIT_CHECK((type > 0 && type < NICSTRIDE_MSG_LAST) || !accepted(&m, 0));
    }
}
END_TEST

/** Cuts a transfer into fragments; each ends where one may end, and together they are the whole. */
static void cut(const onic_layout_t *l, uint64_t base, uint64_t room, uint32_t granule)
{
    for (uint64_t at = 0, n; at < l->size; at += n) {
        onic_cursor_t c;
        int64_t offset;
        uint64_t one;

        n = nicstride_fragment(l, base, at, room, granule);
        UNIT_CHECK(n > 0 && n <= room && n <= l->size - at);
        onic_cursor_init(&c, l, at + n);
        const bool at_block = c.in_block == 0;
        if (!onic_cursor_next(&c, 1, &offset, &one))
            continue;
        if (granule > 1)
            UNIT_CHECK((at + n) % granule == 0);
        else
            UNIT_CHECK(at_block || (base + (uint64_t)offset) % 8 == 0);
    }
}

START_TEST(fragments)
{
    unit_random_t r = {unit_seed()};
    onic_layout_t mixed, plain;

    /* An int and two longs behind it, each time; longs in a row. */
    ck_assert_int_eq(onic_layout_contig(&mixed, 4, 4 + 8 + 8), ONIC_LAYOUT_OK);
    ck_assert_int_eq(onic_layout_repeat(&mixed, 5000, 24), ONIC_LAYOUT_OK);
    ck_assert_int_eq(onic_layout_contig(&plain, 0, 100000), ONIC_LAYOUT_OK);
    for (int i = 0; i < 200; i++) {
        const uint64_t room = NICSTRIDE_FRAGMENT_UNIT + unit_below(&r, 9000);

        cut(&mixed, unit_below(&r, 16), room, 1);
        cut(&plain, unit_below(&r, 16), room, 1);
        cut(&plain, 0, room, 16);
        ck_assert_uint_eq(nicstride_fragment(&plain, 0, 0, room, 1),
                          room - room % NICSTRIDE_FRAGMENT_UNIT);
    }
}
END_TEST

int main(void)
{
    return UNIT_RUN("message", UNIT_LOOP(lengths, 0, NRULES), UNIT_LOOP(inlined, 0, NRULES),
                    UNIT_LOOP(overflows, 0, NRULES), UNIT_LOOP(flags, 0, NRULES),
                    UNIT_LOOP(payloads, 0, NRULES), UNIT_LOOP(tickets, 0, NRULES), UNIT_ONCE(types),
                    UNIT_ONCE(fragments));
}
