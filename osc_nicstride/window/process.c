/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/window/process.h"

#include <stdlib.h>

/* Wire lock. */
static nicstride_process_t *all;

nicstride_process_t *nicstride_process_locked(onic_peer_t *wire)
{
    void **slot = onic_peer_slot(wire, ONIC_AM_OSC);
    nicstride_process_t *p = *slot;

    if (p != NULL)
        return p;
    p = calloc(1, sizeof(*p));
    if (p == NULL)
        return NULL;
    p->quota.limit = UINT64_MAX;
    p->next = all;
    all = p;
    *slot = p;
    return p;
}

void nicstride_processes_fini(void)
{
    while (all != NULL) {
        nicstride_process_t *p = all;

        all = p->next;
        free(p);
    }
}
