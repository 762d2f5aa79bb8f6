/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * MCA parameters of coll_nicbarrier: names, units, ranges, checks.
 */
#include "coll_nicbarrier/component/module.h"

#include "coll_nicbarrier/engines/datagram/port.h"
#include "common/config.h"

#include <stdio.h>
#include <string.h>

#include "common/help.h"
#include "common/variables.h"
#include "ompi/constants.h"

#define HELP_FILE "help-coll-nicbarrier.txt"
/** Below those of the components that come with Open MPI. */
#define PRIORITY_INITIAL 5

#if OMPI_NIC_HAVE_VERBS
#define NO_VERBS ""
#else
#define NO_VERBS ". This build is without libibverbs: there is UDP only"
#endif

enum { PRIORITY, SETUP_CALL, FANOUT, PPN, SPIN, NACK_TIMEOUT, DROP, TCP_SEGMENT, N_RANGED };

static onic_ranged_t ranged[N_RANGED] = {
    [PRIORITY] = {"priority",
                  "Priority among the coll components. The default is below that of the components "
                  "that come with Open MPI (tuned has 30): give 90 to use this one",
                  PRIORITY_INITIAL, 0, 100},
    [SETUP_CALL] = {"setup_call",
                    "Which barrier of a communicator sets up the engine; those before go to the "
                    "module below, so that communicators of a short life pay nothing. A persistent "
                    "barrier is set up when it is made",
                    8, 1, 1000000000},
    [FANOUT] = {"fanout",
                "Most processes of a node that watch each other's flags directly; more are "
                "arranged in a tree of such groups by caches, NUMA nodes and packages",
                16, 2, 64},
    [PPN] = {"ppn",
             "Most processes of a node that gather in shared memory behind one leader for the "
             "network engines; 0: all of them (a network engine that is asked for where there is "
             "one node takes 1)",
             0, 0, 1000000},
    [SPIN] = {"spin",
              "How often a waiting process looks at the flags before it yields its processor, "
              "while nobody else wants that; where others do, it yields at once",
              1000, 0, 1000000},
    [NACK_TIMEOUT] = {"nack_timeout",
                      "Microseconds of silence after which engine datagram asks for a barrier "
                      "message again",
                      1000, 10, 1000000},
    [DROP] = {"drop", "For tests: of 1000 packets of engine datagram so many are not sent", 0, 0,
              1000},
    [TCP_SEGMENT] = {"tcp_segment",
                     "Bytes of one fragment over TCP of UCX; 0 leaves it to UCX. Holds for the "
                     "process if engine put is the first to start UCX",
                     65536, 0, 1048576},
};

/** Those that must be the same on all ranks. */
static const int same[] = {PRIORITY, SETUP_CALL, FANOUT, PPN};

static const char *const schedules[] = {"dissemination", "pairwise", "gather"};
static const char *const uses[] = {[NICBARRIER_VERBS_AUTO] = "auto",
                                   [NICBARRIER_VERBS_NEVER] = "never",
                                   [NICBARRIER_VERBS_ALWAYS] = "always"};
static const char *engine = "auto";
static const char *schedule = "dissemination";
static const char *interface = "";
static const char *verbs = "auto";
static const char *device = "";
static const char *tls = "";

static const char *const kind_names[NICBARRIER_KINDS] = {"auto", "shm", "put", "datagram"};

const char *nicbarrier_kind_name(nicbarrier_kind_t kind)
{
    return kind_names[kind];
}

int nicbarrier_params_register(const mca_base_component_t *c)
{
    nicbarrier_params_t *p = &mca_coll_nicbarrier_component.params;

    for (int i = 0; i < N_RANGED; i++) {
        onic_register_ranged(c, &ranged[i]);
    }
    onic_register_string(
        c, "engine", &engine,
        "What carries barriers: auto (shm where all processes share memory; otherwise "
        "put where all machines have an RDMA adapter that is up and that UCX_TLS and "
        "UCX_NET_DEVICES allow, else datagram), shm (flags in shared memory), put (UCX puts "
        "into flags; over TCP and the like UCX emulates them by messages, which takes longer "
        "than datagrams), datagram (UDP or verbs, with retransmission "
        "on request of the receiver). Between nodes one leader for each node takes "
        "part, the others gather behind it in shared memory");
    onic_register_string(
        c, "schedule", &schedule,
        "Who tells whom in the network engines: dissemination, pairwise or gather");
    onic_register_string(c, "interface", &interface,
                         "Engine datagram: the interface to use, by name or as address/prefix "
                         "(10.0.0.0/24); empty takes the first that is up and not the loopback");
    onic_register_string(
        c, "verbs", &verbs,
        "Engine datagram: when to send by unreliable datagrams of verbs devices "
        "(InfiniBand, RoCE) and not by UDP: auto (between all that have a device and "
        "can reach each other by it; whoever does not answer there gets UDP), never, "
        "or always (without it the barriers are left to the module below). Must be the "
        "same on all ranks" NO_VERBS);
    onic_register_string(
        c, "device", &device,
        "Engine datagram: the verbs devices that may be used, as a list of "
        "name[:port[:index of its address]], of which the first counts that is there "
        "and active, as in mlx5_0:1,mlx5_1; empty takes InfiniBand before Ethernet, "
        "then the fastest, and of Ethernet's addresses one of RoCE 2 and IPv4. May "
        "differ between ranks");
    onic_register_string(
        c, "tls", &tls,
        "Engine put: UCX transports, as in UCX_TLS; empty takes UCX_TLS from the "
        "environment, or what UCX chooses. Holds if engine put is the first to start "
        "UCX");
    onic_register_bool(
        c, "thread", true, &p->net.thread,
        "Run a helper thread that moves barriers on while the application is away from "
        "MPI; it sleeps in the kernel otherwise. Without it nonblocking barriers between "
        "nodes make progress only inside MPI calls, and windows of osc_nicstride are not served "
        "outside of them if engine put is the first to start UCX");
    onic_register_bool(
        c, "skew", false, &p->skew,
        "Measure the time from the first arrival to the last one on the node (see the "
        "performance variables coll_nicbarrier_skew_*). Costs two readings of the clock "
        "for each barrier");
    return OMPI_SUCCESS;
}

