/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file MCA parameters of pml_superpipe: names, units, ranges, checks. */
#include "pml_superpipe/component/component.h"

#include <string.h>

#include "common/model/link.h"
#include "common/support/help.h"
#include "pml_superpipe/protocols/process.h"

#include "ompi/constants.h"

enum { EAGER, EARLY, MEMORY, BUFFERED, AREA, SLOT, QUEUES, TCP_SEGMENT, N_RANGED };

static onic_ranged_t ranged[N_RANGED] = {
    [EAGER] = {"eager",
               "Most bytes of a message that is sent with its envelope, before it is known that a "
               "receive waits for it; fewer where a fragment of the transport holds fewer",
               8192, 0, 1 << 20},
    [EARLY] = {"early",
               "Most bytes of a longer message that are sent behind its announcement without being "
               "asked for, by credit: all of it, or what can be sent while the answer is awaited",
               65536, 0, SUPERPIPE_EARLY_MAX},
    [MEMORY] = {"memory",
                "Mebibytes that messages without a receive may take up in this process, of all "
                "senders together; at least 4 KiB for each process of the job. Without credit the "
                "data of a message stays with its sender",
                64, 1, 1 << 20},
    [BUFFERED] = {"buffered",
                  "Kibibytes that copies of short messages without credit may take up at their "
                  "sender, which need not wait for the receive then. The first one "
                  "starts the server thread, which sends them while the process computes",
                  16384, 0, 1 << 20},
    [AREA] = {"area",
              "Kibibytes of the landing area through which protocol mover brings data to this "
              "process; 0 takes twice a core's L2 cache, 1 to 16 MiB. "
              "Less where /dev/shm is small: an eighth of what is free there for all processes of "
              "the node",
              0, 0, 1 << 20},
    [SLOT] = {"slot",
              "Kibibytes of a slot of that area, which is the longest chunk; 0 takes what follows "
              "from the area",
              0, 0, 1 << 20},
    [QUEUES] = {"queues",
                "Kibibytes of shared memory, for all of them together, of the queues through which "
                "the processes of its node and job send messages to this process; only those that "
                "are used take up memory. Each has its part, a power of two from 16 to 2048 KiB. "
                "Less where /dev/shm is small, as with the area. "
                "0: messages go by UCX",
                4096, 0, 1 << 20},
    [TCP_SEGMENT] = {"tcp_segment",
                     "Bytes of one fragment over TCP; 0 leaves it to UCX. UCX_TCP_TX_SEG_SIZE and "
                     "UCX_TCP_RX_SEG_SIZE in the environment win",
                     262144, 0, 1048576},
};

static const char *protocol, *cost, *tls;

/** Prints what is wrong with a parameter. */
static int refuse(const char *topic, const char *value)
{
    onic_help(SUPERPIPE_HELP_FILE, topic, value);
    return OMPI_ERR_BAD_PARAM;
}

int superpipe_params_register(const mca_base_component_t *c)
{
    for (int i = 0; i < N_RANGED; i++)
        onic_register_ranged(c, &ranged[i]);
    onic_register_string(
        c, "protocol", "auto", &protocol,
        "How data moves: auto, eager (with its envelope, up to what a fragment holds), stream "
        "(packed fragments by active messages), mover (packed into slots of the receiver while it "
        "unpacks), copy (the receiver reads the memory of a sender on its node), rendezvous (UCX "
        "moves contiguous data between user memory). A protocol that cannot do a transfer is "
        "replaced by one that can");
    onic_register_string(
        c, "cost", "default", &cost,
        "Numbers of the model that chooses protocols until it has been learned what they take: "
        "default, numbers for the node as in message=700,byte=0.15, or @FILE, which names a file "
        "of lines as in node: message=700 and net: message=10000; show_plan prints what is in use");
    onic_register_string(c, "tls", "", &tls,
                         "UCX transports to use, as in UCX_TLS; empty takes UCX_TLS from the "
                         "environment, or what UCX chooses");
    onic_register_bool(
        c, "cma", true, &superpipe.params.single_copy,
        "Use single copy by the kernel (process_vm_readv) where it works. Where "
        "kernel.yama.ptrace_scope is 1 that needs the processes to let all of the same user attach "
        "to them, debuggers too, which they do then");
    onic_register_bool(
        c, "network_slots", false, &superpipe.params.network_slots,
        "Let protocol mover bring data from other hosts, too, through slots that an InfiniBand or "
        "RoCE adapter puts into: all the memory that it registers is the landing area. Nothing "
        "changes where there is no adapter. Its speed is known of none, so by default it does not");
    onic_register_bool(c, "show_plan", false, &superpipe.params.show_plan,
                       "Print at the start which protocol the model chooses for each kind of peer, "
                       "data and size");
    return OMPI_SUCCESS;
}

int superpipe_params_check(void)
{
    superpipe_params_t *p = &superpipe.params;

    if (onic_check_ranged(ranged, N_RANGED, SUPERPIPE_HELP_FILE) != OMPI_SUCCESS)
        return OMPI_ERR_BAD_PARAM;
    p->eager = (size_t)ranged[EAGER].value;
    p->early = (size_t)ranged[EARLY].value;
    p->memory = (size_t)ranged[MEMORY].value << 20;
    p->buffered = (size_t)ranged[BUFFERED].value << 10;
    p->area = (size_t)ranged[AREA].value << 10;
    p->slot = (size_t)ranged[SLOT].value << 10;
    p->queues = (size_t)ranged[QUEUES].value << 10;
    p->tcp_segment = (size_t)ranged[TCP_SEGMENT].value;
    p->tls = tls != NULL && tls[0] != '\0' ? (char *)(uintptr_t)tls : NULL;
    p->protocol = superpipe_protocol_named(protocol);
    if (p->protocol == SUPERPIPE_PROTOCOLS)
        return refuse("bad-protocol", protocol);
    return onic_links_given(&superpipe.links, cost, SUPERPIPE_HELP_FILE) ? OMPI_SUCCESS
                                                                         : OMPI_ERR_BAD_PARAM;
}
