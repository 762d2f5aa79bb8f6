/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/sync/enter.h"
#include "osc_nicstride/sync/counted.h"
#include "osc_nicstride/window/module.h"

const char *nicstride_enter(nicstride_module_t *m, int target)
{
    const char *wrong;

    NICSTRIDE_LOCKED(m, wrong = nicstride_epoch_access(&m->epoch, (uint32_t)target));
    if (wrong == NULL && !nicstride_is_past_fence(m, target))
        nicstride_await_done(m, target);
    return wrong;
}

int nicstride_check_passive(nicstride_module_t *m, const char *call, int target)
{
    const char *wrong;

    NICSTRIDE_LOCKED(m, wrong = nicstride_epoch_passive(&m->epoch, (uint32_t)target));
    if (wrong != NULL)
        return nicstride_sync_error(m, call, wrong, target);
    return OMPI_SUCCESS;
}
