/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Fuzzes what a leader does with the endpoints of others, and with the route of a datagram that
 * came to a verbs port: whatever is understood has one form only, and can be sent to.
 *
 * Input: the route (ONIC_VERBS_GRH bytes), then an endpoint.
 */
#include <string.h>

#include "coll_nicbarrier/engines/datagram/udp_address.h"
#include "common/verbs/verbs_port.h"
#include "test/fuzz/fuzz.h"

static const nicbarrier_udp_address_t my_addresses = {
    .host = 1, .cookie = 2, .port = 3, .n = 1, .ip = {{{[10] = 0xff, 0xff, 10, 0, 0, 1}, 120}}};
static const onic_verbs_address_t my_ports[] = {
    {.link = ONIC_VERBS_INFINIBAND, .lid = 1, .qpn = 2},
    {.link = ONIC_VERBS_ROCE1, .qpn = 2, .gid = {0xfe, 0x80, [15] = 1}},
    {.link = ONIC_VERBS_ROCE2, .qpn = 2, .gid = {[10] = 0xff, [11] = 0xff, [12] = 10}},
    {.link = ONIC_VERBS_ROCE2, .qpn = 2, .gid = {0xfe, 0x80, [15] = 1}}};

static void check_port(const onic_verbs_address_t *a, const unsigned char *bytes)
{
    onic_verbs_address_t b;

    FUZZ_CHECK(bytes == NULL || memcmp(bytes, a, sizeof(*a)) == 0);
    FUZZ_CHECK(onic_verbs_address_read(a, sizeof(*a), &b) == NULL);
    FUZZ_CHECK(memcmp(a, &b, sizeof(b)) == 0);
}

static void check_route(const unsigned char *route)
{
    onic_verbs_address_t from;
    uint32_t qpn;
    uint16_t lid;

    memcpy(&qpn, route, sizeof(qpn));
    memcpy(&lid, route + sizeof(qpn), sizeof(lid));
    for (size_t i = 0; i < sizeof(my_ports) / sizeof(my_ports[0]); i++) {
        if (onic_verbs_source(&my_ports[i], route, lid, qpn & 0xffffff, &from)) {
            check_port(&from, NULL);
            FUZZ_CHECK(onic_verbs_obstacle(&my_ports[i], &from) == NULL);
        }
    }
}

static int take_addresses(const unsigned char *bytes, uint32_t len)
{
    nicbarrier_udp_address_t theirs;
    nicbarrier_ip_t order[NICBARRIER_IPS_MAX + 1];

    if (nicbarrier_udp_address_decode(bytes, len, &theirs) != NULL)
        return -1;
    FUZZ_CHECK(nicbarrier_udp_address_size(&theirs) == len);
    FUZZ_CHECK(memcmp(bytes, &theirs, len) == 0);
    const int n = nicbarrier_udp_address_choose(&my_addresses, &theirs, true, order);
    FUZZ_CHECK(n >= 0 && n <= theirs.n + 1);
    return 0;
}

static int take_port(const unsigned char *bytes, uint32_t len)
{
    onic_verbs_address_t theirs;

    if (onic_verbs_address_read(bytes, len, &theirs) != NULL)
        return -1;
    check_port(&theirs, bytes);
    for (size_t i = 0; i < sizeof(my_ports) / sizeof(my_ports[0]); i++)
        FUZZ_CHECK((onic_verbs_obstacle(&my_ports[i], &theirs) == NULL) ==
                   (onic_verbs_obstacle(&theirs, &my_ports[i]) == NULL));
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (len < ONIC_VERBS_GRH)
        return -1;
    check_route(data);
    data += ONIC_VERBS_GRH;
    len -= ONIC_VERBS_GRH;
    const uint32_t span = nicbarrier_udp_address_span(data, (uint32_t)len);
    FUZZ_CHECK(span <= len);
    const int udp = take_addresses(data, span);
    const int verbs = take_port(data + span, (uint32_t)len - span);
    return udp == 0 || verbs == 0 ? 0 : -1;
}

/* What leaders would really say. */
size_t onic_fuzz_seed(unsigned i, uint8_t *buf, size_t cap)
{
    const size_t ports = sizeof(my_ports) / sizeof(my_ports[0]);
    size_t len = ONIC_VERBS_GRH;

    if (i > ports || cap < ONIC_VERBS_GRH + 512)
        return 0;
    memset(buf, 0, ONIC_VERBS_GRH);
    buf[0] = 0x60;
    buf[20] = 0x45;
    memcpy(buf + len, &my_addresses, nicbarrier_udp_address_size(&my_addresses));
    len += nicbarrier_udp_address_size(&my_addresses);
    if (i < ports) {
        memcpy(buf + len, &my_ports[i], sizeof(my_ports[i]));
        len += sizeof(my_ports[i]);
    }
    return len;
}
