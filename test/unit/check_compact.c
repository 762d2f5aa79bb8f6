/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The short form of headers: what has one comes back unchanged, what has none is told so, and
 * bytes of any kind are read as what they say or not at all.
 */
#include "osc_nicstride/protocol/compact.h"

#include <string.h>

#include "common/support/handle.h"
#include "osc_nicstride/protocol/lockq.h"
#include "test/unit/unit.h"

/** A type, and which of its fields are used: as in check_message.c. */
static const struct {
    nicstride_msg_type_t type;
    const char *fields;
    bool data; /* may lie behind */
} types[] = {
    {NICSTRIDE_MSG_PUT, "dlc", true},        {NICSTRIDE_MSG_GET, "dlhc", false},
    {NICSTRIDE_MSG_GET_DATA, "lhc", true},   {NICSTRIDE_MSG_ACC, "dlOtc", true},
    {NICSTRIDE_MSG_GET_ACC, "dlOthc", true}, {NICSTRIDE_MSG_CAS, "dlthc", true},
    {NICSTRIDE_MSG_ACC_DATA, "lhc", true},   {NICSTRIDE_MSG_FLUSH, "c", false},
    {NICSTRIDE_MSG_ACK, "c", false},         {NICSTRIDE_MSG_UNLOCK, "", false},
    {NICSTRIDE_MSG_POST, "", false},         {NICSTRIDE_MSG_COMPLETE, "", false},
};
#define NTYPES (sizeof(types) / sizeof(types[0]))

/** A number of at most so many bits, often the highest one. */
static uint64_t random_bits(unit_random_t *r, unsigned bits)
{
    const uint64_t highest = UINT64_MAX >> (64 - bits);

    return unit_once_in(r, 4) ? highest : unit_random64(r) & highest;
}

/** A right message of random numbers that have their places. */
static nicstride_msg_t random_message(unit_random_t *r, size_t type, size_t *len_p)
{
    const char *fields = types[type].fields;
    nicstride_msg_t m;

    nicstride_msg_init(&m, types[type].type, (uint32_t)random_bits(r, 16),
                       (uint32_t)random_bits(r, 16));
    if (strchr(fields, 'd') != NULL)
        m.disp = (int64_t)random_bits(r, unit_once_in(r, 2) ? 32 : 64);
    if (strchr(fields, 'O') != NULL)
        m.op = (uint16_t)random_bits(r, NICSTRIDE_SHORT_OP_BITS);
    if (strchr(fields, 't') != NULL)
        m.dtype = (uint16_t)random_bits(r, 7);
    if (strchr(fields, 'h') != NULL)
        m.handle = (1 + unit_below(r, ONIC_GENERATION_MAX)) << 32 | random_bits(r, 8);
    if (strchr(fields, 'c') != NULL)
        m.count = random_bits(r, 32);
    *len_p = 0;
    if (types[type].data) {
        m.flags = NICSTRIDE_MSG_INLINE;
        m.len = *len_p = 2 + 2 * unit_below(r, 64);
    } else if (strchr(fields, 'l') != NULL)
        m.len = random_bits(r, 16 - NICSTRIDE_SHORT_OP_BITS);
    return m;
}

/** Bytes of its header. */
static size_t header_size(const nicstride_msg_t *m)
{
    return (uint64_t)m->disp > UINT32_MAX ? NICSTRIDE_SHORT_MAX : NICSTRIDE_SHORT_SIZE;
}

/** Decodes `len` bytes, in memory that ends with them, at an odd address. */
static const char *decode(const void *bytes, size_t len, nicstride_msg_t *m, size_t *header_p)
{
    unsigned char *memory = malloc(len + 1);
    const void *behind = NULL;

    UNIT_CHECK(memory != NULL);
    memcpy(memory + 1, bytes, len);
    const char *why = nicstride_msg_decode(memory + 1, len, 0, m, &behind);
    if (why == NULL)
        *header_p = (size_t)((const unsigned char *)behind - (memory + 1));
    free(memory);
    return why;
}

