/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/sync/enter.h"
#include "osc_nicstride/sync/counted.h"
#include "osc_nicstride/window/errors.h"

const char *nicstride_enter(nicstride_module_t *m, int target)
{
    const char *wrong;

    OPAL_THREAD_LOCK(&m->lock);
    wrong = nicstride_epoch_access(&m->epoch, (uint32_t)target);
    OPAL_THREAD_UNLOCK(&m->lock);
    if (wrong == NULL && !nicstride_is_past_fence(m, target))
        nicstride_await_done(m, target);
    return wrong;
}

bool nicstride_may_enter(nicstride_module_t *m, int target)
{
    return nicstride_enter(m, target) == NULL;
}

int nicstride_check_passive(nicstride_module_t *m, const char *call, int target)
{
    const char *wrong;

    OPAL_THREAD_LOCK(&m->lock);
    wrong = nicstride_epoch_passive(&m->epoch, (uint32_t)target);
    OPAL_THREAD_UNLOCK(&m->lock);
    if (wrong != NULL)
        return nicstride_error(m, call, OMPI_ERR_RMA_SYNC, "%s (target rank %d)", wrong, target);
    return OMPI_SUCCESS;
}
