/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Ports without a device (verbs_library.h).
 */
#include "common/config.h"

#if OMPI_NIC_HAVE_VERBS

#include <stdlib.h>

#include "common/transport/verbs/verbs.h"
#include "test/unit/verbs_library.h"

/** Adapters of Ethernet. */
static void reset(int devices)
{
    lib_reset(devices);
    lib.ethernet = true;
    lib.lid = 0;
    lib.inline_most = 256;
}

/** Opens a port where UCX is given such a list of devices. */
static int open_of(const char *list, onic_verbs_port_t *port, onic_verbs_reason_t *why)
{
    setenv("UCX_NET_DEVICES", list, 1);
    const int rc = onic_verbs_port_open(port, why);
    unsetenv("UCX_NET_DEVICES");
    return rc;
}

/* ---- ports ----------------------------------------------------------------------------------- */

START_TEST(no_device)
{
    onic_verbs_reason_t why;
    onic_verbs_port_t port;

    reset(0);
    ck_assert_int_eq(onic_verbs_port_open(&port, &why), -1);
    ck_assert_str_eq(why.text, "verbs: no device has a port that is active");
    check_all_closed();
    reset(2);
    ck_assert_int_eq(open_of("other:1", &port, &why), -1);
    ck_assert_str_eq(why.text,
                     "verbs: no device of UCX_NET_DEVICES=other:1 has a port that is active");
    ck_assert_int_eq(open_of("fake1:1", &port, &why), -1); /* not active */
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
    ck_assert_int_eq(open_of("fake1", &a, &why), 0);
    ck_assert_str_eq(ibv_get_device_name(a.context->device), "fake1");
    ck_assert_int_eq(a.number, 2);
    ck_assert_int_eq(a.gid_index, 3);
    ck_assert_int_eq(a.mine.link, ONIC_VERBS_ROCE2);
    ck_assert_int_eq(open_of("eth0,fake1:2", &b, &why), 0);
    ck_assert_int_eq(lib.contexts, 2);
    ck_assert_ptr_ne(a.context, b.context);
    ck_assert_int_eq(open_of("^fake0,fake1:1", &other, &why), 0);
    ck_assert_str_eq(ibv_get_device_name(other.context->device), "fake1");
    ck_assert_int_eq(lib.contexts, 3); /* that of fake2 has been closed again */
    onic_verbs_port_close(&a);
    ck_assert_int_eq(lib.contexts, 2);
    ck_assert_int_eq(lib.pds, 2);
    onic_verbs_port_close(&other);
    onic_verbs_port_close(&b);
    check_all_closed();
}
END_TEST

/* One that UCX is told to use, and nothing else where it is no good. */
START_TEST(address_given)
{
    static const struct {
        const char *text;
        int index;
    } cases[] = {{"auto", 3}, {"3", 3}, {"0", -1}, {"255", -1}, {"99999", -1}};
    onic_verbs_reason_t why;
    onic_verbs_port_t port;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        reset(1);
        setenv("UCX_IB_GID_INDEX", cases[i].text, 1);
        ck_assert_int_eq(onic_verbs_port_open(&port, &why) == 0, cases[i].index >= 0);
        if (cases[i].index >= 0)
            ck_assert_int_eq(port.gid_index, cases[i].index);
        onic_verbs_port_close(&port);
        check_all_closed();
    }
    unsetenv("UCX_IB_GID_INDEX");
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

/* Whatever fails: the reason is told, and nothing stays open. */
START_TEST(whatever_fails)
{
    onic_verbs_reason_t why = {""};
    onic_verbs_port_t port;

    reset(2);
    lib.fails = (call_t)_i;
    const bool works = onic_verbs_port_open(&port, &why) == 0;
    ck_assert_int_eq(works, _i == NO_CALL);
    ck_assert_int_eq(why.text[0] == '\0', works);
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

        reset(2);
        lib.calls_left = at;
        (void)onic_verbs_port_open(&port, &why);
        reached = lib.calls_left == 0;
        onic_verbs_port_close(&port);
        check_all_closed();
    }
}
END_TEST

int main(void)
{
    return UNIT_RUN("verbs", UNIT_ONCE(no_device), UNIT_ONCE(each_its_own),
                    UNIT_ONCE(address_given), UNIT_ONCE(routes), UNIT_ONCE(fails_once),
                    UNIT_LOOP(whatever_fails, 0, REG_MR));
}

#else

#include <stdio.h>

int main(void)
{
    puts("SKIP: check_verbs: this build is without libibverbs");
    return 77;
}

#endif
