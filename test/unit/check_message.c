/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Decoding of messages: what is right comes through unchanged, and lengths that are wrong
 *  are refused. */
#include "osc_nicstride/protocol/message.h"

#include <string.h>

#include "test/unit/unit.h"

#define LAYOUT_LEN 37

/** How the data of a type come. */
typedef enum comes {
    NONE,   /**< there are none */
    ALWAYS, /**< beside the message or in it */
    OR_NOT, /**< or not at all */
    TICKET  /**< in receive buffers, which the ticket names */
} comes_t;

static comes_t comes(unsigned type)
{
    switch (type) {
    case NICSTRIDE_MSG_FLUSH:
    case NICSTRIDE_MSG_POST:
    case NICSTRIDE_MSG_LAYOUT:
        return NONE;
    case NICSTRIDE_MSG_GET:
    case NICSTRIDE_MSG_GET_ACC:
        return OR_NOT;
    case NICSTRIDE_MSG_PIPE_PUT:
    case NICSTRIDE_MSG_PIPE_GET:
    case NICSTRIDE_MSG_PIPE_ACC:
        return TICKET;
    default:
        return ALWAYS;
    }
}

/** A right message of a type, with a layout. */
static nicstride_msg_t right_message(unsigned type)
{
    nicstride_msg_t m;

    memset(&m, 0xee, sizeof(m));
    nicstride_msg_init(&m, (nicstride_msg_type_t)type, 0xdeadbeef, 7);
    m.disp = INT64_MIN;
    m.offset = UINT64_C(1) << 40;
    m.len = comes(type) == NONE ? 0 : 1000;
    m.handle = UINT64_MAX;
    m.count = 12345;
    m.layout_len = LAYOUT_LEN;
    return m;
}

static uint64_t right_payload(const nicstride_msg_t *m)
{
    return comes(m->type) == TICKET ? 0 : m->len;
}

/** Decodes from unaligned memory that ends with the message. */
static bool decode(const nicstride_msg_t *m, size_t len, uint64_t payload_len)
{
    const void *layout = NULL;
    nicstride_msg_t got;
    char *memory = malloc(len + 1);

    UNIT_CHECK(memory != NULL);
    memset(memory, 0x5a, len + 1);
    memcpy(memory + 1, m, len < sizeof(*m) ? len : sizeof(*m));
    const bool right = nicstride_msg_decode(memory + 1, len, payload_len, &got, &layout);
    if (right) {
        UNIT_CHECK(memcmp(&got, m, sizeof(got)) == 0);
        UNIT_CHECK(layout == memory + 1 + sizeof(*m));
    }
    free(memory);
    return right;
}

/** The length of a message whose payload is not in it. */
static size_t length(const nicstride_msg_t *m)
{
    return sizeof(*m) + m->layout_len + (comes(m->type) == TICKET ? NICSTRIDE_TICKET_BYTES : 0);
}

static bool accepted(const nicstride_msg_t *m, uint64_t payload_len)
{
    return decode(m, length(m), payload_len);
}

/* Each length but the right one, and each header of it. */
START_TEST(lengths)
{
    nicstride_msg_t m = right_message((unsigned)_i);
    const size_t right = length(&m);

    for (size_t len = 0; len < right + 40; len++)
        UNIT_CHECK(decode(&m, len, right_payload(&m)) == (len == right));
    m.layout_len++;
    UNIT_CHECK(!decode(&m, right, right_payload(&m)));
    m.layout_len = UINT32_MAX;
    UNIT_CHECK(!decode(&m, right, right_payload(&m)));
    m.layout_len = 0;
    UNIT_CHECK(accepted(&m, right_payload(&m))); /* contiguous */
    m.offset = UINT64_MAX - m.len;
    UNIT_CHECK(accepted(&m, right_payload(&m)));
    m.offset++;
    UNIT_CHECK(m.len == 0 || !accepted(&m, right_payload(&m)));
}
END_TEST

/* The payload in the message: of the length that is said, and no other. */
START_TEST(inlined)
{
    nicstride_msg_t m = right_message((unsigned)_i);

    m.flags |= NICSTRIDE_MSG_INLINE;
    for (size_t n = 0; n < 1200; n++)
        UNIT_CHECK(decode(&m, sizeof(m) + m.layout_len + n, 0) ==
                   (comes(m.type) != TICKET && n == m.len));
    UNIT_CHECK(!decode(&m, sizeof(m) + m.layout_len + m.len, m.len + 1));
    m.len = UINT64_MAX - m.offset;
    UNIT_CHECK(!decode(&m, sizeof(m) + m.layout_len, 0));
}
END_TEST

START_TEST(payloads)
{
    nicstride_msg_t m = right_message((unsigned)_i);
    const bool may_lack = comes(m.type) == OR_NOT || comes(m.type) == TICKET;

    for (uint64_t n = 0; n < 1200; n++)
        UNIT_CHECK(accepted(&m, n) == (n == m.len || (n == 0 && may_lack)));
    UNIT_CHECK(!accepted(&m, UINT64_MAX));
}
END_TEST

/* A reply that reports an error brings no bytes, but says which bytes will not come. */
START_TEST(failures)
{
    nicstride_msg_t m = right_message(NICSTRIDE_MSG_REPLY);

    ck_assert(!accepted(&m, 0));
    m.status = 57;
    ck_assert(accepted(&m, 0));
}
END_TEST

START_TEST(names)
{
    nicstride_msg_t m = right_message(NICSTRIDE_MSG_PUT);

    m.flags = NICSTRIDE_MSG_CACHED;
    ck_assert(accepted(&m, m.len));
    m.layout_len = NICSTRIDE_LIST_NUMBER_BYTES; /* with nothing around the list */
    ck_assert(!accepted(&m, m.len));
}
END_TEST

START_TEST(types)
{
    nicstride_msg_t m;

    nicstride_msg_init(&m, NICSTRIDE_MSG_POST, 1, 2);
    ck_assert(accepted(&m, 0));
    for (unsigned type = 0; type <= UINT16_MAX; type++) {
        m.type = (uint16_t)type;
        UNIT_CHECK(accepted(&m, 0) == (type > 0 && type < NICSTRIDE_MSG_LAST));
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
    unit_in_one_process();
    return UNIT_RUN("message", UNIT_LOOP(lengths, 1, NICSTRIDE_MSG_LAST),
                    UNIT_LOOP(inlined, 1, NICSTRIDE_MSG_LAST),
                    UNIT_LOOP(payloads, 1, NICSTRIDE_MSG_LAST), UNIT_ONCE(failures),
                    UNIT_ONCE(names), UNIT_ONCE(types), UNIT_ONCE(fragments));
}
