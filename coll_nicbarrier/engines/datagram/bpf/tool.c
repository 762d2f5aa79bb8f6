/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file nicbarrier-bpf: the administrator's tool for barriers in the kernel. */
#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "coll_nicbarrier/engines/datagram/bpf/local.h"
#include "coll_nicbarrier/engines/datagram/bpf/service.h"
#include "common/config.h"

enum { USAGE = 2 };

static const char *const help =
    "usage: nicbarrier-bpf load [OPTION...] INTERFACE\n"
    "       nicbarrier-bpf status INTERFACE\n"
    "       nicbarrier-bpf unload INTERFACE\n"
    "\n"
    "Barriers of coll_nicbarrier between hosts, stepped by programs in the kernel at a network\n"
    "interface. `load' puts them there and starts a service in the background, which installs\n"
    "groups for jobs; it needs CAP_BPF and CAP_NET_ADMIN. Jobs need no privilege.\n"
    "\n"
    "  --users all|GROUP       whose jobs may use it (default: those of the user who loads it)\n"
    "  --foreground            do not go into the background\n"
    "  --help, --version\n";

static int complain(const char *what, const char *cure)
{
    fprintf(stderr, "nicbarrier-bpf: %s%s%s\n", what, cure[0] != '\0' ? "\n    " : "", cure);
    return EXIT_FAILURE;
}

/* ---- load ------------------------------------------------------------------------------------ */

typedef struct options {
    const char *interface;
    nicbarrier_bpf_rules_t rules;
    bool foreground;
} options_t;

static int load_failed(int error)
{
    return error == EPERM || error == EACCES
               ? complain("the kernel takes no programs from this user",
                          "it needs CAP_BPF and CAP_NET_ADMIN: call it as root")
               : complain(strerror(error), "the kernel must be 5.18 or later, with BTF "
                                           "(CONFIG_DEBUG_INFO_BTF) and CONFIG_BPF_JIT");
}

static int attach_failed(int error)
{
    switch (error) {
    case EPERM:
        return complain("the programs may not be attached", "it needs CAP_NET_ADMIN");
    case ENOENT:
    case EOPNOTSUPP:
        return complain("the kernel has no hook for them",
                        "it needs CONFIG_NET_SCH_INGRESS and CONFIG_NET_CLS_BPF: modprobe "
                        "sch_ingress cls_bpf");
    default:
        return complain(strerror(error), "");
    }
}

/** A descriptor that becomes readable when the process is told to end. */
static int watch_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC);
}

static bool is_ethernet(const char *interface)
{
    struct ifreq r = {.ifr_flags = 0};
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    (void)snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", interface);
    const bool is = fd >= 0 && ioctl(fd, SIOCGIFHWADDR, &r) == 0;
    if (fd >= 0)
        close(fd);
    return is && r.ifr_hwaddr.sa_family == ARPHRD_ETHER;
}

/** Serves at an interface at which the programs are attached. */
static int serve(const options_t *o, int interface, int listening)
{
    /* Not before: the kernel may take longer to check the programs than a process waits for an
     * answer. */
    if (listen(listening, NICBARRIER_BPF_BACKLOG) != 0)
        return complain(strerror(errno), "");
    printf("nicbarrier-bpf: loaded on %s\n", o->interface);
    (void)fflush(stdout);
    /* The parent ends here; the child inherits what it has loaded, and listens itself, so that the
     * kernel says that the service is this process (stop). */
    if (!o->foreground && (daemon(0, 0) != 0 || listen(listening, NICBARRIER_BPF_BACKLOG) != 0))
        return complain(strerror(errno), "");
    const int error = nicbarrier_bpf_serve(listening, interface, &o->rules, watch_signals());
    return error == 0 ? EXIT_SUCCESS : complain(strerror(error), "");
}

