/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Engine datagram over UDP: what only this one does, seen by a partner that the test plays on a
 * socket of its own. What every engine must do is tested with others
 * (check_nicbarrier_conformance).
 */
#include "coll_nicbarrier/engines/datagram/state.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "coll_nicbarrier/engines/shm/shm.h"
#include "test/unit/fake_kernel.h"
#include "test/unit/unit.h"

enum { KEY = 81, COOKIE = 77 };

/** So long that no NACK is ever sent: longer than a test may take. */
enum { NEVER_USEC = 2 * UNIT_SECONDS * 1000000 };

#define COUNT(name) __atomic_load_n(&nicbarrier_datagram_counters.name, __ATOMIC_RELAXED)

static const nicbarrier_engine_t *const engine = &nicbarrier_engine_datagram;

/** Member 1 of two, and what it knows of member 0, the engine. */
static struct {
    int fd;
    nicbarrier_udp_address_t theirs;
} partner;

static nicbarrier_net_t *net;

/* ---- the partner ----------------------------------------------------------------------------- */

static void throw_bytes(const void *bytes, size_t len)
{
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                   .sin_port = partner.theirs.port};
    ck_assert_int_eq(sendto(partner.fd, bytes, len, 0, (const struct sockaddr *)&to, sizeof(to)),
                     len);
}

static void throw(const nicbarrier_packet_t *p)
{
    unsigned char bytes[NICBARRIER_PACKET_SIZE];
    nicbarrier_packet_encode(p, bytes);
    throw_bytes(bytes, sizeof(bytes));
}

static nicbarrier_packet_t packet(uint64_t key, nicbarrier_packet_kind_t kind, uint64_t word)
{
    return (nicbarrier_packet_t){.kind = (uint8_t)kind,
                                 .sender = 1,
                                 .cookie = partner.theirs.cookie,
                                 .key = key,
                                 .epoch = word,
                                 .back = COOKIE};
}

static void tell(nicbarrier_packet_kind_t kind, uint64_t word)
{
    const nicbarrier_packet_t p = packet(KEY, kind, word);
    throw(&p);
}

/** A packet of that kind comes within so many milliseconds; others before it do not count. */
static bool hears(nicbarrier_packet_kind_t kind, uint64_t word, int msec)
{
    struct pollfd in = {.fd = partner.fd, .events = POLLIN};
    while (poll(&in, 1, msec) == 1) {
        unsigned char bytes[100];
        nicbarrier_packet_t p;
        const ssize_t n = recv(partner.fd, bytes, sizeof(bytes), 0);
        ck_assert(nicbarrier_packet_decode(bytes, (size_t)n, &p));
        ck_assert(p.cookie == COOKIE && p.back == partner.theirs.cookie && p.sender == 0);
        if (p.kind == kind && p.epoch == word)
            return true;
    }
    return false;
}

/* ---- the engine ------------------------------------------------------------------------------ */

/** Opens the engine with its parameters as they are. */
static void open_engine(void)
{
    nicbarrier_reason_t why = {""};
    nicbarrier_datagram_config.interface = "lo";
    ck_assert_int_eq(engine->open(true, &why), 0);
}

static nicbarrier_net_t *prepare(uint64_t key)
{
    nicbarrier_group_t group = {.key = key, .n = 2};
    nicbarrier_endpoint_t theirs;
    nicbarrier_net_t *made;
    nicbarrier_reason_t why = {""};
    nicbarrier_group_plan(&group, NICBARRIER_DISSEMINATION);
    ck_assert_int_eq(engine->prepare(&group, &made, &theirs, &why), 0);
    ck_assert_ptr_null(nicbarrier_udp_address_decode(theirs.bytes, theirs.len, &partner.theirs));
    return made;
}

/** Connects to the partner, whose endpoint is that of the engine but for port and cookie. */
static bool connects(nicbarrier_net_t *made, nicbarrier_shm_t *node, nicbarrier_reason_t *why)
{
    nicbarrier_udp_address_t mine = partner.theirs;
    nicbarrier_endpoint_t list = {.member = 1, .len = nicbarrier_udp_address_size(&mine)};
    const nicbarrier_endpoints_t endpoints = {1, &list};
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(a);
    ck_assert_int_eq(getsockname(partner.fd, (struct sockaddr *)&a, &size), 0);
    mine.port = a.sin_port;
    mine.cookie = COOKIE;
    memcpy(list.bytes, &mine, list.len);
    return engine->connect(made, &endpoints, node, why) == 0;
}

static void begin(int nack_usec, nicbarrier_shm_t *node)
{
    const struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    nicbarrier_reason_t why = {""};
    partner.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(partner.fd, (const struct sockaddr *)&a, sizeof(a)), 0);
    nicbarrier_datagram_config.nack_usec = nack_usec;
    open_engine();
    net = prepare(KEY);
    ck_assert(connects(net, node, &why));
}

static void end(void)
{
    engine->disconnect(net);
    engine->close();
    close(partner.fd);
}

/** Looks at the network until the epoch is complete. */
static void await(uint64_t epoch)
{
    while (engine->completed(net) < epoch)
        (void)engine->progress(net);
}

