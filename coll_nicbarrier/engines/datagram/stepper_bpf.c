/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The stepper in the kernel, where nicbarrier-bpf is loaded; see stepper.h and bpf/state.h.
 */
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "coll_nicbarrier/engines/datagram/state.h"

/** The address from which the kernel sends there; 0 and errno if there is no route. */
static uint32_t source_of(nicbarrier_address_t to)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = to.ip, .sin_port = to.port};
    socklen_t len = sizeof(a);
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const bool found = fd >= 0 && connect(fd, (const struct sockaddr *)&a, len) == 0 &&
                       getsockname(fd, (struct sockaddr *)&a, &len) == 0;
    const int error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return found ? a.sin_addr.s_addr : 0;
}

/** Finds the interface by which the kernel sends to all partners. 0, or -1 and the reason. */
static int find_interface(const nicbarrier_net_t *net, char name[IF_NAMESIZE],
                          nicbarrier_reason_t *why)
{
    struct ifaddrs *all;
    const uint32_t mine = source_of(net->partner[0].at);
    if (mine == 0 || getifaddrs(&all) != 0)
        return nicbarrier_reason(why, "a partner cannot be reached: %s", strerror(errno));
    name[0] = '\0';
    for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next) {
        const struct sockaddr_in *a = (const void *)i->ifa_addr;
        if (a != NULL && a->sin_family == AF_INET && a->sin_addr.s_addr == mine)
            (void)snprintf(name, IF_NAMESIZE, "%s", i->ifa_name);
    }
    freeifaddrs(all);
    for (int i = 1; i < net->npartners; i++)
        if (source_of(net->partner[i].at) != mine)
            return nicbarrier_reason(why, "not all partners are reached from one address");
    return 0;
}

/** Who sends the word of step k, as it stands in the packet. */
static uint64_t name_of(const nicbarrier_step_t *s, uint32_t k)
{
    const nicbarrier_packet_t p = {
        .at = (uint8_t)k, .from_at = s->wait_at, .sender = (uint32_t)s->wait_for};
    unsigned char bytes[NICBARRIER_PACKET_SIZE];
    uint64_t name;
    nicbarrier_packet_encode(&p, bytes);
    memcpy(&name, bytes + NICBARRIER_PACKET_SENDER_AT, sizeof(name));
    return name;
}

static bool bpf_install(nicbarrier_net_t *net, nicbarrier_reason_t *why)
{
    const nicbarrier_bpf_id_t id = {.key = net->group.key, .cookie = nicbarrier_datagram.cookie};
    nicbarrier_bpf_page_t first = {.rule = net->rule,
                                   .drop = (uint64_t)nicbarrier_datagram_config.drop};
    nicbarrier_udp_address_t mine;
    char interface[IF_NAMESIZE];
    (void)nicbarrier_udp_describe(&mine);
    first.port = mine.port;
    for (uint32_t k = 0; k < net->rule.nsteps; k++)
        if (net->from[k] != NULL)
            first.named[k] = name_of(&net->group.step[k], k);
    if (find_interface(net, interface, why) != 0 ||
        nicbarrier_bpf_client_install(&net->kernel, &id, &first, interface, net->partner[0].at,
                                      why) != 0)
        return false;
    atomic_store_explicit(&net->page, net->kernel.page, memory_order_release);
    return true;
}

static bool bpf_enter(nicbarrier_net_t *net, uint64_t epoch)
{
    return nicbarrier_bpf_client_enter(&net->kernel, epoch);
}

static bool bpf_take(nicbarrier_net_t *net, uint32_t k, uint64_t word)
{
    return nicbarrier_bpf_client_take(&net->kernel, k, word);
}

static void bpf_snapshot(nicbarrier_net_t *net)
{
    nicbarrier_bpf_client_snapshot(&net->kernel, &net->rule);
}

static void bpf_stop(nicbarrier_net_t *net)
{
    nicbarrier_bpf_client_stop(&net->kernel);
}

static void bpf_remove(nicbarrier_net_t *net)
{
    nicbarrier_bpf_client_close(&net->kernel);
}

const nicbarrier_stepper_t nicbarrier_stepper_bpf = {
    .install = bpf_install,
    .enter = bpf_enter,
    .take = bpf_take,
    .snapshot = bpf_snapshot,
    .stop = bpf_stop,
    .remove = bpf_remove,
};
