/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/mover/links.h"

#include <stdio.h>
#include <string.h>

#include "common/model/calibrate.h"
#include "common/mover/pair.h"
#include "common/support/help.h"

/** Under the wire lock. */
static struct {
    onic_links_known_t known;
    unsigned tries[2]; /**< to measure with a peer of another node, of this one */
    bool alone;        /**< this process has measured by itself, */
    bool single_copy;  /**< single copy too */
} state = {.known = {.source = "the default"}};

const onic_links_known_t *onic_links_known_locked(void)
{
    if (state.known.version == 0) {
        state.known.links = onic_links_default;
    }
    return &state.known;
}

static void add_locked(const onic_measured_t *measured, const char *source)
{
    onic_links_known_t *k = &state.known;
    if (onic_measured_add(&k->measured, measured)) {
        k->links = onic_links_default;
        onic_links_fit(&k->links, &k->measured);
        k->source = source;
        k->version++;
    }
}

/** Is there something that this process has not tried to measure by itself? */
static bool lacks_alone_locked(bool single_copy)
{
    const onic_samples_t *s = &state.known.measured.alone;
    return (!state.alone && s->packed == 0) || (single_copy && !state.single_copy && s->call == 0);
}

static bool may_try(bool on_node)
{
    onic_wire_lock();
    const onic_measured_t *m = &state.known.measured;
    const bool may =
        (on_node ? m->node : m->net).ping == 0 && state.tries[on_node] < ONIC_LINKS_TRIES;
    state.tries[on_node] += may;
    onic_wire_unlock();
    return may;
}

void onic_links_measure(bool single_copy, onic_peer_t *near, onic_peer_t *far, unsigned usec)
{
    onic_measured_t found = {.alone.call = 0};
    if (near != NULL && may_try(true)) {
        onic_measure_pair(near, usec, &found.node);
    }
    if (far != NULL && may_try(false)) {
        onic_measure_pair(far, usec, &found.net);
    }
    onic_wire_lock();
    if (lacks_alone_locked(single_copy)) {
        onic_calibrate(single_copy, &found.alone);
        state.alone = true;
        state.single_copy = state.single_copy || single_copy;
    }
    add_locked(&found, "measured by this process");
    onic_wire_unlock();
}

void onic_links_take(const onic_measured_t *theirs)
{
    onic_wire_lock();
    add_locked(theirs, "measured by another process of the node");
    onic_wire_unlock();
}

/* ---- by hand ----------------------------------------------------------------------------------
 */

static void refuse(const char *cost, const char *help_file, const onic_link_error_t *e)
{
    char where[32] = "";

    if (e->line > 0 && cost[0] == '@') {
        snprintf(where, sizeof(where), " in line %u", e->line);
    }
    onic_help(help_file, "bad-cost", cost, e->why, where, e->name[0] != '\0' ? ": " : "", e->name,
              e->value[0] != '\0' ? "=" : "", e->value);
}

bool onic_links_given(onic_links_t *links, const char *cost, const char *help_file,
                      const char **source_p)
{
    onic_link_error_t error;
    bool good = true;

    *source_p = "the default";
    if (cost[0] == '@') {
        *source_p = "from the user's file";
        good = onic_links_load(links, cost + 1, &error);
    } else if (strcmp(cost, "measure") != 0 && strcmp(cost, "default") != 0) {
        *source_p = "given for the node";
        good = onic_link_read(&links->node, cost, &error);
    }
    if (!good) {
        refuse(cost, help_file, &error);
    }
    return good;
}