static void barriers(uint64_t first, uint64_t last)
{
    for (uint64_t epoch = first; epoch <= last; epoch++) {
        engine->enter(net, epoch);
        ck_assert(hears(NICBARRIER_PACKET_EPOCH, epoch, UNIT_SECONDS * 1000));
        ck_assert_uint_eq(engine->completed(net), epoch - 1);
        tell(NICBARRIER_PACKET_EPOCH, epoch);
        await(epoch);
    }
}

/* ---- what is lost ---------------------------------------------------------------------------- */

/* Who waits asks again and again, is content with a repetition, and repeats what was sent, and
 * nothing else. */
START_TEST(questions_and_answers)
{
    begin(1000, NULL);
    engine->enter(net, 2);
    for (int i = 0; i < 5; i++)
        ck_assert(hears(NICBARRIER_PACKET_NACK, 1, UNIT_SECONDS * 1000));
    ck_assert_uint_ge(COUNT(nacks), 5);
    tell(NICBARRIER_PACKET_REPEAT, 1);
    ck_assert(hears(NICBARRIER_PACKET_NACK, 2, UNIT_SECONDS * 1000));
    ck_assert_uint_eq(engine->completed(net), 1);
    tell(NICBARRIER_PACKET_REPEAT, 2);
    await(2);
    tell(NICBARRIER_PACKET_NACK, 1);
    ck_assert(hears(NICBARRIER_PACKET_REPEAT, 2, UNIT_SECONDS * 1000));
    tell(NICBARRIER_PACKET_NACK, 3);
    ck_assert(!hears(NICBARRIER_PACKET_REPEAT, 2, 30));
    ck_assert_uint_eq(COUNT(retransmits), 1);
    end();
}
END_TEST

/* What comes before a group is connected is not lost for good; of one that was freed, what others
 * ask for is granted. */
START_TEST(before_and_after)
{
    nicbarrier_reason_t why = {""};
    begin(NEVER_USEC, NULL);
    barriers(1, 1);
    nicbarrier_net_t *second = prepare(KEY + 1);
    nicbarrier_packet_t p = packet(KEY + 1, NICBARRIER_PACKET_EPOCH, 1);
    throw(&p);
    ck_assert(connects(second, NULL, &why));
    engine->enter(second, 1);
    throw(&p);
    while (engine->completed(second) < 1)
        (void)engine->progress(second);
    engine->disconnect(second);
    p = packet(KEY + 1, NICBARRIER_PACKET_NACK, 5);
    throw(&p);
    ck_assert(hears(NICBARRIER_PACKET_REPEAT, 5, UNIT_SECONDS * 1000));
    barriers(2, 20);
    end();
    /* A second life of the engine in the same process. */
    begin(NEVER_USEC, NULL);
    barriers(1, 20);
    end();
}
END_TEST

/* A group whose barriers are not over when it is left goes on by itself. */
START_TEST(left_too_early)
{
    begin(1000, NULL);
    barriers(1, 1);
    engine->enter(net, 2);
    engine->disconnect(net);
    ck_assert(hears(NICBARRIER_PACKET_NACK, 2, UNIT_SECONDS * 1000));
    tell(NICBARRIER_PACKET_NACK, 2);
    ck_assert(hears(NICBARRIER_PACKET_REPEAT, 2, UNIT_SECONDS * 1000));
    tell(NICBARRIER_PACKET_EPOCH, 2);
    while (COUNT(completed) < 2)
        (void)usleep(1000);
    engine->close();
    close(partner.fd);
}
END_TEST

/* ---- the helper thread ----------------------------------------------------------------------- */

/* Nobody calls the engine: the last process of the node arrives, the partner does, and asks for a
 * repetition. No timer would find the first. */
START_TEST(nobody_calls)
{
    static _Alignas(128) unsigned char memory[2048];
    nicbarrier_shm_t mine, other;
    ck_assert_uint_le(nicbarrier_shm_bytes(2, 2), sizeof(memory));
    memset(memory, 0, sizeof(memory));
    nicbarrier_shm_attach(&mine, memory, 2, 0, 2, true);
    nicbarrier_shm_attach(&other, memory, 2, 1, 2, true);
    begin(NEVER_USEC, &mine);
    nicbarrier_shm_enter(&mine, 3);
    /* So that the thread looks, and from then on looks again and again. */
    tell(NICBARRIER_PACKET_REPEAT, 0);
    ck_assert(!hears(NICBARRIER_PACKET_EPOCH, 3, 50));
    nicbarrier_shm_enter(&other, 3);
    ck_assert(hears(NICBARRIER_PACKET_EPOCH, 3, UNIT_SECONDS * 1000));
    tell(NICBARRIER_PACKET_EPOCH, 3);
    while (nicbarrier_shm_completed(&mine) < 3)
        (void)usleep(1000);
    ck_assert_uint_eq(engine->completed(net), 3);
    ck_assert_uint_eq(COUNT(thread_completed), 1);
    tell(NICBARRIER_PACKET_NACK, 3);
    ck_assert(hears(NICBARRIER_PACKET_REPEAT, 3, UNIT_SECONDS * 1000));
    end();
}
END_TEST

