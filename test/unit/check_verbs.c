/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Ports and queue pairs without a device (verbs_library.h).
 */
#include "common/config.h"

#if OMPI_NIC_HAVE_VERBS

#include "common/verbs/verbs.h"
#include "test/unit/verbs_library.h"

/** Adapters of Ethernet. */
static void reset(int devices)
{
    lib_reset(devices);
    lib.ethernet = true;
    lib.lid = 0;
    lib.inline_most = 256;
    lib.qpn = 17;
}

/* ---- ports ----------------------------------------------------------------------------------- */

static const onic_verbs_queue_spec_t spec = {.qkey = 5,
                                             .sends = 16,
                                             .send_bytes = 32,
                                             .receives = 256,
                                             .receives_min = 64,
                                             .receive_bytes = 128};

START_TEST(no_device)
{
    onic_verbs_reason_t why;
    onic_verbs_port_t port;

    reset(0);
    ck_assert_int_eq(onic_verbs_port_open(&port, "", &why), -1);
    ck_assert_str_eq(why.text, "verbs: no device has a port that is active");
    check_all_closed();
    reset(2);
    ck_assert_int_eq(onic_verbs_port_open(&port, "other:1", &why), -1);
    ck_assert_str_eq(why.text, "verbs: no device that fits other:1 has a port that is active");
    ck_assert_int_eq(onic_verbs_port_open(&port, "fake1:1", &why), -1); /* not active */
    onic_verbs_port_close(&port);
    check_all_closed();
}
END_TEST

/* Each port has its device for itself; those that are not chosen are closed again. */
START_TEST(each_its_own)
{
    onic_verbs_reason_t why;
    onic_verbs_port_t a, b, other;

    reset(3);
    ck_assert_int_eq(onic_verbs_port_open(&a, "fake1", &why), 0);
    ck_assert_str_eq(ibv_get_device_name(a.context->device), "fake1");
    ck_assert_int_eq(a.number, 2);
    ck_assert_int_eq(a.gid_index, 3);
    ck_assert_int_eq(a.mine.link, ONIC_VERBS_ROCE2);
    ck_assert_int_eq(onic_verbs_port_open(&b, "fake1:2:3", &why), 0);
    ck_assert_int_eq(lib.opened, 2);
    ck_assert_ptr_ne(a.context, b.context);
    ck_assert_int_eq(onic_verbs_port_open(&other, "", &why), 0);
    ck_assert_int_eq(lib.contexts, 3); /* that of fake2 has been closed again */
    onic_verbs_port_close(&a);
    ck_assert_int_eq(lib.contexts, 2);
    ck_assert_int_eq(lib.pds, 2);
    onic_verbs_port_close(&other);
    onic_verbs_port_close(&b);
    check_all_closed();
}
END_TEST

START_TEST(routes)
{
    const onic_verbs_address_t there = {.link = ONIC_VERBS_ROCE2, .gid = {[15] = 9}, .qpn = 4};
    const onic_verbs_address_t near = {.link = ONIC_VERBS_INFINIBAND, .lid = 7, .qpn = 4};
    const onic_verbs_port_t port = {.number = 2, .gid_index = 3};
    struct ibv_ah_attr attr = onic_verbs_route(&port, &there);

    ck_assert(attr.is_global == 1 && attr.port_num == 2 && attr.grh.sgid_index == 3);
    ck_assert_mem_eq(attr.grh.dgid.raw, there.gid, sizeof(there.gid));
    attr = onic_verbs_route(&port, &near);
    ck_assert(attr.is_global == 0 && attr.dlid == 7);
}
END_TEST

/* ---- queues ---------------------------------------------------------------------------------- */

START_TEST(queue)
{
    onic_verbs_reason_t why;
    onic_verbs_port_t port;
    onic_verbs_queue_t q;

    reset(1);
    ck_assert_int_eq(onic_verbs_port_open(&port, "", &why), 0);
    ck_assert_int_eq(onic_verbs_queue_open(&q, &port, &spec, &why), 0);
    ck_assert(lib.pair[0].state == IBV_QPS_RTS && lib.pair[0].receives == 256);
    ck_assert(q.receives == 256 && lib.access == IBV_ACCESS_LOCAL_WRITE);
    ck_assert(q.sends_inline && q.mine.qpn == 17 && q.mine.link == ONIC_VERBS_ROCE2);
    ck_assert((fcntl(q.channel->fd, F_GETFL) & O_NONBLOCK) != 0);
    memset(onic_verbs_receive_buffer(&q, 0), 1, (size_t)256 * 128);
    memset(onic_verbs_send_buffer(&q, 0), 2, (size_t)16 * 32);
    ck_assert(onic_verbs_receive_buffer(&q, 255)[127] == 1);
    ck_assert_ptr_eq(onic_verbs_send_buffer(&q, 0), onic_verbs_receive_buffer(&q, 256));
    onic_verbs_queue_stop(&q);
    onic_verbs_queue_close(&q);
    lib.inline_most = 31;
    ck_assert_int_eq(onic_verbs_queue_open(&q, &port, &spec, &why), 0);
    ck_assert(!q.sends_inline);
    onic_verbs_queue_close(&q);
    onic_verbs_queue_close(&q);
    onic_verbs_port_close(&port);
    check_all_closed();
}
END_TEST

