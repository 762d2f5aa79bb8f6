/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The wire format; see packet.h.
 *
 *      0  magic    2 bytes
 *      2  version  1
 *      3  kind     1
 *      4  cookie   4
 *      8  key      8
 *     16  sender   4
 *     20  step     1, the receiver's
 *     21  step     1, the sender's
 *     22  copy     1
 *     23  zero     1
 *     24  epoch    8
 *     32  to       4
 *     36  back     4
 */
#include "coll_nicbarrier/engines/datagram/packet.h"

#include <endian.h>
#include <stdbool.h>
#include <string.h>

#include "coll_nicbarrier/schedule/schedule.h"

#define MAGIC   0x4e42
#define VERSION 1

enum {
    AT_VERSION = 2,
    AT_KIND = 3,
    AT_COOKIE = 4,
    AT_KEY = 8,
    AT_SENDER = 16,
    AT_STEP = 20,
    AT_FROM = 21,
    AT_COPY = 22,
    AT_ZERO = 23,
    AT_TO = 32,
    AT_BACK = 36
};

static void put16(unsigned char *at, uint16_t value)
{
    value = htobe16(value);
    memcpy(at, &value, sizeof(value));
}

static void put32(unsigned char *at, uint32_t value)
{
    value = htobe32(value);
    memcpy(at, &value, sizeof(value));
}

static void put64(unsigned char *at, uint64_t value)
{
    value = htobe64(value);
    memcpy(at, &value, sizeof(value));
}

static uint16_t get16(const unsigned char *at)
{
    uint16_t value;

    memcpy(&value, at, sizeof(value));
    return be16toh(value);
}

static uint32_t get32(const unsigned char *at)
{
    uint32_t value;

    memcpy(&value, at, sizeof(value));
    return be32toh(value);
}

static uint64_t get64(const unsigned char *at)
{
    uint64_t value;

    memcpy(&value, at, sizeof(value));
    return be64toh(value);
}

void nicbarrier_packet_encode(const nicbarrier_packet_t *p,
                              unsigned char bytes[NICBARRIER_PACKET_SIZE])
{
    memset(bytes, 0, NICBARRIER_PACKET_SIZE);
    put16(bytes, MAGIC);
    bytes[AT_VERSION] = VERSION;
    bytes[AT_KIND] = p->kind;
    put32(bytes + AT_COOKIE, p->cookie);
    put64(bytes + AT_KEY, p->key);
    put32(bytes + AT_SENDER, p->sender);
    bytes[AT_STEP] = p->at;
    bytes[AT_FROM] = p->from_at;
    bytes[AT_COPY] = p->copy;
    put64(bytes + NICBARRIER_PACKET_EPOCH_AT, p->epoch);
    put32(bytes + AT_TO, p->to);
    put32(bytes + AT_BACK, p->back);
}

uint32_t nicbarrier_packet_cookie(const unsigned char bytes[NICBARRIER_PACKET_SIZE])
{
    return get32(bytes + AT_COOKIE);
}

static const char *check_fields(const nicbarrier_packet_t *p)
{
    const bool poke = p->kind == NICBARRIER_PACKET_POKE;
    const bool nack = p->kind == NICBARRIER_PACKET_NACK;
    const uint8_t steps = poke ? 1 : NICBARRIER_STEPS_MAX;

    if (p->kind == 0 || p->kind >= NICBARRIER_PACKET_KINDS)
        return "unknown kind";
    if (p->key == 0)
        return "no group";
    if (p->sender > (poke ? 0 : INT32_MAX))
        return "no such sender";
    if (p->at >= steps || p->from_at >= steps)
        return "no such step";
    if ((p->epoch == 0) != poke)
        return "no such epoch";
    if (p->to > (nack ? INT32_MAX : 0) || (p->back != 0 && !nack))
        return "no such receiver";
    if (p->copy > (nack ? 1 : 0))
        return "no such copy";
    return NULL;
}

const char *nicbarrier_packet_decode(const void *bytes, size_t len, nicbarrier_packet_t *p)
{
    const unsigned char *b = bytes;

    if (len != NICBARRIER_PACKET_SIZE)
        return "not the size of a packet";
    if (get16(b) != MAGIC)
        return "not a packet";
    if (b[AT_VERSION] != VERSION)
        return "another version";
    if (b[AT_ZERO] != 0)
        return "padding that is not zero";
    *p = (nicbarrier_packet_t){.kind = b[AT_KIND],
                               .at = b[AT_STEP],
                               .from_at = b[AT_FROM],
                               .sender = get32(b + AT_SENDER),
                               .cookie = get32(b + AT_COOKIE),
                               .key = get64(b + AT_KEY),
                               .epoch = get64(b + NICBARRIER_PACKET_EPOCH_AT),
                               .copy = b[AT_COPY],
                               .to = get32(b + AT_TO),
                               .back = get32(b + AT_BACK)};
    return check_fields(p);
}
