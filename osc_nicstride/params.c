/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * MCA parameters of osc_nicstride: names, units, ranges, checks.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "osc_nicstride/component.h"
#include "common/node.h"

#include "ompi/constants.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/util/show_help.h"

#define HELP_FILE "help-osc-nicstride.txt"

/** A number with its range; the text and the check come from one place. */
typedef struct ranged_param {
    const char *name;
    const char *help;
    int value;
    int min;
    int max;
} ranged_param_t;

enum { PRIORITY, SERVER_IDLE, WINDOW, TCP_SEGMENT, SIEVE_PIECE, N_RANGED };

static ranged_param_t ranged[N_RANGED] = {
    [PRIORITY] = {"priority",
                  "Priority among the osc components. The default is below that of the components "
                  "that come with Open MPI: select this one by name (osc=nicstride)",
                  NICSTRIDE_PRIORITY_INITIAL, 0, 1000},
    [SERVER_IDLE] = {"server_idle",
                     "Microseconds that the application must be away from MPI before the server "
                     "thread answers one-sided requests in its place. Smaller values answer "
                     "sooner and cost more wake-ups",
                     1000, 1, 1000000},
    [WINDOW] = {"window",
                "Most messages without acknowledgement from one process to another, for each "
                "window. Bounds what a target must hold for an origin",
                256, 2, 65536},
    [TCP_SEGMENT] = {"tcp_segment",
                     "Bytes of one fragment over TCP; 0 leaves it to UCX. UCX_TCP_TX_SEG_SIZE and "
                     "UCX_TCP_RX_SEG_SIZE in the environment win",
                     262144, 0, 1048576},
    [SIEVE_PIECE] = {"sieve_piece",
                     "Bytes that method sieve reads at once; 0 takes half of a core's L2 cache", 0,
                     0, 1 << 30},
};

static const char *method = "auto";
static const char *tls = "";

static int register_ranged(const mca_base_component_t *c, ranged_param_t *p)
{
    char help[512];

    snprintf(help, sizeof(help), "%s. Range %d to %d", p->help, p->min, p->max);
    return mca_base_component_var_register(c, p->name, help, MCA_BASE_VAR_TYPE_INT, NULL, 0, 0,
                                           OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_READONLY, &p->value);
}

static int register_bool(const mca_base_component_t *c, const char *name, bool initial, bool *value,
                         const char *help)
{
    *value = initial;
    return mca_base_component_var_register(c, name, help, MCA_BASE_VAR_TYPE_BOOL, NULL, 0, 0,
                                           OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_READONLY, value);
}

static int register_string(const mca_base_component_t *c, const char *name, const char **value,
                           const char *help)
{
    return mca_base_component_var_register(c, name, help, MCA_BASE_VAR_TYPE_STRING, NULL, 0, 0,
                                           OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_READONLY, value);
}

int nicstride_params_register(const mca_base_component_t *c)
{
    nicstride_params_t *p = &mca_osc_nicstride_component.params;

    for (int i = 0; i < N_RANGED; i++)
        register_ranged(c, &ranged[i]);
    register_string(c, "method", &method,
                    "How data moves: auto, direct (load and store in mapped memory), cma (single "
                    "copy by the kernel, each contiguous piece by itself), sieve (get: single copy "
                    "of the covering extent, then gather), pack (packed fragments by active "
                    "messages), zcopy (contiguous data by rendezvous). A method that cannot do a "
                    "transfer is replaced by one that can");
    register_string(c, "tls", &tls,
                    "UCX transports to use, as in UCX_TLS; empty takes UCX_TLS from the "
                    "environment, or what UCX chooses");
    register_bool(c, "show_plan", false, &p->show_plan,
                  "Print, when the first window is made, the method that is used for each kind of "
                  "peer, shape and size");
    register_bool(c, "node", true, &p->node,
                  "Share memory between the processes of a node. Without it each process is "
                  "treated as a node of its own and all its windows but shared ones are private");
    register_bool(c, "cma", true, &p->cma,
                  "Use single copy by the kernel (process_vm_readv and process_vm_writev) where "
                  "it works");
    register_bool(c, "server", true, &p->server,
                  "Run a server thread that answers one-sided requests while the application is "
                  "away from MPI. Without it windows whose memory is private make passive-target "
                  "progress only inside MPI calls");
    return OMPI_SUCCESS;
}

static int check_method(int *method_p)
{
    for (int m = 0; m < NICSTRIDE_METHOD_LAST; m++) {
        if (strcmp(method, nicstride_method_name((nicstride_method_t)m)) == 0) {
            *method_p = m;
            return OMPI_SUCCESS;
        }
    }
    opal_show_help(HELP_FILE, "bad-method", true, method);
    return OMPI_ERR_BAD_PARAM;
}

int nicstride_params_check(void)
{
    nicstride_params_t *p = &mca_osc_nicstride_component.params;

    for (int i = 0; i < N_RANGED; i++) {
        if (ranged[i].value < ranged[i].min || ranged[i].value > ranged[i].max) {
            opal_show_help(HELP_FILE, "bad-number", true, ranged[i].name, ranged[i].value,
                           ranged[i].min, ranged[i].max);
            return OMPI_ERR_BAD_PARAM;
        }
    }
    p->priority = ranged[PRIORITY].value;
    p->server_idle = (unsigned)ranged[SERVER_IDLE].value;
    p->window = (unsigned)ranged[WINDOW].value;
    p->tcp_segment = (size_t)ranged[TCP_SEGMENT].value;
    p->sieve_piece = (size_t)ranged[SIEVE_PIECE].value;
    if (p->sieve_piece == 0) {
        size_t l2, l3;

        onic_cache_sizes(&l2, &l3);
        p->sieve_piece = l2 / 2;
    }
    p->tls = tls != NULL && tls[0] != '\0' ? (char *)tls : NULL;
    return check_method(&p->method);
}
