/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>

#include "opal/util/output.h"
#include "opal/util/proc.h"
#include "ompi/constants.h"

#include "common/support/component.h"
#include "common/mover/pipe/blocks.h"
#include "common/mover/pipe/chunks.h"
#include "osc_nicstride/queue/observe.h"
#include "osc_nicstride/component/setup.h"
#include "osc_nicstride/methods/methods.h"
#include "osc_nicstride/methods/plan.h"
#include "osc_nicstride/window/state.h"

int nicstride_model_init(const char *cost)
{
    nicstride_component_t *c = &nicstride_component;
    onic_links_t links;

    if (!onic_links_given(&links, cost, NICSTRIDE_HELP_FILE))
        return OMPI_ERR_BAD_PARAM;
    c->paths.node = (nicstride_path_t){
        .link = links.node, .mover_block = ONIC_MOVER_BLOCK, .sieve_piece = c->params.sieve_piece};
    c->paths.net = (nicstride_path_t){.link = links.net, .mover_block = ONIC_BLOCK_BYTES};
    c->paths.adapter = (nicstride_path_t){.link = links.adapter, .mover_block = ONIC_BLOCK_BYTES};
    c->limits = (nicstride_limits_t){
        .near = nicstride_inline_bytes(links.node.message, links.node.byte),
        .far = nicstride_inline_bytes(links.net.message, links.net.byte),
    };
    return OMPI_SUCCESS;
}

void nicstride_model_show(const nicstride_module_t *m)
{
    nicstride_component_t *c = &nicstride_component;
    const onic_links_t links = {
        .node = c->paths.node.link, .net = c->paths.net.link, .adapter = c->paths.adapter.link};
    char table[8192], numbers[ONIC_LINKS_TEXT_MAX];

    if (c->plan_shown || m->rank != 0)
        return;
    c->plan_shown = true;
    nicstride_plan_table(nicstride_methods, (nicstride_method_t)c->params.method, &c->paths, table,
                         sizeof(table));
    onic_links_write(&links, numbers, sizeof(numbers));
    opal_output(0,
                "osc_nicstride: methods by kind of peer, block and size, by the model\n%s"
                "osc_nicstride: its numbers\n%s",
                table, numbers);
}

void nicstride_window_show(const nicstride_module_t *m)
{
    const char *on_node = "";

    if (m->node.n > 1) {
        const int other = m->node.me == 0 ? 1 : 0;

        on_node = m->mapped[other] != NULL ? "; on the node by load and store"
                                           : "; on the node by single copy, slots and messages";
    }
    opal_output(0, "osc_nicstride: window %u of %d processes, %d of them on %s%s%s", m->name,
                m->size, m->node.n, opal_process_info.nodename, on_node,
                m->size > m->node.n ? "; to other nodes by messages, or an adapter" : "");
}

static void show_learned(const onic_learn_t *learn, const nicstride_path_t *path)
{
    const bool on_node = path == &nicstride_component.paths.node;
    char text[8192];

    nicstride_plan_learned(nicstride_methods, learn, path, text, sizeof(text));
    opal_output(0,
                "osc_nicstride: of %.0f us observed %s trials lost %.0f us; microseconds learned, "
                "and how many times the model's\n%s",
                learn->budget.spent / 1000, on_node ? "with a peer of the node" : "on the network",
                learn->budget.lost / 1000, text);
}

void nicstride_model_show_done(void)
{
    const int forced = nicstride_component.params.method;

    if (forced != NICSTRIDE_METHOD_AUTO) {
        onic_say_idle("osc_nicstride_method", nicstride_methods[forced]->name,
                      nicstride_counters.ops, NICSTRIDE_METHODS_MAX, forced);
    }
    if (nicstride_component.plan_shown)
        nicstride_learned_each(show_learned);
}
