/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "opal/util/output.h"
#include "ompi/constants.h"

#include "common/model/calibrate.h"
#include "common/mover/links.h"
#include "osc_nicstride/channel/observe.h"
#include "osc_nicstride/component/model.h"
#include "osc_nicstride/methods/methods.h"
#include "osc_nicstride/methods/plan.h"
#include "osc_nicstride/window/component.h"
#include "osc_nicstride/window/control.h"

#define HELP_FILE "help-osc-nicstride.txt"

/* Where the numbers come from, in words. */
static const char *source = "the default";

/** From now on these numbers hold, and all lengths that follow from them. */
static void use(const onic_links_t *links)
{
    nicstride_component_t *c = &mca_osc_nicstride_component;

    c->paths.node = nicstride_path(&links->node, c->params.sieve_piece);
    c->paths.net = nicstride_path(&links->net, c->params.sieve_piece);
    c->limits = (nicstride_limits_t){
        .near = nicstride_inline_bytes(links->node.message, links->node.byte),
        .far = nicstride_inline_bytes(links->net.message, links->net.byte),
    };
}

int nicstride_model_init(const char *cost)
{
    onic_links_t links = onic_links_default;

    mca_osc_nicstride_component.params.calibrate = strcmp(cost, "measure") == 0;
    if (!onic_links_given(&links, cost, HELP_FILE, &source))
        return OMPI_ERR_BAD_PARAM;
    use(&links);
    return OMPI_SUCCESS;
}

/** What this process has measured by now, for whichever component, holds here, too. Windows are
 * made by one thread at a time for a communicator, but by several at a time. */
static void adopt_locked(void)
{
    static unsigned version;
    const onic_links_known_t *known = onic_links_known_locked();

    if (known->version == version)
        return;
    version = known->version;
    source = known->source;
    use(&known->links);
}

/** The next process of the node, or of another to which there is a connection (channel/connect.h);
 *  NULL where there is none. */
static onic_peer_t *next_peer(const nicstride_module_t *m, bool on_node)
{
    int rank = m->rank;

    do
        rank = (rank + (on_node ? 1 : m->size - 1)) % m->size;
    while (rank != m->rank && (onic_node_index(&m->node, rank) >= 0) != on_node);
    if (rank == m->rank)
        return NULL;
    onic_wire_lock();
    onic_peer_t *peer = onic_peer_named(onic_rank_name(m->comm, rank));
    onic_wire_unlock();
    return peer;
}

void nicstride_model_measure(const nicstride_module_t *m)
{
    const nicstride_params_t *p = &mca_osc_nicstride_component.params;

    if (!p->calibrate || m->node.me != 0)
        return;
    onic_links_measure(p->cma, m->by_message ? next_peer(m, true) : NULL,
                       m->by_message ? next_peer(m, false) : NULL, ONIC_LINKS_USEC);
    onic_wire_lock();
    adopt_locked();
    (void)onic_model_publish(&nicstride_ctl(m, 0)->model, &onic_links_known_locked()->measured);
    onic_wire_unlock();
}

void nicstride_model_take(const nicstride_module_t *m)
{
    onic_measured_t theirs;

    if (!mca_osc_nicstride_component.params.calibrate || m->node.me == 0)
        return;
    if (onic_model_take(&nicstride_ctl(m, 0)->model, &theirs))
        onic_links_take(&theirs);
    onic_wire_lock();
    adopt_locked();
    onic_wire_unlock();
}

void nicstride_model_show(const nicstride_module_t *m)
{
    nicstride_component_t *c = &mca_osc_nicstride_component;
    const onic_links_t links = {.node = c->paths.node.link, .net = c->paths.net.link};
    char table[8192], numbers[ONIC_LINKS_TEXT_MAX];

    if (c->plan_shown || m->rank != 0)
        return;
    c->plan_shown = true;
    nicstride_plan_table(nicstride_methods, (nicstride_method_t)c->params.method, &c->paths, table,
                         sizeof(table));
    onic_links_write(&links, numbers, sizeof(numbers));
    opal_output(0,
                "osc_nicstride: methods by kind of peer, block and size, by the model\n%s"
                "osc_nicstride: its numbers, %s\n%s",
                table, source, numbers);
}

static void show_learned(const onic_learn_t *learn, bool on_network)
{
    const nicstride_component_t *c = &mca_osc_nicstride_component;
    char text[8192];

    nicstride_plan_learned(nicstride_methods, learn, on_network ? &c->paths.net : &c->paths.node,
                           text, sizeof(text));
    opal_output(0,
                "osc_nicstride: of %.0f us observed %s trials lost %.0f us; microseconds learned, "
                "and how many times the model's\n%s",
                learn->budget.spent / 1000,
                on_network ? "on the network" : "with a peer of the node",
                learn->budget.lost / 1000, text);
}

void nicstride_model_show_done(void)
{
    const nicstride_counters_t *c = &nicstride_counters;
    char text[512];
    int len = 0;

    if (!mca_osc_nicstride_component.plan_shown)
        return;
    for (int m = NICSTRIDE_METHOD_DIRECT; m < NICSTRIDE_METHOD_LAST; m++)
        len += snprintf(text + len, sizeof(text) - (size_t)len, "%s %s %llu (%llu bytes)",
                        m > NICSTRIDE_METHOD_DIRECT ? "," : "", nicstride_methods[m].name,
                        c->ops[m], c->bytes[m]);
    opal_output(0, "osc_nicstride: operations by method:%s", text);
    nicstride_learned_each(show_learned);
}