static int load(const options_t *o)
{
    const struct rlimit files = {65536, 65536};
    const int interface = (int)if_nametoindex(o->interface);
    if (!is_ethernet(o->interface))
        return complain("this interface is not of Ethernet", "ip link shows those of this host");
    const int listening = nicbarrier_bpf_local_bind(o->interface);
    if (listening < 0) {
        return errno == EADDRINUSE
                   ? complain("it is loaded on this interface", "see nicbarrier-bpf status")
                   : complain(strerror(errno), "");
    }
    (void)setrlimit(RLIMIT_NOFILE, &files);
    if (nicbarrier_bpf_load() != 0)
        return load_failed(errno);
    const int error = nicbarrier_bpf_attach(interface);
    const int status = error != 0 ? attach_failed(error) : serve(o, interface, listening);
    nicbarrier_bpf_detach(interface);
    nicbarrier_bpf_unload();
    return status;
}

/* ---- status and unload ----------------------------------------------------------------------- */

static int status(const char *interface)
{
    const int service = nicbarrier_bpf_local_connect(interface);
    printf("nicbarrier-bpf: %sloaded on %s\n", service < 0 ? "not " : "", interface);
    if (service >= 0)
        close(service);
    return service < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/** Ends the service, and waits until it is gone: the connection closes last. */
static int stop(int service)
{
    struct ucred who;
    socklen_t size = sizeof(who);
    char byte;
    if (getsockopt(service, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 || who.pid <= 0)
        return complain("its process is not seen from here", "");
    if (kill(who.pid, SIGTERM) != 0)
        return complain("only the user who has loaded it, and root, may unload it", "");
    while (nicbarrier_bpf_local_receive(service, &byte, sizeof(byte), NULL) > 0) {
    }
    return EXIT_SUCCESS;
}

static int unload(const char *interface)
{
    const int service = nicbarrier_bpf_local_connect(interface);
    if (service < 0 && errno != ECONNREFUSED)
        return complain("its service does not answer", strerror(errno));
    if (service < 0) {
        const int reserved = nicbarrier_bpf_local_bind(interface);
        if (reserved < 0)
            return complain("it is being loaded or unloaded", "try again");
        /* A killed service may have left its TC programs. */
        nicbarrier_bpf_detach((int)if_nametoindex(interface));
        close(reserved);
        return complain("it is not loaded on this interface", "");
    }
    const int rc = stop(service);
    close(service);
    return rc;
}

/* ---- arguments ------------------------------------------------------------------------------- */

static int bad(const char *what, const char *value)
{
    fprintf(stderr, "nicbarrier-bpf: %s: %s\n%s", what, value, help);
    return USAGE;
}

static int parse_users(const char *text, nicbarrier_bpf_rules_t *rules)
{
    rules->all = strcmp(text, "all") == 0;
    if (rules->all)
        return 0;
    const struct group *g = getgrnam(text);
    if (g == NULL)
        return bad("no such group of users", text);
    rules->has_group = true;
    rules->group = g->gr_gid;
    return 0;
}

/** Returns 0 to go on, an exit status to fail with, or -1 if all is done. */
static int parse(int argc, char **argv, options_t *o)
{
    static const struct option long_options[] = {{"users", required_argument, NULL, 'u'},
                                                 {"foreground", no_argument, NULL, 'f'},
                                                 {"help", no_argument, NULL, 'h'},
                                                 {"version", no_argument, NULL, 'v'},
                                                 {NULL, 0, NULL, 0}};
    int c, status = 0;
    while (status == 0 && (c = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
        switch (c) {
        case 'u':
            status = parse_users(optarg, &o->rules);
            break;
        case 'f':
            o->foreground = true;
            break;
        case 'h':
            fputs(help, stdout);
            return -1;
        case 'v':
            puts("nicbarrier-bpf " OMPI_NIC_VERSION);
            return -1;
        default:
            return USAGE;
        }
    }
    return status;
}

int main(int argc, char **argv)
{
    options_t o = {.interface = NULL};
    const int rc = parse(argc, argv, &o);
    if (rc != 0)
        return rc < 0 ? EXIT_SUCCESS : rc;
    if (argc - optind != 2)
        return bad("an order and an interface are needed", "load, status or unload INTERFACE");
    o.interface = argv[optind + 1];
    if (if_nametoindex(o.interface) == 0)
        return complain("no such interface", "ip link shows those of this host");
    if (strcmp(argv[optind], "load") == 0)
        return load(&o);
    if (strcmp(argv[optind], "status") == 0)
        return status(o.interface);
    if (strcmp(argv[optind], "unload") == 0)
        return unload(o.interface);
    return bad("no such order", argv[optind]);
}
