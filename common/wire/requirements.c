/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/wire/requirements.h"

#include <stddef.h>
#include <string.h>

/** False where they cannot be had. */
static bool add_transports(onic_requirements_t *r, const char *tls)
{
    if (tls == NULL || *tls == '\0') {
        return true;
    }
    if (r->all.tls != NULL) {
        return strcmp(r->tls, tls) == 0;
    }
    if (strlen(tls) >= sizeof(r->tls)) {
        return false;
    }
    strcpy(r->tls, tls);
    r->all.tls = r->tls;
    return true;
}

bool onic_requirements_add(onic_requirements_t *r, const onic_wire_config_t *config)
{
    if (config->server_thread &&
        (!r->all.server_thread || config->server_idle_usec < r->all.server_idle_usec)) {
        r->all.server_idle_usec = config->server_idle_usec;
    }
    r->all.server_thread = r->all.server_thread || config->server_thread;
    r->all.single_copy = r->all.single_copy || config->single_copy;
    r->all.publish = r->all.publish || config->publish;
    if (config->queues > r->all.queues) {
        r->all.queues = config->queues;
    }
    if (config->credit > r->all.credit) {
        r->all.credit = config->credit;
    }
    if (config->tcp_seg_size > r->all.tcp_seg_size) {
        r->all.tcp_seg_size = config->tcp_seg_size;
    }
    return add_transports(r, config->tls);
}