/** Index of a word in a list, or -1 after a text. */
static int choice(const char *param, const char *word, const char *const *words, int n)
{
    char list[128] = "";

    for (int i = 0; i < n; i++) {
        if (word != NULL && strcmp(word, words[i]) == 0) {
            return i;
        }
        snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s", i > 0 ? ", " : "",
                 words[i]);
    }
    onic_help(HELP_FILE, "bad-word", param, word != NULL ? word : "", list);
    return -1;
}

/** FNV-1a. */
static uint64_t hash(uint64_t h, const void *bytes, size_t n)
{
    const unsigned char *b = bytes;

    for (size_t i = 0; i < n; i++) {
        h = (h ^ b[i]) * 0x100000001b3u;
    }
    return h;
}

static uint64_t fingerprint(const nicbarrier_params_t *p)
{
    int words[] = {(int)p->engine, p->net.schedule, p->net.verbs};
    uint64_t h = hash(0xcbf29ce484222325u, words, sizeof(words));

    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
        h = hash(h, &ranged[same[i]].value, sizeof(int));
    }
    return h;
}

void nicbarrier_params_describe(char *text, size_t size)
{
    const nicbarrier_params_t *p = &mca_coll_nicbarrier_component.params;
    size_t n =
        (size_t)snprintf(text, size, ", engine %s, schedule %s, verbs %s", kind_names[p->engine],
                         schedules[p->net.schedule], uses[p->net.verbs]);

    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]) && n < size; i++) {
        const onic_ranged_t *r = &ranged[same[i]];
        n += (size_t)snprintf(text + n, size - n, ", %s %d", r->name, r->value);
    }
}

bool nicbarrier_params_wanted(void)
{
    return mca_coll_nicbarrier_component.params.priority > PRIORITY_INITIAL;
}

int nicbarrier_params_check(void)
{
    nicbarrier_params_t *p = &mca_coll_nicbarrier_component.params;
    int kind = choice("engine", engine, kind_names, NICBARRIER_KINDS);
    int plan = choice("schedule", schedule, schedules, 3);
    int use = choice("verbs", verbs, uses, 3);

    if (kind < 0 || plan < 0 || use < 0 ||
        onic_check_ranged(ranged, N_RANGED, HELP_FILE) != OMPI_SUCCESS) {
        return OMPI_ERR_BAD_PARAM;
    }
    if (device != NULL && !nicbarrier_port_filter_valid(device)) {
        onic_help(HELP_FILE, "bad-device", device);
        return OMPI_ERR_BAD_PARAM;
    }
    p->engine = (nicbarrier_kind_t)kind;
    p->priority = ranged[PRIORITY].value;
    p->setup_call = ranged[SETUP_CALL].value;
    p->fanout = ranged[FANOUT].value;
    p->ppn = ranged[PPN].value;
    p->spin = ranged[SPIN].value;
    p->net.schedule = plan;
    p->net.tls = tls != NULL && tls[0] != '\0' ? tls : NULL;
    p->net.tcp_segment = (size_t)ranged[TCP_SEGMENT].value;
    p->net.interface = interface != NULL && interface[0] != '\0' ? interface : NULL;
    p->net.verbs = use;
    p->net.device = device != NULL && device[0] != '\0' ? device : NULL;
    p->net.nack_usec = (unsigned)ranged[NACK_TIMEOUT].value;
    p->net.drop = (unsigned)ranged[DROP].value;
    p->fingerprint = fingerprint(p);
    return OMPI_SUCCESS;
}