/* ---- strangers and the dead ------------------------------------------------------------------ */

static void look_until_refused(uint64_t count)
{
    while (COUNT(refused) < count)
        (void)engine->progress(net);
}

/* Packets of strangers, malformed and well-formed, change nothing. */
START_TEST(strangers)
{
    unsigned char bytes[100] = {0};
    uint64_t count = 0;
    begin(NEVER_USEC, NULL);
    nicbarrier_packet_t p = packet(KEY, NICBARRIER_PACKET_EPOCH, 1);
    nicbarrier_packet_encode(&p, bytes);
    for (size_t len = 0; len <= sizeof(bytes); len++)
        if (len != NICBARRIER_PACKET_SIZE) {
            throw_bytes(bytes, len);
            look_until_refused(++count);
        }
    p.cookie++;
    throw(&p);
    look_until_refused(++count);
    /* The right cookie, but not a partner, and epochs that nobody can have come to. */
    p = packet(KEY, NICBARRIER_PACKET_EPOCH, 1);
    p.at = 1;
    throw(&p);
    p.at = 0;
    p.from_at = 1;
    throw(&p);
    p.from_at = 0;
    p.sender = 0;
    throw(&p);
    tell(NICBARRIER_PACKET_EPOCH, NICBARRIER_OUTSTANDING_MAX + 1);
    tell(NICBARRIER_PACKET_REPEAT, INT64_MAX);
    count += 5;
    look_until_refused(count);
    ck_assert_uint_eq(engine->completed(net), 0);
    barriers(1, 1);
    ck_assert_uint_eq(COUNT(refused), count);
    end();
}
END_TEST

/* The partner is gone: its host refuses what it is asked, and the group has failed. Who asks
 * afterwards hears of it. */
START_TEST(dies)
{
    struct sockaddr_in a;
    socklen_t size = sizeof(a);
    begin(1000, NULL);
    barriers(1, 10);
    ck_assert_int_eq(getsockname(partner.fd, (struct sockaddr *)&a, &size), 0);
    close(partner.fd);
    engine->enter(net, 11);
    while (!engine->failed(net))
        (void)engine->progress(net);
    ck_assert_uint_eq(engine->completed(net), 10);
    engine->disconnect(net);
    partner.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(partner.fd, (const struct sockaddr *)&a, sizeof(a)), 0);
    tell(NICBARRIER_PACKET_NACK, 12);
    ck_assert(hears(NICBARRIER_PACKET_REPEAT, 11 | NICBARRIER_WORD_FAILED, UNIT_SECONDS * 1000));
    engine->close();
    close(partner.fd);
}
END_TEST

/* ---- steps in the kernel, and what cannot be had --------------------------------------------- */

START_TEST(stepped)
{
    fake_kernel.absent = false;
    begin(1000, NULL);
    barriers(1, 20);
    ck_assert_uint_eq(COUNT(stepper_taken), 20);
    ck_assert_uint_eq(COUNT(stepper_fallbacks), 0);
    end();
    fake_kernel.ends_at = 10;
    begin(1000, NULL);
    barriers(1, 20);
    ck_assert_uint_lt(COUNT(stepper_taken), 30);
    ck_assert_uint_eq(COUNT(stepper_fallbacks), 1);
    end();
    nicbarrier_datagram_config.stepper = NICBARRIER_HOST;
    begin(1000, NULL);
    barriers(1, 20);
    ck_assert_uint_eq(COUNT(stepper_fallbacks), 1);
    end();
}
END_TEST

START_TEST(reasons)
{
    nicbarrier_reason_t why = {""};
    nicbarrier_datagram_config.interface = "no-such-if";
    ck_assert_int_ne(engine->open(true, &why), 0);
    ck_assert_ptr_nonnull(strstr(why.text, "no-such-if"));
    nicbarrier_datagram_config.interface = "lo";
    ck_assert_int_ne(engine->open(false, &why), 0);
    ck_assert_ptr_nonnull(strstr(why.text, "helper thread"));

    begin(1000, NULL);
    net = prepare(KEY + 1);
    const nicbarrier_endpoint_t list = {1, 7, "0123456"};
    const nicbarrier_endpoints_t endpoints = {1, &list};
    ck_assert_int_ne(engine->connect(net, &endpoints, NULL, &why), 0);
    ck_assert_ptr_nonnull(strstr(why.text, "member 1"));
    engine->disconnect(net);
    nicbarrier_datagram_config.stepper = NICBARRIER_BPF;
    net = prepare(KEY + 2);
    ck_assert(!connects(net, NULL, &why));
    ck_assert_ptr_nonnull(strstr(why.text, "no such kernel"));
    end();
}
END_TEST

int main(void)
{
    fake_kernel.absent = true;
    return UNIT_RUN("nicbarrier_datagram", UNIT_ONCE(questions_and_answers),
                    UNIT_ONCE(before_and_after), UNIT_ONCE(left_too_early), UNIT_ONCE(nobody_calls),
                    UNIT_ONCE(strangers), UNIT_ONCE(dies), UNIT_ONCE(stepped), UNIT_ONCE(reasons));
}
