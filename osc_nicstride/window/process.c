/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/window/component.h"
#include "osc_nicstride/window/module.h"

#include <stdlib.h>

nicstride_process_t *nicstride_processes;

nicstride_process_t *nicstride_process_locked(onic_peer_t *wire)
{
    void **slot = onic_peer_slot(wire, ONIC_AM_OSC);
    nicstride_process_t *p = *slot;

    if (p != NULL)
        return p;
    p = calloc(1, sizeof(*p));
    if (p == NULL)
        return NULL;
    p->next = nicstride_processes;
    nicstride_processes = p;
    *slot = p;
    return p;
}

bool nicstride_process_forget(onic_peer_t *wire, bool left)
{
    void **slot = onic_peer_slot(wire, ONIC_AM_OSC);
    nicstride_process_t *p = *slot, **at = &nicstride_processes;

    if (!left || p == NULL)
        return true;
    /* A window that was forgotten at the end may have some. */
    if (p->peers != NULL)
        return false;
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    *slot = NULL;
    (void)nicstride_loan_returned(&nicstride_component.bank, &p->loan, p->loan.lent);
    free(p->learn);
    free(p);
    return true;
}

void nicstride_processes_fini(void)
{
    nicstride_component.bank = (nicstride_bank_t){0};
    while (nicstride_processes != NULL) {
        nicstride_process_t *p = nicstride_processes;

        nicstride_processes = p->next;
        free(p->learn);
        free(p);
    }
}