START_TEST(there_and_back)
{
    unit_random_t r = {unit_seed()};

    for (int i = 0; i < 100000; i++) {
        unsigned char bytes[NICSTRIDE_SHORT_MAX + 256];
        size_t len, header = 0;
        nicstride_msg_t got, m = random_message(&r, (size_t)i % NTYPES, &len);
        const size_t size = header_size(&m);

        memset(bytes, 0xee, sizeof(bytes));
        UNIT_CHECK(nicstride_msg_shorten(&m, bytes) == size);
        UNIT_CHECK(bytes[size] == 0xee);
        UNIT_CHECK(decode(bytes, size + len, &got, &header) == NULL);
        UNIT_CHECK(header == size && memcmp(&got, &m, sizeof(m)) == 0);
    }
}
END_TEST

static bool has_short_form(const nicstride_msg_t *m)
{
    unsigned char bytes[NICSTRIDE_SHORT_MAX];
    const size_t n = nicstride_msg_shorten(m, bytes);

    UNIT_CHECK(n == 0 || n == header_size(m));
    return n > 0;
}

/* Handles that have a word come back from it; others say that they have none. */
START_TEST(handle_words)
{
    unit_random_t r = {unit_seed()};

    for (int i = 0; i < 30000; i++) {
        const uint64_t handle = (1 + unit_below(&r, ONIC_GENERATION_MAX)) << 32 |
                                random_bits(&r, 8 + (unsigned)unit_below(&r, 3));
        const bool has = onic_handle_has_word(handle);

        UNIT_CHECK(has == ((uint32_t)handle < ONIC_HANDLE_WORD_SLOTS));
        UNIT_CHECK(!has || onic_handle_of_word(onic_handle_word(handle)) == handle);
    }
}
END_TEST

/* One more than has its place, and what has none. */
START_TEST(what_does_not_fit)
{
    nicstride_msg_t right, m;

    nicstride_msg_init(&right, NICSTRIDE_MSG_GET_ACC, UINT16_MAX, UINT16_MAX);
    right.op = (1 << NICSTRIDE_SHORT_OP_BITS) - 1;
    right.dtype = INT8_MAX;
    right.len = NICSTRIDE_SHORT_LEN_MAX;
    right.disp = right.count = UINT32_MAX;
    right.handle = (uint64_t)ONIC_GENERATION_MAX << 32 | UINT8_MAX;
    ck_assert(has_short_form(&right));
#define REFUSES(change)                                                                            \
    do {                                                                                           \
        m = right;                                                                                 \
        (change);                                                                                  \
        ck_assert(!has_short_form(&m));                                                            \
    } while (0)
    REFUSES(m.win++);
    REFUSES(m.win = UINT32_MAX);
    REFUSES(m.origin++);
    REFUSES(m.op++);
    REFUSES(m.dtype++);
    REFUSES(m.len++);
    REFUSES(m.len = UINT64_MAX);
    REFUSES(m.count++);
    REFUSES(m.count = UINT64_MAX);
    REFUSES(m.handle++);
    REFUSES(m.handle += 1ull << 32);
    REFUSES(m.status = 1);
    REFUSES(m.status = -1);
    REFUSES(m.offset = 1);
    REFUSES(m.layout_len = 1);
    REFUSES(m.flags = NICSTRIDE_MSG_RNDV);
    REFUSES(m.flags = NICSTRIDE_MSG_SLICE);
    REFUSES(m.flags = NICSTRIDE_MSG_INLINE | NICSTRIDE_MSG_SLICE);
#undef REFUSES
}
END_TEST

/* Without data behind it a message has one length; with data the rest is data. */
START_TEST(lengths)
{
    unsigned char bytes[200] = {0};
    nicstride_msg_t m, got;
    size_t header = 0;

    nicstride_msg_init(&m, NICSTRIDE_MSG_UNLOCK, 1, 2);
    ck_assert_uint_eq(nicstride_msg_shorten(&m, bytes), NICSTRIDE_SHORT_SIZE);
    for (size_t len = 0; len < sizeof(bytes); len++)
        UNIT_CHECK((decode(bytes, len, &got, &header) == NULL) == (len == NICSTRIDE_SHORT_SIZE));
    nicstride_msg_init(&m, NICSTRIDE_MSG_PUT, 1, 2);
    m.flags = NICSTRIDE_MSG_INLINE;
    m.len = 8;
    ck_assert_uint_eq(nicstride_msg_shorten(&m, bytes), NICSTRIDE_SHORT_SIZE);
    for (size_t len = 0; len < sizeof(bytes); len++) {
        const bool whole = len >= NICSTRIDE_SHORT_SIZE;
        UNIT_CHECK((decode(bytes, len, &got, &header) == NULL) == whole);
        UNIT_CHECK(!whole || got.len == len - NICSTRIDE_SHORT_SIZE);
    }
}
END_TEST