/* As many receive buffers as there is memory for, but not too few. */
START_TEST(little_memory)
{
    static const struct {
        size_t pages;
        unsigned receives;
    } cases[] = {{257, 256}, {256, 128}, {129, 128}, {128, 64}, {65, 64}, {64, 0}};
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    onic_verbs_queue_spec_t large = spec; /* a page for each, and one for what is sent */
    onic_verbs_reason_t why;
    onic_verbs_port_t port;
    onic_verbs_queue_t q;

    reset(1);
    ck_assert_int_eq(onic_verbs_port_open(&port, "", &why), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        large.receive_bytes = (unsigned)page;
        lib.lockable = cases[i].pages * page;
        const int rc = onic_verbs_queue_open(&q, &port, &large, &why);
        ck_assert_int_eq(rc, cases[i].receives > 0 ? 0 : -1);
        ck_assert_uint_eq(q.receives, cases[i].receives);
        if (rc != 0)
            ck_assert_ptr_nonnull(strstr(why.text, "device fake0: registered memory: "));
        onic_verbs_queue_close(&q);
    }
    onic_verbs_port_close(&port);
    check_all_closed();
}
END_TEST

/* Whatever fails: the reason is told, and nothing stays open. */
START_TEST(whatever_fails)
{
    onic_verbs_reason_t why = {""};
    onic_verbs_port_t port;
    onic_verbs_queue_t q;

    if (_i == TO_RESET)
        return; /* no part of opening */
    reset(2);
    lib.fails = (call_t)_i;
    const bool works = onic_verbs_port_open(&port, "", &why) == 0 &&
                       onic_verbs_queue_open(&q, &port, &spec, &why) == 0;
    ck_assert_int_eq(works, _i == NO_CALL);
    ck_assert_int_eq(why.text[0] == '\0', works);
    if (works)
        onic_verbs_queue_close(&q);
    onic_verbs_port_close(&port);
    check_all_closed();
}
END_TEST

/* The same, where it fails once, at any time. */
START_TEST(fails_once)
{
    onic_verbs_reason_t why = {""};
    bool reached = true;

    for (int at = 1; reached; at++) {
        onic_verbs_port_t port;
        onic_verbs_queue_t q;
        reset(2);
        lib.calls_left = at;
        if (onic_verbs_port_open(&port, "", &why) == 0 &&
            onic_verbs_queue_open(&q, &port, &spec, &why) == 0) {
            ck_assert(lib.pair[0].state == IBV_QPS_RTS && lib.pair[0].receives == q.receives);
            onic_verbs_queue_close(&q);
        }
        reached = lib.calls_left == 0;
        onic_verbs_port_close(&port);
        check_all_closed();
    }
}
END_TEST

/* Partners must be able to use the address. */
START_TEST(addresses_of_no_use)
{
    onic_verbs_reason_t why = {""};
    onic_verbs_port_t port;
    onic_verbs_queue_t q;

    reset(1);
    lib.ethernet = _i != 0; /* else without a LID */
    lib.qpn = _i == 0 ? 17 : 1;
    ck_assert_int_eq(onic_verbs_port_open(&port, "", &why), 0);
    ck_assert_int_eq(onic_verbs_queue_open(&q, &port, &spec, &why), -1);
    ck_assert_ptr_nonnull(strstr(why.text, "port 2 of device fake0 has no address of use"));
    onic_verbs_port_close(&port);
    check_all_closed();
}
END_TEST

/* ---- bringing back --------------------------------------------------------------------------- */

static int leftover; /* completions of before */

static int show_leftover(struct ibv_cq *cq, int most, struct ibv_wc *wc)
{
    const int n = leftover < most ? leftover : most;

    (void)cq;
    memset(wc, 0, (size_t)n * sizeof(*wc));
    leftover -= n;
    return n;
}

START_TEST(brought_back)
{
    static const struct {
        call_t fails;
        bool tried, broken;
        enum ibv_qp_state state;
    } times[] = {{NO_CALL, true, false, IBV_QPS_RTS},
                 {TO_RESET, false, true, IBV_QPS_RTS},
                 {TO_RTR, true, true, IBV_QPS_INIT},
                 {NO_CALL, true, false, IBV_QPS_RTS}};
    onic_verbs_reason_t why = {""};
    onic_verbs_port_t port;
    onic_verbs_queue_t q;

    reset(1);
    lib.poll_more = show_leftover;
    ck_assert_int_eq(onic_verbs_port_open(&port, "", &why), 0);
    ck_assert_int_eq(onic_verbs_queue_open(&q, &port, &spec, &why), 0);
    leftover = 50;
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        q.broken = true;
        q.mended = 0; /* long ago */
        lib.fails = times[i].fails;
        ck_assert(onic_verbs_queue_mend(&q) == times[i].tried);
        ck_assert(q.broken == times[i].broken && lib.pair[0].state == times[i].state);
        ck_assert(q.broken || lib.pair[0].receives == 256);
        ck_assert_int_eq(leftover, 0);
    }
    onic_verbs_queue_close(&q);
    onic_verbs_port_close(&port);
    check_all_closed();
}
END_TEST

int main(void)
{
    return UNIT_RUN("verbs", UNIT_ONCE(no_device), UNIT_ONCE(each_its_own), UNIT_ONCE(routes),
                    UNIT_ONCE(queue), UNIT_ONCE(little_memory), UNIT_ONCE(fails_once),
                    UNIT_ONCE(brought_back), UNIT_LOOP(whatever_fails, 0, POST_SEND),
                    UNIT_LOOP(addresses_of_no_use, 0, 2));
}

#else

#include <stdio.h>

int main(void)
{
    puts("SKIP: check_verbs: this build is without libibverbs");
    return 77;
}

#endif