/* The upper half of a displacement is there where it is needed, and nowhere else. */
START_TEST(far_away)
{
    const int64_t disps[] = {0, UINT32_MAX, 1ll << 32, INT64_MAX, -1, INT64_MIN};
    unsigned char bytes[NICSTRIDE_SHORT_MAX];
    nicstride_msg_t m, got;
    size_t header = 0;

    for (size_t i = 0; i < sizeof(disps) / sizeof(disps[0]); i++) {
        nicstride_msg_init(&m, NICSTRIDE_MSG_GET, 1, 2);
        m.disp = disps[i];
        m.handle = 1ull << 32;
        const size_t size = nicstride_msg_shorten(&m, bytes);
        ck_assert_uint_eq(size, i < 2 ? NICSTRIDE_SHORT_SIZE : NICSTRIDE_SHORT_MAX);
        ck_assert_ptr_null(decode(bytes, size, &got, &header));
        ck_assert_int_eq(got.disp, disps[i]);
        ck_assert_ptr_nonnull(decode(bytes, size - 1, &got, &header));
    }
    memset(bytes + NICSTRIDE_SHORT_SIZE, 0, sizeof(bytes) - NICSTRIDE_SHORT_SIZE);
    ck_assert_ptr_nonnull(decode(bytes, sizeof(bytes), &got, &header));
}
END_TEST

/* From a machine of the other byte order: refused, and said why, however long it is. */
START_TEST(other_byte_order)
{
    unsigned char bytes[200] = {0};
    nicstride_msg_t m, got;
    size_t header = 0;

    nicstride_msg_init(&m, NICSTRIDE_MSG_PUT, 1, 2);
    m.flags = NICSTRIDE_MSG_INLINE;
    ck_assert_uint_eq(nicstride_msg_shorten(&m, bytes), NICSTRIDE_SHORT_SIZE);
    bytes[0] ^= 0x40;
    for (size_t len = 1; len < sizeof(bytes); len++) {
        const char *why = decode(bytes, len, &got, &header);
        UNIT_CHECK(why != NULL && strstr(why, "byte order") != NULL);
    }
}
END_TEST

/* What is let through says all that its bytes say: written again it is the same. */
START_TEST(random_bytes)
{
    unit_random_t r = {unit_seed()};
    unsigned through = 0;

    for (int i = 0; i < 600000; i++) {
        unsigned char bytes[NICSTRIDE_SHORT_MAX + 32], again[NICSTRIDE_SHORT_MAX];
        const size_t len = unit_below(&r, sizeof(bytes) + 1);
        size_t header = 0;
        nicstride_msg_t m;

        for (size_t b = 0; b < sizeof(bytes); b++)
            bytes[b] = unit_once_in(&r, 3) ? (unsigned char)unit_random64(&r) : 0;
        bytes[0] = (unsigned char)((bytes[0] & ~NICSTRIDE_SHORT_MASK) | NICSTRIDE_SHORT_MARK);
        if (decode(bytes, len, &m, &header) != NULL)
            continue;
        through++;
        UNIT_CHECK(header == header_size(&m));
        UNIT_CHECK(nicstride_msg_shorten(&m, again) == header);
        UNIT_CHECK(memcmp(again, bytes, header) == 0);
    }
    ck_assert_uint_gt(through, 1000);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {there_and_back, handle_words,     what_does_not_fit, lengths,
                                  far_away,       other_byte_order, random_bytes};

    return unit_run("compact", tests, sizeof(tests) / sizeof(tests[0]));
}
